// What a device keeps of compiled kernels: few programs for many kernels, each kernel once, and with every launch what
// the compiler said of it.
#include <gtest/gtest.h>

#include <atomic>

#include "runtime/cuda/kernels.h"
#include "tests/support/fake_kernels.h"
#include "tests/unit/cuda/kernels.h"

namespace fusejit::test {
namespace {

TEST(LoadedKernels, AreCompiledTogetherOnceAndKeepTheirResources) {
  if (!codegen::cuda::nvrtc().available) GTEST_SKIP() << "NVRTC: " << codegen::cuda::nvrtc().why_not;
  std::vector<std::shared_ptr<const ir::Kernel>> kernels;
  FakeDriver fake;
  for (const std::string& file : cuda_kernel_files()) {
    kernels.push_back(std::make_shared<const ir::Kernel>(cuda_kernel(file)));
    define_kernel(fake, kernels.back(),
                  codegen::cuda::emit(*kernels.back(), runtime::cuda::entry_name(*kernels.back())));
  }
  const std::size_t different = kernels.size();
  ASSERT_GT(different, 16u);
  kernels.push_back(kernels[0]);
  std::atomic<int> programs = 0;
  const auto compile = [&](std::string_view program, int capability) {
    ++programs;
    codegen::cuda::CudaBinary binary = codegen::cuda::compile(program, capability);
    binary.cubin = kFakeImage;
    return binary;
  };
  {
    const auto device = runtime::cuda::CudaDevice::open(fake.table(), 0);
    runtime::cuda::CudaKernels cache(device, compile);
    const auto loaded = cache.get(kernels, 2);
    EXPECT_EQ(programs, 2) << "one for each thread";
    EXPECT_EQ(cache.statistics().programs, 2);
    EXPECT_EQ(cache.statistics().compiled, static_cast<std::int64_t>(different));
    EXPECT_EQ(loaded[0], loaded.back());
    std::int64_t most_shared = 0;
    for (const auto& kernel : loaded) {
      for (const runtime::cuda::Launch& launch : kernel->launches) {
        EXPECT_EQ(launch.resources.entry, launch.entry);
        EXPECT_GT(launch.resources.registers, 0) << launch.entry;
        EXPECT_EQ(launch.resources.spill_bytes, 0) << launch.entry;
        most_shared = std::max(most_shared, launch.resources.shared_bytes);
      }
    }
    EXPECT_GT(most_shared, 4096);
    cache.get(kernels, 2);
    EXPECT_EQ(programs, 2);
    EXPECT_EQ(cache.statistics().hits, static_cast<std::int64_t>(different) + 1);
  }
  EXPECT_EQ(fake.problems(), std::vector<std::string>());
  EXPECT_EQ(fake.leaks(), std::vector<std::string>());
}

}  // namespace
}  // namespace fusejit::test
