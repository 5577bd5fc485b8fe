// Generated CUDA text on the CPU: every kernel equals the interpreter bit for bit, whatever the order of threads.
#include <gtest/gtest.h>

#include "tests/support/cuda_shim/sanitized.h"
#include "tests/unit/cuda/kernels.h"

namespace fusejit::test {
namespace {

constexpr ir::TaskOrder kOrders[] = {ir::TaskOrder::ascending, ir::TaskOrder::descending, ir::TaskOrder::shuffled};

std::vector<codegen::cuda::CudaSource> sources_of(const std::vector<ir::Kernel>& kernels) {
  std::vector<codegen::cuda::CudaSource> sources;
  for (const ir::Kernel& kernel : kernels) sources.push_back(codegen::cuda::emit(kernel));
  return sources;
}

TEST(CudaShim, EveryKernelEqualsTheInterpreterInEveryThreadOrder) {
  const std::vector<std::string> files = cuda_kernel_files();
  std::vector<ir::Kernel> kernels;
  for (const std::string& file : files) kernels.push_back(cuda_kernel(file));
  Shim shim(sources_of(kernels));
  shim.open();
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    SCOPED_TRACE(files[k]);
    // exp is CUDA's own; its error is carried through a sum.
    const double ulp = files[k].find("softmax") != std::string::npos ? 32 : 0;
    const Values values = ulp > 0 ? Values::ordinary : Values::special;
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      Operands expected = cuda_operands(kernels[k], values, seed);
      run_interpreted(kernels[k], expected);
      for (const ir::TaskOrder order : kOrders) {
        Operands actual = cuda_operands(kernels[k], values, seed);
        shim.run(k, actual, order);
        ASSERT_EQ(difference_in_ulp(kernels[k], expected, actual, [&](std::size_t) { return ulp; }), "")
            << "seed " << seed << " order " << static_cast<int>(order) << "\n"
            << shim.sources()[k].text;
      }
    }
  }
}

TEST(CudaShim, SanitizersFindNothing) {
  std::vector<ir::Kernel> kernels;
  for (const char* file : {"cuda/bits_tail.kir", "cuda/chain.kir", "cuda/gather_rows.kir", "cuda/missing_axes.kir",
                           "cuda/shared_panels.kir", "cuda/two_sums.kir", "toy/c_bn_stats_cuda.kir"})
    kernels.push_back(cuda_kernel(file));
  const Sanitized outcome = run_sanitized(Shim(sources_of(kernels)), kernels);
  if (outcome.skipped) GTEST_SKIP() << outcome.said;
  EXPECT_EQ(outcome.said, "");
}

}  // namespace
}  // namespace fusejit::test
