// passes/pad_channels: before and after, and what must stay.
#include <gtest/gtest.h>

#include "ir/passes/passes.h"

namespace fusejit::ir {
namespace {

Graph stem(const std::string& dtype, int channels, const std::string& attributes = "") {
  const std::string c = std::to_string(channels);
  return parse_graph("graph @g(%x: " + dtype + "[2," + c + ",9,9], %w: " + dtype + "[16," + c + ",3,3], %dy: " + dtype +
                     "[2,16,7,7]) { %0 = conv2d(%x, %w)" + attributes + " : " + dtype +
                     "[2,16,7,7] %1 = conv2d_weight_grad(%x, %dy) {kernel_size=[3,3]} : " + dtype + "[16," + c +
                     ",3,3] return %0, %1 }");
}
std::string padded(const Graph& graph, const char* target = "cuda:sm_90,cudnn=1") {
  return print(pad_channels(graph, Target::parse(target)));
}

TEST(PadChannels, AnImageIsPaddedOnceForItsConvolutionAndTheGradient) {
  EXPECT_EQ(padded(stem("bf16", 3)),
            print(parse_graph("graph @g(%x: bf16[2,3,9,9], %w: bf16[16,3,3,3], %dy: bf16[2,16,7,7]) { "
                              "%0 = pad(%x) {low=[0,0,0,0], high=[0,5,0,0]} : bf16[2,8,9,9] "
                              "%1 = pad(%w) {low=[0,0,0,0], high=[0,5,0,0]} : bf16[16,8,3,3] "
                              "%2 = conv2d(%0, %1) : bf16[2,16,7,7] "
                              "%3 = conv2d_weight_grad(%0, %dy) {kernel_size=[3,3]} : bf16[16,8,3,3] "
                              "%4 = slice(%3) {starts=[0,0,0,0], stops=[16,3,3,3], steps=[1,1,1,1]} : bf16[16,3,3,3] "
                              "return %2, %4 }")));
  EXPECT_NE(padded(stem("f32", 3)).find("f32[2,4,9,9]"), std::string::npos);
}

TEST(PadChannels, NotWhereItCostsMoreOrNoLibraryIsAsked) {
  for (const Graph& graph : {stem("bf16", 1), stem("bf16", 2), stem("bf16", 8), stem("f32", 1), stem("f64", 3)})
    EXPECT_EQ(padded(graph), print(graph));
  EXPECT_EQ(padded(stem("bf16", 3), "cuda:sm_90"), print(stem("bf16", 3)));
  EXPECT_EQ(padded(stem("bf16", 3), "x86:avx512"), print(stem("bf16", 3)));
}

}  // namespace
}  // namespace fusejit::ir
