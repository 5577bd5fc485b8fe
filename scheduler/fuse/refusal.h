// Refusals: why two neighbours were not fused. Every one has a code, a sentence and its numbers; they stay in the Plan
// and are what `fusejit-dump why` prints. Wherever one step of a plan reads what another wrote there is one
// (explained.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fusejit::scheduler {

enum class RefusalCode : std::uint8_t {
  cycle,              // the consumer also needs a value that depends on the producer's kernel
  reduction_barrier,  // the consumer needs the finished reduction of the same elements
  different_space,    // the two iterate over different elements
  not_elementwise,    // the consumer reads other elements than the one being computed
  anchor_operand,     // the consumer is an anchor, which reads its operand from memory many times
  cheaper_stored,     // computing it again for every consumer would move more bytes than storing it
  library_call,       // the producer is one call of a library, which does nothing else
  too_long,           // the kernel would compute more values than one kernel may
  other_kernel,       // the consumer runs with another of its operands, and groups are not joined once begun
  packed,             // weights that a tile reads many times are laid out for it by a kernel before it
  no_kernel,          // no kernel could be made for the two together
  rule_off,           // the rule that would join them is switched off
  concatenated        // the consumer reads a concatenation, which the producer stores a part of
};
inline constexpr int kRefusalCodes = 13;

std::string_view name(RefusalCode code);

struct Refusal {
  RefusalCode code;
  std::string producer;  // "%3 conv2d"
  std::string consumer;  // "%7 sub"
  std::string sentence;
  std::int64_t bytes = 0;  // moved because of it
};

}  // namespace fusejit::scheduler
