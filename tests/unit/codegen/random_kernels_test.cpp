// Random kernels: machine code against the interpreter, bit for bit, for every instruction set this processor has.
#include <gtest/gtest.h>

#include "tests/support/random_kernel.h"
#include "tests/unit/codegen/run_kernel.h"

namespace fusejit::test {
namespace {

class RandomKernels : public ::testing::TestWithParam<Isa> {};

TEST_P(RandomKernels, MachineCodeEqualsInterpreter) {
  const Isa isa = GetParam();
  if (!codegen::x86::host_supports(isa)) GTEST_SKIP() << "this processor cannot run " << name(isa);
  std::mt19937 random(77);
  for (std::uint64_t round = 1; round <= 40; ++round) {
    const ir::Kernel kernel = ir::simplify(ir::parse_kernel(random_kernel(random, isa)));
    SCOPED_TRACE(ir::print(kernel));
    const auto compiled = codegen::x86::compile(kernel, Target{.isa = isa});
    Operands expected = random_operands(kernel, Values::ordinary, round);
    run_interpreted(kernel, expected);
    for (const ir::TaskOrder order : {ir::TaskOrder::ascending, ir::TaskOrder::shuffled}) {
      Operands actual = random_operands(kernel, Values::ordinary, round);
      run_compiled(*compiled, actual, order);
      ASSERT_EQ(difference(kernel, expected, actual), "") << "round " << round;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RandomKernels, ::testing::Values(Isa::x86_avx512, Isa::x86_avx2, Isa::x86_v2),
                         [](const auto& info) { return std::string(name(info.param)).replace(3, 1, "_"); });

}  // namespace
}  // namespace fusejit::test
