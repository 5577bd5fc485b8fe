// Every kernel that lowering makes of the conformance graphs, as CUDA text: on the CPU it equals the interpreter in
// every order of threads, bit for bit but for CUDA's own functions; and ptxas takes it without spills. By day for one
// architecture; FUSEJIT_NIGHTLY=1 asks for all four.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <set>
#include <thread>

#include "codegen/cuda/nvrtc.h"
#include "frontend/models/named.h"
#include "ir/kernel/walk.h"
#include "scheduler/make_plan.h"
#include "tests/conformance/graphs_of_bytes.h"
#include "tests/support/cuda_shim/shim.h"
#include "tests/support/nightly.h"
#include "tests/support/op_kernels.h"
#include "tests/support/random_kernel.h"
#include "tests/unit/cuda/kernels.h"

namespace fusejit::test {
namespace {

struct Lowered {
  std::vector<ir::Kernel> kernels;  // each once
  std::vector<std::string> names;
  std::vector<codegen::cuda::CudaSource> sources;
  std::set<std::string> known = {};

  void add(const scheduler::Plan& plan, const std::string& name) {
    for (const scheduler::PlanStep& step : plan.steps) {
      if (!known.insert(ir::kernel_key_text(*step.kernel)).second) continue;
      kernels.push_back(*step.kernel);
      names.push_back(name + ": " + step.kernel->name);
      sources.push_back(codegen::cuda::emit(*step.kernel, fmt::format("c{}", sources.size())));
    }
  }
};

Lowered graphs() {
  Lowered all;
  for (const testing::GraphCase& c : testing::every_graph_case())
    all.add(scheduler::make_plan(ir::parse_graph(c.text), {Target::parse("cuda:sm_90"), scheduler::Rules::all, {}, {}}),
            c.name);
  return all;
}

// Training steps on small images.
Lowered models() {
  struct Case {
    const char* model;
    DType dtype;
  };
  std::vector<Case> cases = {{"convnet@2:train", DType::bf16}};
  if (testing::is_nightly()) {
    for (const char* model : {"convnet@3:train", "resnet50@2x3x32x32:train", "mobilenet_v2@2x3x32x32:train"})
      for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) cases.push_back({model, dtype});
  }
  Lowered all;
  for (const Case& c : cases) {
    const models::ModelGraph model = models::model_graph(c.model, c.dtype);
    all.add(scheduler::make_plan(
                model.graph,
                {Target::parse("cuda:sm_90"), scheduler::Rules::all, {model.donated.begin(), model.donated.end()}, {}}),
            fmt::format("{} {}", c.model, name(c.dtype)));
  }
  return all;
}

// exp and its like are CUDA's own; their error is carried through what follows, and grows where much cancels.
double tolerance(const ir::Kernel& kernel, double carried = 32) {
  double ulp = 0;
  for (const ir::Phase& phase : kernel.phases) {
    ir::for_each_stmt(phase.body, [&](const ir::Stmt& s) {
      if (const auto* def = std::get_if<ir::DefStmt>(&s.node)) ulp = std::max<double>(ulp, ir::op_def(def->op).ulp);
    });
  }
  return ulp > 0.5 ? carried : 0;
}

// Every so manieth.
void expect_equal(const Lowered& all, double carried, std::size_t stride = 1) {
  Shim shim(all.sources);
  shim.open();
  for (std::size_t k = 0; k < all.kernels.size(); k += stride) {
    SCOPED_TRACE(all.names[k]);
    const double ulp = tolerance(all.kernels[k], carried);
    Operands expected = cuda_operands(all.kernels[k], Values::ordinary, 5);
    run_interpreted(all.kernels[k], expected);
    for (const ir::TaskOrder order : {ir::TaskOrder::ascending, ir::TaskOrder::descending, ir::TaskOrder::shuffled}) {
      Operands actual = cuda_operands(all.kernels[k], Values::ordinary, 5);
      shim.run(k, actual, order);
      ASSERT_EQ(difference_in_ulp(all.kernels[k], expected, actual, [&](std::size_t) { return ulp; }), "")
          << "order " << static_cast<int>(order) << "\n"
          << shim.sources()[k].text;
    }
  }
}

TEST(CudaConformance, KernelsEqualTheInterpreterInEveryThreadOrder) {
  const Lowered all = graphs();
  EXPECT_GT(all.kernels.size(), 100u);
  EXPECT_GT(std::count_if(all.kernels.begin(), all.kernels.end(), [](const auto& k) { return tolerance(k) == 0; }),
            100);
  expect_equal(all, 32);
}

TEST(CudaConformance, KernelsOfModelsEqualTheInterpreterInEveryThreadOrder) {
  expect_equal(models(), 4096, testing::is_nightly() ? 1 : 4);
}

TEST(CudaConformance, KernelsCompileWithoutSpills) {
  if (!codegen::cuda::nvrtc().available) GTEST_SKIP() << "NVRTC: " << codegen::cuda::nvrtc().why_not;
  constexpr std::size_t kTogether = 10;
  Lowered all = graphs();
  if (testing::is_nightly()) {  // what the other tests write by hand or draw
    for (const OpKernel& op : op_kernels())
      all.sources.push_back(codegen::cuda::emit(op.kernel, fmt::format("op{}", all.sources.size())));
    std::mt19937 random(77);
    for (int i = 0; i < 30; ++i) {
      const ir::Kernel kernel = ir::simplify(ir::parse_kernel(random_kernel(random, Isa::cuda)));
      all.sources.push_back(codegen::cuda::emit(kernel, fmt::format("random{}", all.sources.size())));
    }
  }
  const auto check = [&](std::size_t first, int capability) {
    const std::size_t count = std::min(kTogether, all.sources.size() - first);
    const std::string program = codegen::cuda::program(std::span(all.sources).subspan(first, count));
    for (const codegen::cuda::Resources& r : codegen::cuda::compile(program, capability).entries) {
      EXPECT_EQ(r.spill_bytes, 0) << r.entry << " for sm_" << capability;
      // CUDA's sin and cos reduce huge arguments with an array.
      const bool array = r.entry.starts_with("kernel_op") && r.stack_bytes <= 72;
      EXPECT_TRUE(r.stack_bytes == 0 || array) << r.entry << " for sm_" << capability << ": " << r.stack_bytes;
      EXPECT_LE(r.registers, 128) << r.entry << " for sm_" << capability;
    }
  };
  const std::vector<int> capabilities =
      testing::is_nightly() ? std::vector<int>{80, 90, 100, 120} : std::vector<int>{100};
  for (const int capability : capabilities) {
    std::atomic<std::size_t> next = 0;
    std::vector<std::thread> threads(std::max(1u, std::thread::hardware_concurrency()));
    for (std::thread& thread : threads) {
      thread = std::thread([&] {
        try {
          for (std::size_t first; (first = next.fetch_add(kTogether)) < all.sources.size();) check(first, capability);
        } catch (const std::exception& error) {
          ADD_FAILURE() << error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace fusejit::test
