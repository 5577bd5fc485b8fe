// Random operands for kernels, the kernel interpreter on them, and bit-for-bit comparison of what two engines left.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "ir/kernel/interp/interp.h"
#include "ir/kernel/kernel.h"

namespace fusejit::test {

// The text of a file under tests/kernels.
std::string kernel_text(const std::string& file);

// Bytes at an address that is a multiple of `align` (at most 64) and of nothing more, with a guard behind them.
class Memory {
 public:
  explicit Memory(std::int64_t bytes, std::int64_t align = 64);
  void* data() { return data_; }
  const void* data() const { return data_; }
  std::int64_t size() const { return size_; }
  bool guard_intact() const;
  bool defined = true;  // before anything is written

 private:
  std::vector<std::byte> storage_;
  std::byte* data_;
  std::int64_t size_;
};

enum class Values : std::uint8_t { ordinary, special };  // special: NaN, infinities, zeros of both signs, denormals

struct Operands {
  std::vector<Memory> buffers;
  std::vector<ir::Scalar> scalars;
};
inline constexpr std::int64_t kGuard = 256;
inline constexpr std::byte kGuardByte{0xA5};

double special(std::mt19937_64& random);
ir::Scalar random_scalar(DType dtype, Values values, std::mt19937_64& random);
// u32 buffers of the worked kernels hold pairs of bf16: random bits would be NaN too often.
void fill(Memory& memory, DType dtype, Values values, std::mt19937_64& random);

// Half way from a value of a 16-bit type to the next one and `step` neighbours further in f64: what is rounded to f32
// on the way is rounded wrongly. The value itself at the ends.
double half_way(DType half, std::uint64_t bits, int step);

inline bool is_nan(ir::Scalar s) { return is_float(s.dtype) && std::isnan(s.as_double()); }

Operands random_operands(const ir::Kernel& kernel, Values values, std::uint64_t seed);
void run_interpreted(const ir::Kernel& kernel, Operands& operands);

// The first difference as a sentence, or "". Any NaN equals any NaN of the same dtype.
std::string difference(const ir::Kernel& kernel, const Operands& expected, const Operands& actual);

}  // namespace fusejit::test
