// What a device refuses, and the driver without one must refuse too: each rule broken once, so that it is seen.
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "runtime/cuda/device.h"
#include "runtime/cuda/driver/graph.h"
#include "tests/support/fake_device/fake_kernels.h"

namespace fusejit::runtime::cuda {
namespace {

using test::FakeDriver;
using Strings = std::vector<std::string>;

// A device, a stream of it, a module with a kernel of one pointer to 512 bytes and one with much shared memory.
class DriverRules : public ::testing::Test {
 protected:
  DriverRules() {
    test::FakeKernel kernel;
    kernel.pointers = {{512, 16}};
    fake_.define("plain", kernel);
    kernel.grid = {4, 1, 1};
    fake_.define("of_four_blocks", kernel);
    kernel.grid = {};
    kernel.shared_bytes = 64 << 10;
    fake_.define("shared", kernel);
    call(d_.module_load_data, &module_, test::kFakeImage.c_str());
    for (const auto& [name, function] :
         {std::pair("plain", &plain_), {"of_four_blocks", &of_four_blocks_}, {"shared", &shared_}}) {
      call(d_.module_get_function, function, module_, name);
    }
    call(d_.memory_allocate, &memory_, 512u);
  }
  ~DriverRules() override {
    context_.release(d_.stream_synchronize, stream_.get());
    if (memory_) context_.release(d_.memory_free, memory_);
    if (module_) context_.release(d_.module_unload, module_);
  }
  template <typename... A>
  CuResult call(A... arguments) {
    return context_.ask(arguments...);
  }
  CuResult launch(CuFunction function, unsigned gx = 1, unsigned gy = 1, unsigned bx = 32, unsigned shared = 0,
                  CuStream stream = nullptr) {
    void* arguments[] = {&memory_};
    return call(d_.launch_kernel, function, gx, gy, 1u, bx, 1u, 1u, shared, stream ? stream : stream_.get(), arguments,
                nullptr);
  }
  // The sentence that the driver has for what was done; "" if none. All work is done first.
  std::string problem() {
    context_.release(d_.stream_synchronize, stream_.get());
    return fake_.problems().empty() ? "" : fake_.problems()[0];
  }
  void expect_problem(const std::string& part) { EXPECT_NE(problem().find(part), std::string::npos) << problem(); }

  FakeDriver fake_{{.devices = 2}};
  DeviceContext context_{fake_.table(), 0};
  const Driver& d_ = context_.driver();
  Stream stream_{context_};
  CuModule module_ = nullptr;
  CuFunction plain_ = nullptr, of_four_blocks_ = nullptr, shared_ = nullptr;
  CuPointer memory_ = 0;
};

TEST_F(DriverRules, RightUseHasNoProblem) {
  EXPECT_EQ(launch(plain_), kSuccess);
  EXPECT_EQ(launch(of_four_blocks_, 4), kSuccess);
  EXPECT_EQ(call(d_.function_set_attribute, shared_, int{kFunctionMaxDynamicSharedBytes}, 64 << 10), kSuccess);
  EXPECT_EQ(launch(shared_, 1, 1, 32, 64 << 10), kSuccess);
  EXPECT_EQ(problem(), "");
}

TEST_F(DriverRules, WhatAKernelWritesItReachesByOnePointer) {
  test::FakeKernel kernel;
  kernel.pointers = {{256, 16}, {256, 16, true}, {256, 16}};
  fake_.define("three", kernel);
  CuFunction three = nullptr;
  call(d_.module_get_function, &three, module_, "three");
  const auto launch_at = [&](CuPointer read, CuPointer written, CuPointer read_too) {
    void* arguments[] = {&read, &written, &read_too};
    return call(d_.launch_kernel, three, 1u, 1u, 1u, 32u, 1u, 1u, 0u, stream_.get(), arguments, nullptr);
  };
  EXPECT_EQ(launch_at(memory_, memory_ + 256, memory_), kSuccess);
  EXPECT_EQ(problem(), "");
  EXPECT_NE(launch_at(memory_, memory_ + 256, memory_ + 16), kSuccess);
  expect_problem("pointer 1 is written and overlaps pointer 2");
}

TEST_F(DriverRules, MemoryStaysUntilWorkIsDone) {
  launch(plain_);
  call(d_.memory_free, std::exchange(memory_, 0));
  expect_problem("not in device memory that is alive");
}

TEST_F(DriverRules, PinnedMemoryStaysUntilWorkIsDone) {
  void* pinned = nullptr;
  call(d_.host_allocate, &pinned, 512u, kHostAllocPortable);
  call(d_.copy_to_device, memory_, pinned, 512u, stream_.get());
  call(d_.host_free, pinned);
  expect_problem("not in pinned memory that is alive");
}

TEST_F(DriverRules, ModulesStayUntilWorkIsDone) {
  launch(plain_);
  call(d_.module_unload, std::exchange(module_, nullptr));
  expect_problem("module is not loaded any more");
}

TEST_F(DriverRules, WorkOfAStreamThatIsDestroyedGoesOn) {
  {
    const Stream other(context_);
    launch(plain_, 1, 1, 32, 0, other.get());
  }
  EXPECT_EQ(fake_.launches().size(), 0u);
  call(d_.memory_free, std::exchange(memory_, 0));
  call(d_.memory_allocate, &memory_, 4096u);
  context_.release(d_.module_unload, std::exchange(module_, nullptr));
  context_.release(d_.memory_free, std::exchange(memory_, 0));
  { const DeviceContext second(fake_.table(), 1); }  // the end of a context shows what is left
  EXPECT_FALSE(fake_.problems().empty());
}

TEST_F(DriverRules, ExtentsAndSharedMemoryHaveLimits) {
  const struct {
    std::function<CuResult()> launched;
    const char* sentence;
  } cases[] = {
      {[&] { return launch(plain_, 0); }, "no device has a grid of 0x1x1"},
      {[&] { return launch(plain_, 1, 65536); }, "no device has a grid of 1x65536x1"},
      {[&] { return launch(plain_, 0x80000000u); }, "no device has a grid of 2147483648x1x1"},
      {[&] { return launch(plain_, 1, 1, 1056); }, "blocks of 1056 threads"},
      {[&] { return launch(of_four_blocks_, 5); }, "other extents than it was compiled for"},
      {[&] { return launch(shared_, 1, 1, 32, 64 << 10); }, "65536 wanted, 49152 allowed"},
  };
  for (const auto& c : cases) {
    const std::size_t before = fake_.problems().size();
    EXPECT_NE(c.launched(), kSuccess) << c.sentence;
    ASSERT_EQ(fake_.problems().size(), before + 1) << c.sentence;
    EXPECT_NE(fake_.problems().back().find(c.sentence), std::string::npos) << fake_.problems().back();
  }
}

TEST_F(DriverRules, ANodeIsLaunchedAsItIsSet) {
  Capture capture(context_);
  launch(of_four_blocks_, 4, 1, 32, 0, capture.stream());
  const CuGraphNode node = capture.last_node();
  ExecutableGraph graph(context_, capture.finish());
  void* arguments[] = {&memory_};
  CuKernelNodeParams parameters;
  parameters.function = of_four_blocks_;
  parameters.grid_x = 4, parameters.block_x = 32;
  parameters.arguments = arguments;
  graph.set_kernel(node, parameters);
  EXPECT_EQ(problem(), "");
  parameters.grid_x = 3;
  EXPECT_THROW(graph.set_kernel(node, parameters), DriverError);
  expect_problem("other extents than it was compiled for");
}

TEST_F(DriverRules, AGraphStaysUntilItsWorkIsDone) {
  Capture capture(context_);
  launch(plain_, 1, 1, 32, 0, capture.stream());
  ExecutableGraph first(context_, capture.finish());
  first.launch(stream_.get());
  EXPECT_EQ(problem(), "") << "it was waited for";
  {
    Capture again(context_);
    launch(plain_, 1, 1, 32, 0, again.stream());
    ExecutableGraph second(context_, again.finish());
    second.launch(stream_.get());
  }
  expect_problem("of a graph that is under way");
}

TEST_F(DriverRules, ACaptureForbidsWhatWaits) {
  CuEvent event = nullptr;
  call(d_.event_create, &event, kEventDisableTiming);
  call(d_.event_record, event, stream_.get());
  CuPointer more = 0;
  void* pinned = nullptr;
  call(d_.host_allocate, &pinned, 64u, kHostAllocPortable);
  const std::function<CuResult()> cases[] = {
      [&] { return call(d_.memory_allocate, &more, 512u); },
      [&] { return call(d_.memory_free, memory_); },
      [&] { return call(d_.host_free, pinned); },
      [&] { return call(d_.module_unload, module_); },
      [&] { return call(d_.module_load_data, &module_, test::kFakeImage.c_str()); },
      [&] { return call(d_.stream_synchronize, stream_.get()); },
      [&] { return call(d_.event_synchronize, event); },
      [&] { return call(d_.event_query, event); },
  };
  for (const auto& forbidden : cases) {
    const std::size_t before = fake_.problems().size();
    {
      Capture capture(context_);
      EXPECT_EQ(forbidden(), 900);
      EXPECT_EQ(fake_.problems().size(), before + 1);
      EXPECT_THROW(capture.finish(), DriverError) << "the capture is broken";
    }
  }
  // On another thread all of it is allowed.
  const std::size_t before = fake_.problems().size();
  const Capture capture(context_);
  std::thread([&] {
    EXPECT_EQ(call(d_.memory_allocate, &more, 512u), kSuccess);
    EXPECT_EQ(call(d_.event_synchronize, event), kSuccess);
    EXPECT_EQ(call(d_.memory_free, more), kSuccess);
    CuGraph graph = nullptr;
    EXPECT_EQ(call(d_.stream_end_capture, capture.stream(), &graph), 908) << "but not the end";
  }).join();
  EXPECT_EQ(fake_.problems().size(), before + 1);
  context_.release(d_.event_destroy, event);
  context_.release(d_.host_free, pinned);
}

TEST_F(DriverRules, EventsOfACaptureStayInIt) {
  Event inside(context_), outside(context_);
  outside.record(stream_.get());
  Capture capture(context_);
  EXPECT_THROW(outside.make_wait(capture.stream()), DriverError);
  inside.record(capture.stream());
  EXPECT_THROW(inside.make_wait(stream_.get()), DriverError);
  EXPECT_EQ(fake_.problems().size(), 2u);
}

TEST_F(DriverRules, TimeIsThatOfEventsThatHaveOne) {
  Event untimed(context_), start(context_, true), end(context_, true);
  EXPECT_THROW(end.elapsed_milliseconds(start), DriverError) << "not recorded";
  start.record(stream_.get());
  launch(plain_);
  end.record(stream_.get());
  EXPECT_THROW(end.elapsed_milliseconds(start), DriverError) << "not reached";
  end.synchronize();
  EXPECT_GT(end.elapsed_milliseconds(start), 0);
  untimed.record(stream_.get());
  untimed.synchronize();
  EXPECT_THROW(untimed.elapsed_milliseconds(start), DriverError);
}

TEST_F(DriverRules, HandlesBelongToADevice) {
  DeviceContext other(fake_.table(), 1);
  {
    Stream there(other);
    EXPECT_NE(launch(plain_, 1, 1, 32, 0, there.get()), kSuccess) << "the current context is that of cuda:0";
    EXPECT_NE(fake_.problems()[0].find("on a stream of cuda:1 with cuda:0 current"), std::string::npos);
    void* arguments[] = {&memory_};
    EXPECT_THROW(other.call(d_.launch_kernel, plain_, 1, 1, 1, 32, 1, 1, 0, there.get(), arguments, nullptr),
                 DriverError);
    EXPECT_NE(fake_.problems()[1].find("a function of cuda:0 in work of cuda:1"), std::string::npos);
    EXPECT_THROW(other.call(d_.fill_bytes, memory_, 0, 512, there.get()), DriverError);
    EXPECT_NE(fake_.problems()[2].find("memory of cuda:0 in work of cuda:1"), std::string::npos);
  }
}

TEST_F(DriverRules, StreamsDoNotWaitForTheDefaultStream) {
  CuStream stream = nullptr;
  call(d_.stream_create, &stream, 0u);
  context_.release(d_.stream_destroy, stream);
  expect_problem("waits for the default stream");
}

}  // namespace
}  // namespace fusejit::runtime::cuda
