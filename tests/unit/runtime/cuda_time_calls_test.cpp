// Which of several calls is the fastest, by the events of a driver whose kernels take the time they are said to.
#include <gtest/gtest.h>

#include "fusejit/error.h"
#include "runtime/cuda/driver/module.h"
#include "runtime/cuda/time_calls.h"
#include "tests/support/fake_device/fake_kernels.h"

namespace fusejit::runtime::cuda {
namespace {

using test::FakeDriver;
using Strings = std::vector<std::string>;

class TimedCall final : public LibraryCall {
 public:
  TimedCall(DeviceContext& context, CuFunction function, std::int64_t workspace_bytes)
      : context_(context), function_(function), workspace_bytes_(workspace_bytes) {}
  void execute(CuStream stream, std::span<const CuPointer> pointers, CuPointer workspace) const override {
    ++executed;
    if (fails) throw DeviceError("cudnn: it does not run");
    CuPointer value = pointers[0];
    void* arguments[] = {&value};
    context_.call(context_.driver().fill_bytes, workspace, 7, workspace_bytes_, stream);
    context_.call(context_.driver().launch_kernel, function_, 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr);
  }
  std::int64_t workspace_bytes() const override { return workspace_bytes_; }
  std::string describe() const override { return "takes its time"; }
  mutable int executed = 0;
  bool fails = false;

 private:
  DeviceContext& context_;
  const CuFunction function_;
  const std::int64_t workspace_bytes_;
};

class TimeCalls : public ::testing::Test {
 protected:
  TimeCalls() {
    device_ = CudaDevice::open(fake_.table(), 0);
    device_->memory().poison_freed(true);
    for (const auto& [name, milliseconds] : {std::pair("slow", 3.0f), {"quick", 1.5f}, {"other", 1.5f}}) {
      test::FakeKernel kernel;
      kernel.pointers = {{4000, 16}};
      kernel.milliseconds = milliseconds;
      kernel.run = [this](std::span<void* const> pointers, auto) {
        const auto* bytes = static_cast<const std::byte*>(pointers[0]);
        filled_ &= std::all_of(bytes, bytes + 4000, [](std::byte b) { return b == std::byte{0x3c}; });
      };
      fake_.define(name, kernel);
    }
    DeviceContext& context = device_->context();
    context.call(context.driver().module_load_data, &module_, test::kFakeImage.c_str());
    for (const char* name : {"slow", "quick", "other"}) {
      CuFunction function = nullptr;
      context.call(context.driver().module_get_function, &function, module_, name);
      calls_.push_back(std::make_shared<TimedCall>(context, function, 1000));
    }
  }
  std::size_t fastest_now() {
    const std::vector<std::shared_ptr<const LibraryCall>> calls(calls_.begin(), calls_.end());
    return fastest(*device_, calls, std::vector<std::int64_t>{4000});
  }
  void TearDown() override {
    device_->context().release(device_->context().driver().module_unload, module_);
    device_.reset();
    EXPECT_TRUE(filled_);
    EXPECT_EQ(fake_.problems(), Strings());
    EXPECT_EQ(fake_.leaks(), Strings());
  }

  FakeDriver fake_{{.l2_bytes = 100000}};
  std::shared_ptr<CudaDevice> device_;
  CuModule module_ = nullptr;
  std::vector<std::shared_ptr<TimedCall>> calls_;
  bool filled_ = true;  // with what is a number in every type
};

TEST_F(TimeCalls, TakesTheFirstOfTheFastest) {
  EXPECT_EQ(fastest_now(), 1u);
  std::swap(calls_[0], calls_[2]);
  EXPECT_EQ(fastest_now(), 0u);
  for (const auto& call : calls_) EXPECT_GT(call->executed, 2);
}

// Twice the cache is written before each, and each call here fills its workspace.
TEST_F(TimeCalls, NothingIsLeftInTheCacheOfTheCallBefore) {
  const std::size_t before = fake_.memory_in_use();
  fastest_now();
  std::int64_t executed = 0;
  for (const auto& call : calls_) executed += call->executed;
  EXPECT_EQ(fake_.count("cuMemsetD8Async"), 1 + 2 * executed);
  EXPECT_EQ(fake_.memory_in_use(), before);
}

TEST_F(TimeCalls, WhereTheCacheDoesNotFitIntoMemoryCallsAreTimedAllTheSame) {
  device_->memory().set_limit(100 << 10);
  EXPECT_EQ(fastest_now(), 1u);
}

TEST_F(TimeCalls, WhatFailsIsOut) {
  calls_[1]->fails = true;
  EXPECT_EQ(fastest_now(), 2u);
  EXPECT_EQ(calls_[1]->executed, 1) << "not tried again";
  calls_[0]->fails = calls_[2]->fails = true;
  EXPECT_THROW(fastest_now(), DeviceError);
}

TEST_F(TimeCalls, AnyCallOfTheDriverMayFail) {
  for (std::int64_t k = 1;; ++k) {
    fake_.fail_call(k, kOutOfMemory);
    try {
      EXPECT_LT(fastest_now(), 3u);
    } catch (const DeviceError&) {
    }
    const bool failed = fake_.failed();
    fake_.fail_nothing();
    EXPECT_EQ(fastest_now(), 1u) << "after call " << k;
    if (!failed) break;
    ASSERT_LT(k, 500);
  }
}

TEST_F(TimeCalls, ACallIsTriedOnceWhereThereIsRoom) {
  const std::int64_t size = 4000, huge = std::int64_t{1} << 40;
  const auto why = [&](const std::int64_t& bytes) { return why_it_fails(*device_, *calls_[0], {&bytes, 1}); };
  EXPECT_EQ(why(size), "");
  EXPECT_EQ(calls_[0]->executed, 1);
  EXPECT_EQ(why(huge), "") << "no room is no fault of the call";
  EXPECT_EQ(calls_[0]->executed, 1);
  // The limit holds for it, too; cached blocks make room, memory in use does not.
  DeviceAllocator& memory = device_->memory();
  memory.set_limit(8 << 20);
  const CuPointer block = memory.allocate(8 << 20);
  EXPECT_EQ(why(size), "");
  EXPECT_EQ(calls_[0]->executed, 1);
  memory.deallocate(block);
  calls_[0]->fails = true;
  EXPECT_EQ(why(size), "cudnn: it does not run");
  EXPECT_EQ(calls_[0]->executed, 2);
  EXPECT_EQ(memory.statistics().reserved, 0);
  EXPECT_EQ(fake_.memory_in_use(), 0u) << "what was tried on is given back";
}

TEST_F(TimeCalls, TryingSurvivesTheFailureOfAnyCallOfTheDriver) {
  const std::int64_t size = 4000;
  for (const CuResult code : {kOutOfMemory, 999}) {
    for (std::int64_t k = 1;; ++k) {
      fake_.fail_call(k, code);
      EXPECT_EQ(why_it_fails(*device_, *calls_[0], {&size, 1}), "") << "call " << k;
      if (!fake_.failed()) break;
      ASSERT_LT(k, 200);
    }
    fake_.fail_nothing();
  }
}

}  // namespace
}  // namespace fusejit::runtime::cuda
