// Plans that are made in the background and take their place: on the driver without a device, with a library whose
// calls launch the steps' kernels.
#include "runtime/process/background.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "runtime/cuda/backend.h"
#include "runtime/session.h"
#include "tests/support/fake_device/fake_caller.h"
#include "tests/support/fake_device/fake_compiler.h"
#include "tests/support/step_arguments.h"

namespace fusejit::runtime {
namespace {

using Strings = std::vector<std::string>;

// Two convolutions: with bias and silu, which only engines compiled at run time do, and with bias and relu.
const char* const kNetwork = R"(graph @net(%x: f32[1,8,6,6]:nhwc, %w: f32[8,8,3,3]:nhwc, %b: f32[8]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f32[1,8,6,6]:nhwc
  %1 = bias_add(%0, %b) : f32[1,8,6,6]:nhwc
  %2 = silu(%1) : f32[1,8,6,6]:nhwc
  %3 = conv2d(%2, %w) {padding=[1,1,1,1]} : f32[1,8,6,6]:nhwc
  %4 = bias_add(%3, %b) : f32[1,8,6,6]:nhwc
  %5 = relu(%4) : f32[1,8,6,6]:nhwc
  return %5
})";

TEST(Background, RunsJobsInOrder) {
  std::vector<int> done;
  Background background;
  for (int i = 0; i < 5; ++i) background.add([&done, i](const std::stop_token&) { done.push_back(i); });
  background.wait();
  EXPECT_EQ(done, (std::vector<int>{0, 1, 2, 3, 4}));
  background.add([&done](const std::stop_token&) { done.push_back(5); });
  background.wait();
  EXPECT_EQ(done.size(), 6u);
}

TEST(Background, StopDropsWhatWaitsAndEndsWhatRuns) {
  std::promise<void> started;
  std::atomic<bool> saw_stop = false, ran = false;
  Background background;
  background.add([&](const std::stop_token& stop) {
    started.set_value();
    while (!stop.stop_requested()) std::this_thread::yield();
    saw_stop = true;
  });
  background.add([&](const std::stop_token&) { ran = true; });
  started.get_future().wait();
  background.stop();
  EXPECT_TRUE(saw_stop);
  background.add([&](const std::stop_token&) { ran = true; });
  background.wait();
  EXPECT_FALSE(ran);
  background.stop();
}

class BackgroundPlans : public ::testing::Test {
 protected:
  BackgroundPlans() {
    open();
    Session reference({.target = Target::parse("cuda:sm_90"), .engine = Engine::kernel_interpreter, .threads = 1});
    expected_ = reference.run(graph_, arguments_);
  }
  // Everything anew: nothing is compiled.
  void open() {
    backend_.reset(), caller_.reset(), device_.reset();
    device_ = cuda::CudaDevice::open(fake_.table(), 0);
    device_->memory().poison_freed(true);
    CudaBackendOptions options;
    options.numerics.tf32 = true;  // f32 convolutions are calls, too
    options.compile = test::fake_compiler(fake_);
    options.caller = caller_ = std::make_shared<test::FakeCaller>(device_, options.compile);
    backend_ = std::make_shared<CudaBackend>(device_, options);
  }
  SessionOptions options(bool in_background) const {
    SessionOptions options;
    options.target = Target::parse("cuda:sm_90,cudnn=2");
    options.threads = 1;
    options.backend = backend_;
    options.compile_in_background = in_background;
    return options;
  }
  void expect_right(Session& session, const std::string& when) {
    const std::vector<Buffer> results = session.run(graph_, arguments_);
    EXPECT_LT(test::largest_difference(results[0], expected_[0]), 1e-5) << when;  // plans sum in orders of their own
  }
  static std::size_t steps(Session& session, const ir::Graph& graph) { return session.plan(graph)->steps.size(); }
  // Everything that a test made is gone, and nothing was used wrongly.
  void TearDown() override {
    backend_.reset(), caller_.reset(), device_.reset();
    EXPECT_EQ(fake_.problems(), Strings());
    EXPECT_EQ(fake_.leaks(), Strings());
  }

  test::FakeDriver fake_;
  std::shared_ptr<cuda::CudaDevice> device_;
  std::shared_ptr<test::FakeCaller> caller_;
  std::shared_ptr<CudaBackend> backend_;
  const ir::Graph graph_ = ir::parse_graph(kNetwork);
  const std::vector<Buffer> arguments_ = test::drawn_arguments(graph_, 7);
  std::vector<Buffer> expected_;
};

TEST_F(BackgroundPlans, InTheForegroundTheBestPlanIsTheFirst) {
  Session session(options(false));
  expect_right(session, "at once");
  EXPECT_EQ(steps(session, graph_), 2u) << "silu is in the call";
  EXPECT_EQ(session.statistics().background_plans, 0);
  for (const std::string& asked : caller_->asked()) EXPECT_EQ(asked[0], '2') << asked;
}

TEST_F(BackgroundPlans, ThePlanAtHandRunsUntilTheBetterOneIsThere) {
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  caller_->before = [gone](const scheduler::PlanStep&, CudnnMode cudnn) {
    if (cudnn == CudnnMode::compiled) gone.wait();
    return std::string();
  };
  Session session(options(true));
  for (int run = 0; run < 4; ++run) expect_right(session, "before");  // launched, captured, replayed
  EXPECT_EQ(steps(session, graph_), 3u) << "silu is a kernel";
  EXPECT_EQ(session.statistics().background_plans, 0);
  go.set_value();
  session.finish_background();
  EXPECT_EQ(session.statistics().background_plans, 1);
  EXPECT_EQ(steps(session, graph_), 2u);
  for (int run = 0; run < 4; ++run) expect_right(session, "after");
  EXPECT_EQ(session.statistics().plans_made, 1);
  EXPECT_EQ(session.statistics().last_run.kernels, 2);
}

TEST_F(BackgroundPlans, APlanThatIsTheSameTakesNoPlace) {
  caller_->before = [](const scheduler::PlanStep& step, CudnnMode) {
    return step.library->graph.results()[0]->op == ir::Op::mul ? "no engine compiles" : "";
  };
  Session session(options(true));
  expect_right(session, "before");
  session.finish_background();
  expect_right(session, "after");
  EXPECT_EQ(session.statistics().background_plans, 0);
  EXPECT_EQ(session.statistics().background_failures, 0);
  EXPECT_EQ(steps(session, graph_), 3u);
  EXPECT_EQ(backend_->refusals(), Strings{"no engine compiles"});
}

TEST_F(BackgroundPlans, WhatIsRefusedIsPlannedWithout) {
  caller_->before = [](const scheduler::PlanStep& step, CudnnMode) {
    return step.library->graph.nodes().size() > 1 ? "not today" : "";
  };
  Session session(options(false));
  expect_right(session, "with plain convolutions");
  const auto plan = session.plan(graph_);
  EXPECT_EQ(plan->steps.size(), 4u) << scheduler::print_outline(*plan);
  bool said = false;
  for (const scheduler::Refusal& refusal : plan->refusals)
    said |= refusal.sentence.find("not today") != std::string::npos;
  EXPECT_TRUE(said) << "the reason is with the pair that was not fused";
}

TEST_F(BackgroundPlans, WithoutALibraryFusedKernelsStay) {
  caller_->nothing = "there is no library";
  Session session(options(false));
  expect_right(session, "by kernels");
  EXPECT_EQ(steps(session, graph_), 2u);
  EXPECT_EQ(caller_->asked(), Strings());
  EXPECT_EQ(backend_->refusals(), Strings{"there is no library"});
}

TEST_F(BackgroundPlans, AnErrorKeepsTheFirstPlan) {
  caller_->before = [](const scheduler::PlanStep&, CudnnMode cudnn) -> std::string {
    if (cudnn == CudnnMode::compiled) throw DeviceError("cuDNN: it broke");
    return "";
  };
  Session session(options(true));
  expect_right(session, "before");
  session.finish_background();
  EXPECT_EQ(session.statistics().background_plans, 0);
  EXPECT_EQ(session.statistics().background_failures, 1);
  EXPECT_EQ(session.statistics().why_no_background_plan, "cuDNN: it broke");
  expect_right(session, "after");
  EXPECT_EQ(steps(session, graph_), 3u);
}

// Any call of the driver may fail while the better plan is made.
TEST_F(BackgroundPlans, AnyCallOfTheDriverMayFail) {
  int failures = 0;
  for (std::int64_t k = 1;; ++k) {
    open();
    Session session(options(true));
    std::promise<void> go;
    std::shared_future<void> gone = go.get_future().share();
    caller_->before = [gone](const scheduler::PlanStep&, CudnnMode cudnn) {
      if (cudnn == CudnnMode::compiled) gone.wait();
      return std::string();
    };
    expect_right(session, "before");
    fake_.fail_call(k, 999);
    go.set_value();
    session.finish_background();
    const bool failed = fake_.failed();
    fake_.fail_nothing();
    const SessionStatistics statistics = session.statistics();
    EXPECT_LE(statistics.background_plans + statistics.background_failures, 1);
    expect_right(session, fmt::format("after call {} ({}) failed", k, fake_.failed_symbol()));
    failures += statistics.background_failures > 0;
    if (!failed) break;
    ASSERT_LT(k, 200);
  }
  EXPECT_GT(failures, 0);
}

TEST_F(BackgroundPlans, ASessionMayEndWhileAPlanIsMade) {
  for (const int which : {0, 1, 2}) {
    std::promise<void> started;
    std::atomic<int> left = which + 1;
    caller_->before = [&](const scheduler::PlanStep&, CudnnMode cudnn) {
      if (cudnn == CudnnMode::compiled && --left == 0) {
        started.set_value();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      return std::string();
    };
    Session session(options(true));
    expect_right(session, "before");
    if (which < 2) started.get_future().wait();
    // It ends here: before anything is made, in the first call, in the last.
  }
}

TEST_F(BackgroundPlans, StoppedPlansStay) {
  std::promise<void> started;
  caller_->before = [&](const scheduler::PlanStep&, CudnnMode cudnn) {
    if (cudnn == CudnnMode::compiled) {
      started.set_value();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return std::string();
  };
  Session session(options(true));
  expect_right(session, "before");
  started.get_future().wait();
  session.stop_background();
  EXPECT_EQ(session.statistics().background_plans + session.statistics().background_failures, 0);
  expect_right(session, "after");
  EXPECT_EQ(steps(session, graph_), 3u);
}

TEST_F(BackgroundPlans, TwoThreadsRunWhileAPlanTakesItsPlace) {
  Session session(options(true));
  std::vector<std::thread> threads;
  std::atomic<int> runs = 0;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int run = 0; run < 12; ++run, ++runs) expect_right(session, fmt::format("run {}", run));
    });
  }
  for (std::thread& thread : threads) thread.join();
  session.finish_background();
  EXPECT_EQ(session.statistics().background_plans, 1);
  expect_right(session, "after");
}

}  // namespace
}  // namespace fusejit::runtime
