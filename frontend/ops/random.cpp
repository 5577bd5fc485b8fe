#include "frontend/ops/random.h"

#include <cmath>
#include <numbers>
#include <numeric>

#include "frontend/context.h"
#include "frontend/record.h"
#include "ir/base/check.h"

namespace fusejit {
namespace {

void philox(std::uint32_t c[4], std::uint32_t k0, std::uint32_t k1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0], p1 = std::uint64_t{0xCD9E8D57} * c[2];
    const std::uint32_t next[4] = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
                                   static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    for (int i = 0; i < 4; ++i) c[i] = next[i];
    k0 += 0x9E3779B9, k1 += 0xBB67AE85;
  }
}

}  // namespace

std::uint32_t PhiloxWords::operator[](std::uint64_t element) {
  if (const std::uint64_t block = element / 4; block != block_) {
    block_ = block;
    words_[0] = static_cast<std::uint32_t>(block), words_[1] = static_cast<std::uint32_t>(block >> 32);
    words_[2] = static_cast<std::uint32_t>(stream_), words_[3] = static_cast<std::uint32_t>(stream_ >> 32);
    philox(words_, static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32));
  }
  return words_[element % 4];
}

void manual_seed(std::uint64_t seed) {
  const std::lock_guard lock(context().generator_mutex);
  context().generator = {seed, 0};
}

RngState get_rng_state() {
  const std::lock_guard lock(context().generator_mutex);
  return context().generator;
}

void set_rng_state(const RngState& state) {
  const std::lock_guard lock(context().generator_mutex);
  context().generator = state;
}

std::uint64_t next_seed() {
  const std::lock_guard lock(context().generator_mutex);
  return seed_of(context().generator.seed, context().generator.drawn++);
}

std::vector<std::int64_t> random_permutation(std::int64_t count, std::uint64_t seed) {
  FJ_CHECK(count >= 0, "random_permutation: count is {}, it must not be negative", count);
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  PhiloxWords words(seed, 0);
  for (std::uint64_t i = static_cast<std::uint64_t>(count); i > 1; --i) {
    const std::uint64_t word = std::uint64_t{words[2 * i]} << 32 | words[2 * i + 1];
    const auto j = static_cast<std::uint64_t>(static_cast<unsigned __int128>(word) * i >> 64);
    std::swap(order[i - 1], order[j]);
  }
  return order;
}

std::vector<float> uniform_values(std::int64_t count, double bound) {
  PhiloxWords words(next_seed(), 0);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(((words[i] >> 8) * 0x1p-24 * 2 - 1) * bound);
  }
  return values;
}

std::vector<float> normal_values(std::int64_t count, double deviation) {
  PhiloxWords words(next_seed(), 0);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); i += 2) {
    const double radius = deviation * std::sqrt(-2 * std::log((words[i] + 1.0) * 0x1p-32));
    const double angle = 2 * std::numbers::pi * (words[i + 1] * 0x1p-32);
    values[i] = static_cast<float>(radius * std::cos(angle));
    if (i + 1 < values.size()) values[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
  return values;
}

Tensor rand_on(std::optional<Device> device, const Shape& shape, DType dtype) {
  const Draw draw = next_draw();
  return record_on(std::move(device), ir::Op::rand, {draw.seed},
                   {{"shape", shape.dims()}, {"stream", draw.stream}, {"dtype", dtype}});
}

Tensor rand(const Shape& shape, DType dtype) { return rand_on(default_device(), shape, dtype); }

}  // namespace fusejit
