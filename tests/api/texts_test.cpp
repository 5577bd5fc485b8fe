// The worked examples of the texts that fusejit was commissioned with, through the C++ API, on every engine.
#include <gtest/gtest.h>

#include "tests/api/engines.h"

namespace fusejit {
namespace {

class Texts : public testing::OnEveryEngine {};
INSTANTIATE_TEST_SUITE_P(Engines, Texts, ::testing::ValuesIn(testing::kEveryEngine), testing::name_of);

Tensor image(const std::vector<float>& values, std::int64_t h, std::int64_t w) {
  return from_host(values, {1, 1, h, w});
}

TEST_P(Texts, ConvolutionBiasRelu) {
  std::vector<float> counting(9);
  for (int i = 0; i < 9; ++i) counting[static_cast<std::size_t>(i)] = static_cast<float>(i);
  Tensor x = image(counting, 3, 3), w = image({1, 1, 1, 1}, 2, 2), b = zeros({1}).eval();
  x.requires_grad(), w.requires_grad(), b.requires_grad();
  const Tensor y = relu(conv2d(x, w, b));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{8, 12, 20, 24}));
  const std::vector<Tensor> g = grad({y}, {ones({1, 1, 2, 2})}, {w, b});
  EXPECT_EQ(g[0].to_vector<float>(), (std::vector<float>{8, 12, 20, 24})) << "the convolution of x with dy";
  EXPECT_EQ(g[1].item<float>(), 4);
  const Tensor ramp = image({0, 1, 2, 3}, 2, 2);
  const Tensor dx = grad({conv2d(x, ramp)}, {ones({1, 1, 2, 2})}, {x})[0];
  EXPECT_EQ(dx.to_vector<float>(), (std::vector<float>{0, 1, 1, 2, 6, 4, 2, 5, 3}));
}

// N=1, H=2, W=3, C=3, K=3, a 2x2 kernel, "same": nothing before, one cell after.
TEST_P(Texts, SameConvolutionIsAsymmetric) {
  std::vector<float> values(18), weights(36);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 5) - 2;
  const Tensor x = from_host(values, {1, 3, 2, 3}), w = from_host(weights, {3, 3, 2, 2});
  const Tensor bias = tensor<float>({1, 2, 3});
  const Tensor same = relu(conv2d(x, w, bias, {.padding = "same"}));
  EXPECT_EQ(same.shape(), (Shape{1, 3, 2, 3}));
  const Tensor padded = relu(bias_add(conv2d(pad(x, {0, 0, 0, 0}, {0, 0, 1, 1}), w), bias));
  EXPECT_EQ(same.to_vector<float>(), padded.to_vector<float>());
}

// Batch-norm, addition and ReLU: y, then dx, dz, dgamma, dbeta from y's mask.
TEST_P(Texts, BatchNormAddRelu) {
  const Tensor x = from_host(std::vector<double>{1, -2, 3, 0.5, 2, -1, 0, 4}, {2, 2, 2, 1});
  const Tensor z = from_host(std::vector<double>{0.1, 0.2, -3, 0.4, 0.5, -0.6, 0.7, -2}, {2, 2, 2, 1});
  const Tensor gamma = from_host(std::vector<double>{1.5, 0.5}, {2}),
               beta = from_host(std::vector<double>{0.1, -0.2}, {2});
  const GradcheckResult result = gradcheck(
      [](const auto& in) { return relu(batch_norm_train(in[0], in[2], in[3]) + in[1]); }, {x, z, gamma, beta});
  EXPECT_TRUE(result) << result.why;
  Tensor side = z;
  side.requires_grad();
  const Tensor y = relu(batch_norm_train(x, gamma, beta) + side);
  const std::vector<double> dz = grad({y}, {ones(y.shape(), f64)}, {side})[0].to_vector<double>(),
                            ys = y.to_vector<double>();
  for (std::size_t i = 0; i < dz.size(); ++i) EXPECT_EQ(dz[i], ys[i] > 0 ? 1 : 0);
}

}  // namespace
}  // namespace fusejit
