// Joins that are stored by the copy of the convolution behind them (scheduler/fuse/copies.h), forward and in a training
// step, beside the graph interpreter and beside the same without that rule.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/passes/grad.h"
#include "runtime/session.h"
#include "scheduler/make_plan.h"
#include "tests/conformance/engines.h"

namespace fusejit {
namespace {

using runtime::Buffer;

struct Block {
  int images, channels, height, width, narrow;
  const char* dtype;
};

// Two blocks: convolution -> normalised -> + side -> relu -> convolution; the join is a result, and added again.
ir::Graph blocks(const Block& b, bool training) {
  const std::string wide = fmt::format("{}[{},{},{},{}]:nhwc", b.dtype, b.images, b.channels, b.height, b.width),
                    narrow = fmt::format("{}[{},{},{},{}]:nhwc", b.dtype, b.images, b.narrow, b.height, b.width);
  const ir::Graph graph = ir::parse_graph(fmt::format(
      R"(graph @blocks(%x: {0}, %w: {2}[{3},{3},1,1], %v: {2}[{4},{3},1,1], %u: {2}[{3},{4},1,1], %a: {2}[{3}], %b: {2}[{3}]) {{
  %c = conv2d(%x, %w) : {0}
  %n = batch_norm_train(%c, %a, %b) : {0}
  %s = add(%n, %x) : {0}
  %j = relu(%s) : {0}
  %d = conv2d(%j, %v) : {1}
  %e = relu(%d) : {1}
  %f = conv2d(%e, %u) : {0}
  %m = batch_norm_train(%f, %a, %b) : {0}
  %t = add(%m, %j) : {0}
  %y = relu(%t) : {0}
  return %y
}})",
      wide, narrow, b.dtype, b.channels, b.narrow));
  return training ? ir::differentiate(graph, {"x", "w", "v", "u", "a", "b"}) : graph;
}

TEST(Joins, StoredByACopyAreThoseOfTheGraph) {
  // Whole vectors and a rest, blocks of rows that are even and not, one row, few pixels.
  const Block all[] = {{4, 32, 12, 12, 16, "f32"}, {3, 24, 7, 9, 40, "f32"}, {2, 20, 5, 3, 17, "f32"},
                       {2, 33, 1, 6, 8, "f32"},    {2, 32, 7, 7, 48, "f64"}, {2, 40, 6, 5, 16, "bf16"}};
  int stored = 0;
  for (const Block& block : all) {
    for (const bool training : {false, true}) {
      const ir::Graph graph = blocks(block, training);
      const std::vector<Buffer> arguments = testing::random_arguments(graph, 5);
      const auto run = [&](runtime::SessionOptions options) {
        return runtime::Session(std::move(options)).run(graph, arguments);
      };
      const bool narrow = block.dtype[0] == 'b';
      const testing::Tolerance within = narrow ? testing::Tolerance{0.05, 0.05} : testing::Tolerance{1e-4, 2e-4};
      const std::vector<Buffer> want = run({.engine = runtime::Engine::graph_interpreter, .threads = 1});
      for (const char* name : {"x86:avx512,l2=1m,fma=2", "x86:avx512,l1=8k,l2=32k,fma=2,tasks=24", "x86:avx2,l2=64k",
                               "x86:avx512,l2=2m,l3=16k,fma=2", "x86:v2"}) {
        runtime::SessionOptions options = testing::options_for(name);
        const std::vector<Buffer> alone = testing::expect_results(graph, arguments, options, want, within);
        options.threads = 3;
        options.rules = scheduler::parse_rules("-R7");  // adds up in the same order here
        EXPECT_TRUE(testing::same_bits(run(options), alone)) << name << "\n" << ir::print(graph);
        const auto steps = [&](const char* rules) {
          return scheduler::make_plan(graph, {options.target, scheduler::parse_rules(rules), {}}).steps.size();
        };
        stored += steps("all") < steps("-R7");
      }
    }
  }
  EXPECT_GE(stored, 20) << "of 60";
}

}  // namespace
}  // namespace fusejit
