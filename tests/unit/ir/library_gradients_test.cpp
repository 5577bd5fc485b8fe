// passes/library_gradients: before and after, what must stay, and that the values are the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/interp.h"
#include "ir/passes/passes.h"

namespace fusejit::ir {
namespace {

constexpr const char* kCompiled = "cuda:sm_90,cudnn=2";

// The gradient %g of a convolution; %x was normalised and rectified, %side flows into it too.
Graph graph_of(const std::string& rest, const std::string& results, const std::string& dtype = "bf16", int groups = 1) {
  return parse_graph(fmt::format(
      R"(graph @g(%dy: {0}[2,8,4,4]:nhwc, %w: {0}[8,{1},1,1], %x: {0}[2,8,4,4]:nhwc, %side: {0}[2,8,4,4]:nhwc) {{
  %g = conv2d_input_grad(%dy, %w) {{input_size=[4,4], groups={2}}} : {0}[2,8,4,4]:nhwc
{3}  return {4}
}})",
      dtype, 8 / groups, groups, rest, results));
}
std::string after(const Graph& graph, const char* target = kCompiled) {
  return print(gradients_for_library(graph, Target::parse(target)));
}
void expect_same(const Graph& graph, const char* target = kCompiled) {
  EXPECT_EQ(after(graph, target), print(graph)) << target;
}

const char* const kMask = "  %p = mul(%x, 2) : bf16[2,8,4,4]:nhwc\n  %m = le(%p, 0) : bool[2,8,4,4]:nhwc\n";

TEST(LibraryGradients, AMaskSaysWhatPasses) {
  const std::string masked = std::string(kMask) + "  %d = where(%m, 0, %g) : bf16[2,8,4,4]:nhwc\n";
  const std::string passes = std::string(kMask) +
                             "  %n = logical_not(%m) : bool[2,8,4,4]:nhwc\n"
                             "  %d = where(%n, %g, 0) : bf16[2,8,4,4]:nhwc\n";
  EXPECT_EQ(after(graph_of(masked, "%d")), print(graph_of(passes, "%d")));
  const std::string sum = "  %a = add(%side, %g) : bf16[2,8,4,4]:nhwc\n";
  EXPECT_EQ(after(graph_of(sum + kMask + "  %d = where(%m, 0, %a) : bf16[2,8,4,4]:nhwc\n", "%d")),
            print(graph_of(sum + kMask +
                               "  %n = logical_not(%m) : bool[2,8,4,4]:nhwc\n"
                               "  %d = where(%n, %a, 0) : bf16[2,8,4,4]:nhwc\n",
                           "%d")));
}

TEST(LibraryGradients, ChannelsAreSummedInF32) {
  const auto sums = [](const std::string& of, bool wide) {
    const std::string masked = "  %m = le(%x, 0) : bool[2,8,4,4]:nhwc\n  %d = where(%m, 0, %g) : bf16[2,8,4,4]:nhwc\n";
    return masked + (wide ? "  %f = cast(" + of + ") {dtype=f32} : f32[2,8,4,4]:nhwc\n" +
                                "  %t = sum(%f) {dim=[0,2,3], keepdim=false} : f32[8]\n" +
                                "  %s = cast(%t) {dtype=bf16} : bf16[8]\n"
                          : "  %s = sum(" + of + ") {dim=[0,2,3], keepdim=false} : bf16[8]\n");
  };
  EXPECT_EQ(after(graph_of(sums("%d", false), "%d, %s")), print(graph_of(sums("%d", true), "%d, %s")));
  EXPECT_EQ(after(graph_of(sums("%g", false), "%d, %s")), print(graph_of(sums("%g", true), "%d, %s")));
  expect_same(graph_of(sums("%side", false), "%d, %s"));  // no gradient of the library's
}

TEST(LibraryGradients, OthersStay) {
  const std::string masked = std::string(kMask) + "  %d = where(%m, 0, %g) : bf16[2,8,4,4]:nhwc\n";
  for (const char* target : {"cuda:sm_90", "cuda:sm_90,cudnn=1", "x86:avx512"})
    expect_same(graph_of(masked, "%d"), target);
  expect_same(graph_of(masked, "%d", "bf16", 8));  // depthwise: no call
  // What a relu wrote is its mask; a mask from outside is as it is; a product is no gradient that passes or not.
  expect_same(
      graph_of("  %z = maximum(%x, 0) : bf16[2,8,4,4]:nhwc\n  %m = le(%z, 0) : bool[2,8,4,4]:nhwc\n"
               "  %d = where(%m, 0, %g) : bf16[2,8,4,4]:nhwc\n",
               "%d"));
  expect_same(graph_of("  %m = le(%x, 0) : bool[2,8,4,4]:nhwc\n  %d = where(%m, 0, %g) : bf16[2,8,4,4]:nhwc\n", "%d"));
  expect_same(graph_of(std::string(kMask) + "  %p2 = mul(%g, %side) : bf16[2,8,4,4]:nhwc\n"
                                            "  %d = where(%m, 0, %p2) : bf16[2,8,4,4]:nhwc\n",
                       "%d"));
  expect_same(graph_of("  %s = sum(%g) {dim=[0,2], keepdim=false} : bf16[8,4]\n", "%g, %s"));
}

// NaN, infinities and zeros of either sign too.
TEST(LibraryGradients, ValuesAreTheSameBitForBit) {
  const Graph graph = graph_of(std::string(kMask) +
                                   "  %a = add(%side, %g) : bf16[2,8,4,4]:nhwc\n"
                                   "  %d = where(%m, 0, %a) : bf16[2,8,4,4]:nhwc\n"
                                   "  %s = sum(%d) {dim=[0,2,3], keepdim=true} : bf16[1,8,1,1]:nhwc\n",
                               "%d, %s");
  const Graph rewritten = gradients_for_library(graph, Target::parse(kCompiled));
  ASSERT_NE(print(rewritten), print(graph));
  std::vector<Array> arguments;
  for (const Value& parameter : graph.parameters()) {
    Array& array = arguments.emplace_back(parameter.type());
    for (std::int64_t i = 0; i < array.type.elements(); ++i) {
      const double odd[] = {NAN, INFINITY, -0.0, 0.0, -INFINITY};
      const bool special = arguments.size() == 3 && i % 7 == 0;
      array.set(i, cast(Scalar::of(special ? odd[i / 7 % 5] : static_cast<double>(i * 37 % 64) / 16 - 2), DType::bf16));
    }
  }
  const std::vector<Array> want = interpret(graph, arguments), got = interpret(rewritten, arguments);
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_EQ(got[i].bytes, want[i].bytes) << i;
}

}  // namespace
}  // namespace fusejit::ir
