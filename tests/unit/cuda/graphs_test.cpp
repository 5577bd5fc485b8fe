// Kernels that lowering writes for shapes with many parts: their CUDA text on the CPU equals the kernel interpreter bit
// for bit in three orders of threads.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "fusejit/target.h"
#include "ir/graph.h"
#include "scheduler/make_plan.h"
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
    {"products of a batch, rows read as they lie and transposed",
     R"(graph @g(%a: bf16[3,2,9,24], %b: bf16[2,24,64], %c: f32[5,20,12], %d: f32[5,9,12]) {
          %0 = matmul(%a, %b) : bf16[3,2,9,64]
          %t = permute(%d) {dims=[0,2,1]} : f32[5,12,9]
          %1 = matmul(%c, %t) : f32[5,20,9]
          %2 = relu(%1) : f32[5,20,9]
          return %0, %2 })",
     0},
    {"linear interpolation and its transpose",
     R"(graph @g(%x: f32[2,24,5,6]:nhwc, %y: bf16[2,3,4,9], %g: f32[2,24,10,9]:nhwc) {
          %0 = upsample_bilinear2d(%x) {output_size=[10,9]} : f32[2,24,10,9]:nhwc
          %1 = upsample_bilinear2d_grad(%g) {input_size=[5,6]} : f32[2,24,5,6]:nhwc
          %2 = upsample_bilinear2d(%y) {output_size=[7,12], align_corners=true} : bf16[2,3,7,12]
          %3 = upsample_bilinear2d_grad(%2) {input_size=[4,9], align_corners=true} : bf16[2,3,4,9]
          return %0, %1, %3 })",
     0},
    {"the input gradient of a few pixels, in phases",
     R"(graph @g(%d: f32[1,160,4,4]:nhwc, %w: f32[160,12,3,3]) {
          %1 = conv2d_input_grad(%d, %w) {input_size=[8,8], stride=[2,2], padding=[1,1,0,0]} : f32[1,12,8,8]:nhwc
          return %1 })",
     0},
};

std::vector<ir::Kernel> kernels_of(const std::string& graph) {
  std::vector<ir::Kernel> kernels;
  for (const scheduler::PlanStep& step :
       scheduler::make_plan(ir::parse_graph(graph), {Target::parse("cuda:sm_90"), scheduler::Rules::all, {}, {}}).steps)
    kernels.push_back(*step.kernel);
  return kernels;
}

// The text of each on the CPU; returns the launches of all.
std::size_t expect_equal(const std::vector<ir::Kernel>& kernels, const std::vector<std::string>& names) {
  std::vector<codegen::cuda::CudaSource> sources;
  std::size_t launches = 0;
  for (const ir::Kernel& kernel : kernels) {
    sources.push_back(codegen::cuda::emit(kernel, fmt::format("k{}", sources.size())));
    launches += sources.back().launches.size();
  }
  Shim shim(sources);
  shim.open();
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    Operands expected = random_operands(kernels[k], Values::ordinary, k + 5);
    run_interpreted(kernels[k], expected);
    for (const ir::TaskOrder order : {ir::TaskOrder::ascending, ir::TaskOrder::descending, ir::TaskOrder::shuffled}) {
      Operands actual = random_operands(kernels[k], Values::ordinary, k + 5);
      shim.run(k, actual, order);
      EXPECT_EQ(difference(kernels[k], expected, actual), "")
          << names[k] << ", order " << static_cast<int>(order) << "\n"
          << shim.sources()[k].text;
    }
  }
  return launches;
}

TEST(CudaGraphs, PartsMeetInOneOrder) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.what);
    const std::vector<ir::Kernel> kernels = kernels_of(c.graph);
    const std::size_t launches = expect_equal(kernels, std::vector<std::string>(kernels.size(), c.what));
    EXPECT_TRUE(c.launches == 0 || launches == c.launches) << launches;
  }
}

TEST(CudaGraphs, ReductionsOverAnyAxesInBothLayouts) {
  constexpr std::int64_t kShape[] = {4, 8, 6, 12};
  std::vector<ir::Kernel> kernels;
  std::vector<std::string> names;
  for (unsigned axes = 1; axes < 16; ++axes) {
    std::vector<int> reduced;
    std::vector<std::int64_t> kept;
    for (int d = 0; d < 4; ++d) {
      if ((axes >> d & 1) != 0) {
        reduced.push_back(d);
      } else {
        kept.push_back(kShape[d]);
      }
    }
    for (const char* layout : {"", ":nhwc"}) {
      const char* const dtype = axes % 2 == 0 ? "f32" : "bf16";
      const std::string result = fmt::format("{}[{}]", dtype, fmt::join(kept, ","));
      const std::string graph = fmt::format(
          "graph @g(%x: {0}[4,8,6,12]{1}) {{ %0 = sum(%x) {{dim=[{2}]}} : {3} %1 = amax(%x) {{dim=[{2}]}} : {3} "
          "%2 = var(%x) {{dim=[{2}], correction=0}} : {3} return %0, %1, %2 }}",
          dtype, layout, fmt::join(reduced, ","), result);
      for (ir::Kernel& kernel : kernels_of(graph)) {
        kernels.push_back(std::move(kernel));
        names.push_back(graph);
      }
    }
  }
  EXPECT_GE(kernels.size(), 30u);
  expect_equal(kernels, names);
}

}  // namespace
}  // namespace fusejit::test
