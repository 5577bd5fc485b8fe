// fusejit convert: the named values of a file as another file, which PyTorch or this library reads.
#include <fmt/format.h>

#include "frontend/models/named.h"
#include "frontend/nn/shapes_only.h"
#include "fusejit/io.h"
#include "fusejit/onnx.h"
#include "tools/fusejit/command.h"
#include "tools/output.h"

namespace fusejit::tools {
namespace {

// The values as the model has them; UserError where they are not its own.
StateDict values_of_model(const std::string& name, const StateDict& values) {
  const std::shared_ptr<nn::Module> net = [&] {
    const nn::ShapesOnly only;  // every value is about to be set
    return models::model_named(name).make();
  }();
  net->load_state_dict(values);
  return net->state_dict();
}

}  // namespace

int convert(const ConvertOptions& options) {
  const bool to_safetensors = options.output.ends_with(".safetensors");
  if (!to_safetensors && !options.output.ends_with(".npz"))
    throw UsageError{fmt::format("'{}' must end in .npz or .safetensors", options.output)};
  const bool from_onnx = options.input.ends_with(".onnx");
  StateDict values = from_onnx ? onnx::load(options.input).state_dict() : load(options.input);
  if (!options.model.empty()) values = values_of_model(options.model, values);
  Metadata metadata;
  if (to_safetensors) {
    if (!from_onnx) metadata = load_metadata(options.input);
    metadata.emplace("format", "pt");  // PyTorch's readers ask for it
  }
  save(values, options.output, metadata);
  fmt::print("{}: {} values\n", options.output, values.size());
  finish_output();
  return kDone;
}

}  // namespace fusejit::tools
