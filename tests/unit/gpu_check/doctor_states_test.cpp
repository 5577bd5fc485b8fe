// What the doctor says of machines that have a driver: each piece that can be missing, too old or too new.
#include <gtest/gtest.h>

#include "tests/support/fake_device/fake_driver.h"
#include "tools/fusejit/doctor.h"

namespace fusejit::tools {
namespace {

using test::FakeDevice;

struct Case {
  FakeDevice device;
  codegen::cuda::NvrtcState nvrtc;
  bool cuda;  // kernels run
  std::vector<const char*> said;
};

const codegen::cuda::NvrtcState kNvrtc13 = {true, "", "libnvrtc.so.13", 13, 0, {75, 80, 90, 100}};
const codegen::cuda::NvrtcState kNvrtc12 = {true, "", "libnvrtc.so.12", 12, 8, {50, 75, 80, 90, 100}};
const codegen::cuda::NvrtcState kNoNvrtc = {false, "NVRTC was not found; install it", "", 0, 0, {}};

TEST(DoctorStates, EachHasItsSentence) {
  const Case cases[] = {
      {{.devices = 2},
       kNvrtc13,
       true,
       {"driver     works    for CUDA 13.0", "cuda:0     works    Fake GPU, sm_90, 132 multiprocessors, 1.0 GiB",
        "cuda:1     works", "NVRTC      works    13.0, for sm_75 to sm_100", "and on the GPU."}},
      {{.version = 12080},
       kNvrtc13,
       false,
       {"driver     works    for CUDA 12.8", "cuda:0     MISSING",
        "its driver is for CUDA 12.8 and cannot load what NVRTC 13.0 (libnvrtc.so.13) compiles; update the driver, or",
        "but not run: what is MISSING above says why."}},
      {{.version = 12080}, kNvrtc12, true, {"cuda:0     works", "and on the GPU."}},
      {{.version = 11040}, kNvrtc12, false, {"driver     MISSING", "is too old: it is for CUDA 11.4, 12.0 or newer"}},
      {{.compute_capability = 61},
       kNvrtc13,
       false,
       {"cuda:0     MISSING  Fake GPU, sm_61", "NVRTC 13.0 (libnvrtc.so.13) does not compile", "an older NVRTC"}},
      {{}, kNoNvrtc, false, {"cuda:0     works", "NVRTC      MISSING  NVRTC was not found", "but no NVRTC to compile"}},
      {{.devices = 0}, kNvrtc13, false, {"driver     MISSING", "sees no device", "there is no GPU to run them."}},
      {{.init = 803}, kNvrtc13, false, {"driver     MISSING", "restart the machine"}},
  };
  const auto no_cudnn = runtime::cudnn::Library::load("/nowhere/libcudnn.so.9");
  for (const Case& c : cases) {
    const test::FakeDriver fake(c.device);
    const Diagnosis found = diagnose(examine_driver(*fake.table(), "libcuda.so.1"), c.nvrtc, *no_cudnn);
    const std::string table = text(found);
    EXPECT_EQ(found.cuda, c.cuda) << table;
    EXPECT_EQ(found.cuda_code, c.nvrtc.available) << table;
    for (const char* part : c.said) EXPECT_NE(table.find(part), std::string::npos) << part << "\nis not in\n" << table;
    EXPECT_NE(table.find("cuDNN      MISSING"), std::string::npos) << table;
    EXPECT_EQ(fake.problems(), std::vector<std::string>());
  }
}

TEST(DoctorStates, AnyCallOfTheDriverMayFail) {
  const auto no_cudnn = runtime::cudnn::Library::load("/nowhere/libcudnn.so.9");
  bool reached = true;
  for (std::int64_t k = 1; reached; ++k) {
    test::FakeDriver fake;
    const runtime::cuda::DriverState state = examine_driver(*fake.table(), "libcuda.so.1");
    fake.fail_call(k, 999);
    const std::string table = text(diagnose(state, kNvrtc13, *no_cudnn));
    reached = fake.failed();
    const bool said = table.find("CUDA_ERROR_UNKNOWN (999)") != std::string::npos;
    EXPECT_EQ(said || fake.failed_symbol() == "cuDeviceGetAttribute", reached) << fake.failed_symbol() << "\n" << table;
  }
}

// cuDNN has code for some architectures only.
TEST(DoctorStates, CudnnMayNotServeADevice) {
  const auto cudnn = runtime::cudnn::Library::load();
  if (!cudnn->available()) GTEST_SKIP() << cudnn->why_not();
  for (const bool served : {true, false}) {
    const test::FakeDriver fake({.compute_capability = served ? 90 : 70});
    codegen::cuda::NvrtcState nvrtc = kNvrtc12;
    nvrtc.architectures = {70, 90};
    const Diagnosis found = diagnose(examine_driver(*fake.table(), "libcuda.so.1"), nvrtc, *cudnn);
    EXPECT_TRUE(found.cuda) << "kernels do without it";
    EXPECT_EQ(text(found).find("has no code for sm_70") == std::string::npos, served) << text(found);
  }
}

}  // namespace
}  // namespace fusejit::tools
