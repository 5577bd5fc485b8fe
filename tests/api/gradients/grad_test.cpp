// Gradients through the public API: S4's checks in f64, custom gradients, second derivatives, refusals.
#include <gtest/gtest.h>

#include <cmath>

#include "fusejit/fusejit.h"
#include "tests/api/gradients/numbers.h"
#include "tests/support/error_of.h"

namespace fusejit {
namespace {

using testing::error_of;

class Grad : public ::testing::Test {
 protected:
  void SetUp() override {
    set_options({.engine = "graph_interpreter"});
    manual_seed(3);
  }
};

// The layer that keeps only its input, as a function of x and w in f64.
TensorFunction fused_layer(BatchNormOptions norm) {
  const auto layer = [norm](const std::vector<Tensor>& in) {
    return batch_norm_train(conv2d(in[0], in[1]), {}, {}, norm);
  };
  return custom_gradient(
      [layer](const auto& in) {
        return Saved{layer(in), in};
      },
      [layer](const auto& saved, const Tensor& g) { return grad({layer(saved)}, {g}, saved); });
}

TEST_F(Grad, FusedConvolutionAndBatchNorm) {
  const Tensor x = numbers({2, 3, 4, 4}, 6), w = numbers({5, 3, 3, 3}, 7);
  for (const BatchNormOptions norm : {BatchNormOptions{1e-3, 1, true}, BatchNormOptions{}}) {
    const GradcheckResult result = gradcheck(fused_layer(norm), {x, w});
    EXPECT_TRUE(result) << result.why;
    const auto plain = [norm](const auto& in) {
      return sum(square(batch_norm_train(conv2d(in[0], in[1]), {}, {}, norm)));
    };
    const auto fused = [norm](const auto& in) { return sum(square(fused_layer(norm)(in))); };
    const ValueAndGrad a = value_and_grad(plain, {0, 1})({x, w}), b = value_and_grad(fused, {0, 1})({x, w});
    EXPECT_EQ(a.value.item<double>(), b.value.item<double>());
    for (const std::size_t i : {0u, 1u})
      EXPECT_EQ(a.gradients[i].to_vector<double>(), b.gradients[i].to_vector<double>());
  }
}

TEST_F(Grad, CustomGradientReplacesTheDerivative) {
  const TensorFunction odd = custom_gradient(
      [](const auto& in) {
        return Saved{in[0] * in[0], {in[0]}};
      },
      [](const auto& saved, const Tensor& g) { return std::vector{g * 10 + saved[0]}; });
  const Tensor x = tensor<float>({1, 2, 3}).requires_grad();
  const Tensor loss = sum(odd({odd({x}) * 2}));
  // d/dv of the outer: 10 + v with v = 2 x^2; times 2; the inner: 10 g + x.
  const std::vector<float> expected{10 * 2 * (10 + 2) + 1, 10 * 2 * (10 + 8) + 2, 10 * 2 * (10 + 18) + 3};
  EXPECT_EQ(grad(loss, {x})[0].to_vector<float>(), expected);
  const TensorFunction identity = custom_gradient(
      [](const auto& in) {
        return Saved{in[0], {}};
      },
      [](const auto&, const Tensor& g) { return std::vector{g * -1}; });
  EXPECT_EQ(grad(sum(identity({x})), {x})[0].to_vector<float>(), (std::vector<float>{-1, -1, -1}));
  const TensorFunction saves_result = custom_gradient(
      [](const auto& in) {
        const Tensor y = exp(in[0]);
        return Saved{y, {y}};
      },
      [](const auto& saved, const Tensor& g) { return std::vector{g * saved[0]}; });
  EXPECT_NEAR(grad(sum(saves_result({x})), {x})[0].to_vector<float>()[0], std::exp(1.0), 1e-5);
}

TEST_F(Grad, CanBeDifferentiatedAgain) {
  const Tensor x = from_host(std::vector<double>{0.5, 1.5}, {2}).requires_grad();
  const Tensor g = grad(sum(pow(x, 3)), {x})[0];
  const std::vector<double> second = grad(sum(g), {x})[0].to_vector<double>();
  EXPECT_NEAR(second[0], 3, 1e-12);
  EXPECT_NEAR(second[1], 9, 1e-12);
}

TEST_F(Grad, StopsAtDetachAndNoGrad) {
  const Tensor x = tensor<float>({3}).requires_grad();
  EXPECT_EQ(grad(sum(x * x.detach()), {x})[0].item<float>(), 3);
  Tensor constant;
  {
    const NoGrad off;
    constant = x * x;
  }
  EXPECT_FALSE(constant.needs_grad());
  EXPECT_EQ(grad(sum(x * constant), {x})[0].item<float>(), 9);
}

TEST_F(Grad, RefusesWithOneSentence) {
  const Tensor x = tensor<float>({1, 2}).requires_grad(), other = tensor<float>({1});
  EXPECT_NE(error_of([&] { grad(x * x, {x}); }).find("one float number (loss: f32[2])"), std::string::npos);
  EXPECT_NE(error_of([&] { grad(sum(x), {other}); }).find("does not lead"), std::string::npos);
  EXPECT_NE(error_of([&] { tensor<std::int64_t>({1}).requires_grad(); }).find("only float"), std::string::npos);
  EXPECT_NE(error_of([&] { gradcheck([](const auto& in) { return sum(in[0]); }, {x}); }).find("f64"),
            std::string::npos);
}

TEST_F(Grad, GradcheckFindsAWrongDerivative) {
  const TensorFunction wrong = custom_gradient(
      [](const auto& in) {
        return Saved{in[0] * in[0], {in[0]}};
      },
      [](const auto& saved, const Tensor& g) { return std::vector{g * saved[0]}; });
  const GradcheckResult result = gradcheck(wrong, {numbers({3}, 1)});
  EXPECT_FALSE(result);
  EXPECT_NE(result.why.find("input 0, element"), std::string::npos) << result.why;
}

}  // namespace
}  // namespace fusejit
