// Losses: gradients, expansions, ignored and wild targets, reductions.
#include "tests/support/error_of.h"
#include "tests/support/graphs.h"

namespace fusejit::testing {
namespace {

using ir::build;

FunctionCase pointwise(Op op, const char* reduction, std::vector<ir::AttrInit> extra = {}, Shape t = {3, 4}) {
  extra.emplace_back("reduction", reduction);
  return {std::string(ir::name(op)) + "_" + reduction, {f64_of({3, 4}), Type{f64, t}}, [=](const Values& p) {
            return build(op, {p[0], p[1]}, extra);
          }};
}

FunctionCase classes(Op op, const char* reduction, std::vector<ir::AttrInit> extra = {}, bool image = false) {
  extra.emplace_back("reduction", reduction);
  const Type x = image ? f64_of({2, 3, 2, 2}) : f64_of({5, 3}), t{i64, image ? Shape{2, 2, 2} : Shape{5}};
  return {std::string(ir::name(op)) + "_" + reduction, {x, t}, [=](const Values& p) {
            return build(op, {p[0], p[1]}, extra);
          }};
}

std::vector<FunctionCase> loss_cases() {
  std::vector<FunctionCase> all;
  for (const char* reduction : {"mean", "sum", "none"}) {
    for (const Op op : {Op::mse_loss, Op::l1_loss, Op::smooth_l1_loss, Op::binary_cross_entropy_with_logits})
      all.push_back(pointwise(op, reduction));
    all.push_back(pointwise(Op::smooth_l1_loss, reduction, {{"beta", 0.4}}));
    all.push_back(pointwise(Op::smooth_l1_loss, reduction, {{"beta", 0.0}}));
    all.push_back(pointwise(Op::binary_cross_entropy_with_logits, reduction, {}, {4}));
    all.push_back(pointwise(Op::mse_loss, reduction, {}, {2, 1, 4}));
    for (const Op op : {Op::nll_loss, Op::cross_entropy}) {
      all.push_back(classes(op, reduction));
      all.push_back(classes(op, reduction, {{"ignore_index", 1}}));
      all.push_back(classes(op, reduction, {}, true));
    }
    all.push_back(classes(Op::cross_entropy, reduction, {{"label_smoothing", 0.2}, {"ignore_index", 2}}));
    all.push_back(classes(Op::cross_entropy, reduction, {{"label_smoothing", 1.0}}, true));
  }
  return all;
}

class Loss : public ::testing::TestWithParam<FunctionCase> {};
TEST_P(Loss, GradientIsThatOfDifferences) {
  FunctionCase c = GetParam();
  if (c.inputs[1].shape == Shape{2, 1, 4}) c.name += "_broadcast";
  check_gradient(c);
}
TEST_P(Loss, SecondDerivativeIsThatOfDifferences) { check_gradient(derivative_of(GetParam(), 0), 1e-5); }
TEST_P(Loss, ExpansionMeansTheSame) { check_expansion(GetParam()); }
INSTANTIATE_TEST_SUITE_P(, Loss, ::testing::ValuesIn(loss_cases()),
                         [](const auto& info) { return info.param.name + std::to_string(info.index); });

TEST(LossEdges, IgnoredTargets) {
  const std::string text =
      "graph @g(%x: f32[3,2], %t: i32[3]) { %0 = nll_loss(%x, %t) : f32[]"
      " %1 = nll_loss(%x, %t) {reduction=none} : f32[3] return %0, %1 }";
  const auto some = run_text(text, {{-1, -2, -3, -4, -5, -6}, {1, -100, 0}});
  EXPECT_EQ(some[0][0], 3.5);
  EXPECT_EQ(some[1], (std::vector<double>{2, 0, 5}));
  EXPECT_TRUE(std::isnan(run_text(text, {{-1, -2, -3, -4, -5, -6}, {-100, -100, -100}})[0][0]));
}

TEST(LossEdges, TargetOutOfRangeIsNan) {
  for (const char* op : {"nll_loss", "cross_entropy"}) {
    const std::string text = std::string("graph @g(%x: f32[2,2], %t: i64[2]) { %0 = ") + op +
                             "(%x, %t) {reduction=none} : f32[2] return %0 }";
    for (const double wild : {2.0, -1.0, 1e9}) {
      const Graph graph = ir::parse_graph(text);
      const std::vector<Array> arguments{array_of(graph.parameters()[0].type(), {1, 2, 3, 4}),
                                         array_of(graph.parameters()[1].type(), {0, wild})};
      const auto got = doubles_of(ir::interpret(graph, arguments)[0]);
      EXPECT_FALSE(std::isnan(got[0]));
      EXPECT_TRUE(std::isnan(got[1])) << op << " " << wild;
      expect_same_results(ir::expand(graph), graph, arguments, 1e-6);
    }
  }
}

TEST(LossEdges, IgnoreIndexBeyondThirtyTwoBits) {
  const auto got = run_text(
      "graph @g(%x: f32[1,2], %t: i32[1]) { %0 = nll_loss(%x, %t) {ignore_index=5000000000} : f32[] return %0 }",
      {{-1, -2}, {1}});
  EXPECT_EQ(got[0][0], 2);
}

TEST(LossEdges, LogitsDoNotOverflow) {
  const auto got = run_text(
      "graph @g(%x: f32[2], %t: f32[2]) {"
      " %0 = binary_cross_entropy_with_logits(%x, %t) {reduction=none} : f32[2] return %0 }",
      {{1000, -1000}, {1, 1}});
  EXPECT_EQ(got[0], (std::vector<double>{0, 1000}));
}

TEST(LossEdges, ResultHasTheDtypeOfX) {
  const Value loss = op_over(Op::mse_loss, {{f16, {4}}, {f32, {4}}});
  EXPECT_EQ(loss.type().str(), "f16[]");
  EXPECT_EQ(ir::expand(ir::parse_graph("graph @g(%x: f16[4], %t: f32[4]) { %0 = mse_loss(%x, %t) : f16[] return %0 }"))
                .results()[0]
                .type()
                .str(),
            "f16[]");
}

TEST(LossErrors, SayWhatIsWrong) {
  EXPECT_NE(
      error_of([] {
        op_over(Op::nll_loss, {{f32, {2, 3}}, {i64, {3}}});
      }).find("nll_loss: target must have the shape [2], that of x without dim 1 (logp: f32[2,3], target: i64[3])"),
      std::string::npos);
  EXPECT_NE(error_of([] {
              op_over(Op::nll_loss, {{f32, {2, 3}}, {f32, {2}}});
            }).find("target must be int"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              op_over(Op::mse_loss, {{f32, {2}}, {f32, {3}}});
            }).find("do not broadcast"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              op_over(Op::mse_loss, {{f32, {2}}, {f32, {2}}}, {{"reduction", "average"}});
            }).find("reduction must be one of mean, sum, none, it is average"),
            std::string::npos);
}

}  // namespace
}  // namespace fusejit::testing
