// Random graphs: the text both ways, the passes, gradients. Engines are compared in engine_test.cpp.
#include <gtest/gtest.h>

#include "ir/passes/grad.h"
#include "ir/passes/passes.h"
#include "tests/random/generate/graph_generator.h"

namespace fusejit::testing {
namespace {

constexpr std::uint64_t kGraphs = 150;

// "" if the pipeline keeps the results.
std::string changed_by_passes(const ir::Graph& graph, std::uint64_t seed) {
  const auto arguments = graph_arguments(graph, seed);
  return disagreement(ir::interpret(ir::optimise(graph, Target()), arguments), ir::interpret(graph, arguments), 2e-5);
}

TEST(RandomGraphs, PassesKeepTheResults) {
  for (std::uint64_t seed = 1; seed <= kGraphs; ++seed) {
    const ir::Graph graph = random_graph(seed, {});
    ir::verify(graph);
    ASSERT_EQ(ir::parse_graph(ir::print(graph)), graph) << "seed " << seed;
    if (changed_by_passes(graph, seed).empty()) continue;
    const ir::Graph small = shrink(graph, [&](const ir::Graph& g) { return !changed_by_passes(g, seed).empty(); });
    ADD_FAILURE() << "seed " << seed << ": " << changed_by_passes(small, seed) << "\n" << ir::print(small);
  }
}

TEST(RandomGraphs, EveryElementwiseRowSurvivesThePasses) {
  for (std::uint64_t seed = 1; seed <= kGraphs; ++seed) {
    const ir::Graph graph = random_graph(seed, {.nodes = 20, .dtype = DType::f64, .anchors = false, .smooth = false});
    const ir::Graph after = ir::optimise(graph, Target());
    ASSERT_EQ(ir::parse_graph(ir::print(after)), after) << "seed " << seed;
  }
}

TEST(RandomGraphs, GradientsAreGraphs) {
  for (std::uint64_t seed = 1; seed <= kGraphs / 3; ++seed) {
    const ir::Graph graph = random_graph(seed, {.dtype = DType::f64});
    std::vector<std::string> names;
    for (std::size_t i = 0; i < graph.parameters().size(); ++i) names.push_back(graph.parameter_name(i));
    const ir::Graph gradient = ir::differentiate(graph, names);
    ir::verify(gradient);
    ASSERT_EQ(ir::parse_graph(ir::print(gradient)), gradient) << "seed " << seed;
    const auto arguments = graph_arguments(gradient, seed);
    const std::string wrong = disagreement(ir::interpret(ir::optimise(gradient, Target()), arguments),
                                           ir::interpret(gradient, arguments), 1e-9);
    EXPECT_TRUE(wrong.empty()) << "seed " << seed << ": " << wrong << "\n" << ir::print(graph);
  }
}

TEST(RandomGraphs, ShrinkingFindsTheCulprit) {
  const auto has_tanh = [](const ir::Graph& g) {
    for (const ir::Value& node : g.nodes())
      if (node->op == ir::Op::tanh) return true;
    return false;
  };
  int found = 0;
  for (std::uint64_t seed = 1; seed < 60 && found < 5; ++seed) {
    const ir::Graph graph = random_graph(seed, {});
    if (!has_tanh(graph)) continue;
    ++found;
    EXPECT_EQ(shrink(graph, has_tanh).nodes().size(), 1u);
  }
  EXPECT_EQ(found, 5);
}

}  // namespace
}  // namespace fusejit::testing
