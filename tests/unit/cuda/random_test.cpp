// Random kernels as CUDA text on the CPU against the interpreter, bit for bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/cuda_shim/shim.h"
#include "tests/support/random_kernel.h"
#include "tests/unit/cuda/kernels.h"

namespace fusejit::test {
namespace {

TEST(CudaRandom, TextEqualsInterpreter) {
  std::mt19937 random(77);
  std::vector<ir::Kernel> kernels;
  std::vector<codegen::cuda::CudaSource> sources;
  while (kernels.size() < 30) {
    const std::string text = random_kernel(random, Isa::cuda);
    const ir::Kernel kernel = ir::simplify(ir::parse_kernel(text));
    SCOPED_TRACE(text);
    ASSERT_NO_THROW(ir::verify(kernel));
    kernels.push_back(kernel);
    sources.push_back(codegen::cuda::emit(kernel, fmt::format("random{}", kernels.size())));
  }
  Shim shim(sources);
  shim.open();
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    Operands expected = random_operands(kernels[k], Values::ordinary, k + 1);
    run_interpreted(kernels[k], expected);
    for (const ir::TaskOrder order : {ir::TaskOrder::ascending, ir::TaskOrder::descending, ir::TaskOrder::shuffled}) {
      Operands actual = random_operands(kernels[k], Values::ordinary, k + 1);
      shim.run(k, actual, order);
      ASSERT_EQ(difference(kernels[k], expected, actual), "") << "kernel " << k << "\n" << sources[k].text;
    }
  }
}

}  // namespace
}  // namespace fusejit::test
