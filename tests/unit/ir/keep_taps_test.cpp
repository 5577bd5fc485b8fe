// passes/keep_taps: before and after, and what must stay.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/passes/passes.h"

namespace fusejit::ir {
namespace {

std::string kept(const std::string& body, const char* target = "cuda:sm_90") {
  const Graph before = parse_graph("graph @g(%x: f32[2,3,9,9], %dy: f32[2,3,5,5]) {\n" + body + "\n}");
  return print(keep_taps(before, Target::parse(target)));
}
std::string text(const std::string& body) {
  return print(parse_graph("graph @g(%x: f32[2,3,9,9], %dy: f32[2,3,5,5]) {\n" + body + "\n}"));
}

constexpr const char* kGradient =
    "%0 = max_pool2d_grad(%x, %dy) {kernel_size=[3,3], stride=[2,2], padding=[1,1,1,1]} : f32[2,3,9,9] return %0";

TEST(KeepTaps, AGradientReadsWhereTheMaximumWas) {
  EXPECT_EQ(kept(kGradient),
            text("%0 = max_pool2d(%x) {kernel_size=[3,3], stride=[2,2], padding=[1,1,1,1]} : f32[2,3,5,5] "
                 "%1 = max_pool2d_tap(%x, %0) {kernel_size=[3,3], stride=[2,2], padding=[1,1,1,1]} : u8[2,3,5,5] "
                 "%2 = max_pool2d_tap_grad(%dy, %1) {input_size=[9,9], kernel_size=[3,3], stride=[2,2], "
                 "padding=[1,1,1,1]} : f32[2,3,9,9] return %2"));
}

TEST(KeepTaps, OnDevicesOnlyWhereWindowsOverlapAndATapFitsAByte) {
  EXPECT_EQ(kept(kGradient, "x86:avx2"), text(kGradient));
  for (const char* body :
       {"%0 = max_pool2d_grad(%x, %dy) {kernel_size=[3,3], stride=[1,1], dilation=[2,2]} : f32[2,3,9,9] return %0",
        "%0 = max_pool2d_grad(%x, %dy) {kernel_size=[17,17], stride=[1,1], padding=[6,6,6,6]} : f32[2,3,9,9] "
        "return %0",
        "%0 = max_pool2d_grad(%x, %dy) {kernel_size=[1,1], stride=[2,2]} : f32[2,3,9,9] return %0"}) {
    EXPECT_EQ(kept(body), text(body));
  }
}

// Processors widen and round values of 16 bits before they compare them.
TEST(KeepTaps, OnProcessorsOfNarrowValues) {
  for (const char* type : {"f32", "bf16", "f16"}) {
    const Graph before = parse_graph(fmt::format(
        "graph @g(%x: {0}[2,3,9,9], %dy: {0}[2,3,5,5]) {{ %0 = max_pool2d_grad(%x, %dy) {{kernel_size=[3,3], "
        "stride=[2,2], padding=[1,1,1,1]}} : {0}[2,3,9,9] return %0 }}",
        type));
    const bool kept = print(keep_taps(before, Target::parse("x86:avx512"))).find("_tap_grad") != std::string::npos;
    EXPECT_EQ(kept, std::string(type) != "f32") << type;
  }
}

// The pool that the tap asks for is that of the forward pass.
TEST(KeepTaps, NoWindowIsPooledTwice) {
  const Graph step = optimise(
      parse_graph("graph @g(%x: f32[2,3,9,9], %dy: f32[2,3,5,5]) { "
                  "%0 = max_pool2d(%x) {kernel_size=[3,3], stride=[2,2], padding=[1,1,1,1]} : f32[2,3,5,5] "
                  "%1 = mul(%0, %dy) : f32[2,3,5,5] "
                  "%2 = max_pool2d_grad(%x, %1) {kernel_size=[3,3], stride=[2,2], padding=[1,1,1,1]} : f32[2,3,9,9] "
                  "return %0, %2 }"),
      Target::parse("cuda:sm_90"));
  int pools = 0;
  for (const Value& value : step.nodes()) pools += value->op == Op::max_pool2d;
  EXPECT_EQ(pools, 1) << print(step);
}

}  // namespace
}  // namespace fusejit::ir
