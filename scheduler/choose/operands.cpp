// Operands of an anchor: how they lie in memory, and which one of a product of two images is the first.
#include "ir/node.h"
#include "scheduler/choose/roles.h"
#include "scheduler/lower/expression/space.h"

namespace fusejit::scheduler {
namespace {

bool pixels_share_a_set(const ir::ContractionOperand& image) {
  return shares_a_set(bytes(image.dtype, image.extents[1]));
}

}  // namespace

void set_layouts(FusedWork& fused, const ir::Node& anchor, const ir::Contraction& contraction) {
  const auto innermost = [&](const ir::ContractionOperand& operand) {
    return innermost_dim(anchor.operands[static_cast<std::size_t>(operand.operand)].value.type());
  };
  fused.innermost_of_a = innermost(contraction.a), fused.innermost_of_b = innermost(contraction.b);
}

ir::Contraction operands_in_order(const ir::Contraction& c, const Target& target, bool computes_b) {
  if (target.isa == Isa::cuda || computes_b || c.a.extents.size() < 2 || c.b.extents.size() < 2) return c;
  return pixels_share_a_set(c.a) && !pixels_share_a_set(c.b) ? ir::exchanged(c).value_or(c) : c;
}

}  // namespace fusejit::scheduler
