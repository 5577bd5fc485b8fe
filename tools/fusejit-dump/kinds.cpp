#include "tools/fusejit-dump/kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace fusejit::tools {
namespace {

constexpr KindLook kLooks[kKinds] = {{"convolution", "convolution, product", "#3b82f6"},
                                     {"weight-gradient", "weight gradient", "#8b5cf6"},
                                     {"pooling", "pooling", "#14b8a6"},
                                     {"reduction", "reduction", "#f59e0b"},
                                     {"elementwise", "element-wise", "#22a55e"},
                                     {"composite", "composite", "#65a30d"},
                                     {"view", "view, source", "#a8a29e"},
                                     {"packing", "packing", "#8794a8"},
                                     {"library", "library call", "#ec4899"}};

// Kernels are named after the ops that they compute, also where those are parts of a composite.
bool reduces(const ir::Kernel& kernel) {
  std::istringstream words(kernel.name);
  for (std::string word; std::getline(words, word, '_');) {
    const std::optional<ir::Op> op = ir::op_named(word);
    if (op && kind_of(*op) == Kind::reduction) return true;
  }
  return false;
}

}  // namespace

Kind kind_of(ir::Op op) {
  const ir::OpDef& row = ir::op_def(op);
  switch (row.family) {
    case ir::Family::anchor:
      if (!row.is_contraction()) return Kind::pooling;
      return row.matrix || (row.images & 1U) != 0 ? Kind::convolution : Kind::weight_gradient;
    case ir::Family::reduce:
      return Kind::reduction;
    case ir::Family::composite:
      return Kind::composite;
    case ir::Family::view:
    case ir::Family::source:
    case ir::Family::leaf:
      return Kind::view;
    case ir::Family::elementwise:
    case ir::Family::kernel:
      return Kind::elementwise;
  }
  return Kind::elementwise;
}

Kind kind_of(const scheduler::PlanStep& step) {
  if (step.library) return Kind::library;
  if (step.kernel->name.starts_with("pack_")) return Kind::packing;
  Kind kind = Kind::elementwise;
  for (const std::string& label : step.ops) {  // "%3 conv2d"
    const std::optional<ir::Op> op = ir::op_named(label.substr(label.find(' ') + 1));
    if (!op) continue;
    if (kind_of(*op) == Kind::composite && reduces(*step.kernel)) kind = std::min(kind, Kind::reduction);
    kind = std::min(kind, kind_of(*op));  // element-wise ops and views are in every kernel
  }
  return kind;
}

const KindLook& look(Kind kind) { return kLooks[static_cast<std::size_t>(kind)]; }

std::string kind_styles() {
  std::string out;
  for (const KindLook& kind : kLooks) out += fmt::format(".{} {{ --kind: {}; }}\n", kind.style, kind.colour);
  return out;
}

}  // namespace fusejit::tools
