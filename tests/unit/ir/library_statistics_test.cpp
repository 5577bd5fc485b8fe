// passes/library_statistics: before and after, what must stay, and how far values are off.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/interp.h"
#include "ir/passes/passes.h"

namespace fusejit::ir {
namespace {

constexpr const char* kFast = "cuda:sm_90,cudnn=1,fastnorm=1";

// Statistics of a convolution's channels, of 2·3·3 elements each.
Graph summed_graph(const std::string& ops, const std::string& results, const std::string& dtype = "f16",
                   int groups = 1) {
  return parse_graph(fmt::format(
      R"(graph @g(%x: {0}[2,8,3,3]:nhwc, %w: {0}[8,{1},1,1]) {{
  %c = conv2d(%x, %w) {{groups={2}}} : {0}[2,8,3,3]:nhwc
  %y = cast(%c) {{dtype=f32}} : f32[2,8,3,3]:nhwc
{3}  return {4}
}})",
      dtype, 8 / groups, groups, ops, results));
}
std::string with_fast_sums(const Graph& graph, const char* target = kFast) {
  return print(statistics_for_library(graph, Target::parse(target), [](const Graph&) { return true; }));
}
const char* const kBoth =
    "  %m = mean(%y) {dim=[0,2,3]} : f32[8]\n  %v = var(%y) {dim=[0,2,3], correction=0} : f32[8]\n";

TEST(LibraryStatistics, AreMadeOfTwoSums) {
  const std::string sums = R"(  %s = sum(%y) {dim=[0,2,3]} : f32[8]
  %p = mul(%y, %y) : f32[2,8,3,3]:nhwc
  %q = sum(%p) {dim=[0,2,3]} : f32[8]
  %m = div(%s, 18) : f32[8]
  %a = mul(%s, %m) : f32[8]
  %b = sub(%q, %a) : f32[8]
  %e = maximum(%b, 0) : f32[8]
  %v = div(%e, 18) : f32[8]
)";
  EXPECT_EQ(with_fast_sums(summed_graph(kBoth, "%m, %v")), print(summed_graph(sums, "%m, %v")));
  // The running variance has no sums of its own.
  const std::string text = with_fast_sums(
      summed_graph(std::string(kBoth) + "  %u = var(%y) {dim=[0,2,3], correction=1} : f32[8]\n", "%m, %v, %u"));
  EXPECT_NE(text.find(", 17)"), std::string::npos) << text;
  EXPECT_EQ(text.find("var("), std::string::npos) << text;
  int sums_made = 0;
  for (std::size_t at = text.find(" sum("); at != std::string::npos; at = text.find(" sum(", at + 1)) ++sums_made;
  EXPECT_EQ(sums_made, 2) << text;
}

TEST(LibraryStatistics, OthersStay) {
  const auto expect_same = [](const Graph& graph, const char* target) {
    EXPECT_EQ(with_fast_sums(graph, target), print(graph)) << target;
  };
  for (const char* target : {"cuda:sm_90,cudnn=1", "cuda:sm_90", "cuda:sm_90,fastnorm=1"})
    expect_same(summed_graph(kBoth, "%m, %v"), target);
  expect_same(summed_graph(kBoth, "%m, %v", "bf16"), kFast);    // no engine sums it deterministically
  expect_same(summed_graph(kBoth, "%m, %v", "f16", 8), kFast);  // depthwise: no call
  expect_same(summed_graph("  %m = mean(%y) {dim=[0,2]} : f32[8,3]\n", "%m"), kFast);
  expect_same(summed_graph("  %m = mean(%y) {dim=[0,2,3]} : f32[8]\n", "%m"), kFast);  // no call leaves one sum
  const Graph graph = summed_graph(kBoth, "%m, %v");
  EXPECT_EQ(print(statistics_for_library(graph, Target::parse(kFast), [](const Graph&) { return false; })),
            print(graph));
  EXPECT_EQ(print(statistics_for_library(graph, Target::parse(kFast), {})), print(graph));
  expect_same(summed_graph("  %z = mul(%y, 2) : f32[2,8,3,3]:nhwc\n  %m = mean(%z) {dim=[0,2,3]} : f32[8]\n", "%m"),
              kFast);
}

// Off by a few units of f32 times the square of mean over deviation, and never below 0.
TEST(LibraryStatistics, VariancesAreOffByWhatTheyMayBe) {
  const Graph exact = summed_graph(kBoth, "%m, %v"),
              fast = statistics_for_library(exact, Target::parse(kFast), [](const Graph&) { return true; });
  for (const double mean : {0.0, 1.0, 100.0}) {
    for (const double spread : {0.0, 0.25, 1.0}) {
      std::vector<Array> arguments;
      for (const Value& parameter : exact.parameters()) arguments.emplace_back(parameter.type());
      for (std::int64_t i = 0; i < arguments[0].type.elements(); ++i)
        arguments[0].set(i, cast(Scalar::of(mean + spread * static_cast<double>(i * 7 % 16 - 8) / 8), DType::f16));
      for (std::int64_t i = 0; i < 64; ++i)
        arguments[1].set(i, cast(Scalar::of(i % 9 == 0 ? 1.0 : 0.0), DType::f16));  // y is x
      const std::vector<Array> want = interpret(exact, arguments), got = interpret(fast, arguments);
      for (std::int64_t c = 0; c < 8; ++c) {
        const double m = want[0].at(c).as_double(), v = want[1].at(c).as_double();
        EXPECT_NEAR(got[0].at(c).as_double(), m, 1e-6 * std::abs(m));
        EXPECT_GE(got[1].at(c).as_double(), 0);
        EXPECT_NEAR(got[1].at(c).as_double(), v, 8 * 0x1p-24 * (v + m * m)) << mean << " " << spread;
      }
    }
  }
}

}  // namespace
}  // namespace fusejit::ir
