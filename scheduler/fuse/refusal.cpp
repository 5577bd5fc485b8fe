#include "scheduler/fuse/refusal.h"

namespace fusejit::scheduler {

std::string_view name(RefusalCode code) {
  constexpr std::string_view names[kRefusalCodes] = {
      "cycle",          "reduction_barrier", "different_space", "not_elementwise", "anchor_operand",
      "cheaper_stored", "library_call",      "too_long",        "other_kernel",    "packed",
      "no_kernel",      "rule_off",          "concatenated"};
  return names[static_cast<int>(code)];
}

}  // namespace fusejit::scheduler
