// Tune: whether what runs is chosen by its time on this machine.
#pragma once

#include <cstdint>
#include <string_view>

namespace fusejit::runtime {

enum class Tune : std::uint8_t {
  off,
  quick,  // the first few other schedules of each kernel, of those that give the same bits
  full    // also those that sum in another order, from one to the next as long as it helps; and, of the engines that
          // cuDNN offers for a call, the first few. Another run may choose others, with other bits
};

constexpr std::string_view name(Tune tune) {
  return tune == Tune::off ? "off" : tune == Tune::quick ? "quick" : "full";
}

}  // namespace fusejit::runtime
