// Late readers of a convolution that is computed again read the copy; what is not the same convolution is no copy.
#include <gtest/gtest.h>

#include "ir/passes/passes.h"

namespace fusejit::ir {
namespace {

// A step: the loss %2 and, for the backward pass, a mask of %0 beside what is computed in a region of its own.
std::string step(const std::string& again, const std::string& mask_of) {
  return "graph @g(%x: f64[1,3,4,4], %w: f64[3,3,3,3], %v: f64[3,3,3,3], %t: f64[1,3,4,4]) {\n"
         "  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f64[1,3,4,4]\n"
         "  %1 = maximum(%0, 0) : f64[1,3,4,4]\n"
         "  %2 = sum(%1) : f64[]\n"
         "  %3 = " +
         again +
         " : f64[1,3,4,4]\n"
         "  %4 = le(" +
         mask_of +
         ", 0) : bool[1,3,4,4]\n"
         "  %5 = where(%4, 0, %t) : f64[1,3,4,4]\n"
         "  %6 = mul(%5, %3) : f64[1,3,4,4]\n"
         "  return %2, %6\n}";
}

TEST(ReuseRecomputed, LateReadersReadTheCopy) {
  const std::string again = "conv2d(%x, %w) {padding=[1,1,1,1]} @1";
  EXPECT_EQ(print(reuse_recomputed(parse_graph(step(again, "%0")))), print(parse_graph(step(again, "%3"))));
}

TEST(ReuseRecomputed, AnotherConvolutionIsNoCopy) {
  for (const char* again : {"conv2d(%x, %w) {padding=[2,2,2,2], dilation=[2,2]} @1",  // of other attributes
                            "conv2d(%x, %v) {padding=[1,1,1,1]} @1",                  // of other weights
                            "conv2d(%t, %w) {padding=[1,1,1,1]} @1",                  // of another image
                            "conv2d_input_grad(%x, %w) {input_size=[4,4], padding=[1,1,1,1]} @1",
                            "conv2d(%x, %w) {padding=[0,0,2,2]}"}) {  // of the forward pass
    const Graph graph = parse_graph(step(again, "%0"));
    EXPECT_EQ(print(reuse_recomputed(graph)), print(graph)) << again;
  }
}

}  // namespace
}  // namespace fusejit::ir
