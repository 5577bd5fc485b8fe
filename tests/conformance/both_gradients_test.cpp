// Both gradients of a convolution in one kernel (scheduler/draft/both_gradients.h) in a training step, beside the graph
// interpreter.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/passes/grad.h"
#include "runtime/session.h"
#include "scheduler/make_plan.h"
#include "tests/conformance/engines.h"

namespace fusejit {
namespace {

using runtime::Buffer;

struct Layers {
  int images, channels, height, width, outputs, stride = 1;
};

// Convolution -> normalised -> relu, twice, and where there is no stride what was given added: gradients with prologues
// and with epilogues that sum and read, and the update of the weights.
ir::Graph step(const Layers& l) {
  const auto image = [&](int channels, int stride) {
    return fmt::format("f32[{},{},{},{}]:nhwc", l.images, channels, (l.height - 1) / stride + 1,
                       (l.width - 1) / stride + 1);
  };
  const ir::Graph graph = ir::parse_graph(fmt::format(
      R"(graph @layers(%x: {0}, %w: f32[{4},{3},1,1], %v: f32[{3},{4},1,1], %a: f32[{4}], %b: f32[{4}], %d: f32[{3}], %e: f32[{3}]) {{
  %c = conv2d(%x, %w) : {1}
  %n = batch_norm_train(%c, %a, %b) : {1}
  %r = relu(%n) : {1}
  %f = conv2d(%r, %v) {{stride=[{6},{6}]}} : {2}
  %m = batch_norm_train(%f, %d, %e) : {2}
  %s = {5} : {2}
  %y = relu(%s) : {2}
  return %y
}})",
      image(l.channels, 1), image(l.outputs, 1), image(l.channels, l.stride), l.channels, l.outputs,
      l.stride == 1 ? "add(%m, %x)" : "abs(%m)", l.stride));
  return ir::differentiate(graph, {"x", "w", "v", "a", "b", "d", "e"});
}

// Beside the graph interpreter, on targets whose L2 is small: how many kernels have both gradients.
int joined_in(const ir::Graph& graph) {
  const std::vector<Buffer> arguments = testing::random_arguments(graph, 5);
  int joined = 0;
  const std::vector<Buffer> want =
      runtime::Session({.engine = runtime::Engine::graph_interpreter, .threads = 1}).run(graph, arguments);
  // Weights may be a sixteenth of L2, and what is saved is five times L2 at least.
  for (const char* name : {"x86:avx512,l1=2k,l2=20k,fma=2,tasks=8", "x86:avx512,l1=4k,l2=24k,l3=64k,fma=1,tasks=24",
                           "x86:avx2,l1=2k,l2=22k,tasks=5", "x86:v2,l1=2k,l2=20k,tasks=3"}) {
    const runtime::SessionOptions options = testing::options_for(name);
    testing::expect_results(graph, arguments, options, want, {1e-4, 2e-4});
    const scheduler::Plan plan = scheduler::make_plan(graph, {options.target, scheduler::Rules::all, {}});
    for (const scheduler::PlanStep& one : plan.steps) {
      int gradients = 0;
      for (const std::string& op : one.ops)
        gradients += op.ends_with(" conv2d_input_grad") || op.ends_with(" conv2d_weight_grad");
      joined += gradients == 2;
    }
  }
  return joined;
}

TEST(BothGradients, AreThoseOfTheGraph) {
  // Whole vectors and rests, even and odd rows, one image, few pixels.
  const Layers all[] = {{4, 16, 14, 14, 16}, {3, 8, 19, 18, 32}, {5, 12, 16, 14, 17},  {1, 16, 40, 31, 16},
                        {9, 8, 12, 11, 40},  {4, 20, 17, 18, 8}, {4, 32, 24, 21, 8, 2}};
  int joined = 0;
  for (const Layers& layers : all) joined += joined_in(step(layers));
  EXPECT_GE(joined, 20) << "of 56";
}

struct Depthwise {
  int images, channels, height, width, taps, stride = 1, dilation = 1;
};

ir::Graph step(const Depthwise& l) {
  const int around = l.dilation * (l.taps - 1);
  const auto image = [&](int channels, int height, int width) {
    return fmt::format("f32[{},{},{},{}]:nhwc", l.images, channels, height, width);
  };
  const auto out = [&](int extent) { return (extent + around / 2 * 2 - around - 1) / l.stride + 1; };
  const std::string y = image(l.channels, out(l.height), out(l.width));
  const ir::Graph graph = ir::parse_graph(fmt::format(
      R"(graph @layers(%x: {7}, %w: f32[{2},4,1,1], %v: f32[{2},1,{3},{3}], %a: f32[{2}], %b: f32[{2}], %d: f32[{2}], %e: f32[{2}]) {{
  %c = conv2d(%x, %w) : {0}
  %n = batch_norm_train(%c, %a, %b) : {0}
  %r = relu(%n) : {0}
  %f = conv2d(%r, %v) {{stride=[{4},{4}], padding=[{5},{5},{5},{5}], dilation=[{6},{6}], groups={2}}} : {1}
  %m = batch_norm_train(%f, %d, %e) : {1}
  %y = relu(%m) : {1}
  return %y
}})",
      image(l.channels, l.height, l.width), y, l.channels, l.taps, l.stride, around / 2, l.dilation,
      image(4, l.height, l.width)));
  return ir::differentiate(graph, {"x", "w", "v", "a", "b", "d", "e"});
}

TEST(BothGradients, DepthwiseAreThoseOfTheGraph) {
  // Blocks of two to four vectors and rests, rows that a task's divide and not, strides whose phases differ, and one of
  // more than taps.
  const Depthwise all[] = {{4, 48, 14, 12, 3}, {2, 64, 16, 9, 3, 2}, {3, 32, 15, 13, 3, 2},    {2, 40, 12, 12, 5},
                           {2, 96, 8, 8, 3},   {1, 33, 24, 20, 3},   {2, 32, 14, 14, 3, 1, 2}, {2, 48, 18, 18, 2, 3}};
  int joined = 0;
  for (const Depthwise& layer : all) joined += joined_in(step(layer));
  EXPECT_GE(joined, 16) << "of 32";
}

}  // namespace
}  // namespace fusejit
