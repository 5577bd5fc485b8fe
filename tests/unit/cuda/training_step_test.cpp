// A whole training step of the digits network, as the device would run it: the session launches through the driver
// without a device, and every launch is the generated CUDA text, compiled for the CPU. What a kernel alone cannot show
// is tested here: arguments, work memory and counters, the arena, and kernels of one plan in one program.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "frontend/models/named.h"
#include "runtime/cuda/backend.h"
#include "runtime/session.h"
#include "scheduler/make_plan.h"
#include "tests/support/cuda_shim/fake_kernels.h"
#include "tests/support/cuda_shim/sanitized.h"
#include "tests/support/step_arguments.h"
#include "tests/unit/cuda/kernels.h"

namespace fusejit::test {
namespace {

using runtime::Buffer;
using runtime::Session;

const Target kTarget = Target::parse("cuda:sm_90");

void expect_close(const std::vector<Buffer>& got, const std::vector<Buffer>& want, double tolerance, const char* what) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t r = 0; r < got.size(); ++r) {
    EXPECT_LE(largest_difference(got[r], want[r]), tolerance) << what << ": result " << r << " " << got[r].type().str();
  }
}

// A training step, its plan for a GPU and the plan's kernels as one program on the CPU.
struct ShimmedStep {
  models::ModelGraph model;
  std::span<const bool> donated{reinterpret_cast<const bool*>(model.donated.data()), model.donated.size()};
  std::shared_ptr<const scheduler::Plan> plan;
  std::vector<std::shared_ptr<const ir::Kernel>> kernels;  // each once
  std::int64_t launches = 0;
  std::unique_ptr<Shim> shim;

  explicit ShimmedStep(const char* name) : model(models::model_graph(name)) {
    plan = std::make_shared<const scheduler::Plan>(
        scheduler::make_plan(model.graph, {kTarget, scheduler::Rules::all, {donated.begin(), donated.end()}}));
    std::vector<codegen::cuda::CudaSource> sources;
    std::set<std::string> names;
    for (const scheduler::PlanStep& step : plan->steps) {
      codegen::cuda::CudaSource source = codegen::cuda::emit(*step.kernel, runtime::cuda::entry_name(*step.kernel));
      launches += static_cast<std::int64_t>(source.launches.size());
      if (!names.insert(runtime::cuda::entry_name(*step.kernel)).second) continue;
      kernels.push_back(step.kernel);
      sources.push_back(std::move(source));
    }
    shim = std::make_unique<Shim>(std::move(sources));
  }

  std::shared_ptr<runtime::CudaBackend> backend(FakeDriver& fake, ir::TaskOrder order) {
    for (std::size_t k = 0; k < kernels.size(); ++k) define_kernel(fake, kernels[k], *shim, k, order);
    runtime::CudaBackendOptions options;
    options.cudnn = false;
    options.compile = [](std::string_view, int capability) {
      return codegen::cuda::CudaBinary{capability, kFakeImage, {}, 0};
    };
    const auto device = runtime::cuda::CudaDevice::open(fake.table(), 0);
    device->memory().poison_freed(true);
    return std::make_shared<runtime::CudaBackend>(device, options);
  }
};

TEST(CudaTrainingStep, TheProgramTextTrainsAsEveryOtherEngine) {
  ShimmedStep step("convnet@2:train");
  step.shim->open();
  const std::vector<Buffer> arguments = drawn_arguments(step.model.graph, 11);
  const auto run_elsewhere = [&](runtime::SessionOptions options) {
    return Session(std::move(options)).run(step.model.graph, arguments);
  };
  const std::vector<Buffer> interpreted =
      run_elsewhere({.target = kTarget, .engine = runtime::Engine::kernel_interpreter, .threads = 1});
  const std::vector<Buffer> meant = run_elsewhere({.engine = runtime::Engine::graph_interpreter, .threads = 1});
  std::vector<Buffer> first;
  for (const ir::TaskOrder order : {ir::TaskOrder::ascending, ir::TaskOrder::descending, ir::TaskOrder::shuffled}) {
    SCOPED_TRACE(fmt::format("order {}", static_cast<int>(order)));
    FakeDriver fake;
    {
      Session session({.target = kTarget, .threads = 1, .backend = step.backend(fake, order)});
      const std::vector<Buffer> results = session.run(step.model.graph, arguments, step.donated);
      EXPECT_EQ(session.statistics().last_run.kernels, step.launches);
      // exp and log are each engine's own; everything else is equal to the bit.
      expect_close(results, interpreted, 1e-6, "kernel interpreter");
      if (first.empty()) first = results;
      for (std::size_t r = 0; r < results.size(); ++r) {
        EXPECT_EQ(std::memcmp(results[r].data(), first[r].data(), static_cast<std::size_t>(results[r].bytes())), 0)
            << "result " << r << " depends on the order of threads";
      }
    }
    EXPECT_EQ(static_cast<std::int64_t>(fake.launches().size()), step.launches);
    EXPECT_EQ(fake.problems(), std::vector<std::string>());
    EXPECT_EQ(fake.leaks(), std::vector<std::string>());
  }
  // Sums in another order; in gradients through batch norms of two images much cancels.
  expect_close(first, meant, 2e-5, "graph interpreter");
  EXPECT_LE(largest_difference(first[0], meant[0]), 1e-5) << "the loss";
#if defined(FUSEJIT_X86)
  const std::vector<Buffer> compiled = run_elsewhere({.threads = 1});
  expect_close(first, compiled, 2e-4, "x86");
  EXPECT_LE(largest_difference(first[0], compiled[0]), 1e-5) << "the loss";
#endif
}

TEST(CudaTrainingStep, SanitizersFindNothing) {
  const ShimmedStep step("convnet@2:train");
  std::vector<ir::Kernel> kernels;
  for (const auto& kernel : step.kernels) kernels.push_back(*kernel);
  const Sanitized outcome = run_sanitized(*step.shim, kernels);
  if (outcome.skipped) GTEST_SKIP() << outcome.said;
  EXPECT_EQ(outcome.said, "");
}

}  // namespace
}  // namespace fusejit::test
