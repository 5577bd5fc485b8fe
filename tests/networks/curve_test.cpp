// Training of ResNet-18 on Fashion-MNIST beside the losses that PyTorch recorded, in one dtype and in mixed precision:
// all 100 or 200 steps for the night (FUSEJIT_NIGHTLY=1), by day the first few.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/api/engines.h"
#include "tests/networks/recorded.h"
#include "tests/support/nightly.h"

namespace fusejit::test {
namespace {

std::vector<double> curve(const std::string& name) { return recorded_array("resnet18_curve.npz", name); }

class ResNetCurve : public ::testing::TestWithParam<const char*> {};

TEST_P(ResNetCurve, AgreesWithPyTorch) {
  if (!std::filesystem::exists(data::kFashionMnist))
    GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  if (const std::string why = fusejit::testing::select_engine({"", "compiled", "host"}); !why.empty())
    GTEST_SKIP() << why;
  const std::string dtype = GetParam();
  const std::vector<double> losses = curve("loss_f64"), tolerance = curve("tolerance_" + dtype);
  models::ResNet net = models::resnet18(kClasses);
  set_initial_values(net);
  net.to(dtype == "f64" ? f64 : f32);
  optim::SGD opt(net.parameters(), {.lr = 0.001, .momentum = 0.9});
  auto step = train_step(net, opt, [&](const Tensor& x, const Tensor& y) {
    return cross_entropy(net(expand(x, {-1, 3, -1, -1})), y);
  });
  const data::Batches batches = data::idx(data::kFashionMnist, {.batch = 32, .mean = 0.2860, .deviation = 0.3530});
  ASSERT_EQ(losses.size(), 100u);
  const std::size_t steps = testing::is_nightly() ? losses.size() : 4;
  double worst = 0, late = 0, late_meant = 0;  // the last 20
  for (std::size_t i = 0; i < steps; ++i) {
    const auto [x, y] = batches.get(static_cast<std::int64_t>(i));
    const double loss = step(x.to(dtype == "f64" ? f64 : f32), y).item<double>();
    EXPECT_NEAR(loss, losses[i], tolerance[i]) << dtype << " step " << i;
    worst = std::max(worst, std::abs(loss - losses[i]) / tolerance[i]);
    if (i >= 80) late += loss / 20, late_meant += losses[i] / 20;
  }
  EXPECT_NEAR(late, late_meant, curve("late_tolerance_" + dtype)[0]) << dtype << ": mean of the last 20 losses";
  std::printf("ResNet-18 in %s: %zu losses, at worst %.1e of the tolerance\n", dtype.c_str(), steps, worst);
  set_options({});
}

INSTANTIATE_TEST_SUITE_P(Recorded, ResNetCurve, ::testing::Values("f64", "f32"),
                         [](const auto& info) { return std::string(info.param); });

nn::Conv2d conv(std::int64_t in, std::int64_t out, int kernel, int stride = 1) {
  return nn::Conv2d(in, out, kernel, {.stride = stride, .padding = kernel / 2, .bias = false});
}

// ResNet-18 of any width; models::resnet18 is that of 64.
struct Block : nn::ModuleOf<Block> {
  Block(std::int64_t in, std::int64_t out, int stride)
      : conv1(add("conv1", conv(in, out, 3, stride))),
        bn1(add("bn1", nn::BatchNorm2d(out))),
        conv2(add("conv2", conv(out, out, 3))),
        bn2(add("bn2", nn::BatchNorm2d(out))) {
    if (stride == 1 && in == out) return;
    downsample = nn::Sequential(conv(in, out, 1, stride), nn::BatchNorm2d(out));
    add("downsample", downsample);
  }
  Tensor forward(const Tensor& x) const override {
    return relu(bn2(conv2(relu(bn1(conv1(x))))) + (downsample.size() > 0 ? downsample(x) : x));
  }
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Sequential downsample;
};

nn::Sequential resnet18_of(std::int64_t width) {
  nn::Sequential net;
  net.push_back("conv1", conv(3, width, 7, 2)).push_back("bn1", nn::BatchNorm2d(width)).push_back("relu", nn::ReLU());
  net.push_back("pool", nn::MaxPool2d(3, {.stride = 2, .padding = 1}));
  std::int64_t in = width;
  for (int stage = 1; stage <= 4; ++stage) {
    const std::int64_t out = width << (stage - 1);
    net.push_back("layer" + std::to_string(stage),
                  nn::Sequential(Block(in, out, stage > 1 ? 2 : 1), Block(out, out, 1)));
    in = out;
  }
  net.push_back("mean", nn::AdaptiveAvgPool2d(1)).push_back("flatten", nn::Flatten());
  net.push_back("fc", nn::Linear(in, kClasses));
  return net;
}

// How far two right runs in mixed precision may be apart was measured on PyTorch's own.
class AutocastCurve : public ::testing::TestWithParam<const char*> {};

TEST_P(AutocastCurve, AgreesWithPyTorchs) {
  if (!std::filesystem::exists(data::kFashionMnist))
    GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  if (const std::string why = fusejit::testing::select_engine({"", "compiled", "host"}); !why.empty())
    GTEST_SKIP() << why;
  const std::string dtype = GetParam(), file = "resnet18_" + dtype + "_curve.npz";
  const std::vector<double> losses = recorded_array(file, "loss"), tolerance = recorded_array(file, "tolerance"),
                            in_f32 = recorded_array(file, "loss_f32"),
                            window_tolerance = recorded_array(file, "window_tolerance");
  ASSERT_EQ(losses.size(), 200u);
  const auto batch = static_cast<std::int64_t>(recorded_array(file, "batch")[0]);
  nn::Sequential net = resnet18_of(static_cast<std::int64_t>(recorded_array(file, "width")[0]));
  set_initial_values(net);
  optim::SGD opt(net.parameters(), {.lr = recorded_array(file, "lr")[0], .momentum = 0.9});
  TrainStepOptions options{.autocast = dtype == "bf16" ? bf16 : f16};
  std::vector<double> scales;  // after each step
  if (dtype == "f16") {        // begins where two updates overflow
    options.scaler = GradScaler({.init_scale = 0x1p19, .backoff_factor = 0x1p-4, .growth_interval = 150});
    scales = recorded_array(file, "scale");
  }
  auto step = train_step(
      net, opt,
      [&](const Tensor& x, const Tensor& y) {
        return cross_entropy(net(expand(x, {-1, 3, -1, -1})), y);
      },
      options);
  const data::Batches batches = data::idx(data::kFashionMnist, {.batch = batch, .mean = 0.2860, .deviation = 0.3530});
  const std::size_t steps = testing::is_nightly() ? losses.size() : 20;
  double worst = 0, worst_window = 0, window = 0, window_meant = 0;
  for (std::size_t i = 0; i < steps; ++i) {
    const auto [x, y] = batches.get(static_cast<std::int64_t>(i));
    const double loss = step(x, y).item<double>();
    EXPECT_NEAR(loss, losses[i], tolerance[i]) << "step " << i;
    if (i == 0) {
      EXPECT_NE(static_cast<float>(loss), static_cast<float>(in_f32[0])) << "nothing was narrow";
    }
    worst = std::max(worst, std::abs(loss - losses[i]) / tolerance[i]);
    window += loss / 20, window_meant += losses[i] / 20;
    if (i % 20 == 19) {
      EXPECT_NEAR(window, window_meant, window_tolerance[i / 20]) << "mean of the 20 losses up to step " << i;
      worst_window = std::max(worst_window, std::abs(window - window_meant) / window_tolerance[i / 20]);
      std::printf("ResNet-18 under autocast(%s), losses to step %zu: %.4f, PyTorch's %.4f, may be %.4f apart\n",
                  dtype.c_str(), i, window, window_meant, window_tolerance[i / 20]);
      window = window_meant = 0;
    }
    if (!scales.empty()) {
      EXPECT_EQ(options.scaler->scale(), scales[i]) << "step " << i;
    }
  }
  std::printf("ResNet-18 under autocast(%s): %zu losses, at worst %.2f of the tolerance, windows %.2f\n", dtype.c_str(),
              steps, worst, worst_window);
  set_options({});
}

INSTANTIATE_TEST_SUITE_P(Recorded, AutocastCurve, ::testing::Values("bf16", "f16"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fusejit::test
