// Plans on a device without a device: numbers, order, graphs, and every call failing in turn.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <thread>

#include "runtime/cuda/executor.h"
#include "runtime/profiler.h"
#include "tests/support/fake_device/fake_kernels.h"

namespace fusejit::runtime::cuda {
namespace {

using scheduler::Plan;
using scheduler::PlanStep;
using scheduler::PlanValue;
using scheduler::Storage;
using test::FakeDriver;
using Strings = std::vector<std::string>;

constexpr std::int64_t kCount = 1000;
constexpr std::int64_t kBytes = kCount * 4;

// A step that trains: t = x · c;  y = t + w, through a library;  loss = sum(y), in two launches with work and counters;
// w becomes w − rate · y, in place.
constexpr const char* kScale =
    R"(kernel @scale(%x: f32[1000] read, %c: f32[] read, %t: f32[1000] write align 64) on any {
  phase { for %i in 0..1000 { %0 = load %x[%i] : f32  %1 = load %c[] : f32  %2 = mul(%0, %1) : f32  store %t[%i], %2 } } })";
constexpr const char* kSum = R"(kernel @sum(%y: f32[1000] read, %l: f32[] write) on any {
  phase { %s = for %i in 0..1000 reduce add : f32 { %0 = load %y[%i] : f32  yield %0 }  store %l[], %s } })";
constexpr const char* kUpdate = R"(kernel @update(%w: f32[1000] update, %y: f32[1000] read, %rate: f32 param) on any {
  phase { for %i in 0..1000 { %0 = load %w[%i] : f32  %1 = load %y[%i] : f32  %2 = mul(%rate, %1) : f32
    %3 = sub(%0, %2) : f32  store %w[%i], %3 } } })";
constexpr const char* kAdd = R"(kernel @add(%t: f32[1000] read, %w: f32[1000] read, %y: f32[1000] write) on any {
  phase { for %i in 0..1000 { %0 = load %t[%i] : f32  %1 = load %w[%i] : f32  %2 = add(%0, %1) : f32  store %y[%i], %2 } } })";

// The library's part of the step: a kernel that the executor does not know of.
class AddCall : public LibraryCall {
 public:
  AddCall(DeviceContext& context, const LoadedKernel& kernel) : context_(context), kernel_(kernel) {}
  void execute(CuStream stream, std::span<const CuPointer> pointers, CuPointer workspace) const override {
    ++executed;
    if (fails_in_capture) {
      int status = 0;
      context_.call(context_.driver().stream_get_capture_info, stream, &status, nullptr, nullptr, nullptr, nullptr);
      if (status == kCaptureStatusActive) throw DeviceError("cudnn: this engine cannot be captured");
    }
    std::vector<CuPointer> copies(pointers.begin(), pointers.end());
    std::vector<void*> arguments;
    for (CuPointer& copy : copies) arguments.push_back(&copy);
    this->workspace = workspace;
    if (wants_workspace) context_.call(context_.driver().fill_bytes, workspace, 7, workspace_bytes(), stream);
    context_.call(context_.driver().launch_kernel, kernel_.launches[0].function, 4, 1, 1, 256, 1, 1, 0, stream,
                  arguments.data(), nullptr);
    if (leaves_current) leaves_current->enter();
  }
  std::int64_t workspace_bytes() const override { return wants_workspace ? 3000 : 0; }
  std::string describe() const override { return "adds"; }
  mutable int executed = 0;
  mutable CuPointer workspace = 0;
  bool wants_workspace = true;
  DeviceContext* leaves_current = nullptr;  // as libraries do that go from device to device
  bool fails_in_capture = false;

 private:
  DeviceContext& context_;
  const LoadedKernel kernel_;
};

std::shared_ptr<const Plan> plan_of_step() {
  auto plan = std::make_shared<Plan>();
  const auto value = [&](const char* label, std::int64_t bytes, Storage storage, int index, std::int64_t offset = -1) {
    plan->values.push_back({DType::f32, bytes, label, storage, index, offset, {}, 0, 3});
  };
  value("%x", kBytes, Storage::argument, 0);
  value("%w", kBytes, Storage::donated, 1);
  value("%c", 4, Storage::constant, -1);
  value("%t", kBytes, Storage::arena, -1, 0);
  value("%y", kBytes, Storage::arena, -1, 4096);
  value("%loss", 4, Storage::result, 0);
  plan->values[2].data.resize(4);
  const float two = 2;
  std::memcpy(plan->values[2].data.data(), &two, 4);
  const auto step = [&](std::vector<int> values, std::int64_t work_bytes = 0, std::int64_t work_offset = -1) {
    PlanStep made;
    made.name = "step" + std::to_string(plan->steps.size());
    made.values = std::move(values);
    made.work_bytes = work_bytes;
    made.work_offset = work_offset;
    plan->steps.push_back(made);
  };
  step({0, 2, 3});
  step({3, 1, 4});
  step({4, 5}, 512, 8192);
  step({1, 4});
  plan->parameters = {0, 1};
  plan->results = {5, 1};
  plan->arena_bytes = 8192 + 512;
  return plan;
}

struct Step {
  explicit Step(FakeDriver& fake, int ordinal = 0) : fake(fake) {
    device = CudaDevice::open(fake.table(), ordinal);
    device->memory().poison_freed(true);
    const auto module = std::make_shared<Module>(device->context(), test::kFakeImage);
    const auto load = [&](const char* text, int launches = 1, std::int64_t work = 0, std::int64_t counters = 0) {
      const auto kernel = std::make_shared<const ir::Kernel>(ir::parse_kernel(text));
      const codegen::cuda::CudaSource source = test::described(*kernel, launches, work, counters);
      define_kernel(this->fake, kernel, source);
      return std::make_shared<const LoadedKernel>(load_kernel(device->context(), module, source));
    };
    library = std::make_shared<AddCall>(device->context(), *load(kAdd));
    steps = {load(kScale), library, load(kSum, 2, 512, 16), load(kUpdate)};
    make_executor();
    weights = device->upload(filled(1));
    expected_weights = 1;
  }

  void make_executor() { executor.emplace(device, plan_of_step(), steps); }

  static Type floats(std::int64_t count) { return Type{DType::f32, Shape{count}}; }
  static Buffer filled(float value) {
    Buffer buffer = Buffer::allocate(floats(kCount));
    std::fill_n(static_cast<float*>(buffer.data()), kCount, value);
    return buffer;
  }

  // One step on x = `x`. Returns whether the loss is what it must be.
  bool run(float x, float rate = 0.5f) {
    const Buffer argument = device->upload(filled(x));
    Buffer loss = device->allocate(Type{DType::f32, Shape{}});
    std::uint32_t bits;
    std::memcpy(&bits, &rate, 4);
    const std::vector<std::uint64_t> scalars = {bits};
    const std::vector<Buffer> arguments = {argument, weights};
    const std::vector<Buffer> results = {loss, weights};
    executor->run(arguments, results, scalars);
    const float y = 2 * x + expected_weights;
    expected_weights -= rate * y;
    last_argument = argument;  // as a program that keeps its last batch and loss
    last_loss = loss;
    return *static_cast<float*>(device->download(loss).data()) == y * kCount;
  }
  bool weights_are_right() {
    const Buffer host = device->download(weights);
    const auto* values = static_cast<const float*>(host.data());
    return std::all_of(values, values + kCount, [&](float v) { return v == expected_weights; });
  }

  FakeDriver& fake;
  std::shared_ptr<CudaDevice> device;
  std::shared_ptr<AddCall> library;
  std::vector<CudaStep> steps;
  std::optional<CudaExecutor> executor;
  Buffer weights, last_argument, last_loss;
  float expected_weights = 0;
};

TEST(CudaExecutor, RunsStepsInOrder) {
  FakeDriver fake;
  {
    Step step(fake);
    step.executor->use_graphs(false);
    EXPECT_TRUE(step.run(3));
    EXPECT_TRUE(step.run(4));
    EXPECT_TRUE(step.weights_are_right());
    const ExecutorStatistics statistics = step.executor->statistics();
    EXPECT_EQ(statistics.kernel_launches, 4);
    EXPECT_EQ(statistics.library_calls, 1);
    EXPECT_EQ(statistics.captures, 0);
    Strings entries;
    for (const test::FakeLaunch& launch : fake.launches()) entries.push_back(launch.entry);
    EXPECT_EQ(entries,
              (Strings{"scale", "add", "sum_0", "sum_1", "update", "scale", "add", "sum_0", "sum_1", "update"}));
    EXPECT_EQ(fake.count("cuStreamSynchronize"), 0) << "a run does not wait";
  }
  EXPECT_EQ(fake.problems(), Strings());
  EXPECT_EQ(fake.leaks(), Strings());
}

TEST(CudaExecutor, ReplaysAGraphFromTheSecondEqualRun) {
  FakeDriver fake;
  {
    Step step(fake);
    for (int run = 0; run < 6; ++run) {
      EXPECT_TRUE(step.run(static_cast<float>(run), run < 4 ? 0.5f : 0.25f)) << run;
      EXPECT_TRUE(step.weights_are_right()) << run;
    }
    const ExecutorStatistics statistics = step.executor->statistics();
    EXPECT_EQ(statistics.runs, 6);
    EXPECT_EQ(statistics.captures, 1);
    EXPECT_EQ(statistics.graph_launches, 5);
    EXPECT_EQ(statistics.why_no_graph, "");
    EXPECT_EQ(step.library->executed, 2) << "once in the first run, once for the graph";
    EXPECT_GT(statistics.nodes_updated, 0) << "batch and loss take turns, the rate changed";
    EXPECT_EQ(static_cast<std::size_t>(statistics.nodes_updated), fake.graph_updates());
    EXPECT_TRUE(fake.launches().back().from_graph);
  }
  EXPECT_EQ(fake.problems(), Strings());
  EXPECT_EQ(fake.leaks(), Strings());
}

// A step is a launch of the profile, whatever it is made of; before and after, runs are graphs.
TEST(CudaExecutor, ToldStepByStepWhileAProfileIsTaken) {
  FakeDriver fake;
  {
    Step step(fake);
    for (int run = 0; run < 3; ++run) EXPECT_TRUE(step.run(1));
    const std::int64_t graphs = step.executor->statistics().graph_launches;
    EXPECT_EQ(graphs, 2);
    fake.set_milliseconds("scale", 3), fake.set_milliseconds("add", 0.5f), fake.set_milliseconds("sum_0", 1),
        fake.set_milliseconds("sum_1", 0.25f), fake.set_milliseconds("update", 2);
    Profiler& profiler = Profiler::the();
    const std::int64_t began = profiler.start();
    EXPECT_TRUE(step.run(2));
    const std::vector<ProfileEvent> events = profiler.events_since(0);
    const std::int64_t now = Profiler::now();
    profiler.stop();
    EXPECT_EQ(step.executor->statistics().graph_launches, graphs);
    ASSERT_EQ(events.size(), 4u);
    const double milliseconds[] = {3, 0.5, 1.25, 2};
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(std::string(events[i].category), "launch");
      EXPECT_EQ(events[i].name, "step" + std::to_string(i));
      EXPECT_NEAR(static_cast<double>(events[i].end - events[i].begin), milliseconds[i] * 1e6, 10) << i;
      EXPECT_TRUE(events[i].on_device);
      EXPECT_GT(events[i].live_bytes, 0);
      if (i > 0) {
        EXPECT_EQ(events[i].begin, events[i - 1].end);
      }
    }
    EXPECT_GT(events[3].end, began);
    EXPECT_LE(events[3].end, now);
    EXPECT_TRUE(step.weights_are_right());
    EXPECT_TRUE(step.run(1));
    EXPECT_EQ(step.executor->statistics().graph_launches, graphs + 1);
    EXPECT_TRUE(step.weights_are_right());
  }
  EXPECT_EQ(fake.problems(), Strings());
  EXPECT_EQ(fake.leaks(), Strings());
}

TEST(CudaExecutor, CapturesAnewWhereALibrarySeesOtherAddresses) {
  FakeDriver fake;
  {
    Step step(fake);
    for (int run = 0; run < 3; ++run) EXPECT_TRUE(step.run(1));
    EXPECT_EQ(step.executor->statistics().captures, 1);
    const Buffer before = step.weights;  // kept, so that the new one is elsewhere
    for (int turn = 0; turn < 6; ++turn) {
      step.weights = step.device->upload(Step::filled(5));
      step.expected_weights = 5;
      EXPECT_TRUE(step.run(2));  // addresses not seen before, or seen in a turn before
      EXPECT_TRUE(step.run(2));
      EXPECT_TRUE(step.weights_are_right());
    }
    EXPECT_GE(step.executor->statistics().captures, 2);
  }
  EXPECT_EQ(fake.problems(), Strings());
  EXPECT_EQ(fake.leaks(), Strings());
}

TEST(CudaExecutor, RunsStepByStepWhereALibraryCannotBeCaptured) {
  FakeDriver fake;
  {
    Step step(fake);
    step.library->fails_in_capture = true;
    for (int run = 0; run < 4; ++run) EXPECT_TRUE(step.run(1)) << run;
    EXPECT_EQ(step.executor->statistics().why_no_graph, "cudnn: this engine cannot be captured");
    EXPECT_EQ(step.executor->statistics().captures, 0);
  }
  EXPECT_EQ(fake.problems(), Strings());
  EXPECT_EQ(fake.leaks(), Strings());
}

TEST(CudaExecutor, SaysWhichKernelWasRefused) {
  FakeDriver fake;
  Step step(fake);
  step.executor->use_graphs(false);
  const std::int64_t before = fake.calls();
  EXPECT_TRUE(step.run(1));
  const std::int64_t calls = fake.calls() - before;
  bool seen = false;
  for (std::int64_t k = 1; k <= calls; ++k) {
    fake.fail_call(k, 701);
    try {
      step.run(1);
    } catch (const DeviceError& error) {
      const std::string_view what = error.what();
      if (!what.starts_with("cuLaunchKernel of sum_1 for step2: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701)")) continue;
      EXPECT_TRUE(what.ends_with("; the step had begun: load the values again that it replaces")) << what;
      seen = true;
    }
  }
  EXPECT_TRUE(seen);
}

TEST(CudaExecutor, ABrokenKernelLosesTheDeviceAndNothingElse) {
  FakeDriver fake;
  {
    Step step(fake);
    EXPECT_TRUE(step.run(1));
    fake.break_next_kernel(700);
    try {
      step.run(1);
      FAIL();
    } catch (const DeviceError& error) {
      EXPECT_NE(std::string(error.what()).find("CUDA_ERROR_ILLEGAL_ADDRESS (700)"), std::string::npos) << error.what();
    }
    EXPECT_THROW(step.run(1), DeviceError);
    EXPECT_EQ(*static_cast<float*>(Step::filled(3).data()), 3) << "the CPU goes on";
  }
  EXPECT_EQ(fake.problems(), Strings());
  EXPECT_EQ(fake.leaks(), Strings());
}

// The full device is made room on: for a graph, as for everything that is not the allocator's.
TEST(CudaExecutor, FullDevicesGiveCachedBlocksUpForAGraph) {
  for (const char* call : {"cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuStreamCreate"}) {
    bool seen = false;
    for (std::int64_t k = 1; !seen && k < 1000; ++k) {
      FakeDriver fake;
      Step step(fake);
      EXPECT_TRUE(step.run(1));
      fake.fail_call(k, kOutOfMemory);
      bool right = false;
      try {
        right = step.run(1);
      } catch (const DeviceError&) {
      }
      ASSERT_TRUE(fake.failed()) << call;
      if (fake.failed_symbol() != call) continue;
      EXPECT_TRUE(right) << call;
      seen = true;
      EXPECT_EQ(step.executor->statistics().why_no_graph, "") << call;
      EXPECT_EQ(step.executor->statistics().graph_launches, 1) << call;
    }
    EXPECT_TRUE(seen) << call;
  }
}

TEST(CudaExecutor, DevicesTakeTurnsOnAnyThread) {
  FakeDriver fake({.devices = 2});
  {
    Step first(fake, 0), second(fake, 1);
    first.library->leaves_current = &second.device->context();
    for (int run = 0; run < 4; ++run) {
      EXPECT_TRUE(first.run(1)) << run;
      EXPECT_TRUE(second.run(2)) << run;
      std::thread([&] {
        EXPECT_TRUE(second.run(3)) << run;
        EXPECT_TRUE(first.run(4)) << run;
      }).join();
    }
    EXPECT_EQ(first.executor->statistics().captures, 1);
    EXPECT_EQ(second.executor->statistics().captures, 1);
    EXPECT_TRUE(first.weights_are_right() && second.weights_are_right());
  }
  EXPECT_EQ(fake.problems(), Strings());
  EXPECT_EQ(fake.leaks(), Strings());
}

TEST(CudaExecutor, MayGoWhileItsWorkIsUnderWay) {
  for (const int runs : {1, 2}) {  // launched, and as a graph
    FakeDriver fake;
    {
      Step step(fake);
      const Buffer x = step.device->upload(Step::filled(1)), loss = step.device->allocate(Type{DType::f32, Shape{}});
      const std::vector<Buffer> arguments = {x, step.weights}, results = {loss, step.weights};
      for (int run = 0; run < runs; ++run) step.executor->run(arguments, results, std::vector<std::uint64_t>{0});
      step.executor.reset();
      step.steps.clear(), step.library.reset();  // with them the module
      EXPECT_EQ(*static_cast<float*>(step.device->download(loss).data()), 3 * kCount);
    }
    EXPECT_EQ(fake.problems(), Strings()) << runs;
    EXPECT_EQ(fake.leaks(), Strings()) << runs;
  }
}

// More addresses than graphs are kept for, without a wait in between.
TEST(CudaExecutor, GraphsGoWhenTheirWorkIsDone) {
  FakeDriver fake;
  {
    Step step(fake);
    const Buffer x = step.device->upload(Step::filled(1)), loss = step.device->allocate(Type{DType::f32, Shape{}});
    std::vector<Buffer> weights;
    for (int i = 0; i < 7; ++i) weights.push_back(step.device->upload(Step::filled(static_cast<float>(i))));
    for (const Buffer& w : weights) {
      for (int run = 0; run < 3; ++run) {
        step.executor->run(std::vector<Buffer>{x, w}, std::vector<Buffer>{loss, w}, std::vector<std::uint64_t>{0});
      }
    }
    EXPECT_EQ(step.executor->statistics().captures, 7);
    EXPECT_EQ(step.executor->statistics().graph_launches, 14);
    EXPECT_EQ(*static_cast<float*>(step.device->download(loss).data()), 8 * kCount);
  }
  EXPECT_EQ(fake.problems(), Strings());
  EXPECT_EQ(fake.leaks(), Strings());
}

TEST(CudaExecutor, ALibraryHasAWorkspaceThatAsksForNone) {
  FakeDriver fake;
  Step step(fake);
  step.library->wants_workspace = false;
  step.make_executor();
  EXPECT_TRUE(step.run(1));
  EXPECT_NE(step.library->workspace, 0u);
  EXPECT_EQ(step.library->workspace % 256, 0u);
  step.device->context().call(step.device->context().driver().fill_bytes, step.library->workspace, 1, 256,
                              step.device->stream());
  EXPECT_EQ(fake.problems(), Strings());
}

// The device is lost at any call, in making the executor or in one of the runs: from then on every run says so, all is
// given back, and nothing is used that is gone.
TEST(CudaExecutor, MayLoseTheDeviceAtAnyCall) {
  bool reached = true;
  for (std::int64_t k = 1; reached; ++k) {
    FakeDriver fake;
    {
      std::optional<Step> step;
      fake.fail_call(k, 700);
      for (int run = 0; run < 4; ++run) {
        try {
          if (!step) step.emplace(fake);
          EXPECT_TRUE(step->run(1) || fake.failed()) << "call " << k;
        } catch (const DeviceError& error) {
          EXPECT_TRUE(fake.failed());
          EXPECT_NE(std::string(error.what()).find("CUDA_ERROR_ILLEGAL_ADDRESS (700)"), std::string::npos)
              << error.what();
        }
      }
      reached = fake.failed();
      if (reached && step) {
        EXPECT_THROW(step->run(1), DeviceError) << "call " << k << ", " << fake.failed_symbol();
        EXPECT_TRUE(step->device->context().lost()) << fake.failed_symbol();
      }
    }
    EXPECT_EQ(fake.problems(), Strings()) << "call " << k << ", " << fake.failed_symbol();
    EXPECT_EQ(fake.leaks(), Strings()) << "call " << k << ", " << fake.failed_symbol();
  }
}

// Any call fails, in making the executor or in one of the runs: a DeviceError or nothing, and the next run is right.
TEST(CudaExecutor, SurvivesTheFailureOfAnyCall) {
  for (const CuResult code : {2, 999}) {
    bool reached = true;
    for (std::int64_t k = 1; reached; ++k) {
      FakeDriver fake;
      {
        std::optional<Step> step;
        fake.fail_call(k, code);
        for (int run = 0; run < 4; ++run) {
          try {
            if (!step) step.emplace(fake);
            EXPECT_TRUE(step->run(1)) << "call " << k << ", " << fake.failed_symbol();
          } catch (const DeviceError&) {
            EXPECT_TRUE(fake.failed());
            if (!step) continue;
            step->weights = {};  // what an unfinished step left in them is not known
            step->weights = step->device->upload(Step::filled(1));
            step->expected_weights = 1;
          }
        }
        reached = fake.failed();
        fake.fail_nothing();
        ASSERT_TRUE(step && step->run(2)) << "call " << k << ", " << fake.failed_symbol();
        EXPECT_TRUE(step->weights_are_right()) << "call " << k << ", " << fake.failed_symbol();
      }
      EXPECT_EQ(fake.problems(), Strings()) << "call " << k << ", " << fake.failed_symbol();
      EXPECT_EQ(fake.leaks(), Strings()) << "call " << k << ", " << fake.failed_symbol();
    }
  }
}

}  // namespace
}  // namespace fusejit::runtime::cuda
