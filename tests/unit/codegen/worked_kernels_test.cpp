// Every worked x86 kernel of kernel-ir.md §12 at toy size: machine code against the interpreter, bit for bit, for every
// instruction set and task order.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/codegen/run_kernel.h"

namespace fusejit::test {
namespace {

struct Worked {
  const char* file;
  Values values;
};
const Worked kWorked[] = {
    {"toy/a_scale_relu.kir", Values::special},     {"toy/b_bias_relu_bits.kir", Values::special},
    {"toy/c_bn_train.kir", Values::ordinary},      {"toy/d_softmax.kir", Values::ordinary},
    {"toy/e_argmax.kir", Values::special},         {"toy/f_conv3x3_bn.kir", Values::ordinary},
    {"toy/g_conv3x3_wgrad.kir", Values::ordinary}, {"toy/h_winograd.kir", Values::ordinary},
    {"toy/i_maxpool.kir", Values::special},        {"toy/i_maxpool_grad.kir", Values::special},
    {"toy/j_relu_dropout.kir", Values::special},   {"toy/k_put_a.kir", Values::special},
    {"toy/k_put_b.kir", Values::special},          {"toy/l_conv1x1_widen.kir", Values::ordinary},
    {"toy/l_conv1x1_dot.kir", Values::ordinary},
};

class WorkedKernel : public ::testing::TestWithParam<std::tuple<Worked, Isa>> {};

std::string test_name(const ::testing::TestParamInfo<WorkedKernel::ParamType>& info) {
  std::string text = fmt::format("{}_{}", std::get<0>(info.param).file + 4, name(std::get<1>(info.param)));
  for (char& c : text) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return text;
}

TEST_P(WorkedKernel, MachineCodeEqualsInterpreter) {
  const auto& [worked, isa] = GetParam();
  if (!codegen::x86::host_supports(isa)) GTEST_SKIP() << "this processor cannot run " << name(isa);
  const std::string original = kernel_text(worked.file);
  const bool needs_dot = original.find("dot2(") != std::string::npos;
  if (needs_dot && isa != Isa::x86_avx512bf16) GTEST_SKIP() << "dot2 is not legal on " << name(isa);
  const ir::Kernel kernel = ir::parse_kernel(for_isa(original, isa));
  ir::verify(kernel);
  const auto compiled = codegen::x86::compile(kernel, Target{.isa = isa});
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Operands expected = random_operands(kernel, worked.values, seed);
    run_interpreted(kernel, expected);
    for (ir::TaskOrder order : {ir::TaskOrder::ascending, ir::TaskOrder::descending, ir::TaskOrder::shuffled}) {
      Operands actual = random_operands(kernel, worked.values, seed);
      run_compiled(*compiled, actual, order);
      ASSERT_EQ(difference(kernel, expected, actual), "") << "seed " << seed << " order " << static_cast<int>(order);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, WorkedKernel,
                         ::testing::Combine(::testing::ValuesIn(kWorked),
                                            ::testing::Values(Isa::x86_avx512, Isa::x86_avx512bf16, Isa::x86_avx2,
                                                              Isa::x86_v2)),
                         test_name);

}  // namespace
}  // namespace fusejit::test
