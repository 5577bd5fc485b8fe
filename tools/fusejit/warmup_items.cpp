#include "frontend/io/graph_file.h"
#include "frontend/models/named.h"
#include "ir/base/check.h"
#include "tools/fusejit/warmup.h"

namespace fusejit::tools {
namespace {

std::vector<runtime::Signature> signatures_of(const std::string& source, const WarmupOptions& options,
                                              std::vector<std::string>& notes) {
  if (models::is_model_source(source)) {
    const std::optional<DType> dtype = dtype_named(options.dtype);
    if (!dtype && !options.dtype.empty())
      throw UsageError{fmt::format("--dtype {} is not known (f32, f64, f16, bf16)", options.dtype)};
    const models::ModelGraph model = models::model_graph(source, dtype.value_or(f32));
    return {{model.graph,
             {model.donated.begin(), model.donated.end()},
             {},
             options.rules,
             options.memory_limit,
             Target::host()}};
  }
  if (source.ends_with(".fj"))
    return {{io::read_graph(source), {}, {}, options.rules, options.memory_limit, Target::host()}};
  runtime::SignatureFile file = runtime::read_signatures(source);
  notes.insert(notes.end(), file.notes.begin(), file.notes.end());
  return std::move(file.signatures);
}

}  // namespace

std::vector<WarmupItem> warmup_items(const WarmupOptions& options, std::vector<std::string>& notes) {
  std::vector<Target> targets;
  for (const std::string& target : options.targets) targets.push_back(Target::parse(target));
  std::vector<WarmupItem> items;
  for (const std::string& source : options.sources) {
    for (runtime::Signature& signature : signatures_of(source, options, notes)) {
      const Target own = signature.target.isa == Isa::cuda ? signature.target : Target::host();
      for (const Target& target : targets.empty() ? std::vector{own} : targets)
        items.push_back({source, signature, target});
    }
  }
  return items;
}

}  // namespace fusejit::tools
