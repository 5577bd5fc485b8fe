// Kernels that lowering writes for shapes with many parts: their CUDA text on the CPU equals the kernel interpreter bit
// for bit in three orders of threads.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fusejit/target.h"
#include "ir/graph.h"
#include "scheduler/schedule.h"
#include "tests/support/cuda_shim/shim.h"
#include "tests/support/operands.h"

namespace fusejit::test {
namespace {

struct Case {
  const char* what;
  const char* graph;
  std::size_t launches;  // of all kernels
};

const Case kCases[] = {
    {"statistics of many parts, nhwc",
     R"(graph @g(%x: f32[4,8,181,181]:nhwc) {
          %m = mean(%x) {dim=[0,2,3]} : f32[8]
          %v = var(%x) {dim=[0,2,3], correction=0} : f32[8]
          return %m, %v })",
     1},
    {"sums of many parts, nchw",
     R"(graph @g(%x: bf16[16,3,128,128]) {
          %m = sum(%x) {dim=[0,2,3]} : bf16[3]
          return %m })",
     1},
    {"a weight gradient of many parts",
     R"(graph @g(%x: f32[9,6,9,9]:nhwc, %g: f32[9,10,9,9]:nhwc) {
          %1 = conv2d_weight_grad(%x, %g) {kernel_size=[3,3], padding=[1,1,1,1]} : f32[10,6,3,3]
          return %1 })",
     2},
    {"a depthwise weight gradient of many parts",
     R"(graph @g(%x: f32[40,24,9,9]:nhwc, %g: f32[40,24,9,9]:nhwc) {
          %1 = conv2d_weight_grad(%x, %g) {kernel_size=[3,3], padding=[1,1,1,1], groups=24} : f32[24,1,3,3]
          return %1 })",
     0},
    {"a convolution with statistics",
     R"(graph @g(%x: f32[8,3,14,14]:nhwc, %w: f32[64,3,1,1]) {
          %y = conv2d(%x, %w) : f32[8,64,14,14]:nhwc
          %v = var(%y) {dim=[0,2,3], correction=1} : f32[64]
          return %y, %v })",
     2},
    {"a linear layer of few outputs and many inputs",
     R"(graph @g(%x: f32[7,1043], %w: f32[10,1043], %b: f32[10]) {
          %y = linear(%x, %w) : f32[7,10]
          %z = bias_add(%y, %b) : f32[7,10]
          %r = relu(%z) : f32[7,10]
          return %r })",
     3},
    {"a linear layer's gradients, bf16",
     R"(graph @g(%x: bf16[40,512], %w: bf16[64,512], %d: bf16[40,64]) {
          %dx = matmul(%d, %w) : bf16[40,512]
          %t = permute(%d) {dims=[1,0]} : bf16[64,40]
          %dw = matmul(%t, %x) : bf16[64,512]
          return %dx, %dw })",
     0},
    {"a convolution of a few pixels",
     R"(graph @g(%x: f32[2,96,5,5]:nhwc, %w: f32[24,96,3,3], %s: f32[2,24,3,3]:nhwc) {
          %y = conv2d(%x, %w) {stride=[2,2], padding=[1,1,1,1]} : f32[2,24,3,3]:nhwc
          %a = add(%y, %s) : f32[2,24,3,3]:nhwc
          return %a })",
     3},
    {"the input gradient of a few pixels, in phases",
     R"(graph @g(%d: f32[1,160,4,4]:nhwc, %w: f32[160,12,3,3]) {
          %1 = conv2d_input_grad(%d, %w) {input_size=[8,8], stride=[2,2], padding=[1,1,0,0]} : f32[1,12,8,8]:nhwc
          return %1 })",
     0},
};

TEST(CudaGraphs, PartsMeetInOneOrder) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.what);
    const scheduler::Plan plan =
        scheduler::schedule(ir::parse_graph(c.graph), {Target::parse("cuda:sm_90"), "all", {}});
    std::vector<codegen::cuda::CudaSource> sources;
    std::size_t launches = 0;
    for (const scheduler::PlanStep& step : plan.steps) {
      sources.push_back(codegen::cuda::emit(*step.kernel, fmt::format("k{}", sources.size())));
      launches += sources.back().launches.size();
    }
    if (c.launches > 0) {
      EXPECT_EQ(launches, c.launches);
    }
    Shim shim(sources);
    shim.open();
    for (std::size_t k = 0; k < plan.steps.size(); ++k) {
      const ir::Kernel& kernel = *plan.steps[k].kernel;
      Operands expected = random_operands(kernel, Values::ordinary, k + 5);
      run_interpreted(kernel, expected);
      for (const ir::TaskOrder order : {ir::TaskOrder::ascending, ir::TaskOrder::descending, ir::TaskOrder::shuffled}) {
        Operands actual = random_operands(kernel, Values::ordinary, k + 5);
        shim.run(k, actual, order);
        ASSERT_EQ(difference(kernel, expected, actual), "") << "order " << static_cast<int>(order) << "\n"
                                                            << shim.sources()[k].text;
      }
    }
  }
}

}  // namespace
}  // namespace fusejit::test
