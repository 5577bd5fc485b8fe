// Regions: what is computed again stays computed again, whatever pass runs; and what expansion keeps.
#include "ir/passes/recompute.h"

#include "ir/passes/grad.h"
#include "tests/support/graphs.h"

namespace fusejit::testing {
namespace {

using ir::build;
using ir::parameter;

// S4's layer: forward conv + batch norm; backward computes the convolution again from its input.
Graph recomputing_layer() {
  const Value x = parameter({f64, {2, 3, 4, 4}}, "x"), w = parameter({f64, {5, 3, 3, 3}}, "w");
  const std::vector<ir::AttrInit> form{{"eps", 1e-3}, {"correction", 1}, {"eps_outside", true}};
  const Value conv = build(Op::conv2d, {x, w});
  const Value y = build(Op::batch_norm_train, {conv, 1, 0}, form);
  const Value dy = parameter(y.type(), "dy");
  const std::uint32_t region = ir::fresh_region(std::vector<Value>{y});
  const ir::CustomRule rule{{x, w}, {y}, [&](std::span<const Value> g) {
                              const Value again = ir::recompute_in_region(conv, region, std::vector<Value>{x, w});
                              const Value d = build(Op::batch_norm_train_input_grad, {again, 1, g[0]}, form);
                              return ir::gradient({again}, {d}, {x, w});
                            }};
  const Values grads = ir::gradient({y}, {dy}, {x, w}, std::span(&rule, 1));
  return ir::capture("layer", {x, w, dy}, {y, grads[0], grads[1]});
}

int count(const Graph& graph, Op op) {
  int found = 0;
  for (const Value& node : graph.nodes()) found += node->op == op;
  return found;
}

TEST(Regions, NoPassMergesARecomputation) {
  const Graph layer = recomputing_layer();
  EXPECT_EQ(count(layer, Op::conv2d), 2) << ir::print(layer);
  EXPECT_EQ(count(ir::parse_graph(ir::print(layer)), Op::conv2d), 2);
  EXPECT_EQ(count(ir::simplify(layer), Op::conv2d), 2);
  EXPECT_EQ(count(ir::optimise(layer, Target()), Op::conv2d), 2);
  const Graph expanded = ir::simplify(ir::expand(layer));
  EXPECT_EQ(count(expanded, Op::conv2d), 2) << ir::print(expanded);
  // The statistics of the recomputed convolution are computed from it, not taken from the forward.
  EXPECT_EQ(count(expanded, Op::mean), 2) << ir::print(expanded);
  EXPECT_EQ(ir::print(ir::parse_graph(ir::print(expanded))), ir::print(expanded));
}

TEST(Regions, RecomputingComputesTheSame) {
  const Graph layer = recomputing_layer();
  const Value &x = layer.parameters()[0], &w = layer.parameters()[1], &dy = layer.parameters()[2];
  const Value y = build(Op::batch_norm_train, {build(Op::conv2d, {x, w}), 1, 0},
                        {{"eps", 1e-3}, {"correction", 1}, {"eps_outside", true}});
  const Values grads = ir::gradient({y}, {dy}, {x, w});
  const Graph plain = ir::capture("plain", {x, w, dy}, {y, grads[0], grads[1]});
  EXPECT_EQ(count(plain, Op::conv2d), 1);
  expect_same_results(layer, plain, random_arguments(layer, {"", {}, {}}), 0);
}

// Composites of a region expand within it, and so do the gradients of what is in it.
TEST(Regions, ExpansionAndGradientStayInside) {
  const Value x = parameter({f32, {2, 3}}, "x"), dy = parameter({f32, {2, 3}}, "dy");
  const Value first = build(Op::silu, {x});
  const Value again = ir::recompute_in_region(first, 3, std::vector<Value>{x});
  EXPECT_EQ(again->region, 3u);
  const Graph both = ir::expand(ir::capture("g", {x}, {first, again}));
  EXPECT_EQ(count(both, Op::sigmoid), 2) << ir::print(both);
  const Value dx = ir::gradient({again}, {dy}, {x})[0];
  for (const Value& value : ir::needed_values(std::vector<Value>{dx}))
    EXPECT_EQ(value->region, value->op == Op::parameter ? 0u : 3u);
  for (const Op op : {Op::layer_norm}) {  // without a rule of its own
    const Value norm = build(op, {x, 1, 0}, std::vector<ir::AttrInit>{{"normalized_shape", {3}}}, 2);
    const Value dn = ir::gradient({norm}, {dy}, {x})[0];
    const Graph joint = ir::expand(ir::capture("g", {x, dy}, {norm, dn}));
    for (const Value& node : joint.nodes()) EXPECT_TRUE(node->region == 2 || node->op == Op::add) << ir::print(joint);
    EXPECT_EQ(count(joint, Op::sqrt), 1) << ir::print(joint);
  }
}

TEST(Regions, FreshOnesAreUnused) {
  const Value x = parameter({f32, {2}}, "x");
  const Value y = build(Op::neg, {x}, std::vector<ir::AttrInit>{}, 7);
  EXPECT_EQ(ir::fresh_region(std::vector<Value>{x}), 1u);
  EXPECT_EQ(ir::fresh_region(std::vector<Value>{y}), 8u);
}

TEST(Expand, KeepsLayouts) {
  const Graph graph = ir::parse_graph(
      "graph @g(%x: f32[2,3,4,4]:nhwc, %b: f32[3]) {"
      "  %0 = bias_add(%x, %b) : f32[2,3,4,4] %1 = relu(%0) : f32[2,3,4,4]:nhwc return %0, %1 }");
  const Graph expanded = ir::expand(graph);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(expanded.results()[i].type(), graph.results()[i].type());
}

}  // namespace
}  // namespace fusejit::testing
