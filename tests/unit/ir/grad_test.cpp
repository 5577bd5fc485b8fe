// The gradient pass: every primitive row, orders, dtypes, zeros, second derivatives, custom rules, the file form.
#include "ir/passes/grad.h"

#include "ir/passes/recompute.h"
#include "tests/support/error_of.h"
#include "tests/support/graphs.h"

namespace fusejit::testing {
namespace {

using ir::build;
using ir::parameter;

// ---- element-wise, reduce and view rows, through the pass

struct RowCase {
  Op op;
  std::vector<Type> inputs;
  std::vector<ir::AttrInit> attrs = {};
  double low = 0.3, high = 1.7;
};

FunctionCase of(const RowCase& row) {
  return {std::string(ir::name(row.op)),
          row.inputs,
          [=](const Values& p) { return build(row.op, std::vector<ir::Operand>(p.begin(), p.end()), row.attrs); },
          row.low,
          row.high,
          0,
          2};
}

std::vector<RowCase> rows() {
  const Type m = f64_of({2, 3}), r = f64_of({3}), c = f64_of({2, 3, 4});
  std::vector<RowCase> all;
  for (const Op op : {Op::add, Op::sub, Op::mul, Op::div, Op::pow, Op::maximum, Op::minimum, Op::remainder, Op::fmod}) {
    all.push_back({op, {m, m}});
    all.push_back({op, {m, r}});
  }
  for (const Op op :
       {Op::neg, Op::abs, Op::square, Op::reciprocal, Op::sqrt, Op::rsqrt, Op::exp, Op::exp2, Op::expm1, Op::log,
        Op::log2, Op::log10, Op::log1p, Op::tanh, Op::sigmoid, Op::erf, Op::erfc, Op::sin, Op::cos})
    all.push_back({op, {m}});
  all.push_back({Op::clamp, {m}, {{"min", 0.7}, {"max", 1.3}}});
  all.push_back({Op::where, {Type{boolean, {2, 3}}, m, r}});
  for (const Op op : {Op::sum, Op::mean, Op::prod, Op::amax, Op::amin}) {
    all.push_back({op, {c}, {{"dim", {0, 2}}}});
    all.push_back({op, {c}, {{"dim", {1}}, {"keepdim", true}}});
    all.push_back({op, {c}});
  }
  all.push_back({Op::reshape, {c}, {{"shape", {4, 6}}}});
  all.push_back({Op::permute, {c}, {{"dims", {2, 0, 1}}}});
  all.push_back({Op::squeeze, {f64_of({2, 1, 3})}, {{"dim", {1}}}});
  all.push_back({Op::unsqueeze, {m}, {{"dim", -1}}});
  all.push_back({Op::expand, {r}, {{"shape", {4, 3}}}});
  all.push_back({Op::slice, {c}, {{"starts", {0, 1, 0}}, {"stops", {2, 3, 4}}, {"steps", {1, 1, 2}}}});
  all.push_back({Op::unslice, {m}, {{"shape", {3, 7}}, {"starts", {1, 0}}, {"steps", {1, 3}}}});
  all.push_back({Op::pad, {m}, {{"low", {1, 0}}, {"high", {0, 2}}, {"value", 3.0}}});
  all.push_back({Op::concat, {m, f64_of({2, 1}), m}, {{"dim", 1}}});
  all.push_back({Op::flip, {c}, {{"dims", {0, 2}}}});
  all.push_back({Op::gather, {m, Type{i64, {4, 3}}}, {{"dim", 0}}});
  all.push_back({Op::gather_grad, {f64_of({4, 3}), Type{i64, {4, 3}}}, {{"dim", 0}, {"shape", {2, 3}}}});
  return all;
}

TEST(Gradient, OfEveryPrimitiveRow) {
  for (const RowCase& row : rows()) check_gradient(of(row));
}

TEST(Gradient, SecondDerivativesOfArithmetic) {
  const Type m = f64_of({2, 3});
  for (const RowCase& row : {RowCase{Op::mul, {m, m}}, RowCase{Op::div, {m, m}}, RowCase{Op::tanh, {m}},
                             RowCase{Op::sigmoid, {m}}, RowCase{Op::exp, {m}}, RowCase{Op::pow, {m, m}}}) {
    FunctionCase second = of(row);
    const auto first = second.build;
    second.inputs.push_back(m);
    second.build = [=](const Values& p) {
      const Values inputs(p.begin(), p.end() - 1);
      return ir::gradient({first(inputs)}, {p.back()}, {p[0]})[0];
    };
    check_gradient(second, 1e-5);
  }
}

// d³/dx³ of x⁴ is 24 x.
TEST(Gradient, ThirdDerivative) {
  const Value x = parameter({f64, {}}, "x"), one = parameter({f64, {}}, "one");
  const Value square = build(Op::square, {x});
  Value y = build(Op::square, {square});
  for (int i = 0; i < 3; ++i) y = ir::gradient({y}, {one}, {x})[0];
  const Graph graph = ir::capture("g", {x, one}, {y});
  EXPECT_NEAR(
      doubles_of(ir::interpret(graph, std::vector<Array>{array_of({f64, {}}, {1.5}), array_of({f64, {}}, {1})})[0])[0],
      36, 1e-12);
}

// ---- the pass itself

TEST(Gradient, CotangentsAreAddedInTheOrderOfConsumers) {
  const Graph derived = ir::differentiate(
      ir::parse_graph("graph @g(%x: f32[4]) {"
                      "  %a = tanh(%x) : f32[4] %b = neg(%a) : f32[4] %c = square(%a) : f32[4] %d = abs(%a) : f32[4]"
                      "  return %b, %c, %d }"),
      {"x"});
  // neg's cotangent first, then square's, then abs's.
  const std::string text = ir::print(derived);
  std::vector<std::string> adds;
  for (const Value& node : derived.nodes())
    if (node->op == Op::add) {
      for (const ir::Operand& operand : node->operands) adds.emplace_back(ir::name(operand.value->op));
    }
  ASSERT_EQ(adds.size(), 4u) << text;
  EXPECT_EQ(adds[0], "neg") << text;
  EXPECT_EQ(adds[2], "add") << text;
}

TEST(Gradient, UnusedParametersGetZeros) {
  const Graph derived = ir::differentiate(
      ir::parse_graph("graph @g(%x: f32[2], %u: f32[2,1,1,3]:nhwc) { %0 = neg(%x) : f32[2] return %0 }"), {"u", "x"});
  EXPECT_EQ(derived.results()[1].type().str(), "f32[2,1,1,3]:nhwc");
  const auto got =
      ir::interpret(derived, std::vector<Array>{Array(derived.parameters()[0].type()),
                                                Array(derived.parameters()[1].type()), array_of({f32, {2}}, {1, 2})});
  EXPECT_EQ(doubles_of(got[1]), std::vector<double>(6, 0));
  EXPECT_EQ(doubles_of(got[2]), (std::vector<double>{-1, -2}));
}

TEST(Gradient, OneValueUsedTwiceByOneNode) {
  const auto got =
      run_text(ir::print(ir::differentiate(
                   ir::parse_graph("graph @g(%x: f32[2]) { %0 = mul(%x, %x) : f32[2] return %0 }"), {"x"})),
               {{3, 5}, {1, 1}});
  EXPECT_EQ(got[1], (std::vector<double>{6, 10}));
}

// One operand of a composite without a rule of its own depends on another: their cotangents stay apart.
TEST(Gradient, OperandsOfAnExpansionMayDependOnEachOther) {
  check_gradient({"layer_norm_of_itself", {f64_of({2, 3})}, [](const Values& p) {
                    const Value row = build(Op::sum, {p[0]}, {{"dim", {0}}});
                    return build(Op::layer_norm, {p[0], row, row}, {{"normalized_shape", {3}}});
                  }});
  check_gradient({"mse_of_one", {f64_of({2, 3})}, [](const Values& p) {
                    return build(Op::mse_loss, {p[0], build(Op::tanh, {p[0]})});
                  }});
  check_gradient({"mse_with_itself", {f64_of({2, 3})}, [](const Values& p) {
                    return build(Op::mse_loss, {p[0], p[0]});
                  }});
}

TEST(Gradient, CastsCarryItBetweenFloats) {
  const Graph derived = ir::differentiate(
      ir::parse_graph("graph @g(%x: f16[2]) { %0 = cast(%x) {dtype=f32} : f32[2] %1 = square(%0) : f32[2] return %1 }"),
      {"x"});
  EXPECT_EQ(derived.results()[1].type().str(), "f16[2]");
}

TEST(Gradient, DetachAndIntegersStopIt) {
  const auto got = run_text(
      ir::print(ir::differentiate(
          ir::parse_graph("graph @g(%x: f32[2], %i: i32[2]) {"
                          "  %0 = detach(%x) : f32[2] %1 = mul(%x, %0) : f32[2] %2 = cast(%i) {dtype=f32} : f32[2]"
                          "  %3 = mul(%1, %2) : f32[2] %4 = argmax(%x) {dim=0} : i64[] return %3, %4 }"),
          {"x"})),
      {{3, 5}, {1, 2}, {1, 1}});
  EXPECT_EQ(got[2], (std::vector<double>{3, 10}));
}

TEST(Gradient, WhereKeepsTheOtherSidesNanOut) {
  const double nan = std::nan("");
  const auto got =
      run_text(ir::print(ir::differentiate(ir::parse_graph("graph @g(%c: bool[2], %a: f32[2], %b: f32[2]) {"
                                                           "  %0 = where(%c, %a, %b) : f32[2] return %0 }"),
                                           {"a", "b"})),
               {{1, 0}, {4, nan}, {nan, 5}, {2, 3}});
  EXPECT_EQ(got[0], (std::vector<double>{4, 5}));
  EXPECT_EQ(got[1], (std::vector<double>{2, 0}));
  EXPECT_EQ(got[2], (std::vector<double>{0, 3}));
}

TEST(Gradient, RefusesWhatHasNone) {
  const Graph graph = ir::parse_graph("graph @g(%x: f32[2], %i: i32[2], %d_out1: f32[2]) { return %x }");
  EXPECT_NE(error_of([&] { ir::differentiate(graph, {"i"}); }).find("only floating-point values"), std::string::npos);
  EXPECT_NE(error_of([&] { ir::differentiate(graph, {"y"}); }).find("no parameter named y"), std::string::npos);
  EXPECT_NE(error_of([&] { ir::differentiate(graph, {"x", "x"}); }).find("x is named twice"), std::string::npos);
  const Graph clash = ir::parse_graph("graph @g(%d_out0: f32[2]) { return %d_out0 }");
  EXPECT_NE(error_of([&] { ir::differentiate(clash, {"d_out0"}); }).find("a parameter is called d_out0"),
            std::string::npos);
}

// A chain of 10^5 nodes neither recurses nor takes long.
TEST(Gradient, DeepGraphs) {
  const Value x = parameter({f32, {}}, "x"), dy = parameter({f32, {}}, "dy");
  Value y = x;
  for (int i = 0; i < 100000; ++i) y = build(Op::neg, {y});
  const Value dx = ir::gradient({y}, {dy}, {x})[0];
  EXPECT_EQ(ir::needed_values(std::vector<Value>{dx}).size(), 100001u);
}

// ---- custom rules

TEST(CustomRules, ReplaceTheDerivativeOfWhatTheyCover) {
  const Value x = parameter({f32, {2}}, "x"), dy = parameter({f32, {2}}, "dy");
  const Value before = build(Op::square, {x});
  const Value covered = build(Op::exp, {build(Op::tanh, {before})});
  const Value after = build(Op::mul, {covered, 3});
  const ir::CustomRule rule{{before}, {covered}, [](std::span<const Value> g) {
                              return Values{build(Op::mul, {g[0], 10})};
                            }};
  const Value dx = ir::gradient({after}, {dy}, {x}, std::span(&rule, 1))[0];
  const Graph graph = ir::capture("g", {x, dy}, {dx});
  const Array at = array_of({f32, {2}}, {1, 2}), one = array_of({f32, {2}}, {1, 1});
  EXPECT_EQ(doubles_of(ir::interpret(graph, std::vector<Array>{at, one})[0]), (std::vector<double>{60, 120}));
}

TEST(CustomRules, SeveralOutputsAreAnsweredAtOnce) {
  const Value x = parameter({f32, {}}, "x"), dy = parameter({f32, {}}, "dy");
  const Value a = build(Op::exp, {x}), b = build(Op::tanh, {x}), unused = build(Op::neg, {x});
  int calls = 0;
  const ir::CustomRule rule{{x}, {a, b, unused}, [&](std::span<const Value> g) {
                              ++calls;
                              EXPECT_TRUE(g[0] && g[1] && !g[2]);
                              return Values{build(Op::sub, {g[0], g[1]})};
                            }};
  const Value y = build(Op::add, {build(Op::mul, {a, 5}), build(Op::mul, {b, 2})});
  const Value dx = ir::gradient({y}, {dy}, {x}, std::span(&rule, 1))[0];
  EXPECT_EQ(calls, 1);
  const Graph graph = ir::capture("g", {x, dy}, {dx});
  const Array scalar = array_of({f32, {}}, {1});
  EXPECT_EQ(doubles_of(ir::interpret(graph, std::vector<Array>{scalar, scalar})[0])[0], 3);
}

TEST(CustomRules, RefuseWhatCannotBe) {
  const Value x = parameter({f32, {2}}, "x"), y = build(Op::neg, {x});
  const auto with = [&](ir::CustomRule rule) { return ir::gradient({y}, {x}, {x}, std::span(&rule, 1)); };
  EXPECT_NE(error_of([&] { with({{y}, {y}, nullptr}); }).find("an output is one of the inputs"), std::string::npos);
  EXPECT_NE(error_of([&] {
              with({{x}, {y}, [](auto) { return Values{}; }});
            }).find("0 gradients were returned for 1 inputs"),
            std::string::npos);
  const Value wrong = parameter({f32, {3}}, "wrong");
  EXPECT_NE(error_of([&] {
              with({{x}, {y}, [&](auto) { return Values{wrong}; }});
            }).find("has the type f32[3]"),
            std::string::npos);
}

}  // namespace
}  // namespace fusejit::testing
