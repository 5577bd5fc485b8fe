// Training on the compiled engine: memory of the layer that keeps only its input, and bits that depend on nothing but
// the program.
#include <gtest/gtest.h>

#include "fusejit/fusejit.h"
#include "ir/base/hash.h"

namespace fusejit {
namespace {

// True if this build generates code; otherwise there are no plans to look at.
bool compiles() {
  set_options({});
  (ones({2}) * 3).eval();
  return stats().kernels_compiled > 0;
}

struct Forward {
  std::int64_t bytes = 0;
  float loss = 0;
};

Forward one_step(models::ConvnetForm form, std::int64_t batch) {
  set_options({});
  manual_seed(5);
  nn::Sequential net = models::convnet(form);
  optim::Adadelta opt(net.parameters());
  auto step = train_step(net, opt, [&](const Tensor& x, const Tensor& y) { return nll_loss(net(x), y); });
  const float loss = step(rand({batch, 1, 28, 28}).eval(), arange(batch).eval()).item<float>();
  return {stats().last_plan.end_of_forward_bytes, loss};
}

// Per image exactly one output of each convolution; what does not grow with the batch, such as packed weights that the
// recomputation shares with the forward pass, is no more than the weights themselves and a few vectors per channel.
TEST(Training, ALayerThatKeepsItsInputDropsOneConvolutionOutput) {
  if (!compiles()) GTEST_SKIP() << "this build generates no code";
  constexpr std::int64_t kOutputs = (32 * 26 * 26 + 64 * 24 * 24) * 4, kWeights = (32 * 9 + 64 * 32 * 9) * 4,
                         kVectors = 8 * (32 + 64) * 4;
  const auto drop = [](std::int64_t batch) {
    const Forward ordinary = one_step(models::ConvnetForm::ordinary, batch),
                  saving = one_step(models::ConvnetForm::save_input, batch);
    EXPECT_EQ(ordinary.loss, saving.loss) << "the same arithmetic";
    return ordinary.bytes - saving.bytes;
  };
  const std::int64_t small = drop(2), large = drop(5);
  EXPECT_EQ(large - small, 3 * kOutputs);
  EXPECT_LE(small, 2 * kOutputs);
  EXPECT_GE(small, 2 * kOutputs - kWeights - kVectors);
}

// A network with every kind of layer, small enough to be trained often.
std::string hash_after(int steps, int threads) {
  set_options({.threads = threads});
  manual_seed(9);
  nn::Sequential net(nn::Conv2d(1, 8, 3), nn::BatchNorm2d(8), nn::ReLU(), nn::ConvBatchNorm2d(8, 16, 3), nn::ReLU(),
                     nn::MaxPool2d(2), nn::Flatten(), nn::Linear(256, 32), nn::Dropout(0.5), nn::ReLU(),
                     nn::Linear(32, 10));
  optim::Adam opt(net.parameters());
  auto step = train_step(net, opt, [&](const Tensor& x, const Tensor& y) { return cross_entropy(net(x), y); });
  const Tensor x = rand({20, 1, 12, 12}).eval(), y = remainder(arange(20), full({}, 10, i64)).eval();
  for (int i = 0; i < steps; ++i) step(x, y);
  std::string all;
  for (const StateDict& state : {net.state_dict(), opt.state_dict()}) {
    for (const auto& [name, value] : state) {
      std::string bytes(static_cast<std::size_t>(value.bytes()), '\0');
      value.copy_to(bytes.data());
      all += name + bytes;
    }
  }
  return ir::hash_text(all).hex();
}

TEST(Training, TheSameBitsForEveryNumberOfThreadsAndInEveryRun) {
  if (!compiles()) GTEST_SKIP() << "this build generates no code";
  const std::string expected = hash_after(20, 1);
  for (const int threads : {1, 2, 3, 8}) EXPECT_EQ(hash_after(20, threads), expected) << threads << " threads";
  EXPECT_NE(hash_after(19, 1), expected);
}

}  // namespace
}  // namespace fusejit
