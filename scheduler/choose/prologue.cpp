// Where an anchor computes its first operand as it reads it.
#include <algorithm>

#include "ir/graph.h"
#include "scheduler/choose/choose.h"

namespace fusejit::scheduler {

bool takes_prologue(const ir::Node& anchor, std::size_t operand, const Target& target) {
  if (target.isa == Isa::cuda || ir::op_def(anchor.op).matrix) return false;
  const std::vector<ir::Contraction> contractions = ir::contractions_of(anchor);
  const auto in_panel = [&](const ir::Contraction& contraction) {
    if (contraction.a.operand != static_cast<int>(operand) || contraction.outputs() == 0 || contraction.terms() == 0)
      return false;
    const FusedWork fused{
        .compute = compute_type(anchor.type.dtype), .result_bytes = anchor.type.bytes(), .prologue = true};
    const Schedule schedule = candidates(contraction, target, fused).front();
    return schedule.winograd > 0 || !schedule.panel_a.empty();
  };
  return !contractions.empty() && std::all_of(contractions.begin(), contractions.end(), in_panel);
}

}  // namespace fusejit::scheduler
