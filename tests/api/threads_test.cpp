// Many threads at once: one frozen network, one session, one parameter file, and errors among them. What every thread
// gets is what one thread alone gets. (Also the program to run under the thread sanitizer.)
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "fusejit/fusejit.h"

namespace fusejit {
namespace {

constexpr int kThreads = 4;

void on_all_threads(const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(body, t);
  for (std::thread& thread : threads) thread.join();
}

nn::Sequential small_network() {
  return nn::Sequential(nn::Conv2d(2, 4, 3), nn::BatchNorm2d(4), nn::ReLU(), nn::Flatten(), nn::Linear(36, 3));
}

class Threads : public ::testing::Test {
 protected:
  void SetUp() override {
    set_options({.threads = 3});
    manual_seed(7);
  }
  void TearDown() override { set_options({}); }
};

TEST_F(Threads, ServeOneFrozenNetwork) {
  const Frozen serve = small_network().freeze();
  std::vector<std::vector<float>> alone;
  for (int n = 1; n <= kThreads; ++n) alone.push_back(serve(ones({n, 2, 5, 5})).to_vector<float>());
  set_options({.threads = 3});  // an empty cache: all of them plan and compile
  on_all_threads([&](int t) {
    for (int i = 0; i < 12; ++i) {
      const int n = 1 + (t + i) % kThreads;
      EXPECT_EQ(serve(ones({n, 2, 5, 5})).to_vector<float>(), alone[static_cast<std::size_t>(n - 1)]);
      if (i % 4 == t) EXPECT_THROW(serve(ones({n, 3, 5, 5})), UserError);
    }
  });
}

TEST_F(Threads, CompileTheSameNetworkAtOnce) {
  const Frozen serve = small_network().freeze();
  on_all_threads([&](int) { serve.compile({f32, {2, 2, 5, 5}}); });
  EXPECT_EQ(serve(ones({2, 2, 5, 5})).shape(), (Shape{2, 3}));
}

TEST_F(Threads, TrainNetworksOfTheirOwn) {
  std::vector<float> losses(kThreads);
  on_all_threads([&](int t) {
    nn::Sequential net = small_network();
    optim::SGD opt(net.parameters(), {.lr = 0.1});
    auto step = train_step(net, opt, [&](const Tensor& x) { return mean(square(net(x))); });
    for (int i = 0; i < 5; ++i) losses[static_cast<std::size_t>(t)] = step(ones({4, 2, 5, 5})).item<float>();
  });
  for (const float loss : losses) EXPECT_TRUE(loss >= 0 && loss < 10) << loss;
}

TEST_F(Threads, ReplaceTheSessionWhileOthersRun) {
  const Tensor x = ones({64});
  on_all_threads([&](int t) {
    for (int i = 0; i < 10; ++i) {
      if (t == 0) set_options({.threads = 1 + i % 3});
      EXPECT_EQ(sum(x * static_cast<float>(t + i)).item<float>(), 64.0f * static_cast<float>(t + i));
      stats();
      memory::peak();
    }
  });
}

TEST_F(Threads, WriteOneFile) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("fusejit_threads_" + std::to_string(::getpid()) + ".npz")).string();
  on_all_threads([&](int t) { save({{"x", full({1000}, static_cast<float>(t))}}, path); });
  const std::vector<float> x = load(path).at("x").to_vector<float>();
  EXPECT_EQ(x, std::vector<float>(1000, x[0])) << "one thread's file, whole";
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace fusejit
