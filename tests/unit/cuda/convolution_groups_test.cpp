// Convolutions in groups as CUDA text: every kernel that lowering makes of them, on the CPU, equals the interpreter bit
// for bit in every order of threads.
#include <gtest/gtest.h>

#include "scheduler/schedule.h"
#include "tests/conformance/graphs.h"
#include "tests/support/cuda_shim/shim.h"
#include "tests/unit/cuda/kernels.h"

namespace fusejit::test {
namespace {

TEST(CudaConvolutionGroups, KernelsEqualTheInterpreterInEveryThreadOrder) {
  std::vector<ir::Kernel> kernels;
  std::vector<std::string> names;
  std::vector<codegen::cuda::CudaSource> sources;
  for (const testing::GraphCase& c : testing::kGraphCases) {
    if (std::string_view(c.text).find("groups=") == std::string_view::npos) continue;
    const scheduler::Plan plan =
        scheduler::schedule(ir::parse_graph(c.text), {Target::parse("cuda:sm_90"), "all", {}, {}});
    for (const scheduler::PlanStep& step : plan.steps) {
      kernels.push_back(*step.kernel);
      names.push_back(std::string(c.name) + ": " + step.kernel->name);
      sources.push_back(codegen::cuda::emit(*step.kernel, fmt::format("groups{}", sources.size())));
    }
  }
  ASSERT_GT(kernels.size(), 20u);
  Shim shim(std::move(sources));
  shim.open();
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    SCOPED_TRACE(names[k]);
    Operands expected = random_operands(kernels[k], Values::ordinary, 5);
    run_interpreted(kernels[k], expected);
    for (const ir::TaskOrder order : {ir::TaskOrder::ascending, ir::TaskOrder::descending, ir::TaskOrder::shuffled}) {
      Operands actual = random_operands(kernels[k], Values::ordinary, 5);
      shim.run(k, actual, order);
      ASSERT_EQ(difference(kernels[k], expected, actual), "") << "order " << static_cast<int>(order);
    }
  }
}

}  // namespace
}  // namespace fusejit::test
