// Graphs: what capture keeps, merges and never merges; both ways of the text; sizes that would overflow a stack.
#include "ir/graph.h"

#include <gtest/gtest.h>

#include <thread>

#include "ir/passes/passes.h"
#include "ir/rewrite.h"

namespace fusejit::ir {
namespace {

using namespace expr;

Value p(const char* name) { return parameter({DType::f32, {4}}, name); }

TEST(Capture, KeepsWhatIsNeededInTheOrderOfRecording) {
  const Value a = p("a"), b = p("b");
  const Value unused = a * b;
  const Value s = a + b, d = a - b, m = d * s;
  const Graph g = capture("g", {a, b}, {m, s});
  EXPECT_EQ(print(g),
            "graph @g(%a: f32[4], %b: f32[4]) {\n"
            "  %0 = add(%a, %b) : f32[4]\n"
            "  %1 = sub(%a, %b) : f32[4]\n"
            "  %2 = mul(%1, %0) : f32[4]\n"
            "  return %2, %0\n"
            "}\n");
  EXPECT_EQ(g.value_count(), 5);
  EXPECT_THROW(g.index_of(unused.get()), InternalError);
}

TEST(Capture, MergesEqualNodesThroughTheirOperands) {
  const Value a = p("a"), b = p("b");
  const Graph g = capture("g", {a, b}, {(a + b) * 2.0, (a + b) * 2.0, (b + a) * 2.0});
  EXPECT_EQ(g.nodes().size(), 4u);  // a+b and b+a are different nodes: no order is invented
  EXPECT_EQ(g.results()[0], g.results()[1]);
  verify(g);
}

TEST(Capture, TellsOperandsNumbersAndAttributesApart) {
  const Value a = p("a"), b = p("b");
  const auto hash_of = [&](Value v) { return hash(capture("g", {a, b}, {v})); };
  const Hash hashes[] = {hash_of(a + a),
                         hash_of(a + b),
                         hash_of(a + 1.0),
                         hash_of(a + 2.0),
                         hash_of(a + -0.0),
                         hash_of(a + 0.0),
                         hash_of(build(Op::clamp, {a}, {{"min", 1}})),
                         hash_of(build(Op::clamp, {a}, {{"max", 1}})),
                         hash_of(a)};
  for (std::size_t i = 0; i < std::size(hashes); ++i)
    for (std::size_t k = 0; k < i; ++k) EXPECT_NE(hashes[i], hashes[k]) << i << " and " << k;
  EXPECT_EQ(hash_of(a + 1), hash_of(a + 1.0)) << "beside floats an integer literal is just a number";
}

TEST(Capture, NeverMergesAcrossRegions) {
  const Value a = p("a");
  const Value first = build(Op::exp, {a}), again = build(Op::exp, {a}, std::vector<AttrInit>{}, 1);
  Graph g =
      capture("g", {a}, {first, again, build(Op::relu, {again}, std::vector<AttrInit>{}, 1), build(Op::relu, {again})});
  EXPECT_EQ(g.nodes().size(), 4u);
  EXPECT_NE(print(g).find("exp(%a) @1 :"), std::string::npos);
  EXPECT_EQ(parse_graph(print(g)), g);
  const auto count = [](const Graph& graph, Op op) {
    int n = 0;
    for (const Value& node : graph.nodes()) n += node->op == op;
    return n;
  };
  for (const Pass& pass : pipeline()) {
    g = pass.run(g, Target());
    EXPECT_EQ(count(g, Op::exp), 2) << "merged by " << pass.name;
  }
  EXPECT_EQ(count(g, Op::maximum), 2);
}

TEST(Capture, RefusesAParameterOutsideTheSignature) {
  const Value a = p("a"), b = p("b");
  EXPECT_THROW(capture("g", {a}, {a + b}), UserError);
  EXPECT_THROW(capture("g", {a}, {b}), UserError);
  EXPECT_THROW(capture("g", {a, a}, {a}), UserError);
  EXPECT_THROW(capture("g", {a}, {}), UserError);
}

TEST(Capture, MakesNamesLegalAndUnique) {
  const Value a = p("conv1.weight"), b = p("conv1_weight"), c = p(""), d = p("3");
  const Graph g = capture("a b", {a, b, c, d}, {a});
  EXPECT_EQ(g.parameter_name(0), "conv1_weight");
  EXPECT_EQ(g.parameter_name(1), "conv1_weight_1");
  EXPECT_EQ(g.parameter_name(2), "p2");
  EXPECT_EQ(g.parameter_name(3), "_3");
  EXPECT_EQ(g.name(), "a_b");
  EXPECT_EQ(parse_graph(print(g)), g);
}

TEST(Capture, AgainGivesTheSameGraph) {
  const Value a = p("a"), b = p("b");
  const Value x = (a + b) * (a + b), y = (a - b) / x;
  const Graph g = capture("g", {a, b}, {y, a + b, y * 0.5});
  EXPECT_EQ(print(capture("g", g.parameters(), g.results())), print(g));
  EXPECT_EQ(print(rewrite(g, [](const Node&, const std::vector<Operand>&) { return Value(); })), print(g));
}

TEST(Hash, IgnoresNamesOnly) {
  const Value a = p("a"), b = p("b");
  EXPECT_EQ(hash(capture("g", {a}, {-a})), hash(capture("h", {b}, {-b})));
  const Value h = parameter({DType::f16, {4}}, "a"), n = parameter({DType::f32, {1, 4, 1, 1}, Layout::nhwc}, "a");
  const Value s = parameter({DType::f32, {1, 4, 1, 1}}, "a");
  EXPECT_NE(hash(capture("g", {a}, {-a})), hash(capture("g", {h}, {-h})));
  EXPECT_NE(hash(capture("g", {n}, {-n})), hash(capture("g", {s}, {-s})));
  EXPECT_NE(hash(capture("g", {a}, {-a})), hash(capture("g", {a, b}, {-a})));
  const Value again = build(Op::neg, {a}, std::vector<AttrInit>{}, 1);
  EXPECT_NE(hash(capture("g", {a}, {-a})), hash(capture("g", {a}, {again}))) << "a region is no name";
}

// The number is part of keys in files: it may change only when the meaning of keys does.
TEST(Hash, IsTheSameOnEveryMachine) {
  const Graph g = parse_graph(
      "graph @g(%x: f32[2,3]) { %0 = clamp(%x) {min=0.5} : f32[2,3] %1 = add(%0, 2) : f32[2,3] return %1 }");
  EXPECT_EQ(hash(g).hex(), "f2caf2f5bb78e3246a2f7a25dd4d783e");
}

TEST(Graph, HoldsAChainOfHundredThousandNodes) {
  constexpr int kNodes = 100'000;
  std::thread small([] {
    Value x = p("x"), y = x;
    for (int i = 0; i < kNodes; ++i) y = y + x;
    Graph g = capture("chain", {x}, {y});
    y = Value();
    EXPECT_EQ(g.nodes().size(), static_cast<std::size_t>(kNodes));
    const Graph back = parse_graph(print(g));
    EXPECT_EQ(back, g);
    EXPECT_EQ(hash(back), hash(g));
    verify(g);
    EXPECT_EQ(simplify(g), g);
  });
  small.join();
}

TEST(Node, LayoutFollowsTheOperands) {
  const Value n = parameter({DType::f32, {1, 2, 3, 4}, Layout::nhwc}, "n"),
              s = parameter({DType::f32, {1, 2, 3, 4}}, "s");
  EXPECT_EQ((n + s).type().layout, Layout::nhwc);
  EXPECT_EQ((s + s).type().layout, Layout::standard);
  EXPECT_EQ(build(Op::sum, {n}, {{"dim", {1}}}).type().layout, Layout::standard);
  const Value changed = build_in(Layout::nhwc, Op::neg, {s}, Attrs());
  EXPECT_EQ(changed.type().layout, Layout::nhwc);
  EXPECT_THROW(build_in(Layout::nhwc, Op::sum, {n}, build(Op::sum, {n})->attrs), UserError);
}

TEST(Node, CountsFromSeveralThreads) {
  const Value x = p("x");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        Value y = x + x;
        Value z = y * y;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(x->references.load(), 1);
}

}  // namespace
}  // namespace fusejit::ir
