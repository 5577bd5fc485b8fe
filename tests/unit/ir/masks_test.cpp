// Masks of a relu: which of its input and output they read, and that it is all the same.
#include "ir/passes/grad.h"
#include "tests/support/graphs.h"

namespace fusejit::testing {
namespace {

using ir::build;
using ir::parameter;

// The op whose output the one comparison of the graph reads.
Op compared(const Graph& graph) {
  Op op = Op::parameter;
  int found = 0;
  for (const Value& node : graph.nodes()) {
    if (node->op != Op::le && node->op != Op::gt) continue;
    ++found, op = node->operands[0].value->op;
  }
  EXPECT_EQ(found, 1) << ir::print(graph);
  return op;
}

// relu(f(x)) and its gradient by x, expanded.
Graph relu_of(const std::function<Value(const Value&)>& f, const Type& type = {f64, {2, 3, 4, 4}}) {
  const Value x = parameter(type, "x"), y = build(Op::relu, {f(x)}), dy = parameter(y.type(), "dy");
  const Values grads = ir::gradient({y}, {dy}, {x});
  return ir::simplify(ir::expand(ir::capture("relu_of", {x, dy}, {y, grads[0]})));
}

void expect_unchanged_results(const Graph& graph) {
  expect_same_results(graph, ir::masks_from_outputs(graph), random_arguments(graph, {"", {}, {}}), 0);
}

TEST(Masks, ReadTheOutputWhereTheInputWouldBeKeptForThem) {
  const auto weights = [](const Value& x) { return build(Op::mul, {x, 0.5}); };
  const Graph pool = relu_of([](const Value& x) {
    return build(Op::max_pool2d, {x}, {{"kernel_size", {2, 2}}, {"stride", {2, 2}}});
  });
  EXPECT_EQ(compared(pool), Op::max_pool2d);
  EXPECT_EQ(compared(ir::masks_from_outputs(pool)), Op::maximum);
  expect_unchanged_results(pool);
  const Graph product = relu_of(
      [&](const Value& x) {
        return build(Op::add, {build(Op::matmul, {x, weights(x)}), 1.5});
      },
      {f64, {4, 4}});
  EXPECT_EQ(compared(ir::masks_from_outputs(product)), Op::maximum);
  expect_unchanged_results(product);
}

TEST(Masks, ReadTheInputWhereItsSourceIsNeededAnyway) {
  // The gradient of the square reads the pool's output; that of a parameter is there.
  const Graph square = relu_of([](const Value& x) {
    return build(Op::square, {build(Op::max_pool2d, {x}, {{"kernel_size", {2, 2}}, {"stride", {2, 2}}})});
  });
  EXPECT_EQ(compared(ir::masks_from_outputs(square)), Op::square);
  const Graph chain = relu_of([](const Value& x) { return build(Op::add, {x, 1.5}); });
  EXPECT_EQ(compared(ir::masks_from_outputs(chain)), Op::add);
  const Graph norm = relu_of([](const Value& x) {
    return build(Op::batch_norm_train,
                 {build(Op::max_pool2d, {x}, {{"kernel_size", {2, 2}}, {"stride", {1, 1}}}), 1, 0});
  });
  EXPECT_NE(compared(ir::masks_from_outputs(norm)), Op::maximum);
}

// In front of a flatten, the relu's output lies otherwise than its gradient.
TEST(Masks, ReadWhatLiesAsTheyDo) {
  const auto text = [](const std::string& relu) {
    return ir::parse_graph(
        "graph @g(%x: f32[2,16,8,8]:nhwc, %dy: f32[2,16,4,4]:nhwc) {\n"
        "  %0 = max_pool2d(%x) {kernel_size=[2,2], stride=[2,2], padding=[0,0,0,0], "
        "dilation=[1,1]} : f32[2,16,4,4]:nhwc\n"
        "  %1 = maximum(%0, 0) : f32[2,16,4,4]" +
        relu +
        "\n  %2 = le(%0, 0) : bool[2,16,4,4]:nhwc\n"
        "  %3 = where(%2, 0, %dy) : f32[2,16,4,4]:nhwc\n  return %1, %3\n}");
  };
  EXPECT_EQ(compared(ir::masks_from_outputs(text(":nhwc"))), Op::maximum);
  EXPECT_EQ(compared(ir::masks_from_outputs(text(""))), Op::max_pool2d);
}

// maximum(x, c) says nothing of the sign of x unless c is 0.
TEST(Masks, OfAnotherMaximumReadTheInput) {
  const Value x = parameter({f64, {2, 3, 4, 4}}, "x"), dy = parameter({f64, {2, 3, 2, 2}}, "dy");
  const Value pool = build(Op::max_pool2d, {x}, {{"kernel_size", {2, 2}}, {"stride", {2, 2}}});
  const auto masked = [&](double least) {
    return ir::capture("g", {x, dy},
                       {build(Op::maximum, {pool, least}), build(Op::where, {build(Op::le, {pool, 0.0}), 0.0, dy})});
  };
  EXPECT_EQ(compared(ir::masks_from_outputs(masked(0))), Op::maximum);
  for (const double least : {1.0, -1.0}) {
    EXPECT_EQ(compared(ir::masks_from_outputs(masked(least))), Op::max_pool2d) << least;
    expect_unchanged_results(masked(least));
  }
}

TEST(Masks, AgreeForEveryKindOfNumber) {
  const Value x = parameter({f32, {6}}, "x");
  const Value y = build(Op::maximum, {x, 0.0});
  const double values[] = {
      -1, -0.0, 0, 1e-45, std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()};
  ir::Array array(x.type());
  for (int i = 0; i < 6; ++i) ir::store_element(array.bytes.data(), f32, i, ir::cast(ir::Scalar::of(values[i]), f32));
  for (const Op op : {Op::le, Op::gt}) {
    const Graph both = ir::capture("both", {x}, {build(op, {x, 0.0}), build(op, {y, 0.0})});
    const auto results = ir::interpret(both, std::vector<ir::Array>{array});
    EXPECT_EQ(results[0].bytes, results[1].bytes) << ir::name(op);
  }
}

}  // namespace
}  // namespace fusejit::testing
