// Many threads at once: one frozen network, one session, one parameter file, and errors among them. What every thread
// gets is what one thread alone gets. (Also the program to run under the thread sanitizer.)
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
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
      if (i % 4 == t) {
        EXPECT_THROW(serve(ones({n, 3, 5, 5})), UserError);
      }
    }
  });
}

TEST_F(Threads, CompileTheSameNetworkAtOnce) {
  small_network().freeze().compile({f32, {2, 2, 5, 5}});
  const std::int64_t alone = stats().kernels_compiled;
  set_options({.threads = 3});
  const Frozen serve = small_network().freeze();
  on_all_threads([&](int) { serve.compile({f32, {2, 2, 5, 5}}); });
  EXPECT_EQ(stats().kernels_compiled, alone) << "each kernel once";
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

// A step overwrites the old parameter in place; whoever reads the parameter meanwhile gets the value before or after
// it.
TEST_F(Threads, ReadAParameterWhileItIsTrained) {
  struct Counter : nn::ModuleOf<Counter> {
    nn::Parameter p = parameter("p", zeros({1 << 20}));
    Tensor forward(const Tensor&) override { return -sum(p.value()); }
  } net;
  optim::SGD opt(net.parameters(), {.lr = 1.0});
  auto step = train_step(net, opt, [&](const Tensor& x) { return net(x); });
  std::atomic<int> started{0}, reads{0};
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done) {
      const Tensor twice = net.p.value() * 2;
      const std::vector<float> values = slice(twice, 0, 0, 1 << 20, 4097).to_vector<float>();
      EXPECT_LE(values[0], 2 * started) << "an update that has not begun";
      EXPECT_EQ(values, std::vector<float>(values.size(), values[0]));
      ++reads;
    }
  });
  for (int i = 1; i <= 60; ++i) {
    started = i;
    step(Tensor());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  done = true;
  reader.join();
  EXPECT_GT(reads, 0);
  EXPECT_EQ(net.p.value().to_vector<float>(), std::vector<float>(1 << 20, 60.0f));
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
