// What a device keeps of compiled kernels: few programs for many kernels, each kernel once, and with every launch what
// the compiler said of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/cuda/kernels.h"
#include "runtime/disk/disk_cache.h"
#include "tests/support/cache_folder.h"
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

// What another process finds: no compiler, the same launches; and what the driver or the disk does to it.
TEST(LoadedKernels, OutliveTheProcessOnDisk) {
  if (!codegen::cuda::nvrtc().available) GTEST_SKIP() << "NVRTC: " << codegen::cuda::nvrtc().why_not;
  const CacheFolder folder;
  std::vector<std::shared_ptr<const ir::Kernel>> kernels;
  std::vector<std::string> names;  // of the steps that want them
  FakeDriver fake;
  for (const std::string& file : cuda_kernel_files()) {
    kernels.push_back(std::make_shared<const ir::Kernel>(cuda_kernel(file)));
    names.push_back("step_" + kernels.back()->name);
    define_kernel(fake, kernels.back(),
                  codegen::cuda::emit(*kernels.back(), runtime::cuda::entry_name(*kernels.back())));
  }
  std::atomic<int> programs = 0;
  const auto compile = [&](std::string_view program, int capability) {
    ++programs;
    codegen::cuda::CudaBinary binary = codegen::cuda::compile(program, capability);
    binary.cubin = kFakeImage;
    return binary;
  };
  const auto of_process = [&](bool frozen) {
    const auto disk =
        std::make_shared<runtime::disk::DiskCache>(runtime::disk::DiskCacheOptions{.folder = folder.path("cache")});
    const auto device = runtime::cuda::CudaDevice::open(fake.table(), 0);
    runtime::cuda::CudaKernels cache(device, compile, disk);
    std::vector<std::string> launches;
    for (const auto& kernel : cache.get(kernels, 2, frozen, names)) {
      for (const runtime::cuda::Launch& l : kernel->launches)
        launches.push_back(fmt::format("{} {} {} {} {} {} {} {} {} {}", l.entry, l.grid_x, l.grid_y, l.block_x,
                                       l.block_y, l.shared_bytes, l.resources.registers, kernel->buffers,
                                       kernel->scalars, kernel->work_bytes));
    }
    return std::pair(launches, cache.statistics());
  };
  const auto [cold, first] = of_process(false);
  EXPECT_EQ(first.compiled, static_cast<std::int64_t>(kernels.size()));
  const int compiled = programs;
  const auto [warm, second] = of_process(true);
  EXPECT_EQ(warm, cold);
  EXPECT_EQ(second.loaded, static_cast<std::int64_t>(kernels.size()));
  EXPECT_EQ(second.compiled, 0);
  EXPECT_EQ(programs, compiled);
  // A program that went is a miss of its kernels, and only of those.
  std::int64_t gone = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder.path("cache"))) {
    if (gone > 0 || file.path().extension() != ".entry") continue;
    std::stringstream bytes;
    bytes << std::ifstream(file.path()).rdbuf();
    const auto entry = runtime::disk::decode(bytes.str());
    ASSERT_TRUE(entry);
    if (entry->key.kind() != "program") continue;
    const std::string& members = entry->key.part("kernels");
    gone = std::count(members.begin(), members.end(), '\n');
    std::filesystem::remove(file.path());
  }
  try {
    of_process(true);
    ADD_FAILURE() << "a frozen process compiles";
  } catch (const UserError& error) {
    EXPECT_TRUE(std::string_view(error.what()).starts_with("step_")) << error.what();
  }
  const auto [mended, third] = of_process(false);
  EXPECT_EQ(mended, cold);
  EXPECT_EQ(third.compiled, gone);
  EXPECT_EQ(third.loaded, static_cast<std::int64_t>(kernels.size()) - gone);
  EXPECT_EQ(of_process(true).second.compiled, 0);
  EXPECT_EQ(fake.problems(), std::vector<std::string>());
}

}  // namespace
}  // namespace fusejit::test
