// passes/fold_padding: before and after, and what must stay.
#include <gtest/gtest.h>

#include "ir/passes/passes.h"

namespace fusejit::ir {
namespace {

struct Case {
  const char* parameters;
  const char* before;
  const char* after;
};

const Case kCases[] = {
    {"%x: f32[2,3,5,6], %w: f32[4,3,2,2]",
     "%0 = pad(%x) {low=[0,0,0,1], high=[0,0,2,0]} : f32[2,3,7,7] "
     "%1 = conv2d(%0, %w) {padding=[1,0,0,0]} : f32[2,4,7,6] return %1",
     "%0 = conv2d(%x, %w) {padding=[1,1,2,0]} : f32[2,4,7,6] return %0"},
    {"%x: f32[2,3,5,6]:nhwc, %g: f32[2,4,3,3]",
     "%0 = pad(%x) {low=[0,0,0,0], high=[0,0,1,1]} : f32[2,3,6,7]:nhwc "
     "%1 = conv2d_weight_grad(%0, %g) {kernel_size=[2,2], stride=[2,2]} : f32[4,3,2,2] return %1",
     "%0 = conv2d_weight_grad(%x, %g) {kernel_size=[2,2], stride=[2,2], padding=[0,0,1,1]} : f32[4,3,2,2] return %0"},
    {"%g: f32[2,4,5,6], %w: f32[4,3,2,2]",
     "%0 = conv2d_input_grad(%g, %w) {input_size=[6,7]} : f32[2,3,6,7] "
     "%1 = slice(%0) {starts=[0,0,0,1], stops=[2,3,5,7], steps=[1,1,1,1]} : f32[2,3,5,6] return %1",
     "%0 = conv2d_input_grad(%g, %w) {input_size=[5,6], padding=[0,1,1,0]} : f32[2,3,5,6] return %0"},
    // What must stay: other values than zeros, other dims, steps, a gradient that somebody else reads.
    {"%x: f32[2,3,5,6], %w: f32[4,3,2,2]",
     "%0 = pad(%x) {low=[0,0,0,0], high=[0,0,1,1], value=1} : f32[2,3,6,7] "
     "%1 = conv2d(%0, %w) : f32[2,4,5,6] return %1",
     nullptr},
    {"%x: f32[2,2,5,6], %w: f32[4,3,2,2]",
     "%0 = pad(%x) {low=[0,1,0,0], high=[0,0,0,0]} : f32[2,3,5,6] %1 = conv2d(%0, %w) : f32[2,4,4,5] return %1",
     nullptr},
    {"%g: f32[2,4,5,6], %w: f32[4,3,2,2]",
     "%0 = conv2d_input_grad(%g, %w) {input_size=[6,7]} : f32[2,3,6,7] "
     "%1 = slice(%0) {starts=[0,0,0,0], stops=[2,3,6,7], steps=[1,1,2,1]} : f32[2,3,3,7] return %1",
     nullptr},
    {"%g: f32[2,4,5,6], %w: f32[4,3,2,2]",
     "%0 = conv2d_input_grad(%g, %w) {input_size=[6,7]} : f32[2,3,6,7] "
     "%1 = slice(%0) {starts=[0,0,0,1], stops=[2,3,5,7], steps=[1,1,1,1]} : f32[2,3,5,6] return %1, %0",
     nullptr},
};

Graph parsed(const Case& c, std::string body) {
  return parse_graph("graph @g(" + std::string(c.parameters) + ") {\n" + body + "\n}");
}

TEST(FoldPadding, ZerosAroundAnImageArePadding) {
  for (const Case& c : kCases) {
    const Graph before = parsed(c, c.before);
    EXPECT_EQ(print(fold_padding(before)), print(parsed(c, c.after ? c.after : c.before)));
  }
}

}  // namespace
}  // namespace fusejit::ir
