// Memory of the host: its limit, what is given back, and what training on many shapes leaves behind.
#include <gtest/gtest.h>

#include <fstream>

#include "fusejit/fusejit.h"

namespace fusejit {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kPooled = false;  // every block is one of malloc's
#else
constexpr bool kPooled = true;
#endif

constexpr std::int64_t kMebibyte = 1 << 20;

// Bytes of memory that the process has.
std::int64_t resident() {
  std::int64_t all = 0, here = 0;
  std::ifstream("/proc/self/statm") >> all >> here;
  return here * 4096;
}

class Memory : public ::testing::Test {
 protected:
  void SetUp() override {
    set_options({});
    memory::release();
  }
  void TearDown() override { memory::set_limit(0); }
};

TEST_F(Memory, IsKeptAndGivenBack) {
  const std::int64_t before = memory::reserved();
  { const Tensor x = ones({4, 1024, 1024}).eval(); }
  if (kPooled) {
    EXPECT_GE(memory::reserved(), before + 15 * kMebibyte) << "kept for what comes next";
  }
  memory::release();
  EXPECT_LE(memory::reserved(), before + kMebibyte);
  EXPECT_GE(memory::reserved(), memory::allocated());
}

TEST_F(Memory, OfAnotherMachineIsRefused) {
  EXPECT_THROW(zeros({1 << 20, 1 << 20}).eval(), DeviceError) << "4 TiB";
  EXPECT_EQ(ones({2}).sum().item<float>(), 2);
}

TEST_F(Memory, HasALimit) {
  const Tensor x = ones({1024, 1024}).eval();  // 4 MiB
  { const Tensor y = (x + 1).eval(), z = (x + 2).eval(); }
  const std::int64_t in_use = memory::allocated();
  memory::set_limit(in_use + 6 * kMebibyte);
  EXPECT_LE(memory::reserved(), in_use + 6 * kMebibyte) << "what was kept is given back";
  const Tensor y = (x + 1).eval();
  try {
    (x + y).eval();
    FAIL() << "5 MiB do not fit";
  } catch (const DeviceError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("out of memory: 4194304 bytes asked for with "), std::string::npos) << text;
    EXPECT_NE(text.find(" bytes in use and a limit of " + std::to_string(in_use + 6 * kMebibyte) + " bytes"),
              std::string::npos)
        << text;
  }
  EXPECT_EQ(sum(x * y).item<float>(), 2 * 1024 * 1024) << "what needs no more goes on";
  memory::set_limit(0);
  EXPECT_EQ((x + y).to_vector<float>()[5], 3);
  EXPECT_THROW(memory::set_limit(-1), UserError);
}

// What is kept gives way to what is asked for: one large tensor after many small ones.
TEST_F(Memory, WithinALimitWhatIsKeptGivesWay) {
  memory::set_limit(memory::allocated() + 20 * kMebibyte);
  for (std::int64_t rows = 100; rows <= 4000; rows += 100) {
    const Tensor x = ones({rows, 1024}).eval();
    ASSERT_LE(memory::reserved(), memory::allocated() + 20 * kMebibyte);
  }
}

TEST_F(Memory, AStepThatDoesNotFitLeavesEverythingAsItWas) {
  manual_seed(1);
  nn::Sequential net(nn::Conv2d(1, 8, 3), nn::ReLU(), nn::Flatten(), nn::Linear(8 * 30 * 30, 4));
  optim::SGD opt(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  auto step = train_step(net, opt, [&](const Tensor& x, const Tensor& y) { return cross_entropy(net(x), y); });
  const auto batch = [](std::int64_t n) {
    return std::pair(rand({n, 1, 32, 32}).eval(), remainder(arange(n), full({}, 4, i64)).eval());
  };
  const auto [x, y] = batch(4);
  const auto [large_x, large_y] = batch(400);
  step(x, y);
  const std::vector<float> before = net.parameters()[0].value().to_vector<float>();
  memory::set_limit(memory::allocated() + 8 * kMebibyte);
  for (int i = 0; i < 3; ++i) EXPECT_THROW(step(large_x, large_y), DeviceError);
  EXPECT_EQ(net.parameters()[0].value().to_vector<float>(), before);
  EXPECT_EQ(opt.steps(), 1);
  EXPECT_NO_THROW(step(x, y));
  memory::set_limit(0);
  EXPECT_NO_THROW(step(large_x, large_y));
}

// Training on many shapes holds what the largest of them needs; before, it held blocks of nearly all.
TEST_F(Memory, ManyShapesTakeWhatTheLargestTakes) {
  manual_seed(1);
  nn::Sequential net(nn::Conv2d(3, 8, 3), nn::ReLU(), nn::AdaptiveAvgPool2d(1), nn::Flatten(), nn::Linear(8, 4));
  optim::SGD opt(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  auto step = train_step(net, opt, [&](const Tensor& x, const Tensor& y) { return cross_entropy(net(x), y); });
  const Tensor y = remainder(arange(16), full({}, 4, i64)).eval();
  const std::int64_t before = resident();
  memory::reset_peak();
  for (int i = 0; i < 120; ++i) {
    const std::int64_t shape = i * 7 % 30;
    step(ones({16, 3, 64 + shape % 6 * 32, 64 + shape / 6 * 32}).eval(), y);
  }
  EXPECT_GT(memory::peak(), 20 * kMebibyte);
  if (!kPooled) return;
  EXPECT_LE(memory::reserved(), memory::peak() + memory::peak() / 5 + kMebibyte);
  // Plans, kernels and what the compiler leaves behind come on top.
  EXPECT_LE(resident() - before, memory::peak() + memory::peak() / 5 + 64 * kMebibyte);
}

// A trace that is asked for again and again stays, however many others there are; the others go, oldest first.
TEST_F(Memory, WhatIsUsedStaysInTheCaches) {
  set_options({.engine = "kernel_interpreter"});
  const auto ask = [](std::int64_t size) { (ones({size}).eval() + 3).eval(); };
  ask(7);
  for (std::int64_t size = 10; size < 400; ++size) {
    ask(size);
    const std::int64_t plans = stats().plans_made;
    ask(7);
    ASSERT_EQ(stats().plans_made, plans) << size;
  }
  EXPECT_GT(stats().evictions, 0);
  const std::int64_t plans = stats().plans_made;
  ask(10);
  EXPECT_GT(stats().plans_made, plans) << "it was forgotten";
}

}  // namespace
}  // namespace fusejit
