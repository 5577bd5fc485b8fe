// Weight gradients of single taps as they are chosen where L1 waits for L2 (x86_weights.cpp, shares_in_l2): tasks that
// share out images, outputs and channels, a panel of tiles for all outputs of one, parts of sums.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/passes/grad.h"
#include "ir/passes/passes.h"
#include "runtime/session.h"
#include "tests/conformance/engines.h"

namespace fusejit {
namespace {

using runtime::Buffer;

struct Layer {
  int images, channels, size, outputs, stride;
};

// relu(x * c) -> convolution -> * s, by w: both operands of the gradient are computed in panels.
ir::Graph gradient_of(const Layer& l, bool computed) {
  const int out = (l.size - 1) / l.stride + 1;
  const std::string x = fmt::format("f32[{},{},{},{}]:nhwc", l.images, l.channels, l.size, l.size),
                    y = fmt::format("f32[{},{},{},{}]:nhwc", l.images, l.outputs, out, out);
  std::string text = fmt::format("graph @g(%x: {}, %w: f32[{},{},1,1], %c: f32[1,{},1,1], %s: f32[1,{},1,1]) {{\n", x,
                                 l.outputs, l.channels, l.channels, l.outputs);
  if (computed) text += fmt::format("  %0 = mul(%x, %c) : {0}\n  %1 = relu(%0) : {0}\n", x);
  text += fmt::format("  %2 = conv2d(%{}, %w) {{stride=[{},{}]}} : {}\n", computed ? "1" : "x", l.stride, l.stride, y);
  if (computed) text += fmt::format("  %3 = mul(%2, %s) : {}\n", y);
  return ir::differentiate(ir::parse_graph(text + fmt::format("  return %{}\n}}", computed ? 3 : 2)), {"w"});
}

TEST(SingleTapSums, AgreeWhoeverAddsThem) {
  // What has one size, what has a rest: images, pixels, channels of a tile. Few outputs, and none for eight tasks.
  const Layer layers[] = {{4, 128, 6, 256, 1}, {8, 64, 16, 256, 1}, {3, 80, 5, 256, 2}, {8, 64, 7, 288, 1},
                          {1, 96, 9, 256, 2},  {2, 72, 4, 96, 1},   {1, 64, 3, 64, 1}};
  for (const Layer& layer : layers) {
    for (const bool computed : {false, true}) {
      const ir::Graph graph = gradient_of(layer, computed);
      const std::vector<Buffer> arguments = testing::random_arguments(graph, 7);
      const std::vector<Buffer> want =
          runtime::Session({.engine = runtime::Engine::graph_interpreter, .threads = 1}).run(graph, arguments);
      for (const char* name : {"x86:avx512,l1=48k,l2=2m,fma=2", "x86:avx512,l1=4k,l2=64k,fma=2,tasks=24"})
        testing::expect_results(graph, arguments, testing::options_for(name), want, {2e-5, 1e-4});
    }
  }
}

}  // namespace
}  // namespace fusejit
