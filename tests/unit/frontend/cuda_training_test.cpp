// Training on a CUDA device through what users call, on the driver without a device.
#include <gtest/gtest.h>

#include <cmath>

#include "fusejit/fusejit.h"
#include "tests/support/fake_device/fake_gpu.h"

namespace fusejit {
namespace {

using test::FakeGpu;
using Strings = std::vector<std::string>;

Tensor images(std::int64_t count, std::int64_t side) {
  std::vector<float> pixels(static_cast<std::size_t>(count * side * side));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>((i * 37 + 11) % 101) / 50 - 1;
  return from_host(pixels, {count, 1, side, side});
}
Tensor labels(std::int64_t count) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back((3 * i + 1) % 4);
  return tensor<std::int64_t>(values);
}

std::vector<std::vector<float>> values_of(const nn::Module& net) {
  std::vector<std::vector<float>> values;
  for (const auto& [name, value] : net.state_dict()) values.push_back(value.to_vector<float>());
  return values;
}

// The digits network made small: every kind of layer that it has, and running statistics.
nn::Sequential small_net() {
  return nn::Sequential(nn::ConvBatchNorm2d(1, 3, 3, {}), nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(),
                        nn::Linear(12, 8), nn::Dropout(0.5), nn::ReLU(), nn::Linear(8, 4), nn::LogSoftmax(1));
}

// Weights only: they and their momentum are replaced in their own memory, which what is per channel is not yet.
nn::Sequential tiny_net() {
  return nn::Sequential(nn::Conv2d(1, 3, 3, {.bias = false}), nn::ReLU(), nn::Flatten(), nn::Linear(48, 4, false),
                        nn::Dropout(0.5), nn::LogSoftmax(1));
}

// A network, its optimiser and its data on a device.
struct Training {
  Device device;
  nn::Sequential net;
  optim::SGD opt;
  Tensor x, y;
  std::function<Tensor()> step;

  explicit Training(const Device& where, nn::Sequential made = small_net(), Tensor x_ = images(2, 6))
      : device(where),
        net((made.to(where), made)),
        opt(net.parameters(), {.lr = 0.5, .momentum = 0.9}),
        x(x_.to(where)),
        y(labels(x_.size(0)).to(where)) {
    auto once =
        train_step(net, opt, [net = net](const Tensor& a, const Tensor& b) mutable { return nll_loss(net(a), b); });
    step = [this, once]() mutable { return once(x, y); };
  }
};

class CudaTraining : public ::testing::Test {
 protected:
  void SetUp() override {
#ifndef FUSEJIT_X86
    GTEST_SKIP() << "this build has nothing to compare with";
#endif
    manual_seed(5);
    set_options({.threads = 1});
  }
  void TearDown() override { set_options({}); }

  const Device cuda{"cuda:0"};
};

void expect_clean(FakeGpu& gpu, const std::string& when = "") {
  gpu.backend.reset();
  FakeGpu::leave();
  EXPECT_EQ(gpu.driver.problems(), Strings()) << when;
  EXPECT_EQ(gpu.driver.leaks(), Strings()) << when;
}

TEST_F(CudaTraining, TheDigitsNetworkTrainsAsOnTheProcessor) {
  constexpr int kSteps = 3;
  std::vector<double> expected;
  {
    Training here(Device(), models::convnet(), images(1, 28));
    for (int s = 0; s < kSteps; ++s, here.opt.set_lr(here.opt.lr() * 0.5))
      expected.push_back(here.step().item<double>());
  }
  FakeGpu gpu;
  gpu.use({.threads = 1});
  {
    manual_seed(5);
    Training there(cuda, models::convnet(), images(1, 28));
    for (int s = 0; s < kSteps; ++s, there.opt.set_lr(there.opt.lr() * 0.5)) {
      gpu.driver.forget_launches();
      const Tensor loss = there.step();
      EXPECT_EQ(loss.device(), cuda);
      EXPECT_NEAR(loss.item<double>(), expected[static_cast<std::size_t>(s)], 1e-4 * expected[0]) << "step " << s;
      EXPECT_EQ(stats().last_plan.kernels, static_cast<std::int64_t>(gpu.driver.launches().size())) << "step " << s;
      EXPECT_EQ(stats().graph_launches, s + 1);
      EXPECT_TRUE(gpu.driver.launches().back().from_graph);
    }
    EXPECT_EQ(stats().plans_made, 1) << "a changed learning rate plans nothing anew";
    EXPECT_EQ(gpu.driver.count("cuStreamBeginCapture_v2"), 1) << "nor does it capture anew";
    for (const auto& [name, value] : there.net.state_dict()) EXPECT_EQ(value.device(), cuda) << name;
  }
  expect_clean(gpu);
}

TEST_F(CudaTraining, AStepInSteadyStateIsOneLaunchAndASmallCopy) {
  FakeGpu gpu;
  gpu.use({.threads = 1});
  {
    for (const bool only_weights : {true, false}) {
      const std::int64_t captured = gpu.driver.count("cuStreamBeginCapture_v2");
      Training training(cuda, only_weights ? tiny_net() : small_net());
      Tensor loss;
      for (int s = 0; s < 3; ++s) loss = training.step();
      struct Counts {
        std::int64_t allocations, uploads, waits, launches, graphs;
        std::size_t updates;
      };
      const auto counts = [&] {
        const test::FakeDriver& d = gpu.driver;
        return Counts{d.count("cuMemAlloc_v2"),
                      d.count("cuMemcpyHtoDAsync_v2"),
                      d.count("cuStreamSynchronize") + d.count("cuEventSynchronize"),
                      d.count("cuLaunchKernel"),
                      d.count("cuGraphLaunch"),
                      d.graph_updates()};
      };
      for (int s = 3; s < 8; ++s) {
        const Counts before = counts();
        loss = training.step();
        const Counts after = counts();
        EXPECT_EQ(after.allocations, before.allocations);
        EXPECT_EQ(after.uploads, before.uploads + 1) << "learning rate, momentum and seed go together";
        EXPECT_EQ(after.waits, before.waits);
        EXPECT_EQ(after.launches, before.launches);
        EXPECT_EQ(after.graphs, before.graphs + 1);
        const auto most = only_weights ? 1 : static_cast<std::size_t>(stats().last_plan.kernels);
        EXPECT_LE(after.updates - before.updates, most) << "the loss is elsewhere";
      }
      EXPECT_EQ(gpu.driver.count("cuStreamBeginCapture_v2"), captured + 1);
      EXPECT_TRUE(std::isfinite(loss.item<double>()));
    }
  }
  expect_clean(gpu);
}

TEST_F(CudaTraining, ValuesThatMoveAreFollowedByTheGraph) {
  FakeGpu gpu;
  gpu.use({.threads = 1});
  {
    Training training(cuda);
    StateDict start;
    for (const auto& [name, value] : training.net.state_dict()) {
      start.emplace(name, from_host(value.to_vector<float>(), value.shape()));
    }
    const double first = training.step().item<double>();
    training.step();
    for (int turn = 0; turn < 2; ++turn) {
      manual_seed(5 + turn);  // of the dropout
      training.net.load_state_dict(start);
      training.x = images(2, 6).to(cuda);
      const double again = training.step().item<double>();
      Training here{Device()};
      manual_seed(5 + turn);
      here.net.load_state_dict(start);
      EXPECT_NEAR(again, here.step().item<double>(), 1e-5);
    }
    EXPECT_TRUE(std::isfinite(first));
    EXPECT_EQ(gpu.driver.count("cuStreamBeginCapture_v2"), 1);
  }
  expect_clean(gpu);
}

// Any call fails, in the first step or in a later one: a DeviceError or nothing. After an error everything is as
// before, and what failed can be done again.
class CudaTrainingFailures : public CudaTraining {
 protected:
  // f(), or the same again if a call failed.
  template <class F>
  auto again(const F& f) {
    try {
      return f();
    } catch (const DeviceError& error) {
      failure_ = gpu.driver.failed_symbol();
      EXPECT_TRUE(gpu.driver.failed()) << error.what();
      EXPECT_NE(std::string(error.what()).find('('), std::string::npos) << error.what();
      return f();
    }
  }
  // A step whose call number k fails; 0: none. Whether there was such a call.
  bool step(Training& there, std::uint64_t seed, std::int64_t k, double expected) {
    failure_ = "no error";
    if (k > 0) gpu.driver.fail_call(k, k % 2 == 0 ? 2 : 999);
    const Tensor loss = again([&] {
      manual_seed(seed);  // of the dropout
      return there.step();
    });
    const double value = again([&] { return loss.item<double>(); });
    const bool reached = k > 0 && gpu.driver.failed();
    gpu.driver.fail_nothing();
    EXPECT_NEAR(value, expected, 1e-4) << "call " << k << ": " << failure_;
    return reached;
  }
  static double step(Training& here, std::uint64_t seed) {
    manual_seed(seed);
    return here.step().item<double>();
  }
  static std::unique_ptr<Training> training(const Device& device, nn::Sequential (*net)()) {
    manual_seed(5);
    return std::make_unique<Training>(device, net());
  }
  void expect_equal(const Training& there, const std::vector<std::vector<float>>& want) {
    const std::vector<std::vector<float>> got = values_of(there.net);
    for (std::size_t v = 0; v < got.size(); ++v) {
      for (std::size_t i = 0; i < got[v].size(); ++i) EXPECT_NEAR(got[v][i], want[v][i], 1e-3) << failure_;
    }
  }

  FakeGpu gpu;
  std::string failure_;
};

TEST_F(CudaTrainingFailures, TheFirstStep) {
  const auto here = training(Device(), tiny_net);
  const double first = step(*here, 1), second = step(*here, 2);
  const std::vector<std::vector<float>> want = values_of(here->net);
  bool reached = true;
  for (std::int64_t k = 1; reached && !HasFailure(); ++k) {
    gpu.use({.threads = 1});
    {
      const auto there = training(cuda, tiny_net);
      reached = step(*there, 1, k, first);
      step(*there, 2, 0, second);
      expect_equal(*there, want);
    }
    expect_clean(gpu, failure_);
  }
}

TEST_F(CudaTrainingFailures, ALaterStep) {
  gpu.use({.threads = 1});
  {
    const auto there = training(cuda, small_net), here = training(Device(), small_net);
    for (std::uint64_t s = 0; s < 2; ++s) step(*there, s, 0, step(*here, s));
    there->opt.set_lr(0.01), here->opt.set_lr(0.01);
    std::int64_t k = 1;
    for (bool reached = true; reached && !HasFailure(); ++k) {
      const auto seed = static_cast<std::uint64_t>(k);
      reached = step(*there, seed, k, step(*here, seed));
    }
    EXPECT_GT(k, 10);
    expect_equal(*there, values_of(here->net));
  }
  expect_clean(gpu);
}

}  // namespace
}  // namespace fusejit
