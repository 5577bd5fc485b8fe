// Activations, softmax, bias, dropout: values at the edges of ops.md §5, gradients, expansions, errors.
#include <limits>

#include "tests/support/error_of.h"
#include "tests/support/graphs.h"
#include "tests/unit/ops/special.h"

namespace fusejit::testing {
namespace {

using ir::build;

FunctionCase unary(Op op, std::vector<ir::AttrInit> attrs = {}, double low = -4, double high = 8) {
  std::string name(ir::name(op));
  for (const auto& attr : attrs) name += "_" + std::string(attr.name);
  return {name, {f64_of({3, 5})}, [=](const Values& p) { return build(op, {p[0]}, attrs); }, low, high};
}

std::vector<FunctionCase> composite_cases() {
  return {
      unary(Op::relu),
      unary(Op::relu6),
      unary(Op::leaky_relu),
      unary(Op::leaky_relu, {{"negative_slope", 0.3}}),
      unary(Op::elu),
      unary(Op::elu, {{"alpha", 0.7}}),
      unary(Op::selu),
      unary(Op::gelu),
      unary(Op::gelu, {{"approximate", "tanh"}}),
      unary(Op::silu),
      unary(Op::mish),
      unary(Op::softplus),
      unary(Op::softplus, {{"beta", 3.0}, {"threshold", 4.0}}),
      unary(Op::hardsigmoid),
      unary(Op::hardswish),
      unary(Op::softmax, {{"dim", 1}}),
      unary(Op::softmax, {{"dim", 0}}),
      unary(Op::log_softmax, {{"dim", -1}}),
      {"log_softmax_middle",
       {f64_of({2, 3, 4})},
       [](const Values& p) {
         return build(Op::log_softmax, {p[0]}, {{"dim", 1}});
       }},
      {"bias_add",
       {f64_of({2, 3, 2, 2}), f64_of({3})},
       [](const Values& p) {
         return build(Op::bias_add, {p[0], p[1]});
       }},
      {"bias_add_rank2",
       {f64_of({4, 3}), f64_of({3})},
       [](const Values& p) {
         return build(Op::bias_add, {p[0], p[1]});
       }},
      {"dropout",
       {f64_of({5, 7}), Type{i64, {}}},
       [](const Values& p) {
         return build(Op::dropout, {p[0], p[1]}, {{"p", 0.3}, {"stream", 2}});
       }},
      {"var", {f64_of({2, 3, 4})}, [](const Values& p) { return build(Op::var, {p[0]}); }},
      {"var_dims",
       {f64_of({2, 3, 4})},
       [](const Values& p) {
         return build(Op::var, {p[0]}, {{"dim", {0, 2}}, {"correction", 0}, {"keepdim", true}});
       }},
      {"flatten",
       {f64_of({2, 3, 4})},
       [](const Values& p) {
         return build(Op::flatten, {p[0]}, {{"start_dim", 1}});
       }},
  };
}

class Composite : public ::testing::TestWithParam<FunctionCase> {};
TEST_P(Composite, GradientIsThatOfDifferences) { check_gradient(GetParam()); }
TEST_P(Composite, SecondDerivativeIsThatOfDifferences) { check_gradient(derivative_of(GetParam(), 0), 1e-5); }
TEST_P(Composite, ExpansionMeansTheSame) { check_expansion(GetParam()); }
INSTANTIATE_TEST_SUITE_P(, Composite, ::testing::ValuesIn(composite_cases()),
                         [](const auto& info) { return info.param.name + std::to_string(info.index); });

// The same function in a narrower dtype stays within that dtype's rounding of the oracle.
TEST_P(Composite, ExpansionRoundsOnceInHalfPrecision) {
  for (const DType dtype : {f32, f16, bf16}) {
    FunctionCase narrow = GetParam();
    for (Type& type : narrow.inputs)
      if (is_float(type.dtype)) type.dtype = dtype;
    const Graph graph = graph_of(narrow);
    const double u = dtype == f32 ? 1e-6 : dtype == f16 ? 0x1p-10 : 0x1p-7;
    expect_same_results(ir::expand(graph), graph, random_arguments(graph, narrow), u);
  }
}

std::vector<double> apply(const std::string& op, const std::string& attrs, const std::vector<double>& x) {
  const std::string type = "f32[" + std::to_string(x.size()) + "]";
  const std::string text =
      "graph @g(%x: " + type + ") {\n  %0 = " + op + "(%x)" + attrs + " : " + type + "\n  return %0\n}\n";
  const std::vector<double> oracle = run_text(text, {x})[0];
  const Graph graph = ir::parse_graph(text);
  expect_same_results(ir::expand(graph), graph, {array_of(graph.parameters()[0].type(), x)}, 1e-6);
  return oracle;
}

TEST(CompositeEdges, ReluPassesNan) {
  expect_close(apply("relu", "", {-1, 0, 2, kNan, kInf, -kInf}), {0, 0, 2, kNan, kInf, 0}, 0, "relu");
  expect_close(apply("relu6", "", {-1, 3, 9, kNan, kInf}), {0, 3, 6, kNan, 6}, 0, "relu6");
}

TEST(CompositeEdges, ActivationsAtInfinity) {
  for (const char* op : {"gelu", "silu", "mish", "hardswish", "softplus", "elu", "selu"})
    EXPECT_EQ(apply(op, "", {kInf})[0], kInf) << op;
  EXPECT_EQ(apply("softplus", "", {1000})[0], 1000);
  EXPECT_EQ(apply("silu", "", {-200})[0], 0);
}

TEST(CompositeEdges, SoftmaxRows) {
  expect_close(apply("softmax", "{dim=0}", {-kInf, -kInf}), {kNan, kNan}, 0, "all -inf");
  expect_close(apply("softmax", "{dim=0}", {kInf, 1}), {kNan, kNan}, 0, "+inf");
  expect_close(apply("softmax", "{dim=0}", {-kInf, 1}), {0, 1}, 0, "one -inf");
  expect_close(apply("softmax", "{dim=0}", {kNan, 1}), {kNan, kNan}, 0, "nan");
  expect_close(apply("log_softmax", "{dim=0}", {0, 1000}), {-1000, 0}, 1e-7, "no log(0)");
}

TEST(CompositeEdges, IntegersKnowRelu) {
  const auto got = run_text("graph @g(%x: i64[3]) { %0 = relu(%x) : i64[3] return %0 }", {{-5, 0, 7}});
  EXPECT_EQ(got[0], (std::vector<double>{0, 0, 7}));
}

// Gradients at kinks are those of the table.
TEST(CompositeEdges, GradientsAtKinks) {
  const auto slope = [](const std::string& op, const std::vector<double>& at) {
    const std::string type = "f64[" + std::to_string(at.size()) + "]";
    const Graph graph = ir::parse_graph("graph @g(%x: " + type + ") { %0 = " + op + "(%x) : " + type + " return %0 }");
    const std::vector<double> ones(at.size(), 1);
    const Type t = graph.parameters()[0].type();
    return doubles_of(
        ir::interpret(ir::differentiate(graph, {"x"}), std::vector<Array>{array_of(t, at), array_of(t, ones)})[1]);
  };
  expect_close(slope("relu", {-1, 0, 1, kNan}), {0, 0, 1, 1}, 0, "relu");
  expect_close(slope("relu6", {0, 3, 6, 7}), {0, 1, 0, 0}, 0, "relu6");
  expect_close(slope("leaky_relu", {0, 1}), {0.01, 1}, 0, "leaky_relu");
  expect_close(slope("hardsigmoid", {-3, 0, 3}), {0, 1.0 / 6, 0}, 1e-15, "hardsigmoid");
  expect_close(slope("hardswish", {-3, 3, 5}), {0, 1, 1}, 1e-15, "hardswish");
  expect_close(slope("elu", {0}), {1}, 0, "elu");
}

// 2049 is no f16.
TEST(CompositeEdges, GradientOfAWideBiasIsAsWide) {
  const Value x = ir::parameter({f16, {1, 1, 2049}}, "x"), b = ir::parameter({f32, {1}}, "b"),
              dy = ir::parameter({f16, {1, 1, 2049}}, "dy");
  const Value db = ir::gradient({ir::build(Op::bias_add, {x, b})}, {dy}, {b})[0];
  const std::vector<double> ones(2049, 1);
  const auto found =
      ir::interpret(ir::capture("g", {x, b, dy}, {db}),
                    std::vector<Array>{array_of(x.type(), ones), array_of(b.type(), {0.0}), array_of(dy.type(), ones)});
  EXPECT_EQ(doubles_of(found[0]), std::vector<double>{2049});
}

TEST(CompositeEdges, DropoutKeepsItsShare) {
  const Graph graph = ir::parse_graph(
      "graph @g(%x: f32[100,100], %seed: i64[]) { %0 = dropout(%x, %seed) {p=0.25, stream=1} : f32[100,100] return %0 "
      "}");
  const Type type = graph.parameters()[0].type();
  const std::vector<Array> arguments{array_of(type, std::vector<double>(10000, 3)), array_of(Type{i64, {}}, {42})};
  int kept = 0;
  const std::vector<double> got = doubles_of(ir::interpret(graph, arguments)[0]);
  for (const double y : got) {
    EXPECT_TRUE(y == 0 || y == 4) << y;
    kept += y != 0;
  }
  EXPECT_NEAR(kept, 7500, 150);
  expect_same_results(ir::expand(graph), graph, arguments, 0);
}

TEST(CompositeEdges, DropoutOfEverythingAndNothing) {
  for (const auto& [p, want] : {std::pair{"0", 5.0}, std::pair{"1", 0.0}}) {
    const Graph graph = ir::parse_graph(std::string("graph @g(%x: f32[2], %s: i64[]) { %0 = dropout(%x, %s) {p=") + p +
                                        "} : f32[2] return %0 }");
    const std::vector<Array> arguments{array_of(graph.parameters()[0].type(), {5, 5}), array_of(Type{i64, {}}, {1})};
    EXPECT_EQ(doubles_of(ir::interpret(graph, arguments)[0]), (std::vector<double>{want, want}));
    expect_same_results(ir::expand(graph), graph, arguments, 0);
  }
}

TEST(CompositeEdges, EmptyTensors) {
  for (const char* op : {"softmax", "log_softmax"}) {
    const Graph graph =
        ir::parse_graph(std::string("graph @g(%x: f32[2,0]) { %0 = ") + op + "(%x) {dim=1} : f32[2,0] return %0 }");
    EXPECT_TRUE(doubles_of(ir::interpret(ir::expand(graph), std::vector<Array>{Array(Type{f32, {2, 0}})})[0]).empty());
  }
}

TEST(CompositeEdges, VarianceOfTooFew) {
  EXPECT_TRUE(std::isnan(run_text("graph @g(%x: f32[1]) { %0 = var(%x) : f32[] return %0 }", {{3}})[0][0]));
  EXPECT_TRUE(
      std::isnan(run_text("graph @g(%x: f32[2]) { %0 = var(%x) {correction=2} : f32[] return %0 }", {{3, 4}})[0][0]));
  EXPECT_EQ(run_text("graph @g(%x: f32[1]) { %0 = var(%x) {correction=0} : f32[] return %0 }", {{3}})[0][0], 0);
}

TEST(CompositeErrors, SayWhatIsWrong) {
  struct Wrong {
    Op op;
    std::vector<Type> types;
    std::vector<ir::AttrInit> attrs;
    const char* part;
  };
  const Wrong table[] = {
      {Op::relu,
       {{boolean, {2}}},
       {},
       "relu: x must be of an integer or floating-point dtype, it is bool (x: bool[2])"},
      {Op::silu, {{i32, {2}}}, {}, "silu: x must have a floating-point dtype, it has i32"},
      {Op::gelu, {{f32, {2}}}, {{"approximate", "erf"}}, "approximate must be one of none, tanh, it is erf"},
      {Op::bias_add, {{f32, {2, 3}}, {f32, {4}}}, {}, "b must have the shape [3]"},
      {Op::bias_add, {{f32, {2}}, {f32, {2}}}, {}, "x must have rank 2 or more"},
      {Op::dropout, {{f32, {2}}, {f32, {}}}, {}, "seed must be i64[]"},
      {Op::dropout, {{f32, {2}}, {i64, {}}}, {{"p", 1.5}}, "p must be a probability"},
      {Op::flatten, {{f32, {2, 3}}}, {{"start_dim", 1}, {"end_dim", 0}}, "start_dim = 1 stands after end_dim = 0"},
  };
  for (const Wrong& wrong : table) {
    const std::string sentence = error_of([&] { op_over(wrong.op, wrong.types, wrong.attrs); });
    EXPECT_NE(sentence.find(wrong.part), std::string::npos) << sentence;
  }
}

}  // namespace
}  // namespace fusejit::testing
