// Every gradient of the convolution + batch-norm layer against central differences in f64, on every kind of engine: the
// text's batch-norm (unbiased, eps outside the root) and the ordinary one, as functions and as the module.
#include <gtest/gtest.h>

#include "tests/api/engines.h"
#include "tests/api/gradients/numbers.h"

namespace fusejit {
namespace {

constexpr BatchNormOptions kOfTheText{.eps = 1e-3, .correction = 1, .eps_outside = true};
constexpr BatchNormOptions kOrdinary{};

void expect_right(const TensorFunction& f, const std::vector<Tensor>& inputs) {
  const GradcheckResult result = gradcheck(f, inputs);
  EXPECT_TRUE(result) << result.why;
}

class Gradcheck : public testing::OnEveryEngine {};
INSTANTIATE_TEST_SUITE_P(Engines, Gradcheck, ::testing::ValuesIn(testing::kEveryEngine), testing::name_of);

TEST_P(Gradcheck, Convolution) {
  // Differences run the function twice an element, which takes the interpreter of kernels too long at the text's size.
  const bool slow = std::string(GetParam().engine) == "kernel_interpreter";
  expect_right([](const auto& in) { return conv2d(in[0], in[1]); },
               {numbers(slow ? Shape{2, 3, 5, 4} : Shape{10, 3, 7, 7}, 1), numbers({5, 3, 3, 3}, 2)});
}

TEST_P(Gradcheck, ConvolutionInGroups) {
  const auto in_groups = [](std::int64_t groups) {
    return [groups](const auto& in) { return conv2d(in[0], in[1], {.stride = 2, .padding = 1, .groups = groups}); };
  };
  expect_right(in_groups(5), {numbers({1, 5, 5, 4}, 1), numbers({5, 1, 3, 3}, 2)});
  expect_right(in_groups(2), {numbers({2, 4, 4, 3}, 3), numbers({8, 2, 2, 3}, 4)});
}

TEST_P(Gradcheck, BatchNormOfTheText) {
  expect_right([](const auto& in) { return batch_norm_train(in[0], {}, {}, kOfTheText); }, {numbers({1, 2, 3, 4}, 3)});
}

TEST_P(Gradcheck, OrdinaryBatchNorm) {
  expect_right([](const auto& in) { return batch_norm_train(in[0], in[1], in[2]); },
               {numbers({1, 2, 3, 4}, 3), numbers({2}, 4), numbers({2}, 5)});
}

TEST_P(Gradcheck, FusedLayer) {
  for (const BatchNormOptions& norm : {kOfTheText, kOrdinary}) {
    const auto layer = [norm](const std::vector<Tensor>& in) {
      return batch_norm_train(conv2d(in[0], in[1]), {}, {}, norm);
    };
    const TensorFunction fused = custom_gradient(
        [layer](const auto& in) {
          return Saved{layer(in), in};
        },
        [layer](const auto& saved, const Tensor& g) { return grad({layer(saved)}, {g}, saved); });
    expect_right(fused, {numbers({2, 3, 4, 4}, 6), numbers({5, 3, 3, 3}, 7)});
  }
}

// The module with its parameters as further inputs.
void check_module(const nn::ConvBatchNorm2dOptions& options) {
  nn::ConvBatchNorm2d layer(3, 5, 3, options);
  layer.to(f64);
  std::vector<Tensor> inputs{numbers({2, 3, 4, 4}, 6)};
  const std::vector<nn::Parameter> parameters = layer.parameters();
  for (const nn::Parameter& p : parameters)
    inputs.push_back(numbers(p.value().shape(), static_cast<int>(inputs.size())));
  expect_right(
      [&](const std::vector<Tensor>& in) {
        for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].set(in[i + 1]);
        return layer(in[0]);
      },
      inputs);
}

TEST_P(Gradcheck, ModuleOfTheText) {
  for (const bool save_only_input : {true, false}) {
    check_module({.eps = 1e-3,
                  .affine = false,
                  .track_running_stats = false,
                  .eps_outside = true,
                  .unbiased = true,
                  .save_only_input = save_only_input});
  }
}

TEST_P(Gradcheck, OrdinaryModule) {
  for (const bool save_only_input : {true, false}) check_module({.save_only_input = save_only_input});
}

TEST_P(Gradcheck, ModuleWithStrideAndPadding) { check_module({.stride = 2, .padding = Padding(1, 0, 2, 1)}); }

// What fuses around the layer: bias, a side input, relu, a pool.
TEST_P(Gradcheck, LayerBetweenOthers) {
  expect_right(
      [](const auto& in) {
        const Tensor y = batch_norm_train(conv2d(tanh(in[0]), in[1], {.padding = 1}), in[2], in[3]);
        return max_pool2d(silu(y + in[4]), 2);
      },
      {numbers({2, 2, 4, 4}, 8), numbers({3, 2, 3, 3}, 9), numbers({3}, 10), numbers({3}, 11),
       numbers({2, 3, 4, 4}, 12)});
}

TEST_P(Gradcheck, FindsAWrongGradient) {
  const TensorFunction wrong = custom_gradient(
      [](const auto& in) {
        return Saved{in[0] * in[0], {in[0]}};
      },
      [](const auto& saved, const Tensor& g) { return std::vector{g * saved[0]}; });
  EXPECT_FALSE(gradcheck(wrong, {numbers({3}, 1)}));
}

}  // namespace
}  // namespace fusejit
