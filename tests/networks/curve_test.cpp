// Training of ResNet-18 on Fashion-MNIST beside the losses that PyTorch recorded: all 100 steps for the night
// (FUSEJIT_NIGHTLY=1), by day the first few.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "frontend/io/npz.h"
#include "tests/api/engines.h"
#include "tests/networks/recorded.h"

namespace fusejit::test {
namespace {

std::vector<double> curve(const std::string& name) {
  const auto arrays = io::read_npz(std::string(FUSEJIT_SOURCE_DIR) + "/tests/reference/resnet18_curve.npz",
                                   [&](std::string_view n) { return n == name; });
  return from_host(arrays.at(0).bytes.data(), arrays.at(0).shape, arrays.at(0).dtype).to_vector<double>();
}

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
  const std::size_t steps = std::getenv("FUSEJIT_NIGHTLY") ? losses.size() : 4;
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

}  // namespace
}  // namespace fusejit::test
