// Every function as an element-wise kernel, for each x86 target of this processor: machine code equals the kernel
// interpreter bit for bit on dense samples, whole vectors and single elements.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "ir/kernel/math.h"
#include "tests/support/fragment_table.h"
#include "tests/unit/codegen/run_kernel.h"

namespace fusejit::test {
namespace {

constexpr int kMathElements = 8192;

std::string function_text(const FunctionCase& c, DType dtype, Isa isa, int lanes) {
  const std::string_view type = name(dtype);
  const std::string at = lanes > 1 ? fmt::format("%i*{} + %l", lanes) : "%i";
  std::string params, loads, args;
  for (int i = 0; i < c.arguments; ++i) {
    params += fmt::format("%x{}: {}[{}] read, ", i, type, kMathElements);
    loads += fmt::format("%v{} = load %x{}[{}] : {}  ", i, i, at, type);
    args += fmt::format("{}%v{}", i ? ", " : "", i);
  }
  const std::string body = fmt::format("{}%r = {}({}) : {}  store %y[{}], %r", loads, ir::name(c.op), args, type, at);
  const std::string lane_loop = lanes > 1 ? fmt::format("for %l in 0..{} vector {{ {} }}", lanes, body) : body;
  return fmt::format("kernel @k({}%y: {}[{}] write) on {} {{ phase {{ for %i in 0..{} {{ {} }} }} }}", params, type,
                     kMathElements, name(isa), kMathElements / lanes, lane_loop);
}

// Even steps through all bit patterns; the second argument in another order, small integers among it.
template <class T>
void fill(Operands& operands, int arguments) {
  using U = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const U step = static_cast<U>(~U{0} / kMathElements) | 1;
  for (int b = 0; b < arguments; ++b) {
    T* out = static_cast<T*>(operands.buffers[static_cast<std::size_t>(b)].data());
    for (int i = 0; i < kMathElements; ++i) {
      const U place = static_cast<U>(b ? i * 4099 % kMathElements : i);
      out[i] = i % 16 == 15 ? static_cast<T>(i / 16 % 41 - 20) : std::bit_cast<T>(static_cast<U>(place * step));
    }
  }
}

template <class T>
void check(Isa isa, int lanes) {
  const DType dtype = sizeof(T) == 4 ? f32 : f64;
  for (const FunctionCase& c : function_cases()) {
    const ir::Kernel kernel = ir::parse_kernel(function_text(c, dtype, isa, lanes));
    ir::verify(kernel);
    Operands expected = random_operands(kernel, Values::ordinary, 1);
    Operands actual = random_operands(kernel, Values::ordinary, 1);
    fill<T>(expected, c.arguments), fill<T>(actual, c.arguments);
    run_interpreted(kernel, expected);
    run_compiled(*codegen::x86::compile(kernel, Target{}), actual, ir::TaskOrder::ascending);
    EXPECT_EQ(difference(kernel, expected, actual), "") << ir::name(c.op) << " " << name(dtype) << " on " << name(isa);
  }
}

class MathX86 : public ::testing::TestWithParam<Isa> {};

TEST_P(MathX86, VectorsEqualTheInterpreter) {
  if (!codegen::x86::host_supports(GetParam())) GTEST_SKIP() << "this processor cannot run " << name(GetParam());
  const int lanes = GetParam() == Isa::x86_avx512 ? 16 : GetParam() == Isa::x86_avx2 ? 8 : 4;
  check<float>(GetParam(), lanes);
  check<double>(GetParam(), lanes / 2);
}

TEST_P(MathX86, ScalarsEqualTheInterpreter) {
  if (!codegen::x86::host_supports(GetParam())) GTEST_SKIP() << "this processor cannot run " << name(GetParam());
  check<float>(GetParam(), 1);
  check<double>(GetParam(), 1);
}

INSTANTIATE_TEST_SUITE_P(All, MathX86, ::testing::Values(Isa::x86_avx512, Isa::x86_avx2, Isa::x86_v2));

}  // namespace
}  // namespace fusejit::test
