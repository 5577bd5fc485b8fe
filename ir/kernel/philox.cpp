#include "ir/kernel/philox.h"

namespace fusejit::ir {

std::array<std::uint32_t, 4> philox(std::int64_t counter, std::int64_t stream, std::int64_t seed) {
  const auto low = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::int64_t x) { return static_cast<std::uint32_t>(static_cast<std::uint64_t>(x) >> 32); };
  std::array<std::uint32_t, 4> c = {low(counter), high(counter), low(stream), high(stream)};
  std::uint32_t k0 = low(seed), k1 = high(seed);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * c[0], b = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(a)};
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  return c;
}

}  // namespace fusejit::ir
