// From the bytes of a file to a Graph: the one place, with tensor_data.cpp, that knows protocol buffers.
#include <frontend/onnx/wire/onnx.pb.h>

#include <limits>
#include <unordered_map>

#include "frontend/io/files.h"
#include "frontend/onnx/data_types.h"
#include "frontend/onnx/graph.h"
#include "frontend/onnx/wire/limits.h"
#include "frontend/onnx/wire/tensor_data.h"
#include "ir/base/check.h"

namespace fusejit::onnx {
namespace {

constexpr int kOldest = 13, kNewest = 21;

// Values by their names in the file.
class Names {
 public:
  explicit Names(Graph& graph) : graph_(graph) {}
  int number(const std::string& name) {
    if (name.empty()) return -1;
    const auto [found, is_new] = numbers_.emplace(name, static_cast<int>(graph_.names.size()));
    if (is_new) graph_.names.push_back(name);
    return found->second;
  }

 private:
  Graph& graph_;
  std::unordered_map<std::string, int> numbers_;
};

int opset_of(const wire::ModelValue& model, const std::string& source) {
  std::int64_t version = -1;
  for (const wire::OpSet& set : model.opset_import()) {
    if (set.domain().empty() || set.domain() == "ai.onnx") version = set.version();
  }
  FJ_CHECK(version >= 0, "{}: the model does not say which op set it is written in: no ONNX file, or cut off", source);
  if (version < kOldest || version > kNewest) {
    throw UnsupportedError(
        fmt::format("{}: the model is written in op set {}, {} to {} are understood: export it with "
                    "another (opset_version=17), or convert it (onnx.version_converter)",
                    source, version, kOldest, kNewest));
  }
  return static_cast<int>(version);
}

Attribute attribute_of(wire::AttributeValue& value, const std::string& source, const std::string& node) {
  Attribute attribute;
  attribute.name = value.name();
  attribute.kind = static_cast<Kind>(value.type());
  attribute.number = value.f();
  attribute.integer = value.i();
  attribute.text = value.s();
  attribute.numbers.assign(value.floats().begin(), value.floats().end());
  attribute.integers.assign(value.ints().begin(), value.ints().end());
  if (!value.ref_attr_name().empty()) attribute.problem = "refers to an attribute of a function";
  if (value.has_t()) {
    wire::Decoded decoded =
        wire::decode(*value.mutable_t(), source, fmt::format("attribute '{}' of {}", printable(attribute.name), node));
    attribute.tensor = std::move(decoded.tensor);
    attribute.problem = std::move(decoded.problem);
  }
  return attribute;
}

Node node_of(wire::NodeValue& value, Names& names, const std::string& source) {
  Node node;
  node.name = value.name();
  node.op = value.op_type();
  node.domain = value.domain() == "ai.onnx" ? "" : value.domain();
  for (const std::string& name : value.input()) node.inputs.push_back(names.number(name));
  for (const std::string& name : value.output()) node.outputs.push_back(names.number(name));
  const std::string called = fmt::format("node '{}'", printable(node.name));
  for (wire::AttributeValue& attribute : *value.mutable_attribute())
    node.attributes.push_back(attribute_of(attribute, source, called));
  return node;
}

Declared declared_of(const wire::ValueInfo& info, Names& names, const std::string& source) {
  FJ_CHECK(!info.name().empty(), "{}: an input or result has no name", source);
  Declared declared;
  declared.value = names.number(info.name());
  if (!info.type().has_tensor_type()) {
    declared.dtype_name = "no tensor";
    return declared;
  }
  const wire::TensorType& type = info.type().tensor_type();
  declared.dtype = dtype_of(type.elem_type());
  declared.dtype_name = data_type_name(type.elem_type());
  if (!type.has_shape()) return declared;
  declared.shape.emplace();
  for (const wire::Dimension& dim : type.shape().dim()) {
    const bool is_fixed = dim.has_dim_value() && dim.dim_value() >= 0;
    declared.shape->push_back({is_fixed ? dim.dim_value() : -1, dim.dim_param()});
  }
  FJ_CHECK(declared.shape->size() <= kMaxRank, "{}: '{}' has rank {}, the limit is {}", source, printable(info.name()),
           declared.shape->size(), kMaxRank);
  return declared;
}

}  // namespace

Graph read_model(const std::string& path) {
  wire::ModelValue model;
  {
    const std::vector<std::byte> bytes = io::read_file(path);
    FJ_CHECK(bytes.size() <= static_cast<std::size_t>(std::numeric_limits<int>::max()),
             "{}: the ONNX file has {} bytes, the limit is 2^31: larger models keep tensors in files of their own",
             path, bytes.size());
    wire::check_limits(bytes, path);
    FJ_CHECK(model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())),
             "{}: the ONNX file is damaged, cut off, or no ONNX file", path);
  }
  FJ_CHECK(model.has_graph(), "{}: the ONNX file has no graph: it is cut off, or no ONNX file", path);
  Graph graph;
  graph.source = path;
  graph.opset = opset_of(model, path);
  Names names(graph);
  wire::GraphValue& from = *model.mutable_graph();
  FJ_CHECK(from.sparse_initializer_size() == 0, "{}: the model has sparse initializers, which are not understood",
           path);
  for (wire::TensorValue& tensor : *from.mutable_initializer()) {
    const std::string name = tensor.name();
    FJ_CHECK(!name.empty(), "{}: an initializer has no name", path);
    wire::Decoded decoded = wire::decode(tensor, path, fmt::format("initializer '{}'", printable(name)));
    graph.initializers.push_back({names.number(name), std::move(decoded.tensor), std::move(decoded.problem)});
  }
  for (wire::NodeValue& node : *from.mutable_node()) graph.nodes.push_back(node_of(node, names, path));
  for (const wire::ValueInfo& input : from.input()) graph.inputs.push_back(declared_of(input, names, path));
  for (const wire::ValueInfo& result : from.output()) graph.results.push_back(declared_of(result, names, path));
  return graph;
}

}  // namespace fusejit::onnx
