// Finding the driver: what every kind of machine says of itself, and how errors read.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/cuda/driver/context.h"
#include "runtime/cuda/driver/driver.h"
#include "runtime/cuda/driver/module.h"
#include "tests/support/fake_device/fake_kernels.h"

namespace fusejit::runtime::cuda {
namespace {

using test::FakeDevice;
using test::FakeDriver;

TEST(OpenDriver, NamesALibraryThatIsNotThere) {
  const DriverState state = open_driver("/nowhere/libcuda.so.1");
  EXPECT_EQ(state.driver, nullptr);
  EXPECT_NE(state.why_not.find("/nowhere/libcuda.so.1 cannot be opened"), std::string::npos) << state.why_not;
}

TEST(OpenDriver, NamesTheFunctionThatALibraryLacks) {
  const DriverState state = open_driver("libm.so.6");
  EXPECT_EQ(state.driver, nullptr);
  EXPECT_NE(state.why_not.find("has no cuInit"), std::string::npos) << state.why_not;
}

TEST(OpenDriver, SaysThatTheToolkitsStubIsNoDriver) {
  const char* stub = "/usr/local/cuda/lib64/stubs/libcuda.so";
  const DriverState state = open_driver(stub);
  if (state.why_not.find("cannot be opened") != std::string::npos) GTEST_SKIP() << "no toolkit with a stub driver here";
  EXPECT_EQ(state.driver, nullptr);
  EXPECT_NE(state.why_not.find("stub for linking, not a driver"), std::string::npos) << state.why_not;
}

TEST(ExamineDriver, SaysWhyADriverCannotBeUsed) {
  struct Case {
    FakeDevice device;
    const char* sentence;  // empty: it can be used
  };
  const std::vector<Case> cases = {
      {{}, ""},
      {{.devices = 0}, "sees no device"},
      {{.init = kNoDevice}, "sees no device"},
      {{.init = kStubLibrary}, "the toolkit's stub for linking, not a driver"},
      {{.version = 11080}, "is too old: it is for CUDA 11.8, 12.0 or newer is needed"},
      {{.init = 803},
       "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803): as the fake says; driver library and kernel module differ"},
      {{.init = 12345}, "cuInit: error 12345 (12345)"},
  };
  for (const Case& c : cases) {
    FakeDriver fake(c.device);
    const DriverState state = examine_driver(*fake.table(), "libfake");
    EXPECT_EQ(state.driver == nullptr, *c.sentence != '\0');
    EXPECT_NE(state.why_not.find(c.sentence), std::string::npos) << state.why_not << "\nexpected: " << c.sentence;
    EXPECT_EQ(fake.problems(), std::vector<std::string>());
  }
}

TEST(ExamineDriver, SurvivesTheFailureOfEachOfItsCalls) {
  for (int k = 1;; ++k) {
    FakeDriver fake;
    fake.fail_call(k, 999);
    const DriverState state = examine_driver(*fake.table(), "libfake");
    if (!fake.failed()) break;
    EXPECT_EQ(state.driver, nullptr);
    EXPECT_NE(state.why_not.find("CUDA_ERROR_UNKNOWN"), std::string::npos) << state.why_not;
  }
}

TEST(DriverTable, HasEveryNameOnce) {
  std::vector<std::string> symbols;
  Driver table;
  for_each_call(table, [&](auto& call) {
    symbols.emplace_back(call.symbol);
    EXPECT_EQ(call.function, nullptr);
  });
  std::sort(symbols.begin(), symbols.end());
  EXPECT_EQ(std::adjacent_find(symbols.begin(), symbols.end()), symbols.end());
  EXPECT_EQ(symbols.size() * sizeof(Call<int>), sizeof(Driver));
  FakeDriver fake;
  for_each_call(const_cast<Driver&>(*fake.table()),
                [](auto& call) { EXPECT_NE(call.function, nullptr) << call.symbol; });
}

TEST(DeviceContext, ReadsTheDevice) {
  FakeDriver fake({.name = "Fake H100", .memory_bytes = 80u << 20});
  {
    DeviceContext context(fake.table(), 0);
    EXPECT_EQ(context.name(), "cuda:0");
    EXPECT_EQ(context.properties().name, "Fake H100");
    EXPECT_EQ(context.properties().compute_capability, 90);
    EXPECT_EQ(context.properties().memory_bytes, 80 << 20);
    EXPECT_NEAR(context.properties().memory_gigabytes_per_second, 3352, 1);
    EXPECT_EQ(device_target(context.properties()), Target::parse("cuda:sm_90"));
  }
  EXPECT_EQ(fake.leaks(), std::vector<std::string>());
  EXPECT_EQ(fake.problems(), std::vector<std::string>());
}

TEST(DeviceContext, SaysWhichCallFailedAndWhatToTry) {
  FakeDriver fake;
  try {
    DeviceContext context(fake.table(), 3);
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_STREQ(error.what(),
                 "cuDeviceGet: CUDA_ERROR_INVALID_DEVICE (101): as the fake says; see `fusejit doctor` for the devices "
                 "there are");
  }
}

TEST(DeviceContext, RefusesEveryCallAfterAStickyError) {
  FakeDriver fake;
  DeviceContext context(fake.table(), 0);
  std::size_t free = 0, total = 0;
  const auto ask = [&] { context.call(context.driver().memory_get_info, &free, &total); };
  ask();
  fake.fail_call(2, 700);  // the call after making the context current
  EXPECT_THROW(ask(), DriverError);
  EXPECT_TRUE(context.lost());
  const std::int64_t calls = fake.calls();
  try {
    ask();
    FAIL();
  } catch (const DeviceError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("cuda:0 was lost by an earlier error: cuMemGetInfo: CUDA_ERROR_ILLEGAL_ADDRESS (700)"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("the CPU still works"), std::string::npos) << message;
  }
  EXPECT_EQ(fake.calls(), calls) << "a lost device is not asked again";
}

TEST(DeviceContext, GoesOnAfterAnErrorThatIsNotSticky) {
  FakeDriver fake;
  DeviceContext context(fake.table(), 0);
  std::size_t free = 0, total = 0;
  fake.fail_call(2, 1);
  EXPECT_THROW(context.call(context.driver().memory_get_info, &free, &total), DriverError);
  EXPECT_FALSE(context.lost());
  EXPECT_NO_THROW(context.call(context.driver().memory_get_info, &free, &total));
}

TEST(Module, AsksForSharedMemoryAndKnowsTheLimitsOfADevice) {
  FakeDriver fake;
  {
    DeviceContext context(fake.table(), 0);
    const auto module = std::make_shared<Module>(context, test::kFakeImage);
    const auto kernel =
        std::make_shared<const ir::Kernel>(ir::parse_kernel("kernel @k(%x: f32[4] write) on any { phase { } }"));
    codegen::cuda::CudaSource source = test::described(*kernel);
    codegen::cuda::CudaLaunch& launch = source.launches[0];
    for (const std::int64_t shared : {0, 48 << 10, 49 << 10, 227 << 10}) {
      launch.shared_bytes = shared;
      define_kernel(fake, kernel, source);
      EXPECT_EQ(load_kernel(context, module, source).launches[0].shared_bytes, shared);
      EXPECT_EQ(fake.count("cuFuncSetAttribute") > 0, shared > 48 << 10) << "nothing is asked for without need";
    }
    launch.shared_bytes = 228 << 10;
    try {
      load_kernel(context, module, source);
      FAIL();
    } catch (const UnsupportedError& error) {
      EXPECT_STREQ(error.what(), "kernel k needs 233472 bytes of shared memory a block, cuda:0 (Fake GPU) has 232448");
    }
    launch.shared_bytes = 0;
    using Extents = std::array<std::int64_t, 3>;
    for (const Extents& grid : {Extents{0, 1, 1},
                                {std::int64_t{1} << 31, 1, 1},
                                {std::int64_t{1} << 33, 1, 1},
                                {1, 65536, 1},
                                {1, 1, 65536},
                                {-1, 1, 1}}) {
      launch.grid = grid;
      EXPECT_THROW(load_kernel(context, module, source), InternalError) << grid[0] << " " << grid[1];
    }
    launch.grid = {(std::int64_t{1} << 31) - 1, 65535, 65535};
    EXPECT_NO_THROW(load_kernel(context, module, source));
    launch.block = {1025, 1, 1};
    EXPECT_THROW(load_kernel(context, module, source), InternalError);
  }
  EXPECT_EQ(fake.problems(), std::vector<std::string>());
  EXPECT_EQ(fake.leaks(), std::vector<std::string>());
}

}  // namespace
}  // namespace fusejit::runtime::cuda
