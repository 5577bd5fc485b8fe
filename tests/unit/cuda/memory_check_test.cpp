// What the check of memory in the shim is for: each barrier and fence that a kernel needs is missed by it in the
// plainest order of threads, whether the result is wrong or right by luck; so are accesses that a device would refuse.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/support/cuda_shim/shim.h"
#include "tests/unit/cuda/kernels.h"

namespace fusejit::test {
namespace {

using codegen::cuda::CudaSource;

std::vector<std::size_t> places(const std::string& text, const std::string& word) {
  std::vector<std::size_t> found;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) found.push_back(at);
  return found;
}

// What the shim says of one run, or "".
std::string complaint(Shim& shim, std::size_t number, const ir::Kernel& kernel) {
  Operands operands = cuda_operands(kernel, Values::ordinary, 1);
  try {
    shim.run(number, operands, ir::TaskOrder::ascending);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

constexpr const char* kBarrier = "__syncthreads();";

// One that stands before a loop whose body begins with another is there for the loop's later iterations only.
bool before_a_barrier(const std::string& text, std::size_t at) {
  const auto skip = [&](const char* what) { return text.find_first_not_of(what, at); };
  at = skip(" \n");
  if (text.compare(at, 5, "for (") != 0) return false;
  at = text.find('{', at) + 1;
  return text.compare(skip(" \n"), std::string(kBarrier).size(), kBarrier) == 0;
}

TEST(CudaMemoryCheck, EveryBarrierOfAKernelIsMissed) {
  std::vector<ir::Kernel> kernels;
  std::vector<CudaSource> sources;
  std::vector<std::string> removed;
  for (const std::string& file : cuda_kernel_files()) {
    const ir::Kernel kernel = cuda_kernel(file);
    const std::size_t count = places(codegen::cuda::emit(kernel).text, kBarrier).size();
    for (std::size_t i = 0; i < count; ++i) {
      CudaSource source = codegen::cuda::emit(kernel, fmt::format("missing{}", sources.size()));
      const std::size_t at = places(source.text, kBarrier)[i];
      source.text.erase(at, std::string(kBarrier).size());
      if (before_a_barrier(source.text, at)) continue;
      kernels.push_back(kernel);
      sources.push_back(std::move(source));
      removed.push_back(fmt::format("{}, barrier {} of {}", file, i + 1, count));
    }
  }
  EXPECT_GE(sources.size(), 10u);
  Shim shim(std::move(sources));
  shim.open("-O0");
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const std::string said = complaint(shim, k, kernels[k]);
    const bool missed = said.find("unordered") != std::string::npos || said.find("nothing wrote") != std::string::npos;
    EXPECT_TRUE(missed) << removed[k] << ": " << said << "\n" << shim.sources()[k].text;
  }
}

TEST(CudaMemoryCheck, EveryBarrierAndFenceOfThePreludeIsMissed) {
  std::vector<ir::Kernel> kernels;
  std::vector<CudaSource> sources;
  for (const char* file : {"cuda/chain.kir", "cuda/softmax.kir", "cuda/tall_columns.kir", "cuda/two_sums.kir"}) {
    kernels.push_back(cuda_kernel(file));
    sources.push_back(codegen::cuda::emit(kernels.back()));
  }
  const std::string prelude(codegen::cuda::prelude());
  for (const std::string word : {kBarrier, "__threadfence();"}) {
    const std::vector<std::size_t> found = places(prelude, word);
    EXPECT_GE(found.size(), 2u);
    for (const std::size_t at : found) {
      Shim shim(sources, std::string(prelude).erase(at, word.size()));
      shim.open("-O0");
      std::string said;
      for (std::size_t k = 0; k < kernels.size(); ++k) said += complaint(shim, k, kernels[k]);
      EXPECT_NE(said, "") << "without the " << word << " of\n" << prelude.substr(at - 300, 600);
    }
  }
}

// What a device refuses, or answers with anything.
TEST(CudaMemoryCheck, AccessesAndMeetingsThatADeviceRefusesAreNamed) {
  struct Row {
    const char *file, *from, *to, *said;
  };
  for (const Row& row : {
           Row{"cuda/softmax.kir", "fj_load<4>(p0 + (", "fj_load<4>(p0 + (1 + ", "not aligned to its size"},
           Row{"cuda/transpose.kir", "= p0[", "= p0[1 + ", "a read outside of the arguments"},
           Row{"cuda/transpose.kir", "= p0[", "= p0[100000000 + ", "a read outside of the arguments"},
           Row{"cuda/transpose.kir", "    p1[", "    p1[-100000000 + ", "a write outside of the arguments"},
           Row{"cuda/transpose.kir", "    l0[", "    if (threadIdx.x > 0) l0[", "a read of what nothing wrote"},
           Row{"cuda/transpose.kir", "  __syncthreads();",
               "  if (threadIdx.x < 7) { __syncthreads(); } else {\n __syncthreads(); }",
               "threads meet at different barriers"},
           Row{"cuda/softmax.kir", "  fj_reduce_block<", "  if (t % 2 == 0) fj_reduce_block<", "the mask of a shuffle"},
           Row{"cuda/chain.kir", "  p1[", "  p1[0 * ", "two unordered writes"},
           Row{"cuda/chain.kir", "  p1[", "  for (int again = 0; again < 2; ++again) p1[",
               "a write over one that nothing read"},
       }) {
    SCOPED_TRACE(fmt::format("{}: {}", row.file, row.to));
    const ir::Kernel kernel = cuda_kernel(row.file);
    CudaSource source = codegen::cuda::emit(kernel);
    const std::size_t at = source.text.find(row.from);
    ASSERT_NE(at, std::string::npos) << source.text;
    source.text.replace(at, std::string(row.from).size(), row.to);
    Shim shim({source});
    shim.open("-O0");
    EXPECT_NE(complaint(shim, 0, kernel).find(row.said), std::string::npos) << complaint(shim, 0, kernel);
  }
}

}  // namespace
}  // namespace fusejit::test
