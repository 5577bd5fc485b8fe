// Which operand of a product of two images is the first.
#include "scheduler/choose/choose.h"
#include "scheduler/choose/tuning.h"

namespace fusejit::scheduler {
namespace {

bool shares_sets(const ir::ContractionOperand& image) {
  return image.extents[1] * (bits(image.dtype) / 8) % tuning::kBytesOfSets == 0;
}

}  // namespace

ir::Contraction operands_in_order(const ir::Contraction& c, const Target& target, bool computes_b) {
  if (target.isa == Isa::cuda || computes_b || c.a.extents.size() < 2 || c.b.extents.size() < 2) return c;
  return shares_sets(c.a) && !shares_sets(c.b) ? ir::exchanged(c).value_or(c) : c;
}

}  // namespace fusejit::scheduler
