// Training on the compiled engine: memory of the layer that keeps only its input, and bits that depend on nothing but
// the program: not on threads, not on the order of tasks, not on the process.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "frontend/evaluation/engine.h"
#include "fusejit/fusejit.h"
#include "ir/base/hash.h"
#include "runtime/session.h"

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

// An ordinary layer keeps its convolution's output, and its activation only where whoever reads that cannot compute it
// meanwhile. So such a layer is ahead by its output in front of a product, or of a convolution of so few channels.
constexpr std::int64_t kFewChannels = 8;

// Per image exactly that; what does not grow with the batch, such as packed weights that the recomputation shares with
// the forward pass, is no more than the weights themselves and a few vectors per channel.
TEST(Training, ALayerThatKeepsItsInputDropsOneConvolutionOutput) {
  if (!compiles()) GTEST_SKIP() << "this build generates no code";
  constexpr std::int64_t kOutputs = 64 * 24 * 24 * 4, kWeights = (32 * 9 + 64 * 32 * 9) * 4,
                         kVectors = 8 * (32 + 64) * 4;
  const auto drop = [](std::int64_t batch) {
    const Forward ordinary = one_step(models::ConvnetForm::ordinary, batch),
                  saving = one_step(models::ConvnetForm::save_input, batch);
    EXPECT_EQ(ordinary.loss, saving.loss) << "the same arithmetic";
    return ordinary.bytes - saving.bytes;
  };
  const std::int64_t small = drop(2), large = drop(5);
  EXPECT_EQ(large - small, 3 * kOutputs);
  EXPECT_LE(std::abs(small - 2 * kOutputs), kWeights + kVectors);
}

// The same for chains of one to three layers of several shapes, with what the layers are told by their options.
struct Chain {
  const char* name;
  std::vector<std::int64_t> channels;  // of the input, then of each layer
  std::int64_t size, kernel;
  nn::ConvBatchNorm2dOptions options;

  std::int64_t after(std::int64_t size) const {
    return (size + 2 * options.padding.cells[0] - kernel) / options.stride.vertical + 1;
  }
  std::int64_t last_size() const {
    std::int64_t last = size;
    for (std::size_t i = 1; i < channels.size(); ++i) last = after(last);
    return last;
  }
};

std::int64_t live_at_end_of_forward(const Chain& chain, bool save_only_input, std::int64_t batch) {
  set_options({});
  manual_seed(5);
  nn::Sequential net;
  for (std::size_t i = 1; i < chain.channels.size(); ++i) {
    nn::ConvBatchNorm2dOptions options = chain.options;
    options.save_only_input = save_only_input;
    net.push_back(nn::ConvBatchNorm2d(chain.channels[i - 1], chain.channels[i], chain.kernel, options));
    net.push_back(nn::ReLU());
  }
  // Else the loss is taken of the last ReLU, whose gradient then comes out of the loss's own kernel.
  net.push_back(nn::Flatten());
  net.push_back(nn::Linear(chain.channels.back() * chain.last_size() * chain.last_size(), 3));
  optim::SGD opt(net.parameters(), {.lr = 0.1});
  auto step = train_step(net, opt, [&](const Tensor& x) { return mean(square(net(x))); });
  step(rand({batch, chain.channels[0], chain.size, chain.size}).eval());
  return stats().last_plan.end_of_forward_bytes;
}

TEST(Training, EveryLayerOfAChainDropsItsConvolutionOutput) {
  if (!compiles()) GTEST_SKIP() << "this build generates no code";
  nn::ConvBatchNorm2dOptions of_the_text;
  of_the_text.eps = 1e-3, of_the_text.affine = false, of_the_text.track_running_stats = false;
  of_the_text.eps_outside = true, of_the_text.unbiased = true;
  nn::ConvBatchNorm2dOptions padded;
  padded.padding = 1;
  nn::ConvBatchNorm2dOptions strided;
  strided.stride = 2, strided.padding = 1;
  const Chain chains[] = {
      {"one", {3, 8}, 12, 3, {}},
      {"one, of the text", {1, 20}, 9, 2, of_the_text},
      {"two", {4, 6, 9}, 11, 3, {}},
      {"two, of the text", {1, 32, 64}, 10, 3, of_the_text},
      {"two, strided", {3, 16, 8}, 16, 3, strided},
      {"three, padded", {2, 8, 16, 8}, 7, 3, padded},
      {"three", {1, 5, 17, 3}, 13, 2, {}},
  };
  for (const Chain& chain : chains) {
    std::int64_t size = chain.size, outputs = 0, weights = 0, vectors = 0;
    for (std::size_t i = 1; i < chain.channels.size(); ++i) {
      size = chain.after(size);
      const bool is_read_by_product = i + 1 == chain.channels.size();
      if (is_read_by_product || chain.channels[i] < kFewChannels) outputs += 4 * chain.channels[i] * size * size;
      weights += 4 * (chain.channels[i] + 31) / 32 * 32 * chain.channels[i - 1] * chain.kernel * chain.kernel;
      vectors += 4 * 8 * chain.channels[i];
    }
    const auto drop = [&](std::int64_t batch) {
      return live_at_end_of_forward(chain, false, batch) - live_at_end_of_forward(chain, true, batch);
    };
    const std::int64_t small = drop(2), large = drop(7);
    EXPECT_EQ(large - small, 5 * outputs) << chain.name;
    EXPECT_LE(std::abs(small - 2 * outputs), weights + vectors) << chain.name;
  }
}

// A network with every kind of layer, small enough to be trained often.
// All parameters, running statistics and the optimiser's state after the steps, on the engine that is set.
std::string hash_after(int steps) {
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

std::string hash_after(int steps, const runtime::SessionOptions& options) {
  set_session(options);
  return hash_after(steps);
}

TEST(Training, TheSameBitsForEveryNumberOfThreadsAndInEveryRun) {
  if (!compiles()) GTEST_SKIP() << "this build generates no code";
  const std::string expected = hash_after(20, {.threads = 1});
  for (const int threads : {1, 2, 3, 8})
    EXPECT_EQ(hash_after(20, {.threads = threads}), expected) << threads << " threads";
  EXPECT_NE(hash_after(19, {.threads = 1}), expected);
  set_options({});
}

TEST(Training, TheSameBitsForEveryOrderOfTasksAndEveryPlaceInMemory) {
  if (!compiles()) GTEST_SKIP() << "this build generates no code";
  const std::string expected = hash_after(20, {.threads = 2});
  using runtime::TaskOrder;
  const struct {
    const char* name;
    runtime::Checks checks;
  } ways[] = {
      {"descending", {.order = TaskOrder::descending}},
      {"shuffled", {.order = TaskOrder::shuffled}},
      {"poisoned", {.poison = true}},
      {"separate, shuffled", {.separate_values = true, .poison = true, .order = TaskOrder::shuffled}},
  };
  for (const auto& way : ways) {
    for (const int threads : {1, 3}) {
      EXPECT_EQ(hash_after(20, {.threads = threads, .checks = way.checks}), expected) << way.name << ", " << threads;
    }
  }
  set_options({});
}

constexpr const char* kChildsFile = "FUSEJIT_TEST_HASH_FILE";

// What the next test has another process do.
TEST(Training, DISABLED_WritesItsHash) {
  const char* path = std::getenv(kChildsFile);
  ASSERT_NE(path, nullptr);
  set_options({.threads = 2});
  std::ofstream(path) << hash_after(20);
}

TEST(Training, TheSameBitsInAnotherProcess) {
  if (!compiles()) GTEST_SKIP() << "this build generates no code";
  const std::string path =
      (std::filesystem::temp_directory_path() / ("training_hash_" + std::to_string(getpid()))).string();
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = std::string(kChildsFile) + "=" + path + " " + program +
                              " --gtest_also_run_disabled_tests --gtest_filter=Training.DISABLED_WritesItsHash "
                              "> /dev/null 2>&1";
  std::string seen[2];
  for (std::string& hash : seen) {
    const int status = std::system(command.c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    std::ifstream(path) >> hash;
    std::filesystem::remove(path);
  }
  EXPECT_FALSE(seen[0].empty());
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], hash_after(20, {.threads = 3})) << "this process, with other tests before";
  set_options({});
}

}  // namespace
}  // namespace fusejit
