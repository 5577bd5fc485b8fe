// Normalisation: gradients, expansions, shared statistics, the bounds of ops.md §6, S4's form.
#include "tests/support/error_of.h"
#include "tests/support/graphs.h"

namespace fusejit::testing {
namespace {

using ir::build;
using ir::Operand;

FunctionCase train(std::string name, Shape x, std::vector<ir::AttrInit> attrs) {
  const std::int64_t channels = x[1];
  return {std::move(name), {Type{f64, x}, f64_of({channels}), f64_of({channels})}, [=](const Values& p) {
            return build(Op::batch_norm_train, {p[0], p[1], p[2]}, attrs);
          }};
}

std::vector<FunctionCase> norm_cases() {
  return {
      {"batch_norm",
       {f64_of({2, 3, 2, 2}), f64_of({3}), f64_of({3}), f64_of({3}), f64_of({3})},
       [](const Values& p) {
         return build(Op::batch_norm, {p[0], p[1], p[2], p[3], p[4]}, {{"eps", 0.1}});
       },
       0.5,
       2},
      {"batch_norm_plain",
       {f64_of({2, 3}), f64_of({3}), f64_of({3})},
       [](const Values& p) {
         return build(Op::batch_norm, {p[0], p[1], p[2], 1, 0});
       },
       0.5,
       2},
      train("train", {2, 3, 2, 3}, {}),
      train("train_unbiased", {2, 3, 2, 3}, {{"correction", 1}}),
      train("train_outside", {2, 3, 2, 3}, {{"eps_outside", true}, {"eps", 0.01}}),
      train("train_outside_unbiased", {3, 2, 2}, {{"eps_outside", true}, {"correction", 1}, {"eps", 0.01}}),
      train("train_rank2", {6, 2}, {}),
      {"train_no_affine",
       {f64_of({2, 2, 3})},
       [](const Values& p) {
         return build(Op::batch_norm_train, {p[0], 1, 0});
       }},
      {"train_number_weight",
       {f64_of({2, 2, 3})},
       [](const Values& p) {
         return build(Op::batch_norm_train, {p[0], 2.5, 0.5});
       }},
      {"layer_norm",
       {f64_of({2, 3, 4}), f64_of({3, 4}), f64_of({3, 4})},
       [](const Values& p) {
         return build(Op::layer_norm, {p[0], p[1], p[2]}, {{"normalized_shape", {3, 4}}});
       }},
      {"layer_norm_plain",
       {f64_of({2, 3, 4})},
       [](const Values& p) {
         return build(Op::layer_norm, {p[0], 1, 0}, {{"normalized_shape", {4}}});
       }},
      {"group_norm",
       {f64_of({2, 4, 2, 2}), f64_of({4}), f64_of({4})},
       [](const Values& p) {
         return build(Op::group_norm, {p[0], p[1], p[2]}, {{"num_groups", 2}});
       }},
      {"group_norm_rank2",
       {f64_of({2, 6})},
       [](const Values& p) {
         return build(Op::group_norm, {p[0], 1, 0}, {{"num_groups", 2}});
       }},
      {"instance_norm",
       {f64_of({2, 3, 2, 2}), f64_of({3}), f64_of({3})},
       [](const Values& p) {
         return build(Op::instance_norm, {p[0], p[1], p[2]}, {{"eps", 0.01}});
       }},
  };
}

class Norm : public ::testing::TestWithParam<FunctionCase> {};
TEST_P(Norm, GradientIsThatOfDifferences) { check_gradient(GetParam()); }
TEST_P(Norm, SecondDerivativeIsThatOfDifferencesOrRefused) {
  const FunctionCase second = derivative_of(GetParam(), 0);
  if (GetParam().name.starts_with("train"))
    EXPECT_THROW(check_gradient(second), UnsupportedError);
  else
    check_gradient(second, 1e-5);
}
TEST_P(Norm, ExpansionMeansTheSame) { check_expansion(GetParam(), 1e-10); }
INSTANTIATE_TEST_SUITE_P(, Norm, ::testing::ValuesIn(norm_cases()), [](const auto& info) { return info.param.name; });

TEST_P(Norm, HalfPrecisionIsComputedInF32) {
  FunctionCase narrow = GetParam();
  narrow.inputs[0].dtype = f16;  // vectors beside it stay f32
  for (std::size_t i = 1; i < narrow.inputs.size(); ++i) narrow.inputs[i].dtype = f32;
  const Graph graph = graph_of(narrow);
  expect_same_results(ir::expand(graph), graph, random_arguments(graph, narrow), 0x1p-10);
  const Graph derived = ir::differentiate(graph, float_parameters(graph));
  expect_same_results(ir::expand(derived), derived, random_arguments(derived, narrow), 4e-3);
}

// S4: no affine, unbiased variance, eps = 1e-3 outside the root; X [1,2,3,4].
TEST(NormSeeds, BatchNormOfTheCustomFunction) {
  check_gradient(
      {"s4", {f64_of({1, 2, 3, 4})}, [](const Values& p) {
         return build(Op::batch_norm_train, {p[0], 1, 0}, {{"eps", 1e-3}, {"correction", 1}, {"eps_outside", true}});
       }});
}

int count(const Graph& graph, Op op) {
  int found = 0;
  for (const Value& node : graph.nodes()) found += node->op == op;
  return found;
}

// One mean, one centred sum; two sums over the gradient: however many ops ask for them.
TEST(NormSharing, StatisticsAreComputedOnce) {
  const Graph forward = ir::parse_graph(R"(
graph @g(%x: f32[4,3,5,5], %w: f32[3], %b: f32[3], %rm: f32[3], %rv: f32[3]) {
  %y = batch_norm_train(%x, %w, %b) : f32[4,3,5,5]
  %m = mean(%x) {dim=[0,2,3]} : f32[3]
  %v = var(%x) {dim=[0,2,3], correction=1} : f32[3]
  return %y, %m, %v
})");
  const Graph joint = ir::expand(ir::differentiate(forward, {"x", "w", "b"}));
  EXPECT_EQ(count(joint, Op::mean), 1) << ir::print(joint);
  // One variance per correction, over one x: the scheduler accumulates them and the mean together.
  EXPECT_EQ(count(joint, Op::var), 2) << ir::print(joint);
  // Σg (shared with the bias' gradient) and S; the cotangents of %m and %v add none.
  EXPECT_EQ(count(joint, Op::sum), 2) << ir::print(joint);
}

TEST(NormSharing, HalfPrecisionSharesToo) {
  const Graph forward = ir::parse_graph(R"(
graph @g(%x: f16[4,3,5,5], %w: f32[3], %b: f32[3]) {
  %y = batch_norm_train(%x, %w, %b) : f16[4,3,5,5]
  %x32 = cast(%x) {dtype=f32} : f32[4,3,5,5]
  %v = var(%x32) {dim=[0,2,3], correction=1} : f32[3]
  return %y, %v
})");
  const Graph joint = ir::expand(ir::differentiate(forward, {"x", "w", "b"}));
  EXPECT_EQ(count(joint, Op::mean), 1) << ir::print(joint);
  EXPECT_EQ(count(joint, Op::var), 2) << ir::print(joint);
  EXPECT_EQ(count(joint, Op::sum), 2) << ir::print(joint);
}

// mean 1e4, σ 1e-2 in f32: the variance's relative error stays ≤ 2q² + √n u, q = u |mean| / σ.
TEST(NormNumerics, LargeMeanSmallDeviation) {
  std::mt19937_64 random(3);
  const Type type{f32, {64, 1, 8, 8}};
  std::vector<double> x;
  for (int i = 0; i < 64 * 64; ++i) {
    double sum = 0;
    for (int k = 0; k < 12; ++k) sum += static_cast<double>(random() >> 11) * 0x1p-53;
    x.push_back(static_cast<float>(1e4 + 1e-2 * (sum - 6)));
  }
  double mean = 0, variance = 0;
  for (const double v : x) mean += v / static_cast<double>(x.size());
  for (const double v : x) variance += (v - mean) * (v - mean) / static_cast<double>(x.size());
  const Graph graph = ir::expand(
      ir::parse_graph("graph @g(%x: f32[64,1,8,8]) { %0 = var(%x) {dim=[0,2,3], correction=0} : f32[1] return %0 }"));
  const double got = doubles_of(ir::interpret(graph, std::vector<Array>{array_of(type, x)})[0])[0];
  const double u = 0x1p-24, q = u * 1e4 / std::sqrt(variance);
  EXPECT_LE(std::fabs(got - variance) / variance, 2 * q * q + std::sqrt(4096.0) * u);
}

TEST(NormEdges, OneElementAChannel) {
  const auto got = run_text(
      "graph @g(%x: f32[1,2], %b: f32[2], %g: f32[1,2]) {"
      "  %0 = batch_norm_train(%x, 1, %b) : f32[1,2]"
      "  %1 = batch_norm_train_input_grad(%x, 1, %g) : f32[1,2]"
      "  %2 = batch_norm_train(%x, 1, %b) {correction=1} : f32[1,2]"
      "  return %0, %1, %2 }",
      {{3, 4}, {5, 6}, {1, 1}});
  EXPECT_EQ(got[0], (std::vector<double>{5, 6}));
  EXPECT_EQ(got[1], (std::vector<double>{0, 0}));
  EXPECT_TRUE(std::isnan(got[2][0]) && std::isnan(got[2][1]));
}

TEST(NormEdges, ConstantChannelWithEpsOutside) {
  const std::string text =
      "graph @g(%x: f32[3,1], %g: f32[3,1]) {"
      "  %0 = batch_norm_train_input_grad(%x, 1, %g) {eps_outside=true} : f32[3,1] return %0 }";
  const auto got = run_text(text, {{2, 2, 2}, {1, 2, 4}});
  for (const double dx : got[0]) EXPECT_TRUE(std::isnan(dx));
}

TEST(NormErrors, SecondDerivativeOfTrainingIsRefused) {
  const Graph once = ir::differentiate(graph_of(norm_cases()[2]), {"p0"});
  EXPECT_THROW(ir::differentiate(ir::capture("g", once.parameters(), {once.results()[1]}), {"p0"}), UserError);
  const auto again = [&] {
    Values parameters = once.parameters();
    return ir::gradient({once.results()[1]}, {parameters.back()}, {parameters[0]});
  };
  EXPECT_THROW(again(), UnsupportedError);
}

TEST(NormErrors, WildNormalizedShapes) {
  for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{-1}, {}, std::vector<std::int64_t>(10, 1)})
    EXPECT_NE(error_of([&] {
                op_over(Op::layer_norm, {{f32, {2, 3}}, {f32, {3}}, {f32, {3}}}, {{"normalized_shape", sizes}});
              }).find("layer_norm: normalized_shape must be the last sizes of x, it is ["),
              std::string::npos);
}

TEST(NormErrors, SayWhatIsWrong) {
  EXPECT_NE(error_of([] {
              op_over(Op::batch_norm_train, {{f32, {2, 3}}, {f32, {4}}, {f32, {3}}});
            }).find("weight must have the shape [3], one number per channel, it has [4]"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              op_over(Op::group_norm, {{f32, {2, 3}}, {f32, {3}}, {f32, {3}}}, {{"num_groups", 2}});
            }).find("num_groups = 2 does not divide the 3 channels of x"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              op_over(Op::instance_norm, {{f32, {2, 3, 1, 1}}, {f32, {3}}, {f32, {3}}});
            }).find("one element a channel"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              op_over(Op::layer_norm, {{f32, {2, 3}}, {f32, {3}}, {f32, {3}}}, {{"normalized_shape", {2}}});
            }).find("normalized_shape must be the last sizes of x"),
            std::string::npos);
}

}  // namespace
}  // namespace fusejit::testing
