// The check on a GPU, without one: every section through the driver without a device at toy size, so that a machine
// that has a GPU is no place to find out that a section does not start.
#include "tests/gpu_check/sections.h"

#include <gtest/gtest.h>

#include <fstream>

#include "codegen/cuda/nvrtc.h"
#include "fusejit/error.h"
#include "runtime/cudnn/library/library.h"
#include "tests/support/fake_device/fake_compiler.h"

namespace fusejit::gpu_check {
namespace {

using test::FakeDriver;

class Sections : public ::testing::Test {
 protected:
  FakeDriver fake_{{.memory_bytes = std::size_t{4} << 30}};

  MachineOptions options() {
    MachineOptions options;
    options.open = [this] { return runtime::cuda::CudaDevice::open(fake_.table(), 0); };
    options.compile = test::fake_compiler(fake_);
    options.toy = true;
    return options;
  }
  Json outcome(const char* name, const MachineOptions& options) {
    Report report(name);
    {
      Machine machine(options);
      run(*find_section(name), machine, report);
    }
    EXPECT_EQ(fake_.problems(), std::vector<std::string>()) << name;
    EXPECT_EQ(fake_.leaks(), std::vector<std::string>()) << name;
    return report.json();
  }
};

TEST_F(Sections, ThoseWithoutALibraryRunToTheirEnd) {
  for (const char* name :
       {"machine", "errors", "conformance", "random", "kernels", "training", "bandwidth", "steps", "profile"}) {
    MachineOptions without = options();
    without.cudnn = false;
    const Json json = outcome(name, without);
    EXPECT_EQ(json["state"], "passed") << text(json);
    EXPECT_GT(json["checks"].size() + json["rows"].size(), 0u) << name;
  }
}

// As on a device, a kernel that writes to no memory runs, and costs the section its device.
TEST(ErrorsSection, ABadKernelIsSurvived) {
  if (!codegen::cuda::nvrtc().available) GTEST_SKIP() << codegen::cuda::nvrtc().why_not;
  FakeDriver fake({.memory_bytes = std::size_t{4} << 30, .faults = true});
  MachineOptions options;
  options.open = [&] { return runtime::cuda::CudaDevice::open(fake.table(), 0); };
  options.compile = test::fake_compiler(fake);
  Report report("errors");
  {
    Machine machine(options);
    run(*find_section("errors"), machine, report);
  }
  const std::string said = text(report.json());
  // Machine code of another architecture is taken by a driver that runs none.
  EXPECT_EQ(report.failures(), 1) << said;
  for (const char* part : {"machine code of another architecture: nothing was thrown",
                           "CUDA_ERROR_ILLEGAL_ADDRESS (700)", "was lost by an earlier error"}) {
    EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
  }
  EXPECT_EQ(said.find("the CPU works in the same process: "), std::string::npos) << said;
  EXPECT_EQ(fake.problems(), std::vector<std::string>());
  EXPECT_EQ(fake.leaks(), std::vector<std::string>());
}

// The fake driver is none that cuDNN could use: plans fall back to kernels, and sections of cuDNN's own say so.
TEST_F(Sections, ThoseOfCudnnSayWhatIsMissing) {
  const Json conformance = outcome("conformance", options());
  EXPECT_EQ(conformance["state"], "passed") << text(conformance);
  for (const char* name : {"cudnn-numbers", "tiers"}) {
    const Json json = outcome(name, options());
    EXPECT_NE(json["state"], "passed") << text(json);
    EXPECT_NE(json["sentence"].get<std::string>().find("cuDNN"), std::string::npos) << text(json);
  }
}

TEST_F(Sections, TheTableIsProbedWithADescription) {
  if (!runtime::cudnn::Library::load()->available()) GTEST_SKIP() << runtime::cudnn::Library::load()->why_not();
  const Json json = outcome("cudnn-device", options());
  EXPECT_EQ(json["state"], "passed") << text(json);
  EXPECT_NE(text(json).find("cells of the table probed with the real description, 0 differ"), std::string::npos)
      << text(json);
  EXPECT_EQ(json["rows"].size(), 0u) << "a description differs from itself: " << text(json);
}

TEST_F(Sections, EachCanFailAtEveryPlace) {
  struct Case {
    const char* name;
    std::vector<std::int64_t> calls;
  };
  for (const auto& [name, calls] : {Case{"machine", {1, 5, 15}}, {"training", {1, 5, 40}}, {"steps", {1, 5, 40}}}) {
    for (const std::int64_t k : calls) {
      MachineOptions without = options();
      without.cudnn = false;
      fake_.fail_call(k, 999);
      Report report(name);
      {
        Machine machine(without);
        run(*find_section(name), machine, report);
      }
      fake_.fail_nothing();
      EXPECT_EQ(report.json()["state"], "failed") << fake_.failed_symbol() << "\n" << text(report.json());
      EXPECT_EQ(report.json()["sentence"].get<std::string>().find('\n'), std::string::npos);
      EXPECT_EQ(fake_.leaks(), std::vector<std::string>()) << name << " call " << k;
    }
  }
}

TEST_F(Sections, ALostDeviceIsSaidOnce) {
  MachineOptions without = options();
  without.cudnn = false;
  fake_.break_next_kernel(700);  // an illegal address
  Report report("conformance");
  {
    Machine machine(without);
    run(*find_section("conformance"), machine, report);
  }
  EXPECT_EQ(report.json()["state"], "failed");
  EXPECT_EQ(report.failures(), 1) << text(report.json());
  EXPECT_EQ(report.json()["sentence"].get<std::string>().find("the device is lost: "), 0u) << text(report.json());
}

TEST_F(Sections, WrongNumbersAreFailures) {
  MachineOptions wrong = options();
  wrong.cudnn = false;
  wrong.compile = test::fake_compiler(fake_, [](std::string text) {
    for (std::size_t at; (at = text.find("= add(")) != std::string::npos;) text.replace(at, 6, "= sub(");
    return text;
  });
  for (const char* name : {"kernels", "conformance"}) {
    Report report(name);
    Machine machine(wrong);
    run(*find_section(name), machine, report);
    EXPECT_EQ(report.json()["state"], "failed") << text(report.json());
  }
}

}  // namespace
}  // namespace fusejit::gpu_check
