// What passes recognise in a recorded network, with its gradients: machine code or the kernel interpreter with and
// without fusion against the graph interpreter in f64, which runs the graph as it was recorded.
#include <gtest/gtest.h>

#include "ir/passes/grad.h"
#include "tests/random/generate/network_check.h"

namespace fusejit::testing {
namespace {

// Two layers: zeros around the image in front of a convolution, then batch norm from its parts.
constexpr const char* kNetwork = R"(graph @written_out(%x: f32[3,4,9,8], %b0_w: f32[8,4,3,3], %b0_s: f32[1,8,1,1],
    %b0_t: f32[1,8,1,1], %b1_w: f32[8,8,2,2]) {
  %p = pad(%x) {low=[0,0,1,0], high=[0,0,1,2]} : f32[3,4,11,10]
  %c = conv2d(%p, %b0_w) : f32[3,8,9,8]
  %m = mean(%c) {dim=[0,2,3], keepdim=true} : f32[1,8,1,1]
  %d = sub(%c, %m) : f32[3,8,9,8]
  %q = square(%d) : f32[3,8,9,8]
  %v = mean(%q) {dim=[0,2,3], keepdim=true} : f32[1,8,1,1]
  %e = add(%v, 1e-5) : f32[1,8,1,1]
  %r = rsqrt(%e) : f32[1,8,1,1]
  %n = mul(%d, %r) : f32[3,8,9,8]
  %s = mul(%n, %b0_s) : f32[3,8,9,8]
  %a = add(%s, %b0_t) : f32[3,8,9,8]
  %h = tanh(%a) : f32[3,8,9,8]
  %i = pad(%h) {low=[0,0,0,1], high=[0,0,1,0]} : f32[3,8,10,9]
  %y = conv2d(%i, %b1_w) {stride=[2,2]} : f32[3,8,5,4]
  return %y
})";

TEST(WrittenOut, PaddingAndVariancesAgreeWithTheInterpreterInF64) {
  const ir::Graph graph = ir::differentiate(ir::parse_graph(kNetwork), {"x", "b0_w", "b0_s", "b0_t", "b1_w"});
  for (const char* target : {"x86:avx512,tasks=7", "x86:avx2,l1=1k,l2=4k,l3=16k,tasks=5", "cuda:sm_90"}) {
    const Finding found = check_graph(graph, 7, {.target = Target::parse(target)});
    EXPECT_EQ(found.kind, "") << target << ": " << found.text;
  }
}

}  // namespace
}  // namespace fusejit::testing
