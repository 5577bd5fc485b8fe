// Runs one kernel text on random operands by the interpreter and as machine code, for bit-for-bit comparison.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/x86/compile.h"
#include "ir/kernel/interp.h"
#include "ir/kernel/kernel.h"

namespace fusejit::test {

// The text of a file under tests/kernels.
std::string kernel_text(const std::string& file);
// The same kernel for another isa: the isa word, and for x86:v2 each fma as mul then add.
std::string for_isa(const std::string& text, Isa isa);

// 64-byte aligned bytes with a guard behind them.
class Memory {
 public:
  explicit Memory(std::int64_t bytes);
  void* data() { return data_; }
  const void* data() const { return data_; }
  std::int64_t size() const { return size_; }
  bool guard_intact() const;

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
Operands random_operands(const ir::Kernel& kernel, Values values, std::uint64_t seed);

// Runs all tasks phase by phase in the given order.
void run_compiled(const codegen::CompiledKernel& compiled, Operands& operands, ir::TaskOrder order);
void run_interpreted(const ir::Kernel& kernel, Operands& operands);

// The first difference as a sentence, or "". Any NaN equals any NaN of the same dtype.
std::string difference(const ir::Kernel& kernel, const Operands& expected, const Operands& actual);

}  // namespace fusejit::test
