// Whole training steps through the driver without a device: plans made for a GPU, their kernels launched by the
// session, and the numbers that come out.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <set>

#include "frontend/models/named.h"
#include "runtime/cuda/backend.h"
#include "runtime/session.h"
#include "scheduler/make_plan.h"
#include "tests/support/fake_device/fake_kernels.h"
#include "tests/support/step_arguments.h"

namespace fusejit::runtime {
namespace {

using test::FakeDriver;
using Strings = std::vector<std::string>;

constexpr const char* kModel = "convnet@1:train";
const Target kTarget = Target::parse("cuda:sm_90");

std::vector<Buffer> copies(const std::vector<Buffer>& buffers) {
  std::vector<Buffer> result;
  for (const Buffer& buffer : buffers) {
    result.push_back(Buffer::allocate(buffer.type()));
    std::memcpy(result.back().data(), buffer.data(), static_cast<std::size_t>(buffer.bytes()));
  }
  return result;
}

void expect_equal(const std::vector<Buffer>& results, const std::vector<Buffer>& expected, const std::string& when) {
  ASSERT_EQ(results.size(), expected.size());
  for (std::size_t r = 0; r < results.size(); ++r) {
    EXPECT_EQ(std::memcmp(results[r].data(), expected[r].data(), static_cast<std::size_t>(results[r].bytes())), 0)
        << "result " << r << " " << results[r].type().str() << " " << when;
  }
}

struct Trained {
  models::ModelGraph model = models::model_graph(kModel);
  std::span<const bool> donated{reinterpret_cast<const bool*>(model.donated.data()), model.donated.size()};
  std::shared_ptr<const scheduler::Plan> plan = std::make_shared<const scheduler::Plan>(
      scheduler::make_plan(model.graph, {kTarget, scheduler::Rules::all, {donated.begin(), donated.end()}}));
  std::vector<Buffer> arguments = test::drawn_arguments(model.graph, 7);

  // Everything the plan launches is known to the fake; no compiler is asked.
  std::int64_t teach(FakeDriver& fake) const {
    std::int64_t launches = 0;
    for (const scheduler::PlanStep& step : plan->steps) {
      const auto source = codegen::cuda::emit(*step.kernel, cuda::entry_name(*step.kernel));
      define_kernel(fake, step.kernel, source);
      launches += static_cast<std::int64_t>(source.launches.size());
    }
    return launches;
  }
  std::shared_ptr<CudaBackend> backend(FakeDriver& fake) const {
    CudaBackendOptions options;
    options.numerics.tf32 = true;  // f32 convolutions are calls, too
    options.cudnn = false;
    options.compile = [](std::string_view, int capability) {
      codegen::cuda::CudaBinary binary;
      binary.compute_capability = capability;
      binary.cubin = test::kFakeImage;
      return binary;
    };
    const auto device = cuda::CudaDevice::open(fake.table(), 0);
    device->memory().poison_freed(true);
    return std::make_shared<CudaBackend>(device, options);
  }
};

TEST(CudaSession, TrainsAsTheKernelInterpreterDoes) {
  const Trained trained;
  Session reference({.target = kTarget, .engine = Engine::kernel_interpreter, .threads = 1});
  const std::vector<Buffer> expected = reference.run(trained.model.graph, copies(trained.arguments), trained.donated);
  FakeDriver fake;
  const std::int64_t launches = trained.teach(fake);
  {
    Session session({.target = kTarget, .threads = 1, .backend = trained.backend(fake)});
    for (int run = 0; run < 3; ++run) {  // the first captured, the others replayed
      fake.forget_launches();
      const std::vector<Buffer> results = session.run(trained.model.graph, trained.arguments, trained.donated);
      expect_equal(results, expected, fmt::format("in run {}", run));
      EXPECT_EQ(static_cast<std::int64_t>(fake.launches().size()), launches);
      EXPECT_TRUE(fake.launches().back().from_graph);
    }
    EXPECT_EQ(session.statistics().last_run.kernels, launches);
    EXPECT_EQ(session.statistics().graph_launches, 3);
  }
  EXPECT_EQ(fake.problems(), Strings());
  EXPECT_EQ(fake.leaks(), Strings());
}

TEST(CudaSession, KeepsValuesOnTheDeviceBetweenSteps) {
  const Trained trained;
  Session reference({.target = kTarget, .engine = Engine::kernel_interpreter, .threads = 1});
  FakeDriver fake;
  trained.teach(fake);
  {
    const auto backend = trained.backend(fake);
    Session session({.target = kTarget, .threads = 1, .results_on_device = true, .backend = backend});
    // Results of the type of a donated argument become the next step's, in order.
    std::vector<Buffer> there = trained.arguments, here = copies(trained.arguments);
    const auto advance = [&](std::vector<Buffer>& arguments, const std::vector<Buffer>& results) {
      for (std::size_t v = 0; v < trained.plan->results.size(); ++v) {
        const scheduler::PlanValue& value = trained.plan->values[static_cast<std::size_t>(trained.plan->results[v])];
        if (value.storage == scheduler::Storage::donated) arguments[static_cast<std::size_t>(value.index)] = results[v];
      }
    };
    for (int run = 0; run < 2; ++run) {
      const std::vector<Buffer> results = session.run(trained.model.graph, there, trained.donated);
      const std::vector<Buffer> expected = reference.run(trained.model.graph, here, trained.donated);
      std::vector<Buffer> seen;
      for (const Buffer& result : results) seen.push_back(backend->device().download(result));
      expect_equal(seen, expected, fmt::format("in run {}", run));
      advance(there, results);
      advance(here, expected);
    }
  }
  EXPECT_EQ(fake.problems(), Strings());
  EXPECT_EQ(fake.leaks(), Strings());
}

TEST(CudaSession, SaysThatAChildOfForkCannotUseItsParentsDevice) {
  const Trained trained;
  FakeDriver fake;
  trained.teach(fake);
  Session session({.target = kTarget, .threads = 1, .backend = trained.backend(fake)});
  session.run(trained.model.graph, trained.arguments, trained.donated);
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    std::string error = "none";
    try {
      session.run(trained.model.graph, trained.arguments, trained.donated);
    } catch (const DeviceError& e) {
      error = e.what();
    }
    const bool said = error.find("cuda:0: the child of a fork() cannot use a CUDA device of its parent") == 0;
    if (!said) std::fprintf(stderr, "in the child: %s\n", error.c_str());
    _exit(said ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(CudaSession, SaysThatThereIsNoDevice) {
  if (cuda::installed_driver().driver) GTEST_SKIP() << "this machine has a GPU";
  const Trained trained;
  Session session({.target = kTarget, .threads = 1});
  try {
    session.run(trained.model.graph, trained.arguments);
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_EQ(std::string(error.what()).find("cuda:0: "), 0u) << error.what();
  }
  // The CPU works in the same process.
  Session cpu({.engine = Engine::graph_interpreter, .threads = 1});
  EXPECT_EQ(cpu.run(trained.model.graph, trained.arguments).size(), trained.model.graph.results().size());
}

}  // namespace
}  // namespace fusejit::runtime
