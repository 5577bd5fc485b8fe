// Concatenations whose parts are stored in their memory (scheduler/fuse/homes.h), forward and in a training step,
// beside the graph interpreter and beside the same with every value in memory of its own.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/passes/grad.h"
#include "runtime/session.h"
#include "scheduler/make_plan.h"
#include "tests/conformance/engines.h"

namespace fusejit {
namespace {

using runtime::Buffer;

struct ConcatBlock {
  int images, first, growth, height, width;
  const char* dtype;
};

// A dense block of three layers: each convolution reads all that was computed before it, one of them normalised, one
// behind a relu, and one as it is, so that its kernel reads the memory that it writes a part of.
ir::Graph dense(const ConcatBlock& b, bool training) {
  const auto image = [&](int channels) {
    return fmt::format("{}[{},{},{},{}]:nhwc", b.dtype, b.images, channels, b.height, b.width);
  };
  const int c0 = b.first, c1 = c0 + b.growth, c2 = c1 + b.growth, c3 = c2 + b.growth;
  const ir::Graph graph = ir::parse_graph(fmt::format(
      R"(graph @dense(%x: {0}, %w0: {8}[{4},{4},1,1], %w1: {8}[{9},{4},3,3], %w2: {8}[{9},{5},3,3], %w3: {8}[{9},{6},1,1],
    %a: {8}[{4}], %b: {8}[{4}], %v: {8}[{4},{7},1,1]) {{
  %c = conv2d(%x, %w0) : {0}
  %x0 = relu(%c) : {0}
  %n = batch_norm_train(%x0, %a, %b) : {0}
  %x1 = conv2d(%n, %w1) {{padding=[1,1,1,1]}} : {10}
  %d1 = concat(%x0, %x1) {{dim=1}} : {1}
  %r1 = relu(%d1) : {1}
  %e = conv2d(%r1, %w2) {{padding=[1,1,1,1]}} : {10}
  %x2 = tanh(%e) : {10}
  %d2 = concat(%d1, %x2) {{dim=1}} : {2}
  %x3 = conv2d(%d2, %w3) : {10}
  %d3 = concat(%d2, %x3) {{dim=1}} : {3}
  %y = conv2d(%d3, %v) : {0}
  return %y
}})",
      image(c0), image(c1), image(c2), image(c3), c0, c1, c2, c3, b.dtype, b.growth, image(b.growth)));
  return training ? ir::differentiate(graph, {"x", "w0", "w1", "w2", "w3", "a", "b", "v"}) : graph;
}

TEST(Concat, InPlaceIsThatOfTheGraph) {
  // Whole vectors, lines that begin inside of a part, odd channels, one row; pairs of bf16.
  const ConcatBlock all[] = {{2, 32, 16, 6, 6, "f32"},  {2, 20, 12, 5, 7, "f32"}, {1, 7, 3, 4, 9, "f32"},
                             {3, 16, 8, 1, 6, "f32"},   {2, 16, 8, 4, 4, "f64"},  {1, 11, 6, 5, 3, "f64"},
                             {2, 32, 32, 5, 4, "bf16"}, {2, 24, 8, 4, 6, "bf16"}, {2, 9, 5, 4, 5, "f16"}};
  int in_place = 0;
  for (const ConcatBlock& block : all) {
    for (const bool training : {false, true}) {
      const ir::Graph graph = dense(block, training);
      const std::vector<Buffer> arguments = testing::random_arguments(graph, 5);
      const std::string dtype = block.dtype;
      const bool narrow = dtype == "bf16" || dtype == "f16";
      if (narrow && training) continue;  // sums that cancel
      const testing::Tolerance within = narrow           ? testing::Tolerance{0.06, 2}
                                        : dtype == "f64" ? testing::Tolerance{1e-10, 1e-10}
                                                         : testing::Tolerance{2e-3, 1e-2};
      const std::vector<Buffer> want =
          runtime::Session({.engine = runtime::Engine::graph_interpreter, .threads = 1}).run(graph, arguments);
      for (const char* name : {"x86:avx512,l2=1m,fma=2", "x86:avx512bf16,fma=2,dot2=1",
                               "x86:avx512,l1=8k,l2=32k,tasks=24", "x86:avx2,l2=64k", "x86:v2"}) {
        const runtime::SessionOptions options = testing::options_for(name);
        testing::expect_results(graph, arguments, options, want, within);
        const scheduler::Plan plan = scheduler::make_plan(graph, {options.target, scheduler::Rules::all, {}});
        for (const scheduler::PlanValue& value : plan.values) in_place += value.inside >= 0;
      }
    }
  }
  EXPECT_GE(in_place, 300) << "of 6 in each of 75";
}

}  // namespace
}  // namespace fusejit
