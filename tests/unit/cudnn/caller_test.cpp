// What is done with cuDNN on a device: engines chosen, timed and tried, calls captured into graphs, and every call of
// cuDNN failing in turn. On a driver and a cuDNN that have no device.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <thread>

#include "runtime/cuda/backend.h"
#include "runtime/cudnn/step.h"
#include "runtime/session.h"
#include "tests/support/fake_cudnn/fake_cudnn.h"
#include "tests/support/fake_device/fake_compiler.h"
#include "tests/support/step_arguments.h"
#include "tests/unit/cudnn/with_cudnn.h"

namespace fusejit::runtime::cudnn {
namespace {

using test::FakeEngine;
using Strings = std::vector<std::string>;

// A convolution that cuDNN does, and a sum that it does not. 36 pixels of 8 channels.
const char* const kNetwork = R"(graph @net(%x: f32[1,8,6,6]:nhwc, %w: f32[8,8,1,1]:nhwc) {
  %0 = conv2d(%x, %w) : f32[1,8,6,6]:nhwc
  %1 = sum(%0) {dim=[0,2,3]} : f32[8]
  return %1
})";

class CudnnOnFakes : public ::testing::Test {
 protected:
  CudnnOnFakes() : fake_(*reinterpret_cast<test::FakeCudnnState>(symbol())()) {
    const char* before = std::getenv("FUSEJIT_CUDNN");
    had_ = before != nullptr, before_ = before ? before : "";
    setenv("FUSEJIT_CUDNN", FUSEJIT_FAKE_CUDNN, 1);
    fake_ = {};
    fake_.context_is_current = [this] { return driver_.current_device() == 0; };
    fake_.is_alive = [this](void* stream) { return driver_.is_alive(static_cast<cuda::CuStream>(stream)); };
    fake_.execute = [this](const test::FakeExecution& execution) { execute(execution); };
    fake_.engines = {{.index = 7, .workspace_bytes = 1000}};
    for (const auto& [name, milliseconds] : {std::pair("slow", 3.0f), {"fast", 1.0f}}) {
      test::FakeKernel kernel;
      kernel.pointers = {{36 * 8 * 4, 16}, {64 * 4, 16}, {36 * 8 * 4, 16}};
      kernel.milliseconds = milliseconds;
      kernel.run = [](std::span<void* const> pointers, auto) {
        const auto *x = static_cast<const float*>(pointers[0]), *w = static_cast<const float*>(pointers[1]);
        auto* y = static_cast<float*>(pointers[2]);
        for (int pixel = 0; pixel < 36; ++pixel) {
          for (int k = 0; k < 8; ++k) {
            float sum = 0;
            for (int c = 0; c < 8; ++c) sum += x[8 * pixel + c] * w[8 * k + c];
            y[8 * pixel + k] = sum;
          }
        }
      };
      driver_.define(name, kernel);
    }
    Session reference({.engine = runtime::Engine::graph_interpreter, .threads = 1});
    expected_ = reference.run(graph_, arguments_);
  }
  ~CudnnOnFakes() override {
    had_ ? setenv("FUSEJIT_CUDNN", before_.c_str(), 1) : unsetenv("FUSEJIT_CUDNN");
    fake_ = {};
  }
  static void* symbol() { return dlsym(dlopen(FUSEJIT_FAKE_CUDNN, RTLD_NOW | RTLD_LOCAL), "fake_cudnn"); }

  // What an engine of the fake puts on its stream. Engines of tag 1 are fast.
  void execute(const test::FakeExecution& execution) {
    if (!device_) return;
    cuda::DeviceContext& context = device_->context();
    const auto stream = static_cast<cuda::CuStream>(execution.stream);
    const auto address = [](void* at) { return static_cast<cuda::CuPointer>(reinterpret_cast<std::uintptr_t>(at)); };
    context.call(context.driver().fill_bytes, address(execution.workspace), 7, execution.engine.workspace_bytes,
                 stream);
    std::array<cuda::CuPointer, 3> words{};
    std::array<void*, 3> arguments{};
    for (std::size_t i = 0; i < 3; ++i) {
      words[i] = address(execution.addresses.at(static_cast<std::int64_t>(i) + 1));  // Role::x, w, y
      arguments[i] = &words[i];
    }
    context.call(context.driver().launch_kernel, execution.engine.tag == 1 ? fast_ : slow_, 1, 1, 1, 32, 1, 1, 0,
                 stream, arguments.data(), nullptr);
  }
  void open(int timed_engines = 1, Numerics numerics = {}) {
    close();
    device_ = cuda::CudaDevice::open(driver_.table(), 0);
    device_->memory().poison_freed(true);
    cuda::DeviceContext& context = device_->context();
    context.call(context.driver().module_load_data, &module_, test::kFakeImage.c_str());
    context.call(context.driver().module_get_function, &slow_, module_, "slow");
    context.call(context.driver().module_get_function, &fast_, module_, "fast");
    CudaBackendOptions options;
    options.numerics.tf32 = true;  // f32 convolutions are calls, too
    options.compile = test::fake_compiler(driver_);
    options.timed_engines = timed_engines, options.numerics = numerics;
    backend_ = std::make_shared<CudaBackend>(device_, options);
    session_ = std::make_unique<Session>(
        SessionOptions{.target = Target::parse("cuda:sm_90,cudnn=1"), .threads = 1, .backend = backend_});
  }
  void close() {
    session_.reset(), backend_.reset();
    if (!device_) return;
    device_->synchronize();
    device_->context().release(device_->context().driver().module_unload, module_);
    device_.reset();
  }
  bool run() { return test::largest_difference(session_->run(graph_, arguments_)[0], expected_[0]) < 1e-4; }
  void expect_clean(const std::string& when = "") {
    close();
    EXPECT_EQ(fake_.problems, Strings()) << when;
    EXPECT_EQ(fake_.handles, 0) << when;
    EXPECT_EQ(fake_.descriptors, 0) << when;
    EXPECT_EQ(driver_.problems(), Strings()) << when;
    EXPECT_EQ(driver_.leaks(), Strings()) << when;
  }
  std::vector<std::int64_t> engines_run() const {
    std::vector<std::int64_t> indices;
    for (const test::FakeExecution& execution : fake_.executions) indices.push_back(execution.engine.index);
    return indices;
  }

  test::FakeDriver driver_;
  test::FakeCudnn& fake_;
  bool had_ = false;
  std::string before_;
  const ir::Graph graph_ = ir::parse_graph(kNetwork);
  const std::vector<Buffer> arguments_ = test::drawn_arguments(graph_, 7);
  std::vector<Buffer> expected_;
  std::shared_ptr<cuda::CudaDevice> device_;
  cuda::CuModule module_ = nullptr;
  cuda::CuFunction slow_ = nullptr, fast_ = nullptr;
  std::shared_ptr<CudaBackend> backend_;
  std::unique_ptr<Session> session_;
};

TEST_F(CudnnOnFakes, ACallIsTriedRunCapturedAndReplayed) {
  open();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(run()) << i;
  ASSERT_EQ(fake_.executions.size(), 3u) << "tried, run, captured; then replayed without cuDNN";
  const auto stream = [&](std::size_t e) { return static_cast<cuda::CuStream>(fake_.executions[e].stream); };
  EXPECT_NE(stream(0), device_->stream());
  EXPECT_EQ(stream(1), device_->stream());
  EXPECT_NE(stream(2), device_->stream());
  EXPECT_EQ(fake_.executions[1].addresses, fake_.executions[2].addresses);
  EXPECT_NE(fake_.executions[0].addresses, fake_.executions[1].addresses);
  for (const test::FakeExecution& execution : fake_.executions) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(execution.workspace) % 256, 0u);
  }
  EXPECT_EQ(session_->statistics().graph_launches, 4);
  EXPECT_EQ(backend_->refusals(), Strings());
  expect_clean();
}

TEST_F(CudnnOnFakes, TheListIsWalkedUntilAnEngineIsAllowedFinalisesAndRuns) {
  const std::vector<int> tf32 = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, atomics = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
  const std::vector<int> compiled = {CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION};
  const std::vector<FakeEngine> list = {
      {.index = 1, .numerical_notes = tf32},     {.index = 2, .numerical_notes = atomics},
      {.index = 3, .behaviour_notes = compiled}, {.index = 4, .finalize_status = 3000},
      {.index = 5, .finalize_status = 4000},     {.index = 6, .workspace_bytes = 512}};
  struct Case {
    Numerics numerics;
    std::int64_t engine;
  };
  for (const auto& [numerics, engine] : {Case{{}, 6}, {{.tf32 = true}, 1}, {{.nondeterministic = true}, 2}}) {
    fake_.engines = list;
    fake_.executions.clear();
    open(1, numerics);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(run());
    EXPECT_EQ(engines_run(), std::vector<std::int64_t>(3, engine));
  }
  // None is left: a kernel does it, and every reason is there.
  fake_.engines.pop_back();
  fake_.executions.clear();
  open();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(run());
  EXPECT_EQ(engines_run(), std::vector<std::int64_t>());
  ASSERT_EQ(backend_->refusals().size(), 1u);
  for (const char* reason : {"engine 1: it computes in TF32", "engine 2: it is not deterministic",
                             "engine 4: cuDNN: ", "3000 FAKE_STATUS: this engine does not", "engine 5: ", "4000"}) {
    EXPECT_NE(backend_->refusals()[0].find(reason), std::string::npos) << reason << "\n" << backend_->refusals()[0];
  }
  expect_clean();
}

TEST_F(CudnnOnFakes, AnEngineThatPlansAndDoesNotRunIsLeftToAKernel) {
  fake_.engines[0].execute_status = 5000;
  open();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(run()) << i;
  ASSERT_EQ(backend_->refusals().size(), 1u);
  EXPECT_NE(backend_->refusals()[0].find("engine 7 (precompiled), 1000 bytes of workspace does not run: cuDNN: "
                                         "cudnnBackendExecute failed with 5000"),
            std::string::npos)
      << backend_->refusals()[0];
  EXPECT_GT(session_->statistics().graph_launches, 0);
  expect_clean();
}

TEST_F(CudnnOnFakes, TheFirstFewAreTimedOnceAndTheFastestKept) {
  fake_.engines = {{.index = 1}, {.index = 2, .tag = 1}, {.index = 3, .execute_status = 5000}, {.index = 4, .tag = 1}};
  for (const auto& [timed, chosen] : {std::pair(1, 1), {3, 2}, {4, 2}}) {
    open(timed);
    fake_.executions.clear();
    EXPECT_TRUE(run());
    EXPECT_EQ(engines_run().back(), chosen) << timed;
    const std::size_t runs = fake_.executions.size();
    EXPECT_EQ(runs > 5, timed > 1);
    // Another graph with the same convolution asks nobody.
    const std::int64_t plans = fake_.plans;
    Session again({.target = Target::parse("cuda:sm_90,cudnn=1"), .threads = 1, .backend = backend_});
    again.run(graph_, arguments_);
    EXPECT_EQ(fake_.plans, plans);
    EXPECT_EQ(fake_.executions.size(), runs + 1) << "run, and neither timed nor tried again";
    // The choice goes out with the text, and comes back.
    const Strings texts = backend_->engine_texts();
    ASSERT_EQ(texts.size(), 1u);
    open(timed);
    EXPECT_TRUE(backend_->add_engine_text(texts[0]));
    fake_.executions.clear();
    EXPECT_TRUE(run());
    EXPECT_EQ(engines_run(), std::vector<std::int64_t>(2, chosen)) << "tried and run";
  }
  expect_clean();
}

TEST_F(CudnnOnFakes, WithoutAHandleKernelsDoTheWork) {
  struct Case {
    std::function<void()> breaks;
    const char* sentence;
  };
  for (const auto& [breaks, sentence] :
       {Case{[&] { fake_.version = 81000; }, "is version 8.10.0; install cuDNN 9.11 or newer"},
        {[&] { fake_.version = 100000; }, "is version 10.0.0; install cuDNN 9.11 or newer"},
        {[&] { fake_.newest_device = 890; }, "has no code for sm_90: it serves sm_75 to sm_89"},
        {[&] { fake_.fail_at = fake_.calls + 1; }, "cuDNN: "}}) {
    fake_.version = 91900, fake_.newest_device = 1210;
    breaks();
    open();
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(run());
    EXPECT_EQ(fake_.executions.size(), 0u);
    ASSERT_EQ(backend_->refusals().size(), 1u) << sentence;
    EXPECT_NE(backend_->refusals()[0].find(sentence), std::string::npos) << backend_->refusals()[0];
  }
  expect_clean();
}

TEST_F(CudnnOnFakes, TheEndMayComeOnAnotherThread) {
  open();
  EXPECT_TRUE(run());
  auto handle = std::make_shared<CudnnHandle>(Library::load(), device_);
  std::thread([&] { handle.reset(); }).join();
  std::thread([&] { session_.reset(), backend_.reset(); }).join();
  expect_clean();
}

TEST_F(CudnnOnFakes, ATextOfAnEngineThatIsNotAllowedIsPlannedAnew) {
  open();
  EXPECT_TRUE(run());
  const std::string text = backend_->engine_texts().at(0), line = text.substr(0, text.find('\n'));
  const std::string key = line.substr(line.find("cudnn 91900"));
  fake_.engines = {{.index = 2, .numerical_notes = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}}, {.index = 7}};
  open();
  EXPECT_TRUE(backend_->add_engine_text(plan_text(key, "engine 2")));
  fake_.executions.clear();
  EXPECT_TRUE(run());
  EXPECT_EQ(engines_run(), std::vector<std::int64_t>(2, 7));
  expect_clean();
}

TEST_F(CudnnOnFakes, AnyCallOfCudnnMayFail) {
  int kernels = 0, errors = 0, without_graph = 0;
  for (std::int64_t k = 1;; ++k) {
    fake_.calls = 0, fake_.fail_at = k, fake_.failed = false;
    fake_.executions.clear();
    open();
    for (int i = 0; i < 4; ++i) {
      try {
        EXPECT_TRUE(run()) << "call " << k << ", " << fake_.failed_call;
      } catch (const DeviceError& error) {
        ++errors;
        const std::string what = error.what();
        EXPECT_NE(what.find("cuDNN: " + fake_.failed_call), std::string::npos) << what;
        EXPECT_NE(what.find(" failed with 4000"), std::string::npos) << what;
        EXPECT_LT(i, 3) << "the session goes on";
      }
    }
    kernels += !backend_->refusals().empty();
    without_graph += session_->statistics().graph_launches == 0;
    expect_clean(fmt::format("call {}, {}", k, fake_.failed_call));
    if (!fake_.failed) break;
    ASSERT_LT(k, 1000);
  }
  EXPECT_GT(kernels, 10);
  EXPECT_GT(errors, 0) << "in the first run";
  EXPECT_GT(without_graph, 0) << "in the capture";
}

}  // namespace
}  // namespace fusejit::runtime::cudnn
