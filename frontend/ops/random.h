// Philox4x32-10 on the host (ops.md §11), the same words as the ops `rand` and `dropout` draw.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fusejit/random.h"
#include "fusejit/tensor.h"

namespace fusejit {

// Word e of (seed, stream).
class PhiloxWords {
 public:
  PhiloxWords(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}
  std::uint32_t operator[](std::uint64_t element);

 private:
  std::uint64_t seed_, stream_;
  std::uint64_t block_ = ~std::uint64_t{0};
  std::uint32_t words_[4] = {};
};

// The seed of draw or step n under a generator's seed.
constexpr std::uint64_t seed_of(std::uint64_t seed, std::uint64_t n) { return seed * 0x100000001b3ull + n; }

// As rand(), on a device.
Tensor rand_on(std::optional<Device> device, const Shape& shape, DType dtype);
// `count` values uniform in [-bound, bound), from the default generator; f64 before rounding.
std::vector<float> uniform_values(std::int64_t count, double bound);
// `count` normal values of mean 0, from the default generator (Box and Muller 1958); f64 before rounding.
std::vector<float> normal_values(std::int64_t count, double deviation);

}  // namespace fusejit
