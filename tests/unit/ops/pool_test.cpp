// Pools and upsampling: values, gradients, transposes, errors.
#include <limits>

#include "tests/support/error_of.h"
#include "tests/support/graphs.h"
#include "tests/unit/ops/special.h"

namespace fusejit::testing {
namespace {

using ir::build;
using Attrs = std::vector<ir::AttrInit>;

FunctionCase pool(Op op, std::string name, Shape x, Attrs attrs) {
  return {std::string(ir::name(op)) + "_" + name, {Type{f64, x}}, [=](const Values& p) {
            return build(op, {p[0]}, attrs);
          }};
}

std::vector<FunctionCase> pool_cases() {
  const Attrs overlapping{{"kernel_size", {3, 3}}, {"stride", {2, 1}}, {"padding", {1, 0, 2, 1}}};
  Attrs dilated = overlapping, without_pad = overlapping;
  dilated.emplace_back("dilation", std::initializer_list<std::int64_t>{2, 1});
  without_pad.emplace_back("count_include_pad", false);
  return {
      pool(Op::max_pool2d, "plain", {2, 2, 4, 6}, {{"kernel_size", {2, 2}}}),
      pool(Op::max_pool2d, "overlapping", {1, 2, 6, 5}, overlapping),
      pool(Op::max_pool2d, "dilated", {1, 2, 7, 5}, dilated),
      pool(Op::avg_pool2d, "plain", {2, 2, 4, 6}, {{"kernel_size", {2, 3}}}),
      pool(Op::avg_pool2d, "overlapping", {1, 2, 6, 5}, overlapping),
      pool(Op::avg_pool2d, "without_pad", {1, 2, 6, 5}, without_pad),
      pool(Op::adaptive_avg_pool2d, "even", {2, 2, 4, 6}, {{"output_size", {2, 3}}}),
      pool(Op::adaptive_avg_pool2d, "uneven", {2, 1, 7, 5}, {{"output_size", {3, 2}}}),
      pool(Op::adaptive_avg_pool2d, "growing", {1, 1, 2, 3}, {{"output_size", {5, 4}}}),
      pool(Op::adaptive_avg_pool2d, "global", {2, 3, 4, 5}, {{"output_size", {1, 1}}}),
      pool(Op::upsample_nearest2d, "twice", {1, 2, 3, 4}, {{"output_size", {6, 8}}}),
      pool(Op::upsample_nearest2d, "uneven", {1, 2, 3, 4}, {{"output_size", {5, 3}}}),
      pool(Op::upsample_bilinear2d, "twice", {1, 2, 3, 4}, {{"output_size", {6, 8}}}),
      pool(Op::upsample_bilinear2d, "uneven", {1, 2, 3, 4}, {{"output_size", {5, 3}}}),
      pool(Op::upsample_bilinear2d, "corners", {1, 2, 3, 4}, {{"output_size", {7, 1}}, {"align_corners", true}}),
  };
}

class Pool : public ::testing::TestWithParam<FunctionCase> {};
TEST_P(Pool, GradientIsThatOfDifferences) { check_gradient(GetParam()); }

// Averages and upsampling are linear: their gradient ops are differentiable in dy.
TEST_P(Pool, SecondDerivative) {
  const FunctionCase second = derivative_of(GetParam(), 0);
  if (GetParam().name.starts_with("max"))
    EXPECT_THROW(check_gradient(second), UnsupportedError);
  else
    check_gradient(second);
}
INSTANTIATE_TEST_SUITE_P(, Pool, ::testing::ValuesIn(pool_cases()), [](const auto& info) { return info.param.name; });

TEST(PoolEdges, MaximumTakesTheFirstAndNanWins) {
  const std::string text =
      "graph @g(%x: f32[1,1,1,4], %d: f32[1,1,1,2]) {"
      "  %0 = max_pool2d(%x) {kernel_size=[1,2]} : f32[1,1,1,2]"
      "  %1 = max_pool2d_grad(%x, %d) {kernel_size=[1,2]} : f32[1,1,1,4] return %0, %1 }";
  const auto ties = run_text(text, {{3, 3, -1, 2}, {10, 20}});
  EXPECT_EQ(ties[0], (std::vector<double>{3, 2}));
  EXPECT_EQ(ties[1], (std::vector<double>{10, 0, 0, 20}));
  const auto nans = run_text(text, {{9, kNan, kNan, kNan}, {10, 20}});
  EXPECT_TRUE(std::isnan(nans[0][0]) && std::isnan(nans[0][1]));
  EXPECT_EQ(nans[1], (std::vector<double>{0, 10, 20, 0}));
}

// A tap counts from the window's corner, which may be padding; its gradient goes where it says.
TEST(PoolEdges, TapsSayWhichElementIsTheMaximum) {
  const std::string text =
      "graph @g(%x: f32[1,1,2,3], %d: f32[1,1,2,2], %t: u8[1,1,2,2]) {"
      "  %0 = max_pool2d(%x) {kernel_size=[2,2], stride=[1,2], padding=[0,1,1,0]} : f32[1,1,2,2]"
      "  %1 = max_pool2d_tap(%x, %0) {kernel_size=[2,2], stride=[1,2], padding=[0,1,1,0]} : u8[1,1,2,2]"
      "  %2 = max_pool2d_tap_grad(%d, %1) {input_size=[2,3], kernel_size=[2,2], stride=[1,2], padding=[0,1,1,0]}"
      " : f32[1,1,2,3]"
      "  %3 = max_pool2d_tap_grad(%d, %t) {input_size=[2,3], kernel_size=[2,2], stride=[1,2], padding=[0,1,1,0]}"
      " : f32[1,1,2,3] return %1, %2, %3 }";
  // Windows: (-, 5; -, 5), (2, 7; kNan, 1), then the last row with padding below.
  const auto got = run_text(text, {{5, 2, 7, 5, kNan, 1}, {10, 20, 30, 40}, {0, 3, 1, 200}});
  EXPECT_EQ(got[0], (std::vector<double>{1, 2, 1, 0}));
  EXPECT_EQ(got[1], (std::vector<double>{10, 0, 0, 30, 60, 0}));
  EXPECT_EQ(got[2], (std::vector<double>{0, 0, 0, 30, 0, 20})) << "a tap outside the image adds to nothing";
}

TEST(PoolEdges, PaddingIsMinusInfinity) {
  const auto got = run_text(
      "graph @g(%x: f32[1,1,1,2]) {"
      "  %0 = max_pool2d(%x) {kernel_size=[1,2], stride=[1,1], padding=[0,1,0,1]} : f32[1,1,1,3] return %0 }",
      {{-5, -7}});
  EXPECT_EQ(got[0], (std::vector<double>{-5, -5, -7}));
}

TEST(PoolEdges, AveragesCountPaddingOrNot) {
  const auto got = run_text(
      "graph @g(%x: f32[1,1,1,2]) {"
      "  %0 = avg_pool2d(%x) {kernel_size=[1,2], stride=[1,1], padding=[0,1,0,1]} : f32[1,1,1,3]"
      "  %1 = avg_pool2d(%x) {kernel_size=[1,2], stride=[1,1], padding=[0,1,0,1], count_include_pad=false} : "
      "f32[1,1,1,3]"
      "  return %0, %1 }",
      {{4, 8}});
  EXPECT_EQ(got[0], (std::vector<double>{2, 6, 4}));
  EXPECT_EQ(got[1], (std::vector<double>{4, 6, 8}));
}

TEST(PoolEdges, UpsamplingReadsWhatItSays) {
  const auto got = run_text(
      "graph @g(%x: f32[1,1,1,2]) {"
      "  %0 = upsample_nearest2d(%x) {output_size=[1,4]} : f32[1,1,1,4]"
      "  %1 = upsample_bilinear2d(%x) {output_size=[1,4]} : f32[1,1,1,4]"
      "  %2 = upsample_bilinear2d(%x) {output_size=[1,4], align_corners=true} : f32[1,1,1,4]"
      "  return %0, %1, %2 }",
      {{0, 3}});
  EXPECT_EQ(got[0], (std::vector<double>{0, 0, 3, 3}));
  EXPECT_EQ(got[1], (std::vector<double>{0, 0.75, 2.25, 3}));
  expect_close(got[2], {0, 1, 2, 3}, 1e-6, "align_corners");
}

TEST(PoolErrors, SayWhatIsWrong) {
  EXPECT_NE(error_of([] {
              op_over(Op::max_pool2d, {{f32, {1, 1, 4, 4}}}, {{"kernel_size", {2, 2}}, {"padding", {2, 0, 0, 0}}});
            }).find("padding is larger than dilation * (kernel_size - 1)"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              op_over(Op::max_pool2d, {{f32, {1, 1, 4, 4}}}, {{"kernel_size", {5, 2}}});
            }).find("a window of 5x2"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              op_over(Op::avg_pool2d, {{f32, {1, 4, 4}}}, {{"kernel_size", {2, 2}}});
            }).find("x must have rank 4, it has rank 3"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              op_over(Op::avg_pool2d_grad, {{f32, {1, 1, 3, 2}}}, {{"input_size", {4, 4}}, {"kernel_size", {2, 2}}});
            }).find("dy is 3x2, the result of the pool is 2x2"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              op_over(Op::max_pool2d_tap, {{f32, {1, 1, 20, 20}}, {f32, {1, 1, 1, 1}}}, {{"kernel_size", {16, 17}}});
            }).find("a window has at most 256 taps, not 16x17"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              op_over(Op::max_pool2d_tap, {{f32, {1, 1, 4, 4}}, {f32, {1, 1, 2, 1}}}, {{"kernel_size", {2, 2}}});
            }).find("y must have the type of the pool's result, f32[1,1,2,2]"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              op_over(Op::max_pool2d_tap_grad, {{f32, {1, 1, 2, 2}}, {f32, {1, 1, 2, 2}}},
                      {{"input_size", {4, 4}}, {"kernel_size", {2, 2}}});
            }).find("tap must be u8 and have the shape of dy"),
            std::string::npos);
}

}  // namespace
}  // namespace fusejit::testing
