// The programs in examples/ that train, beside their twins in PyTorch (tests/reference/recording/examples): 20 steps
// from the same values on the same images. What is tested is the programs' own text: network, optimiser, schedule,
// images.
#include <gtest/gtest.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/api/engines.h"
#include "tests/networks/recorded.h"
#include "tests/support/nightly.h"
#include "tests/support/temporary_folder.h"

// Each program in a namespace of its own, its `main` by another name; unit_tools runs them.
#define main program
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wreturn-type"
namespace unet {
#include "examples/unet.cpp"
}
namespace gan {
#include "examples/gan.cpp"
}
namespace mobilenet_v3 {
#include "examples/mobilenet_v3.cpp"
}
namespace vision_transformer {
#include "examples/vision_transformer.cpp"
}
namespace own_optimizer {
#include "examples/own_optimizer.cpp"
}
namespace cifar10 {
#include "examples/cifar10.cpp"
}
#pragma GCC diagnostic pop
#undef main

namespace fusejit::test {
namespace {

constexpr int kSteps = 20;

class TrainedExamples : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = testing::select_engine({"", "compiled", "host"}); !why.empty()) GTEST_SKIP() << why;
  }
  void TearDown() override { set_options({}); }
};

// seen: of each step, `columns` numbers; in f64 they are recorded apart.
void expect_recorded(const std::string& example, const std::vector<double>& seen, std::size_t steps = kSteps,
                     std::size_t columns = 1, bool in_f64 = false) {
  const std::string file = "examples/" + example + ".npz";
  const std::vector<double> meant = recorded_array(file, in_f64 ? "f64" : "meant"),
                            tolerance = recorded_array(file, in_f64 ? "f64_tolerance" : "tolerance");
  ASSERT_EQ(seen.size(), steps * columns);
  ASSERT_EQ(meant.size(), kSteps * columns);
  double worst = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_NEAR(seen[i], meant[i], tolerance[i]) << example << " step " << i / columns << " column " << i % columns;
    worst = std::max(worst, std::abs(seen[i] - meant[i]) / tolerance[i]);
  }
  std::printf("%s%s: %zu steps, at worst %.2f of the tolerance, which is %.1e to %.1e\n", example.c_str(),
              in_f64 ? " in f64" : "", steps, worst, tolerance[0], tolerance[seen.size() - columns]);
}

TEST_F(TrainedExamples, UNet) {
  unet::Training training;
  set_initial_values(training.net);
  manual_seed(2);
  std::vector<double> losses;
  for (int i = 0; i < kSteps; ++i) {
    const auto [x, mask] = unet::discs(16);
    losses.push_back(training.step(x, mask).item<float>());
  }
  expect_recorded("unet", losses);
}

TEST_F(TrainedExamples, Gan) {
  gan::Training training;
  set_initial_values(training.make), set_initial_values(training.judge);
  manual_seed(2);
  std::vector<double> losses;
  for (int i = 0; i < kSteps; ++i) {
    const Tensor real = gan::squares(32);
    losses.push_back(training.judge_step(real, randn({32, gan::kNoise})).item<float>());
    losses.push_back(training.make_step(randn({32, gan::kNoise})).item<float>());
  }
  expect_recorded("gan", losses, kSteps, 2);
}

// Losses, and the mean of what the moving average gives.
std::vector<double> mobilenet_steps(mobilenet_v3::Training& training,
                                    const std::function<std::pair<Tensor, Tensor>(int)>& batch) {
  manual_seed(2);
  std::vector<double> seen;
  for (int i = 0; i < kSteps; ++i) {
    const auto [x, y] = batch(i);
    seen.push_back(training.step(x, y).item<double>());
    training.average.update_parameters();
    const NoGrad off;
    seen.push_back(mean(abs(training.average(x))).item<double>());
  }
  return seen;
}

TEST_F(TrainedExamples, MobileNetV3) {
  mobilenet_v3::Training training{mobilenet_v3::mobilenet_v3(4)};
  set_initial_values(training.net);
  expect_recorded("mobilenet_v3", mobilenet_steps(training, [](int) { return mobilenet_v3::stripes(16); }), kSteps, 2);
}

// RMSprop amplifies the rounding of f32 until the recorded tolerance says little; f64 is sharp to the end.
TEST_F(TrainedExamples, MobileNetV3InF64) {
  nn::Sequential net = mobilenet_v3::mobilenet_v3(4);
  set_initial_values(net);
  net.to(f64);
  mobilenet_v3::Training training{net};
  const auto noise = [](int i) {
    const Shape shape{16, 3, 64, 64};
    const Tensor label = randint(4, {16}).eval();
    return std::pair(from_host(uniform_of("x" + std::to_string(i), shape.elements(), -2, 2), shape).to(f64), label);
  };
  expect_recorded("mobilenet_v3", mobilenet_steps(training, noise), kSteps, 2, true);
}

TEST_F(TrainedExamples, VisionTransformer) {
  vision_transformer::Training training(kSteps);
  set_initial_values(training.net);
  manual_seed(2);
  std::vector<double> seen;
  for (int i = 0; i < kSteps; ++i) {
    const auto [x, y] = vision_transformer::examples(32);
    const double rate = training.opt.lr();
    seen.push_back(training.step(x, y).item<float>());
    seen.push_back(rate);
    training.schedule.step();
  }
  expect_recorded("vision_transformer", seen, kSteps, 2);
}

TEST_F(TrainedExamples, OwnOptimizer) {
  own_optimizer::Training training;
  set_initial_values(training.net);
  std::vector<double> losses;
  while (losses.size() < kSteps) {
    for (const auto& [x, y] : training.batches) {
      losses.push_back(training.step(x, y).item<float>());
      if (losses.size() == kSteps) break;
    }
  }
  expect_recorded("own_optimizer", losses);
}

// Five files of 128 images of classes that differ in brightness.
void write_cifar10(const testing::TemporaryFolder& folder) {
  for (int file = 1; file <= 5; ++file) {
    const std::vector<float> noise = uniform_of("cifar10 " + std::to_string(file), 128 * 3072, 0, 56);
    std::ofstream out(folder / ("data_batch_" + std::to_string(file) + ".bin"), std::ios::binary);
    for (int i = 0; i < 128; ++i) {
      const int label = ((file - 1) * 128 + i) % 10;
      out.put(static_cast<char>(label));
      for (int p = 0; p < 3072; ++p)
        out.put(static_cast<char>(label * 20 + static_cast<int>(noise[static_cast<std::size_t>(i * 3072 + p)])));
    }
  }
}

// Losses and rates; from the middle on as a new process goes on.
std::vector<double> cifar10_steps(std::size_t steps, std::optional<DType> autocast, DType dtype) {
  const testing::TemporaryFolder folder;
  write_cifar10(folder);
  data::DataLoader batches = cifar10::loader(folder.path(), true);
  const auto begin = [&] {
    models::ResNet net = models::resnet18(kClasses);
    set_initial_values(net);
    net.to(dtype);
    return std::make_unique<cifar10::Training>(net, kSteps, autocast);
  };
  auto training = begin();
  std::vector<double> seen;
  for (std::int64_t epoch = 0; seen.size() < 2 * steps; ++epoch) {
    batches.set_epoch(epoch);
    for (const auto& [x, y] : batches) {
      const double rate = training->opt.lr();
      seen.push_back(training->step(x.to(dtype), y).item<double>());
      seen.push_back(rate);
      training->schedule.step();
      if (seen.size() == steps) {
        training->run.save(folder / "run.npz");
        training = begin();
        training->run.load(folder / "run.npz");
      }
      if (seen.size() == 2 * steps) break;
    }
  }
  return seen;
}

TEST_F(TrainedExamples, Cifar10) {
  if (!testing::is_nightly()) GTEST_SKIP() << "for the night";
  expect_recorded("cifar10", cifar10_steps(kSteps, bf16, f32), kSteps, 2);
}

// By day one step before the checkpoint and one after it.
TEST_F(TrainedExamples, Cifar10InF64) {
  const std::size_t steps = testing::is_nightly() ? kSteps : 2;
  expect_recorded("cifar10", cifar10_steps(steps, {}, f64), steps, 2, true);
}

}  // namespace
}  // namespace fusejit::test
