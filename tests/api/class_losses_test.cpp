// cross_entropy and nll_loss with weights of classes and with targets that are probabilities: PyTorch's numbers.
#include <gtest/gtest.h>

#include "fusejit/fusejit.h"
#include "tests/api/engines.h"

namespace fusejit {
namespace {

class ClassLosses : public ::testing::TestWithParam<testing::EngineCase> {
 protected:
  void SetUp() override {
    if (const std::string why = testing::select_engine(GetParam()); !why.empty()) GTEST_SKIP() << why;
  }
  const Tensor x = 2 * sin(arange(12, f64).reshape({2, 3, 2}) * 0.7);
  const Tensor weight = tensor<double>({1, 2, 0.5});
  const Tensor classes = tensor<std::int64_t>({2, 0, -100, 1}).reshape({2, 2});
  const Tensor shares = softmax(cos(arange(12, f64).reshape({2, 3, 2})), 1);
};
INSTANTIATE_TEST_SUITE_P(Engines, ClassLosses, ::testing::ValuesIn(testing::kEachKindOfEngine), testing::name_of);

// torch.nn.functional.cross_entropy(x, target, weight, reduction=, label_smoothing=) in f64.
TEST_P(ClassLosses, AreThoseOfPyTorch) {
  struct Case {
    bool shares, weighted;
    const char* reduction;
    double smoothing;
    std::vector<double> expected;
  };
  const Case cases[] = {
      {false, true, "mean", 0, {1.713702172669383}},
      {false, true, "sum", 0, {5.997957604342841}},
      {false, true, "none", 0, {0.8228276642914161, 0.988155213399589, 0.0, 4.186974726651837}},
      {false, true, "mean", 0.2, {1.671150034129184}},
      {false, true, "none", 0.2, {0.9134570401678997, 1.0290293336650806, 0.0, 3.906538745619165}},
      {true, false, "mean", 0, {2.269846339504504}},
      {true, false, "sum", 0.2, {8.672881436827549}},
      {true, false, "none", 0, {1.8927343476344278, 1.7141155553630818, 2.7289199124602903, 2.743615542560215}},
      {true, true, "mean", 0, {2.328732824271171}},
      {true, true, "mean", 0.2, {2.2692567423218866}},
      {true, true, "none", 0.2, {1.7282102639722938, 1.1945765698675899, 3.2288777622838674, 2.925362373163795}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.shares ? "probabilities " : "classes ") + (c.weighted ? "weighted " : "") + c.reduction +
                 " " + std::to_string(c.smoothing));
    const Tensor loss = cross_entropy(
        x, c.shares ? shares : classes,
        {.reduction = c.reduction, .label_smoothing = c.smoothing, .weight = c.weighted ? weight : Tensor()});
    const auto found = loss.to_vector<double>();
    ASSERT_EQ(found.size(), c.expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], c.expected[i], 1e-12);
  }
  EXPECT_NEAR(nll_loss(log_softmax(x, 1), classes, {.weight = weight}).item<double>(), 1.713702172669383, 1e-12);
  // A class that is ignored counts for nothing, also in the mean.
  const Tensor target = tensor<std::int64_t>({2, 0, 1, 1}).reshape({2, 2});
  EXPECT_NEAR(cross_entropy(x, target, {.ignore_index = 1, .weight = weight}).item<double>(), 1.20732191846067, 1e-12);
  EXPECT_NEAR(cross_entropy(x, target, {.ignore_index = 1, .label_smoothing = 0.2, .weight = weight}).item<double>(),
              1.2949909158886534, 1e-12);
}

TEST_P(ClassLosses, OfOneHotTargetsAreThoseOfTheClasses) {
  const Tensor target = tensor<std::int64_t>({2, 0, 1, 1}).reshape({2, 2});
  const Tensor hot = permute(one_hot(target, 3, f64), {0, 2, 1});
  const ClassLossOptions options{.label_smoothing = 0.1};
  EXPECT_NEAR(cross_entropy(x, hot, options).item<double>(), cross_entropy(x, target, options).item<double>(), 1e-12);
}

TEST_P(ClassLosses, HaveGradients) {
  EXPECT_TRUE(
      gradcheck([&](const auto& in) { return cross_entropy(in[0], in[1], {.weight = weight}); }, {x, shares}).ok);
  const ClassLossOptions options{.label_smoothing = 0.2, .weight = weight};
  EXPECT_TRUE(gradcheck([&](const auto& in) { return cross_entropy(in[0], classes, options); }, {x}).ok);
}

TEST_P(ClassLosses, KeepTheDtype) {
  EXPECT_EQ(cross_entropy(x.to(bf16), shares.to(bf16)).dtype(), bf16);
  const Autocast narrow(bf16);
  EXPECT_EQ(cross_entropy(x.to(bf16), shares.to(f32)).dtype(), f32);
}

TEST(ClassLossesRefuse, WithOneSentence) {
  const Tensor x = ones({2, 3}), shares = ones({2, 3}), classes = zeros({2}, i64);
  const std::pair<std::function<void()>, std::string> cases[] = {
      {[&] { cross_entropy(x, classes, {.weight = ones({4})}); },
       "cross_entropy: weight must be float, one number for each class (x: f32[2,3], weight: f32[4])"},
      {[&] { cross_entropy(x, shares, {.weight = ones({3}, i64)}); },
       "cross_entropy: weight must be float, one number for each class (x: f32[2,3], weight: i64[3])"},
      {[&] {
         nll_loss(x, classes, {.weight = ones({3, 1})});
       },
       "nll_loss: weight must be float, one number for each class (x: f32[2,3], weight: f32[3,1])"},
      {[&] { cross_entropy(x, shares, {.ignore_index = 1}); },
       "cross_entropy: a target of probabilities has no ignore_index (x: f32[2,3], target: f32[2,3])"},
      {[&] { cross_entropy(x, shares, {.label_smoothing = 2}); },
       "cross_entropy: label_smoothing is 2, it must be from 0 to 1"},
      {[&] { cross_entropy(x, shares, {.reduction = "avg"}); },
       "cross_entropy: reduction must be one of mean, sum, none, it is avg (losses: f32[2])"},
      {[&] { cross_entropy(x, ones({2}), {}); }, "cross_entropy: target must be int, it is f32"},
      {[&] { cross_entropy(Tensor(), classes, {.weight = ones({3})}); }, "cross_entropy: "},
  };
  for (const auto& [call, sentence] : cases) {
    try {
      call();
      ADD_FAILURE() << "not refused: " << sentence;
    } catch (const UserError& error) {
      EXPECT_EQ(std::string(error.what()).substr(0, sentence.size()), sentence);
    }
  }
}

}  // namespace
}  // namespace fusejit
