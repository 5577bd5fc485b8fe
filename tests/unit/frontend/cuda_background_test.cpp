// Engines that are compiled in the background, as a program with tensors sees it.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "frontend/evaluation/engine.h"
#include "fusejit/fusejit.h"
#include "runtime/session.h"
#include "tests/support/fake_device/fake_caller.h"
#include "tests/support/fake_device/fake_compiler.h"
#include "tests/support/fake_device/fake_gpu.h"

namespace fusejit {
namespace {

struct Background {
  test::FakeDriver driver;
  std::shared_ptr<test::FakeCaller> caller;

  Background() {
    set_options({.threads = 1, .cudnn = "compiled", .compile = "background"});  // the machine's own devices
    const auto device = runtime::cuda::CudaDevice::open(driver.table(), 0);
    runtime::CudaBackendOptions options;
    options.numerics.tf32 = true;  // f32 convolutions are calls, too
    options.compile = test::fake_compiler(driver);
    options.caller = caller = std::make_shared<test::FakeCaller>(device, options.compile);
    runtime::SessionOptions session;
    session.target = Target::parse("cuda:sm_90,cudnn=2");
    session.threads = 1;
    session.compile_in_background = true;
    session.backend = std::make_shared<runtime::CudaBackend>(device, options);
    set_session(session);
  }
  ~Background() { set_options({}); }
};

std::vector<float> network() {
  manual_seed(3);
  const Device cuda("cuda:0");
  const Tensor x = rand({1, 8, 6, 6}).to(cuda), w = rand({8, 8, 3, 3}).to(cuda), b = rand({8}).to(cuda);
  return conv2d(silu(conv2d(x, w, b)), w).to_vector<float>();
}

class CudaBackground : public ::testing::Test {
 protected:
  void SetUp() override {
#ifndef FUSEJIT_X86
    GTEST_SKIP() << "this build runs nothing on the processor";
#endif
  }
};

TEST_F(CudaBackground, ThePlanTakesItsPlaceWhenItIsReady) {
  Background background;
  const std::vector<float> before = network();
  finish_compiling();
  EXPECT_EQ(stats().background_plans, 1 + 3) << "the device's, and those of the three draws on the cpu";
  EXPECT_EQ(stats().background_failures, 0);
  const std::int64_t kernels = stats().last_plan.kernels;
  const std::vector<float> after = network();
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(after[i], before[i], 1e-4f * std::abs(before[i]));
  EXPECT_EQ(stats().last_plan.kernels, kernels - 1) << "silu is in the call";
}

// A static object of a library that an engine is compiled with.
struct Static {
  std::atomic<bool> gone = false;
  ~Static() {
    gone = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // for whoever still uses it
  }
};

void end_while_compiling() {
  static auto* const background = new Background;  // as a program has it: never given back
  static Static object;
  background->caller->before = [](const scheduler::PlanStep&, CudnnMode cudnn) {
    if (cudnn == CudnnMode::compiled) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (object.gone) _exit(3);
    }
    return std::string();
  };
  network();
  exit(0);
}

TEST_F(CudaBackground, TheEndOfTheProcessWaitsForTheEngine) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(end_while_compiling(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace fusejit
