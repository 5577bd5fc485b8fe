#include <algorithm>

#include "ir/node.h"
#include "scheduler/choose/choose.h"
#include "scheduler/choose/roles.h"
#include "scheduler/choose/tuning.h"
#include "scheduler/lower/cuda/threads.h"

namespace fusejit::scheduler {

namespace {

// Pairs are made of rounded values: what that costs takes what is saved, as far as is known.
bool computes_second(const Schedule& schedule) {
  return schedule.winograd > 0 || (!schedule.panel_b.empty() && schedule.dot.empty());
}

// Tasks that share out the outputs copy the same panel each.
std::int64_t copies_of_panel(const ir::Contraction& contraction, const Schedule& schedule) {
  std::int64_t copies = 1;
  for (const ScheduledLoop& loop : schedule.tasks) {
    if (std::find(loop.dims.begin(), loop.dims.end(), schedule.vector) == loop.dims.end() || loop.step == 0) continue;
    copies *= ir::ceil_divide(contraction.dim(schedule.vector).extent, loop.step);
  }
  return copies;
}

}  // namespace

bool takes_prologue(const ir::Node& anchor, std::size_t operand, const Target& target, bool from_outside) {
  const std::vector<ir::Contraction> contractions = ir::contractions_of(anchor);
  // The other operand may be computed or not.
  const auto in_panel = [&](const ir::Contraction& of_row) {
    if (of_row.outputs() == 0 || of_row.terms() == 0) return false;
    const bool few = anchor.op == ir::Op::conv2d_weight_grad && anchor.type.shape[1] < tuning::kFewChannels &&
                     !runs_along_groups(roles_of(of_row), of_row);
    const bool is_b = of_row.b.operand == static_cast<int>(operand);
    for (const bool other : {false, true}) {
      const ir::Contraction contraction = operands_in_order(of_row, target, is_b || other);
      FusedWork fused{.compute = compute_type(anchor.type.dtype), .result_bytes = anchor.type.bytes()};
      if (target.isa == Isa::cuda) fused.lanes = cuda::kAccessBytes / bytes(anchor.type.dtype);
      set_layouts(fused, anchor, contraction);
      const bool first = contraction.a.operand == static_cast<int>(operand);
      (first ? fused.computes_a : fused.computes_b) = true;
      (first ? fused.computes_b : fused.computes_a) = other;
      const Schedule schedule = candidates(contraction, target, fused).front();
      if (first ? schedule.winograd == 0 && schedule.panel_a.empty() : !computes_second(schedule)) return false;
      if (first && few && !from_outside && schedule.dot.empty()) return false;
      if (ir::op_def(anchor.op).matrix && copies_of_panel(contraction, schedule) > tuning::kMostCopiesOfMatrix)
        return false;
    }
    return true;
  };
  return !contractions.empty() && std::all_of(contractions.begin(), contractions.end(), in_panel);
}

bool stores_in_copy(const ir::Node& anchor, const Target& target, bool bits) {
  if (target.isa == Isa::cuda || ir::op_def(anchor.op).matrix) return false;
  const std::vector<ir::Contraction> contractions = ir::contractions_of(anchor);
  if (contractions.size() != 1 || contractions[0].outputs() == 0 || contractions[0].terms() == 0) return false;
  const ir::Contraction contraction = operands_in_order(contractions[0], target, false);
  if (contraction.a.operand != 0) return false;
  const std::int64_t weights = anchor.operands[static_cast<std::size_t>(contraction.b.operand)].value.type().bytes();
  if (weights > target.l2_bytes) return false;  // small tasks would each read them from behind it
  // As the chooser would have it anyway, and as it has to be.
  for (const bool stores : {false, true}) {
    FusedWork fused{.compute = compute_type(anchor.type.dtype),
                    .result_bytes = anchor.type.bytes(),
                    .computes_a = true,
                    .stores_a = stores};
    set_layouts(fused, anchor, contraction);
    const Schedule schedule = candidates(contraction, target, fused).front();
    if (!check_copy(contraction, schedule).empty() || (bits && schedule.lanes % 8 != 0)) return false;
  }
  return true;
}

}  // namespace fusejit::scheduler
