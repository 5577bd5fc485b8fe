// The S4 network against the loss curve that PyTorch recorded, through the public API. In f64 the curve is sharp; in
// f32 a value crosses a kink of relu or max-pool sooner or later, in PyTorch as here, and from then on it is another
// training.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "frontend/io/npz.h"
#include "fusejit/fusejit.h"

namespace fusejit {
namespace {

std::vector<double> recorded(const std::string& file, const std::string& name) {
  const std::string path = std::string(FUSEJIT_SOURCE_DIR) + "/tests/reference/" + file;
  const auto arrays = io::read_npz(path, [&](std::string_view n) { return n == name; });
  return from_host(arrays.at(0).bytes.data(), arrays.at(0).shape, arrays.at(0).dtype).to_vector<double>();
}

// The initial values that tests/reference/README.md gives.
Tensor initial(const Shape& shape, std::uint64_t number, double fan_in) {
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  for (std::size_t e = 0; e < values.size(); ++e) {
    const double u =
        static_cast<double>((e * 2654435761u + (number + 1) * 40503u) % (std::uint64_t{1} << 32)) / 4294967296.0;
    values[e] = static_cast<float>((2 * u - 1) / std::sqrt(fan_in));
  }
  return from_host(values, shape);
}

nn::Sequential network(const nn::ConvBatchNorm2dOptions& options) {
  nn::Sequential net(nn::ConvBatchNorm2d(1, 32, 3, options), nn::ReLU(), nn::ConvBatchNorm2d(32, 64, 3, options),
                     nn::ReLU(), nn::MaxPool2d(2), nn::ReLU(), nn::Flatten(), nn::Linear(9216, 128), nn::ReLU(),
                     nn::Linear(128, 10), nn::LogSoftmax(1));
  StateDict state = net.state_dict();
  const struct {
    const char* name;
    double fan_in;
  } drawn[] = {{"0.weight", 9},  {"2.weight", 288}, {"7.weight", 9216},
               {"7.bias", 9216}, {"9.weight", 128}, {"9.bias", 128}};
  for (std::uint64_t i = 0; i < 6; ++i)
    state[drawn[i].name] = initial(state[drawn[i].name].shape(), i, drawn[i].fan_in);
  net.load_state_dict(state);
  return net;
}

struct CurveCase {
  const char* file;
  bool text_form, save_only_input;
  double sgd_lr;  // 0: Adadelta
  DType dtype = f32;
};

class Curve : public ::testing::TestWithParam<CurveCase> {};

TEST_P(Curve, AgreesWithPyTorch) {
  if (!std::filesystem::exists(data::kFashionMnist))
    GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  const CurveCase& c = GetParam();
  const char* engine = std::getenv("FUSEJIT_TEST_ENGINE");
  set_options({.engine = engine ? engine : "compiled"});
  (ones({2}) * 3).eval();
  if (stats().kernels_compiled == 0) GTEST_SKIP() << "the interpreters are too slow for this network";
  nn::ConvBatchNorm2dOptions options{.save_only_input = c.save_only_input};
  if (c.text_form)
    options.eps = 1e-3, options.affine = false, options.track_running_stats = false, options.eps_outside = true,
    options.unbiased = true;
  nn::Sequential net = network(options);
  net.to(c.dtype);
  std::unique_ptr<optim::Optimizer> opt;
  if (c.sgd_lr > 0) {
    opt = std::make_unique<optim::SGD>(net.parameters(), optim::SgdOptions{.lr = c.sgd_lr, .momentum = 0.9});
  } else {
    opt = std::make_unique<optim::Adadelta>(net.parameters(), optim::AdadeltaOptions{.lr = 1.0});
  }
  auto step = train_step(net, *opt, [&](const Tensor& x, const Tensor& y) { return nll_loss(net(x), y); });
  const std::vector<double> losses = recorded(c.file, "loss_f64"), tolerance = recorded(c.file, "tolerance");
  const data::Batches batches = data::idx(data::kFashionMnist, {.batch = 64, .mean = 0.1307, .deviation = 0.3081});
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const auto [x, y] = batches.get(static_cast<std::int64_t>(i));
    EXPECT_NEAR(step(x.to(c.dtype), y).item<double>(), losses[i], c.dtype == f64 ? 1e-9 : tolerance[i]) << "step " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Recorded, Curve,
                         ::testing::Values(CurveCase{"s4_curve.npz", true, false, 0},
                                           CurveCase{"s4_curve.npz", true, true, 0},
                                           CurveCase{"s4_batchnorm_slow_curve.npz", false, true, 0.002},
                                           CurveCase{"s4_batchnorm_curve.npz", false, false, 0.05},
                                           CurveCase{"s4_curve.npz", true, true, 0, f64},
                                           CurveCase{"s4_batchnorm_curve.npz", false, false, 0.05, f64}),
                         [](const auto& info) { return "Case" + std::to_string(info.index); });

}  // namespace
}  // namespace fusejit
