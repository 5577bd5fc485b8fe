// What lazy means, exactly: the twelve rows of the design's table, a test each.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <thread>

#include "fusejit/fusejit.h"
#include "tests/api/logged_test.h"

namespace fusejit {
namespace {

class LazySemantics : public LoggedTest {
 protected:
  void SetUp() override {
    LoggedTest::SetUp();
    manual_seed(1);
  }
  void TearDown() override {
    LoggedTest::TearDown();
    set_trace_limit(10000);
    check_borrowed(false);
  }
};

struct Scale : nn::ModuleOf<Scale> {
  explicit Scale(float value) : w(parameter("w", from_host(std::vector<float>{value, value}, {2}))) {}
  Tensor forward(const Tensor& x) override { return x * w.value(); }
  nn::Parameter w;
};

// Row 1: capture happens when a value is asked for, and takes module state along.
TEST_P(LazySemantics, CaptureHappensWhenAValueIsAskedFor) {
  const Tensor x = tensor<float>({1, 2, 3});
  const Tensor y = x * x;
  EXPECT_FALSE(y.evaluated());
  EXPECT_EQ(stats().evaluations, 0);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, 4, 9}));
  EXPECT_EQ(stats().evaluations, 1);
  EXPECT_EQ(sum(y).item<float>(), 14);
  EXPECT_EQ(stats().evaluations, 2);
  std::ostringstream text;
  text << y + 1;
  EXPECT_EQ(text.str(), "[2, 5, 10] : f32[3]");
  float copied[3] = {};
  (y - 1).copy_to(copied);
  EXPECT_EQ(copied[2], 8);
}

TEST_P(LazySemantics, RunningStatisticsAreComputedWithTheLoss) {
  nn::BatchNorm2d norm(2);
  const Tensor x = from_host(std::vector<float>{1, 3, 2, 6}, {2, 2, 1, 1});
  const Tensor loss = sum(square(norm(x)));
  loss.eval();
  const std::int64_t before = stats().evaluations;
  const StateDict state = norm.state_dict();
  EXPECT_TRUE(state.at("running_mean").evaluated())
      << "the loss does not reach it, but it is an output of the same plan";
  EXPECT_FLOAT_EQ(state.at("running_mean").to_vector<float>()[0], 0.15f);
  EXPECT_FLOAT_EQ(state.at("running_var").to_vector<float>()[1], 0.9f + 0.1f * 4.5f);
  EXPECT_EQ(stats().evaluations, before);
}

// Row 2: a live handle on an inner value is recomputed when it is read; what it needs is not donated, and a line says
// so.
TEST_P(LazySemantics, ALiveHandleOnAnInnerValueKeepsItsInputs) {
  Scale net(3);
  optim::SGD opt(net.parameters(), {.lr = 0.5});
  Tensor inner;
  auto step = train_step(net, opt, [&](const Tensor& x) {
    inner = x * net.w.value();
    return sum(inner);
  });
  step(tensor<float>({1, 1}));
  EXPECT_EQ(lines_with("w is not donated"), 1);
  EXPECT_FALSE(inner.evaluated());
  EXPECT_EQ(inner.to_vector<float>(), (std::vector<float>{3, 3})) << "from the old parameter";
  EXPECT_EQ(net.w.value().to_vector<float>(), (std::vector<float>{2.5, 2.5}));
  log.clear();
  auto free_step = train_step(net, opt, [&](const Tensor& x) { return sum(net(x)); });
  free_step(tensor<float>({1, 1}));
  EXPECT_EQ(lines_with("donated"), 0);
}

// Row 3: host scalars are arguments of the trace, except 0, +-1, 1/2, 2.
TEST_P(LazySemantics, HostScalarsAreArguments) {
  const Tensor x = tensor<float>({1, 2});
  for (const double factor : {0.1, 0.2, 0.3}) {
    EXPECT_FLOAT_EQ((x * factor).to_vector<float>()[1], static_cast<float>(2 * factor));
  }
  EXPECT_EQ(stats().traces, 1);
  for (const double factor : {0.0, 1.0, -1.0, 0.5, 2.0}) (x * factor).eval();
  EXPECT_EQ(stats().traces, 6) << "the special numbers are part of the trace";
  Scale net(3);
  optim::SGD opt(net.parameters(), {.lr = 0.5});
  auto step = train_step(net, opt, [&](const Tensor& t) { return sum(net(t)); });
  step(x);
  const std::int64_t traces = stats().traces;
  for (const double lr : {0.25, 1.0, 0.0, 3.0}) {
    opt.set_lr(lr);
    step(x);
  }
  EXPECT_EQ(stats().traces, traces) << "a changed learning rate compiles nothing";
}

// Row 4: a new shape, train()/eval() and C++ control flow record another graph, each planned once.
TEST_P(LazySemantics, OtherShapesAndModesAreOtherGraphs) {
  nn::Sequential net(nn::Dropout(0.5), nn::ReLU());
  const auto run = [&](std::int64_t n) { net(ones({n})).eval(); };
  run(3), run(3);
  EXPECT_EQ(stats().traces, 1);
  run(4);
  EXPECT_EQ(stats().traces, 2);
  net.eval();
  run(4);
  EXPECT_EQ(stats().traces, 3);
  net.train();
  run(4), run(3);
  EXPECT_EQ(stats().traces, 3);
  EXPECT_EQ(stats().trace_cache_hits, 3);
}

// Row 5: asking for a value inside a step function splits the step there: right result, one line.
TEST_P(LazySemantics, ItemInsideAStepSplitsIt) {
  Scale net(3);
  optim::SGD opt(net.parameters(), {.lr = 1.0});
  double seen = 0;
  auto step = train_step(net, opt, [&](const Tensor& x) {
    const Tensor y = net(x);
    seen = sum(y).item<double>();
    return sum(y * y);
  });
  EXPECT_EQ(step(tensor<float>({1, 1})).item<float>(), 18);
  EXPECT_EQ(seen, 6);
  EXPECT_EQ(lines_with("the step is split there"), 1);
  EXPECT_EQ(net.w.value().to_vector<float>(), (std::vector<float>{-3, -3}));
}

// Row 6: history stays while the handle lives; evaluated values become arguments; one line.
TEST_P(LazySemantics, GradientAfterEvaluation) {
  const Tensor x = tensor<float>({1, 2, 3}).requires_grad();
  const Tensor y = exp(x * 0.5);
  const Tensor loss = sum(y * y);
  EXPECT_NEAR(loss.item<float>(), std::exp(1) + std::exp(2) + std::exp(3), 1e-4);
  y.eval();
  const Tensor g = grad(loss, {x})[0];
  EXPECT_EQ(lines_with("do not fuse"), 1);
  const std::vector<float> values = g.to_vector<float>();
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(values[static_cast<std::size_t>(i)], std::exp(i + 1.0), 1e-4);
  const Tensor plain = tensor<float>({1, 2});
  const Tensor forgotten = sum(plain * plain).eval();
  EXPECT_THROW(grad(forgotten, {plain}), UserError);
}

// Row 7: an update is a new value under the same parameter; old handles keep the old value.
TEST_P(LazySemantics, OldHandlesKeepTheOldParameter) {
  Scale net(3);
  optim::SGD opt(net.parameters(), {.lr = 1.0});
  const Tensor old = net.w.value();
  auto step = train_step(net, opt, [&](const Tensor& x) { return sum(net(x)); });
  step(tensor<float>({1, 2}));
  EXPECT_EQ(old.to_vector<float>(), (std::vector<float>{3, 3}));
  EXPECT_EQ(net.w.value().to_vector<float>(), (std::vector<float>{2, 1}));
  EXPECT_EQ(lines_with("w is not donated"), 1);
}

// Row 8: the same seed gives the same bits; every step draws anew.
TEST_P(LazySemantics, RandomnessIsCounterBased) {
  const auto draws = [] {
    manual_seed(7);
    std::vector<std::vector<float>> all;
    nn::Dropout layer(0.5);
    Scale net(3);
    optim::SGD opt(net.parameters(), {.lr = 0.0});
    auto step = train_step(net, opt, [&](const Tensor& x) {
      const Tensor a = layer(x * net.w.value()), b = layer(ones({64}));
      return std::tuple(sum(a), a, b);
    });
    for (int i = 0; i < 2; ++i) {
      auto [loss, a, b] = step(ones({64, 2}));
      all.push_back(a.to_vector<float>());
      all.push_back(b.to_vector<float>());
    }
    all.push_back(rand({8}).to_vector<float>());
    return all;
  };
  const auto first = draws(), second = draws();
  EXPECT_EQ(first, second);
  EXPECT_NE(first[0], first[2]) << "another step, another mask";
  EXPECT_EQ(stats().traces, 2) << "the seed is an argument: one trace for the step, one for rand";
}

// Row 9: an exception while recording leaves every tensor as it was.
TEST_P(LazySemantics, ExceptionsLeaveEverythingUsable) {
  struct Net : nn::ModuleOf<Net> {
    Tensor forward(const Tensor& x) override { return norm(x); }
    nn::BatchNorm2d norm = add("norm", nn::BatchNorm2d(1));
  } net;
  optim::SGD opt(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  bool fail = true;
  auto step = train_step(net, opt, [&](const Tensor& x) {
    const Tensor y = net(x);
    if (fail) return sum(matmul(y, ones({7, 7})));  // wrong shape: throws here
    return sum(y * x);
  });
  const Tensor x = from_host(std::vector<float>{1, 2, 3, 4}, {4, 1, 1, 1});
  const std::vector<float> before = net.state_dict().at("norm.running_mean").to_vector<float>();
  EXPECT_THROW(step(x), UserError);
  EXPECT_EQ(net.state_dict().at("norm.running_mean").to_vector<float>(), before);
  EXPECT_EQ(step.count(), 0);
  EXPECT_EQ(opt.steps(), 0);
  fail = false;
  step(x);
  EXPECT_EQ(step.count(), 1);
  EXPECT_FLOAT_EQ(net.state_dict().at("norm.running_mean").to_vector<float>()[0], 0.25f);
}

// Row 10: recording and evaluating from several threads is safe; steps on one module run one after another.
TEST_P(LazySemantics, ThreadsRecordAndEvaluate) {
  const Tensor shared = tensor<float>({1, 2, 3});
  const Tensor lazy = exp(shared) + 1;
  Scale net(0);
  optim::SGD opt(net.parameters(), {.lr = 1.0});
  auto step = train_step(net, opt, [&](const Tensor& x) { return sum(net(x)); });
  constexpr int kThreads = 4, kSteps = 10;
  std::vector<std::thread> threads;
  std::vector<float> sums(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kSteps; ++i) {
        sums[static_cast<std::size_t>(t)] = sum(lazy * 2).item<float>();
        step(tensor<float>({1, 2}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const float s : sums) EXPECT_FLOAT_EQ(s, sums[0]);
  EXPECT_EQ(net.w.value().to_vector<float>(), (std::vector<float>{-kThreads * kSteps, -2 * kThreads * kSteps}));
}

// Row 11: a loop that never asks for a value is evaluated at a bound, and says so.
TEST_P(LazySemantics, AnEndlessLoopIsCutAtABound) {
  set_trace_limit(100);
  Tensor x = zeros({4});
  for (int i = 0; i < 1000; ++i) x = x + 1;
  EXPECT_GE(lines_with("evaluated now"), 9);
  EXPECT_LE(stats().traces, 2) << "each cut gives the same trace";
  EXPECT_EQ(x.to_vector<float>()[0], 1000);
}

// Row 12: borrowed memory is used in place, given back, never overwritten, and checked.
TEST_P(LazySemantics, BorrowedMemoryIsCheckedAndGivenBack) {
  check_borrowed(true);
  std::vector<float> owner{1, 2, 3};
  int returned = 0;
  {
    const Tensor x = borrow(owner.data(), {3}, [&returned] { ++returned; });
    const Tensor y = x + 1;
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{2, 3, 4}));
    EXPECT_EQ(owner, (std::vector<float>{1, 2, 3}));
    const Tensor z = x * 3;
    owner[0] = 100;
    EXPECT_THROW(z.eval(), UserError);
    owner[0] = 1;
    EXPECT_EQ(z.to_vector<float>()[0], 3) << "the next call works";
    EXPECT_EQ(returned, 0);
  }
  EXPECT_EQ(returned, 1);
}

// Where kernels are fused as well.
INSTANTIATE_TEST_SUITE_P(Engines, LazySemantics, ::testing::Values("graph_interpreter", "compiled"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fusejit
