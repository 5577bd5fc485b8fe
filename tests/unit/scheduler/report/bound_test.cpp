// The least bytes of a graph, counted by hand, and that no plan moves less. In strict mode every plan of every test is
// held to that; here are plans for all targets, with and without fusion.
#include "scheduler/report/bound.h"

#include <gtest/gtest.h>

#include "frontend/models/named.h"
#include "ir/passes/grad.h"
#include "ir/passes/passes.h"
#include "runtime/cudnn/step.h"
#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

const Target kTarget = Target::parse("x86:avx2");

std::int64_t least(const std::string& text) { return least_bytes(ir::optimise(ir::parse_graph(text), kTarget), {}); }

constexpr std::int64_t kX = 2 * 3 * 8 * 8 * 4, kW = 16 * 3 * 3 * 3 * 4, kY = 2 * 16 * 8 * 8 * 4, kC = 16 * 4;

constexpr const char* kConvBnRelu = R"(graph @g(%x: f32[2,3,8,8], %w: f32[16,3,3,3], %a: f32[16], %b: f32[16]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f32[2,16,8,8]
  %1 = batch_norm_train(%0, %a, %b) : f32[2,16,8,8]
  %2 = relu(%1) : f32[2,16,8,8]
  return %2
})";

TEST(Bound, OfAConvolutionWithBatchNormAndRelu) {
  const ir::Graph graph = ir::parse_graph(kConvBnRelu);
  // The convolution's result waits for its statistics: written, read, and what becomes of it is written.
  EXPECT_EQ(least_bytes(ir::optimise(graph, kTarget), {}), kX + kW + 2 * kC + kY + kY + kY);
  // With constant statistics nothing waits: relu follows the convolution.
  EXPECT_EQ(least(R"(graph @g(%x: f32[2,3,8,8], %w: f32[16,3,3,3], %a: f32[16], %b: f32[16], %m: f32[16], %v: f32[16]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f32[2,16,8,8]
  %1 = batch_norm(%0, %m, %v, %a, %b) : f32[2,16,8,8]
  %2 = relu(%1) : f32[2,16,8,8]
  return %2
})"),
            kX + kW + 4 * kC + kY);
}

TEST(Bound, OfItsGradient) {
  const ir::Graph graph = ir::optimise(ir::differentiate(ir::parse_graph(kConvBnRelu), {"x", "w"}), kTarget);
  ASSERT_EQ(graph.results().size(), 3u);
  // Both gradients may compute the cotangent of the convolution's result as they read it, from its value, which is
  // written, and from the cotangent from outside: of either they read one at least. They read w and x again and write
  // their results.
  const std::int64_t forward = kX + kW + kY /* written */ + kY;
  const std::int64_t backward = (kY + kW + kX) + (kY + kX + kW);
  EXPECT_EQ(least_bytes(graph, {}), forward + backward) << ir::print(graph);
}

// With a single tap both gradients may go over the same rows: what both read is read once. Taps of three by three are
// two passes.
TEST(Bound, OfGradientsThatGoOverTheSameRows) {
  const auto of = [](const std::string& window, const std::string& taps) {
    return least("graph @g(%g: f32[2,16,8,8], %w: f32[16,3," + taps + "], %x: f32[2,3,8,8]) {\n" +
                 "  %0 = conv2d_input_grad(%g, %w) {input_size=[8,8], " + window + "} : f32[2,3,8,8]\n" +
                 "  %1 = conv2d_weight_grad(%x, %g) {kernel_size=[" + taps + "], " + window + "} : f32[16,3," + taps +
                 "]\n  return %0, %1\n}");
  };
  constexpr std::int64_t kPoint = 16 * 3 * 4;
  EXPECT_EQ(of("padding=[0,0,0,0]", "1,1"), kY + 2 * kX + 2 * kPoint);
  EXPECT_EQ(of("padding=[1,1,1,1]", "3,3"), 2 * kY + 2 * kX + 2 * kW);
}

// Where the image is the gradient, or that is computed from it, one read is for both.
TEST(Bound, OfGradientsOfOneImage) {
  constexpr std::int64_t kPoint = 16 * 16 * 4;
  EXPECT_EQ(least(R"(graph @g(%g: f32[2,16,8,8], %w: f32[16,16,1,1]) {
  %0 = conv2d_input_grad(%g, %w) {input_size=[8,8]} : f32[2,16,8,8]
  %1 = conv2d_weight_grad(%g, %g) {kernel_size=[1,1]} : f32[16,16,1,1]
  return %0, %1
})"),
            2 * kY + 2 * kPoint);
  EXPECT_LE(least(R"(graph @g(%x: f32[2,16,8,8], %s: f32[16], %w: f32[16,16,1,1]) {
  %g = bias_add(%x, %s) : f32[2,16,8,8]
  %0 = conv2d_input_grad(%g, %w) {input_size=[8,8]} : f32[2,16,8,8]
  %1 = conv2d_weight_grad(%x, %g) {kernel_size=[1,1]} : f32[16,16,1,1]
  return %0, %1
})"),
            2 * kY + 2 * kPoint + 16 * 4);
}

// What an anchor's kernel may do without, and what it may not.
TEST(Bound, OfSmallGraphs) {
  constexpr std::int64_t kA = 64 * 32 * 4, kB = 32 * 16 * 4, kAB = 64 * 16 * 4;
  const struct {
    const char* what;
    const char* graph;
    std::int64_t bytes;
  } table[] = {
      {"a product", R"(graph @g(%a: f32[64,32], %b: f32[32,16]) {
  %0 = matmul(%a, %b) : f32[64,16]
  return %0
})",
       kA + kB + kAB},
      {"its sum alone: the product is never in memory", R"(graph @g(%a: f32[64,32], %b: f32[32,16]) {
  %0 = matmul(%a, %b) : f32[64,16]
  %1 = sum(%0) {dim=[0]} : f32[16]
  return %1
})",
       kA + kB + 64},
      {"rounded where it is stored", R"(graph @g(%a: f32[64,32], %b: f32[32,16]) {
  %0 = matmul(%a, %b) : f32[64,16]
  %1 = cast(%0) {dtype=bf16} : bf16[64,16]
  return %1
})",
       kA + kB + kAB / 2},
      {"of bf16", R"(graph @g(%a: bf16[64,32], %b: bf16[32,16]) {
  %0 = matmul(%a, %b) : bf16[64,16]
  return %0
})",
       (kA + kB + kAB) / 2},
      {"divided by its sums: written and read", R"(graph @g(%a: f32[64,32], %b: f32[32,16]) {
  %0 = matmul(%a, %b) : f32[64,16]
  %1 = sum(%0) {dim=[0]} : f32[16]
  %2 = div(%0, %1) : f32[64,16]
  return %2
})",
       kA + kB + 3 * kAB},
      {"every second pixel of an image that is f16 in memory", R"(graph @g(%x: f16[2,8,9,9], %w: f32[16,8,1,1]) {
  %0 = cast(%x) {dtype=f32} : f32[2,8,9,9]
  %1 = conv2d(%0, %w) {stride=[2,2]} : f32[2,16,5,5]
  return %1
})",
       2 * 8 * 5 * 5 * 2 + 16 * 8 * 4 + 2 * 16 * 5 * 5 * 4},
      {"every second row of pixels with zeros around them", R"(graph @g(%x: f32[2,8,9,9], %w: f32[16,8,1,1]) {
  %0 = pad(%x) {low=[0,0,0,2], high=[0,0,0,0], value=0} : f32[2,8,9,11]
  %1 = sub(1, %0) : f32[2,8,9,11]
  %2 = conv2d(%1, %w) {stride=[2,1]} : f32[2,16,5,11]
  return %2
})",
       16 * 8 * 4 + 2 * 16 * 5 * 11 * 4},
      {"two that read one image: it is read twice", R"(graph @g(%a: f32[64,32], %b: f32[32,16], %c: f32[32,16]) {
  %0 = matmul(%a, %b) : f32[64,16]
  %1 = matmul(%a, %c) : f32[64,16]
  return %0, %1
})",
       2 * kA + 2 * kB + 2 * kAB},
      {"one after the other", R"(graph @g(%a: f32[64,32], %b: f32[32,16], %c: f32[16,16]) {
  %0 = matmul(%a, %b) : f32[64,16]
  %1 = relu(%0) : f32[64,16]
  %2 = matmul(%1, %c) : f32[64,16]
  return %2
})",
       kA + kB + kAB + kAB + 16 * 16 * 4 + kAB},
      {"of what is computed: it is read once", R"(graph @g(%a: f32[64,32], %b: f32[32,16]) {
  %0 = relu(%a) : f32[64,32]
  %1 = matmul(%0, %b) : f32[64,16]
  return %1
})",
       kA + kB + kAB},
      {"by itself: it is read once", R"(graph @g(%a: f32[16,16]) {
  %0 = matmul(%a, %a) : f32[16,16]
  return %0
})",
       2 * 16 * 16 * 4},
      {"of a slice: the rest is not read", R"(graph @g(%a: f32[64,64], %b: f32[32,16]) {
  %0 = slice(%a) {starts=[0,0], stops=[64,32], steps=[1,1]} : f32[64,32]
  %1 = matmul(%0, %b) : f32[64,16]
  return %1
})",
       kA + kB + kAB},
      {"weights that are computed are read as they are", R"(graph @g(%a: f32[64,32], %b: bf16[32,16]) {
  %0 = cast(%b) {dtype=f32} : f32[32,16]
  %1 = matmul(%a, %0) : f32[64,16]
  return %1
})",
       kA + kB / 2 + kAB},
      {"stride 2 leaves pixels out", R"(graph @g(%x: f32[1,4,8,8], %w: f32[4,4,1,1]) {
  %0 = conv2d(%x, %w) {stride=[2,2]} : f32[1,4,4,4]
  return %0
})",
       4 * (4 * 16 + 16 + 4 * 16)},
      {"taps that only meet padding", R"(graph @g(%x: f32[1,4,1,1], %w: f32[4,4,3,3]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f32[1,4,1,1]
  return %0
})",
       4 * (4 + 16 + 4)},
      {"a pooling reads what was written", R"(graph @g(%a: f32[1,4,8,8], %w: f32[4,4,1,1]) {
  %0 = conv2d(%a, %w) : f32[1,4,8,8]
  %1 = max_pool2d(%0) {kernel_size=[2,2]} : f32[1,4,4,4]
  return %1
})",
       4 * (256 + 16 + 256 + 64)},
      {"no anchor: parameters and results once", R"(graph @g(%a: f32[64], %b: f32[64], %unread: f32[64]) {
  %0 = add(%a, %b) : f32[64]
  %1 = mul(%0, %a) : f32[64]
  return %1, %1, %b
})",
       3 * 64 * 4},
  };
  for (const auto& row : table) EXPECT_EQ(least(row.graph), row.bytes) << row.what;
}

TEST(Bound, FixedParametersMayBeReadBefore) {
  const ir::Graph graph = ir::parse_graph(R"(graph @g(%x: f32[64], %w: f32[64]) {
  %0 = add(%x, %w) : f32[64]
  return %0
})");
  EXPECT_EQ(least_bytes(graph, {}), 3 * 64 * 4);
  EXPECT_EQ(least_bytes(graph, {false, true}), 2 * 64 * 4);
}

Plan expect_no_less(const char* model, DType dtype, const char* target, Rules rules) {
  const models::ModelGraph m = models::model_graph(model, dtype);
  Plan plan = make_plan(
      m.graph, {Target::parse(target), rules, {m.donated.begin(), m.donated.end()}, runtime::cudnn::supports_step});
  EXPECT_LE(plan.bound_bytes, plan.ledger_bytes()) << model << " on " << target << ", rules=" << name(rules);
  return plan;
}

TEST(Bound, NoPlanMovesLess) {
  for (const char* model : {"convnet@32:train", "convnet@1", "convnet_save_input@32:train", "resnet18@2x3x64x64:train",
                            "resnet50@2x3x64x64:train", "resnet50@1x3x64x64", "mobilenet_v2@2x3x64x64:train",
                            "mobilenet_v2@1x3x64x64", "vgg16@2x3x64x64:train", "densenet121@2x3x64x64:train"}) {
    for (const char* target : {"x86:avx2", "cuda:sm_90", "cuda:sm_90,cudnn=2"}) {
      const Plan plan = expect_no_less(model, f32, target, Rules::all);
      EXPECT_LT(plan.ledger_bytes(), 8 * plan.bound_bytes) << model << " on " << target << ": says nothing";
    }
  }
  for (const char* model : {"convnet@32:train", "mobilenet_v2@1x3x64x64"}) {
    for (const DType dtype : {f16, bf16, f64}) {
      for (const char* target : {"x86:avx512", "cuda:sm_90,cudnn=1"}) expect_no_less(model, dtype, target, Rules::all);
    }
    const Plan fused = expect_no_less(model, f32, "x86:avx2", Rules::all);
    const Plan unfused = expect_no_less(model, f32, "x86:avx2", Rules::none);
    EXPECT_GT(unfused.ledger_bytes(), fused.ledger_bytes());
    EXPECT_EQ(unfused.bound_bytes, fused.bound_bytes) << "what is least is the graph's, not the plan's";
  }
}

}  // namespace
}  // namespace fusejit::scheduler
