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
#include "tests/support/fake_device/fake_kernels.h"
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

std::vector<runtime::disk::Entry> entries_in(const std::string& folder) {
  std::vector<runtime::disk::Entry> entries;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    if (file.path().extension() != ".entry") continue;
    std::stringstream bytes;
    bytes << std::ifstream(file.path()).rdbuf();
    entries.push_back(runtime::disk::decode(bytes.str()).value());
  }
  return entries;
}

// A bundle made for two devices: each finds its own machine code and nothing else, and what its driver does not take is
// made again, said once.
TEST(LoadedKernels, OfABundleAreThoseOfTheDevice) {
  const CacheFolder folder;
  namespace disk = runtime::disk;
  std::vector<std::shared_ptr<const ir::Kernel>> kernels;
  for (const std::string& file : cuda_kernel_files())
    kernels.push_back(std::make_shared<const ir::Kernel>(cuda_kernel(file)));
  int programs = 0;
  const auto compile = [&](std::string_view, int capability) {
    ++programs;
    return codegen::cuda::CudaBinary{capability, fmt::format("\x7f{}{}", "ELF for sm_", capability), {}, 0};
  };
  std::vector<std::string> said;
  const auto of_process = [&](int capability, disk::DiskCacheOptions where, bool is_full = false) {
    where.log = [&](const std::string& line) { said.push_back(line); };
    const auto cache = std::make_shared<disk::DiskCache>(where);
    FakeDevice described;
    described.compute_capability = capability;
    if (is_full) described.module_bytes = described.memory_bytes + 1;
    FakeDriver fake(described);
    for (const auto& kernel : kernels)
      define_kernel(fake, kernel, codegen::cuda::emit(*kernel, runtime::cuda::entry_name(*kernel)));
    const auto device = runtime::cuda::CudaDevice::open(fake.table(), 0);
    runtime::cuda::CudaKernels there(device, compile, cache);
    there.get(kernels, 2);
    EXPECT_EQ(fake.problems(), std::vector<std::string>());
    return there.statistics();
  };
  const auto count = static_cast<std::int64_t>(kernels.size());
  const disk::DiskCacheOptions made{.folder = folder.path("made")};
  of_process(80, made), of_process(90, made);
  {
    disk::BundleWriter writer(folder.path("both.fjb"));
    for (const disk::Entry& entry : entries_in(made.folder)) writer.add(entry.key, encode(entry.key, entry.sections));
    writer.finish();
  }
  programs = 0;
  for (const int capability : {80, 90}) {
    const auto found = of_process(capability, {.folder = folder.path("own"), .bundles = {folder.path("both.fjb")}});
    EXPECT_EQ(found.loaded, count) << capability;
    EXPECT_EQ(found.compiled, 0) << capability;
  }
  const auto other = of_process(86, {.folder = folder.path("own"), .bundles = {folder.path("both.fjb")}});
  EXPECT_EQ(other.loaded, 0) << "there is none for it";
  EXPECT_EQ(other.compiled, count);
  EXPECT_TRUE(said.empty()) << said[0];

  // Code that is filed under this device and is not for it.
  std::int64_t changed = 0;
  for (const disk::Entry& entry : entries_in(made.folder)) {
    std::vector<disk::Section> sections = entry.sections;
    for (disk::Section& section : sections) {
      const std::size_t at = section.bytes.find("for sm_90");
      if (at == std::string::npos) continue;
      section.bytes.replace(at, 9, "for sm_80");
      disk::DiskCache(made).put(entry.key, sections);
      ++changed;
    }
  }
  ASSERT_GT(changed, 0);
  const auto mended = of_process(90, made);
  EXPECT_EQ(mended.loaded, 0);
  EXPECT_EQ(mended.compiled, count);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("cuModuleLoadData"), std::string::npos) << said[0];
  EXPECT_TRUE(said[0].ends_with("; it is made again")) << said[0];
  EXPECT_EQ(of_process(90, made).loaded, count);
  EXPECT_THROW(of_process(90, made, /*is_full=*/true), DeviceError);
  EXPECT_EQ(of_process(90, made).loaded, count) << "a full device says nothing of what is kept";
  EXPECT_EQ(said.size(), 1u);
}

}  // namespace
}  // namespace fusejit::test
