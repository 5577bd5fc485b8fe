// What keeps a CUDA device from being used: a sentence each, and the processor works.
#include <gtest/gtest.h>

#include "codegen/cuda/nvrtc.h"
#include "fusejit/fusejit.h"
#include "runtime/cuda/backend.h"
#include "runtime/cuda/device.h"
#include "tests/support/error_of.h"
#include "tests/support/fake_device/fake_driver.h"

namespace fusejit {
namespace {

using testing::error_of;

TEST(CudaUnavailable, SaysWhatIsMissingAndTheProcessorWorks) {
  set_options({.engine = "graph_interpreter"});  // which every build has
  for (const Device& device : {Device("cuda:0"), Device("cuda:1023")}) {
    const std::string why = why_unavailable(device);
    if (why.empty()) continue;  // this machine has it
    EXPECT_TRUE(why.starts_with(device.str())) << why;
    EXPECT_FALSE(is_available(device));
    EXPECT_EQ(error_of<Error>([&] { ones({2}).to(device); }), why);
    EXPECT_EQ(error_of<Error>([&] { set_options({.device = device.str()}); }), why);
    EXPECT_EQ(error_of<Error>([&] { memory::allocated(device); }), why);
    nn::Linear net(2, 2);
    EXPECT_EQ(error_of<Error>([&] { net.to(device); }), why);
    EXPECT_EQ(net.parameters()[0].value().device(), Device());
  }
  EXPECT_EQ(options().device, "cpu");
  EXPECT_EQ((ones({2}) + 1).to_vector<float>()[0], 2);
  ASSERT_FALSE(devices().empty());
  EXPECT_EQ(devices()[0].device, Device());
  EXPECT_GT(devices()[0].memory_bytes, 0);
  EXPECT_TRUE(is_available(Device()));
  set_options({});
}

TEST(CudaUnavailable, EveryStateOfTheDriverHasItsSentence) {
  using namespace runtime::cuda;
  const struct {
    test::FakeDevice device;
    std::string sentence;
  } cases[] = {
      {{.version = 11080}, "cuda:0: the driver libcuda.so.1 is too old: it is for CUDA 11.8, 12.0 or newer is needed"},
      {{.devices = 0}, "cuda:0: the driver libcuda.so.1 sees no device; see whether nvidia-smi lists one"},
      {{.init = 100}, "cuda:0: the driver libcuda.so.1 sees no device; see whether nvidia-smi lists one"},
      {{.init = 803}, "cuda:0: libcuda.so.1 does not start: cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)"},
      {{.devices = 1}, ""},
  };
  for (const auto& c : cases) {
    const test::FakeDriver fake(c.device);
    const DriverState state = examine_driver(*fake.table(), "libcuda.so.1");
    EXPECT_TRUE(why_no_device(Device("cuda:0"), state).starts_with(c.sentence))
        << why_no_device(Device("cuda:0"), state);
    EXPECT_EQ(why_no_device(Device("cuda:0"), state).empty(), c.sentence.empty());
  }
  const test::FakeDriver one;
  EXPECT_EQ(why_no_device(Device("cuda:1"), examine_driver(*one.table(), "libcuda.so.1")),
            "cuda:1: there is 1 device, counted from 0 (see `fusejit doctor`)");
  const std::string none = why_no_device(Device("cuda:0"), open_driver("/no/such/libcuda.so.1"));
  EXPECT_TRUE(none.starts_with("cuda:0: no CUDA driver: /no/such/libcuda.so.1 cannot be opened")) << none;
}

TEST(CudaUnavailable, SaysWhyKernelsCannotBeCompiled) {
  const std::string missing = runtime::why_no_kernels("cuda:0", 90, codegen::cuda::look_for_nvrtc("/no/libnvrtc.so"));
  EXPECT_TRUE(missing.starts_with("cuda:0: kernels cannot be compiled: NVRTC was not found")) << missing;
  codegen::cuda::NvrtcState nvrtc{true, "", "libnvrtc.so.13", 13, 0, {75, 80, 90}};
  for (const int driver : {13000, 13010, 14000, 0}) {
    EXPECT_EQ(runtime::why_no_kernels("cuda:0", 80, nvrtc, driver), "") << driver;
  }
  EXPECT_EQ(runtime::why_no_kernels("cuda:0", 80, nvrtc, 12080),
            "cuda:0: its driver is for CUDA 12.8 and cannot load what NVRTC 13.0 (libnvrtc.so.13) compiles; update the "
            "driver, or let FUSEJIT_NVRTC name an NVRTC 12");
  EXPECT_EQ(runtime::why_no_kernels("cuda:0", 61, nvrtc, 13000),
            "cuda:0 is of the architecture sm_61, for which NVRTC 13.0 (libnvrtc.so.13) does not compile (it does for "
            "sm_75, sm_80, sm_90); let FUSEJIT_NVRTC name an older NVRTC, or use a newer device");
  EXPECT_NE(runtime::why_no_kernels("cuda:0", 200, nvrtc, 13000).find("install a newer NVRTC"), std::string::npos);
}

}  // namespace
}  // namespace fusejit
