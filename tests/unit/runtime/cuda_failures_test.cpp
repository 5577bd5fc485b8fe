// A session on a device whose driver fails, at any call from its opening to the third step: what it says, and what
// works after that.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/cuda/backend.h"
#include "runtime/session.h"
#include "tests/support/fake_device/fake_caller.h"
#include "tests/support/fake_device/fake_compiler.h"
#include "tests/support/step_arguments.h"

namespace fusejit::runtime {
namespace {

using Strings = std::vector<std::string>;

// A step that trains: a call of a library, a sum over blocks, and weights that are replaced in their memory.
const char* const kStep = R"(graph @step(%x: f32[1,8,6,6]:nhwc, %w: f32[8,8,3,3]:nhwc, %b: f32[8], %rate: f32[]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f32[1,8,6,6]:nhwc
  %1 = bias_add(%0, %b) : f32[1,8,6,6]:nhwc
  %2 = relu(%1) : f32[1,8,6,6]:nhwc
  %3 = sum(%2) {dim=[0,1,2,3]} : f32[]
  %4 = mul(%w, %rate) : f32[8,8,3,3]:nhwc
  %5 = sub(%w, %4) : f32[8,8,3,3]:nhwc
  return %3, %5
})";
constexpr bool kDonated[] = {false, true, false, false};

class CudaFailures : public ::testing::Test {
 protected:
  CudaFailures() {
    Session reference({.engine = Engine::graph_interpreter, .threads = 1});
    expected_ = reference.run(graph_, arguments_);
  }
  // Throws DeviceError.
  std::unique_ptr<Session> open(test::FakeDriver& fake) {
    const auto device = cuda::CudaDevice::open(fake.table(), 0);
    device->memory().poison_freed(true);
    CudaBackendOptions options;
    options.numerics.tf32 = true;  // f32 convolutions are calls, too
    options.compile = test::fake_compiler(fake);
    const auto caller = std::make_shared<test::FakeCaller>(device, options.compile);
    caller->stumbles = stumbles_;
    options.caller = caller;
    SessionOptions session;
    session.target = Target::parse("cuda:sm_90,cudnn=1");
    session.threads = 1;
    session.backend = backend_ = std::make_shared<CudaBackend>(device, options);
    return std::make_unique<Session>(session);
  }
  double difference(Session& session) {
    const std::vector<Buffer> results = session.run(graph_, arguments_, kDonated);
    double largest = 0;
    for (std::size_t r = 0; r < results.size(); ++r) {
      largest = std::max(largest, test::largest_difference(results[r], expected_[r]));
    }
    return largest;
  }
  void expect_clean(const test::FakeDriver& fake, const std::string& when) {
    EXPECT_EQ(fake.problems(), Strings()) << when;
    EXPECT_EQ(fake.leaks(), Strings()) << when;
  }

  const ir::Graph graph_ = ir::parse_graph(kStep);
  const std::vector<Buffer> arguments_ = test::drawn_arguments(graph_, 7);
  std::vector<Buffer> expected_;
  std::shared_ptr<CudaBackend> backend_;
  std::function<std::string(const scheduler::PlanStep&)> stumbles_;
};

TEST_F(CudaFailures, AnyCallMayFailOnceOrLoseTheDevice) {
  for (const cuda::CuResult code : {2, 700, 999}) {
    int errors = 0;
    bool reached = true;
    for (std::int64_t k = 1; reached && !HasFailure(); ++k) {
      test::FakeDriver fake;
      fake.fail_call(k, code);
      std::string when;
      {
        std::unique_ptr<Session> session;
        for (int run = 0; run < 4; ++run) {
          try {
            if (!session) session = open(fake);
            EXPECT_LT(difference(*session), 1e-4) << "call " << k << " " << fake.failed_symbol() << ", run " << run;
          } catch (const DeviceError& error) {
            ++errors;
            EXPECT_TRUE(fake.failed()) << error.what();
            EXPECT_NE(std::string(error.what()).find(fmt::format("({})", code)), std::string::npos) << error.what();
          }
        }
        reached = fake.failed();
        if (code != 700) {
          fake.fail_nothing();
          ASSERT_TRUE(session) << "opening it again works";
          EXPECT_LT(difference(*session), 1e-4) << "the session goes on";
        }
        when = fmt::format("call {} ({}) gave {}", k, fake.failed_symbol(), code);
        if (reached && code == 700) {
          EXPECT_THROW(session ? difference(*session) : (open(fake), 0), DeviceError) << when;
          Session cpu({.engine = Engine::graph_interpreter, .threads = 1});
          EXPECT_LT(difference(cpu), 1e-6) << "the CPU works in the same process";
        }
        session.reset(), backend_.reset();
      }
      expect_clean(fake, when);
    }
    EXPECT_GT(errors, 10);
  }
}

TEST_F(CudaFailures, WhatALibraryPlansAndDoesNotRunIsAKernel) {
  for (const bool stumbles : {false, true}) {
    if (stumbles) {
      stumbles_ = [](const scheduler::PlanStep&) {
        return "cuDNN: cudnnBackendExecute failed with 3000 NOT_SUPPORTED";
      };
    }
    test::FakeDriver fake;
    {
      const auto session = open(fake);
      for (int run = 0; run < 3; ++run) EXPECT_LT(difference(*session), 1e-4) << run;
      const Strings refusals = backend_->refusals();
      EXPECT_EQ(refusals.empty(), !stumbles);
      for (const std::string& refusal : refusals) {
        EXPECT_NE(refusal.find(" does not run: cuDNN: cudnnBackendExecute failed with 3000"), std::string::npos)
            << refusal;
      }
      backend_.reset();
    }
    expect_clean(fake, stumbles ? "stumbles" : "runs");
  }
}

// A device that is nearly full: what is cached goes before anything fails.
TEST_F(CudaFailures, AFullDeviceGivesUpWhatIsCached) {
  test::FakeDriver fake({.memory_bytes = 32 << 20, .module_bytes = 4 << 20});
  {
    const auto session = open(fake);
    cuda::DeviceAllocator& memory = backend_->device().memory();
    memory.deallocate(memory.allocate(30 << 20));
    for (int run = 0; run < 3; ++run) EXPECT_LT(difference(*session), 1e-4) << run;
    backend_.reset();
  }
  expect_clean(fake, "full");
}

}  // namespace
}  // namespace fusejit::runtime
