// Random kernels: the text is stable, simplify changes no bit, and neither does the order of tasks and lanes.
#include "tests/support/random_kernel.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/kernel/cost/cost.h"
#include "ir/kernel/interp/interp.h"
#include "ir/kernel/kernel.h"

namespace fusejit::ir {
namespace {

std::vector<float> outputs(const Kernel& kernel, const InterpretOptions& options) {
  std::vector<float> a(97);
  std::vector<std::int32_t> n(31);
  for (int i = 0; i < 97; ++i) a[static_cast<std::size_t>(i)] = static_cast<float>((i * 37) % 41) / 8 - 2;
  a[13] = INFINITY, a[50] = NAN, a[51] = -0.0f;
  for (int i = 0; i < 31; ++i) n[static_cast<std::size_t>(i)] = (i * 29) % 120 - 10;
  std::vector<float> y(static_cast<std::size_t>(kernel.memories[2].elements()));
  void* const buffers[] = {a.data(), n.data(), y.data()};
  const Scalar scalars[] = {Scalar::of(0.75f)};
  interpret(kernel, buffers, scalars, options);
  return y;
}

// Any NaN equals any NaN.
void expect_equal(const std::vector<float>& a, const std::vector<float>& b, const char* what) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(a[i]), std::bit_cast<std::uint32_t>(b[i])) << what << ", element " << i;
  }
}

TEST(RandomKernels, SimplifyAndOrderChangeNoBit) {
  std::mt19937 random(2024);
  std::int64_t before = 0, after = 0;
  for (int round = 0; round < 400; ++round) {
    const Isa isa = round % 2 == 0 ? Isa::x86_avx512 : Isa::x86_v2;
    const std::string text = test::random_kernel(random, isa);
    SCOPED_TRACE(text);
    const Kernel kernel = parse_kernel(text);
    ASSERT_NO_THROW(verify(kernel));
    const std::string printed = print(kernel);
    ASSERT_EQ(print(parse_kernel(printed)), printed);
    const Kernel simple = simplify(kernel);
    ASSERT_NO_THROW(verify(simple)) << print(simple);
    ASSERT_EQ(print(simplify(simple)), print(simple));
    const std::vector<float> expected = outputs(kernel, {});
    expect_equal(expected, outputs(simple, {}), "simplified");
    expect_equal(expected, outputs(simple, {TaskOrder::shuffled, 5, true}), "shuffled");
    expect_equal(expected, outputs(kernel, {TaskOrder::descending, 1, true}), "descending");
    before += cost(kernel).statements, after += cost(simple).statements;
    if (HasFatalFailure()) return;
  }
  EXPECT_LT(after, before * 9 / 10);  // the texts hold dead values
}

}  // namespace
}  // namespace fusejit::ir
