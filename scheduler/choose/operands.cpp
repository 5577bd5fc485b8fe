// Which operand of a product of two images is the first.
#include "scheduler/choose/roles.h"

namespace fusejit::scheduler {
namespace {

bool pixels_share_a_set(const ir::ContractionOperand& image) {
  return shares_a_set(bytes(image.dtype, image.extents[1]));
}

}  // namespace

ir::Contraction operands_in_order(const ir::Contraction& c, const Target& target, bool computes_b) {
  if (target.isa == Isa::cuda || computes_b || c.a.extents.size() < 2 || c.b.extents.size() < 2) return c;
  return pixels_share_a_set(c.a) && !pixels_share_a_set(c.b) ? ir::exchanged(c).value_or(c) : c;
}

}  // namespace fusejit::scheduler
