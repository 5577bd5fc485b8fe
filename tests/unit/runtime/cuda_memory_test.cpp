// Memory of a device: reuse in stream order, limits, copies, and what remains after any call failed.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <numeric>

#include "runtime/cuda/device.h"
#include "tests/support/fake_device/fake_kernels.h"

namespace fusejit::runtime::cuda {
namespace {

using test::FakeDriver;
using Strings = std::vector<std::string>;

Type floats(std::int64_t count) { return Type{DType::f32, Shape{count}}; }

Buffer counted(std::int64_t count) {
  Buffer buffer = Buffer::allocate(floats(count));
  auto* first = static_cast<float*>(buffer.data());
  std::iota(first, first + count, 0.0f);
  return buffer;
}

bool is_counted(const Buffer& buffer) {
  const auto* values = static_cast<const float*>(buffer.data());
  for (std::int64_t i = 0; i < buffer.bytes() / 4; ++i) {
    if (values[i] != static_cast<float>(i)) return false;
  }
  return true;
}

void expect_clean(const FakeDriver& fake) {
  EXPECT_EQ(fake.problems(), Strings());
  EXPECT_EQ(fake.leaks(), Strings());
}

// Nothing was used wrongly by work that is done now.
void expect_clean_after(const FakeDriver& fake, CudaDevice& device) {
  device.synchronize();
  EXPECT_EQ(fake.problems(), Strings());
}

TEST(DeviceAllocator, ReusesBlocksAndCounts) {
  FakeDriver fake;
  {
    const auto device = CudaDevice::open(fake.table(), 0);
    DeviceAllocator& memory = device->memory();
    const CuPointer a = memory.allocate(1000);
    const CuPointer b = memory.allocate(5 << 20);
    EXPECT_EQ(memory.statistics().allocated, 1024 + (5 << 20));
    memory.deallocate(a);
    memory.deallocate(b);
    EXPECT_EQ(memory.statistics().allocated, 0);
    EXPECT_EQ(memory.statistics().peak, 1024 + (5 << 20));
    EXPECT_EQ(memory.statistics().reserved, 1024 + (5 << 20));
    EXPECT_EQ(memory.allocate((5 << 20) - 70000), b) << "a block that wastes little serves";
    EXPECT_EQ(memory.allocate(600), a);
    EXPECT_NE(memory.allocate(600), a) << "in use";
    EXPECT_EQ(memory.statistics().driver_allocations, 3);
    EXPECT_EQ(memory.statistics().requests, 5);
    memory.deallocate(a);
    memory.release_cached();
    EXPECT_EQ(fake.memory_in_use(), 1024u + (5 << 20));
    memory.deallocate(12345);  // no block: nothing happens
    memory.deallocate(b);
    EXPECT_EQ(memory.statistics().allocated, 1024);
  }
  EXPECT_EQ(fake.leaks(), Strings{"1 blocks of device memory"}) << "the one that was never given back";
}

TEST(DeviceAllocator, GivesCachedBlocksBackBeforeItSaysOutOfMemory) {
  FakeDriver fake({.memory_bytes = 16 << 20});
  const auto device = CudaDevice::open(fake.table(), 0);
  DeviceAllocator& memory = device->memory();
  memory.deallocate(memory.allocate(10 << 20));
  const CuPointer twelve = memory.allocate(12 << 20);  // fits only without the ten
  EXPECT_EQ(memory.statistics().reserved, 12 << 20);
  try {
    memory.allocate(8 << 20);
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_STREQ(error.what(),
                 "cuda:0: out of memory: 8.0 MiB asked for with 12.0 MiB in use by fusejit; the device has 4.0 MiB of "
                 "16.0 MiB free; a smaller batch needs less");
  }
  EXPECT_NO_THROW(memory.deallocate(memory.allocate(4 << 20))) << "the next request works";
  memory.deallocate(twelve);
}

TEST(DeviceAllocator, KeepsToItsLimit) {
  FakeDriver fake;
  const auto device = CudaDevice::open(fake.table(), 0);
  DeviceAllocator& memory = device->memory();
  memory.set_limit(4 << 20);
  memory.deallocate(memory.allocate(3 << 20));
  memory.deallocate(memory.allocate(4 << 20));
  try {
    memory.allocate(5 << 20);
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("the limit set is 4.0 MiB"), std::string::npos) << error.what();
  }
  memory.set_limit(0);
  memory.deallocate(memory.allocate(5 << 20));
}

TEST(DeviceAllocator, WaitsForTheStreamBeforeItGivesBlocksBack) {
  FakeDriver fake;
  const auto device = CudaDevice::open(fake.table(), 0);
  DeviceAllocator& memory = device->memory();
  const std::function<void()> ways[] = {
      [&] { memory.release_cached(); },
      [&] { memory.set_limit(1), memory.set_limit(0); },
      [&] { EXPECT_THROW(memory.allocate(std::int64_t{1} << 40), DeviceError); },
  };
  for (const auto& give_back : ways) {
    const CuPointer block = memory.allocate(1000);
    device->context().call(device->context().driver().fill_bytes, block, 1, 1000, device->stream());
    memory.deallocate(block);
    give_back();
    EXPECT_EQ(memory.statistics().reserved, 0);
    EXPECT_EQ(fake.memory_in_use(), 0u);
  }
  expect_clean_after(fake, *device);
}

TEST(DeviceAllocator, NoSizeIsTooBigToBeRefused) {
  FakeDriver fake;
  const auto device = CudaDevice::open(fake.table(), 0);
  for (const std::int64_t limit : {std::int64_t{0}, std::int64_t{1} << 20}) {
    device->memory().set_limit(limit);
    for (const std::int64_t bytes : {INT64_MAX, INT64_MAX - 70000, INT64_MAX / 2, std::int64_t{1} << 50}) {
      EXPECT_THROW(device->memory().allocate(bytes), DeviceError) << bytes;
    }
    EXPECT_NO_THROW(device->memory().deallocate(device->memory().allocate(1000)));
  }
}

TEST(DeviceAllocator, MakesRoomForWhatIsNotItsOwn) {
  FakeDriver fake({.memory_bytes = 16 << 20, .module_bytes = 8 << 20});
  const auto device = CudaDevice::open(fake.table(), 0);
  DeviceAllocator& memory = device->memory();
  const auto load = [&] {
    CuModule module = nullptr;
    device->context().call(device->context().driver().module_load_data, &module, test::kFakeImage.c_str());
    return module;
  };
  const CuPointer small = memory.allocate(1 << 20);
  memory.deallocate(memory.allocate(10 << 20));
  EXPECT_THROW(load(), DriverError);
  const CuModule module = memory.with_room(load);
  EXPECT_EQ(memory.statistics().reserved, 1 << 20) << "what is in use stays";
  EXPECT_THROW(memory.with_room(load), DriverError) << "there is no room at all";
  device->context().release(device->context().driver().module_unload, module);
  memory.deallocate(small);
  expect_clean_after(fake, *device);
}

TEST(CudaDevice, CopiesThereAndBack) {
  FakeDriver fake;
  {
    const auto device = CudaDevice::open(fake.table(), 0);
    for (const std::int64_t count : {1, 100, (4 << 20) / 4, (4 << 20) / 4 + 1, 5 << 20}) {
      Buffer host = counted(count);
      const Buffer there = device->upload(host);
      std::memset(host.data(), 0, static_cast<std::size_t>(host.bytes()));  // may change once upload() has returned
      EXPECT_EQ(there.device(), Device("cuda:0"));
      EXPECT_TRUE(there.exclusive());
      EXPECT_TRUE(is_counted(device->download(there))) << count;
    }
    EXPECT_EQ(fake.count("cuStreamSynchronize"), 0) << "copies wait for events of their own";
  }
  expect_clean(fake);
}

TEST(CudaDevice, ManySmallUploadsShareStagingMemory) {
  FakeDriver fake;
  {
    const auto device = CudaDevice::open(fake.table(), 0);
    std::vector<Buffer> there;
    for (int i = 0; i < 300; ++i) there.push_back(device->upload(counted(100 + i)));
    EXPECT_EQ(fake.count("cuMemHostAlloc"), 1);
    EXPECT_EQ(fake.count("cuEventSynchronize"), 0) << "nothing waits while there is room";
    for (const Buffer& buffer : there) EXPECT_TRUE(is_counted(device->download(buffer)));
  }
  expect_clean(fake);
}

TEST(CudaDevice, BufferOfADeviceIsNotForTheHost) {
  FakeDriver fake;
  const auto device = CudaDevice::open(fake.table(), 0);
  const Buffer buffer = device->allocate(floats(3));
  EXPECT_THROW(buffer.data(), InternalError);
}

TEST(CudaDevice, BuffersKeepTheirDeviceAlive) {
  FakeDriver fake;
  Buffer buffer;
  {
    const auto device = CudaDevice::open(fake.table(), 0);
    buffer = device->upload(counted(10));
  }
  EXPECT_EQ(fake.memory_in_use(), 512u);
  buffer = {};
  expect_clean(fake);
}

TEST(CudaDevice, UseAfterGivingBackShowsAsNaN) {
  FakeDriver fake;
  const auto device = CudaDevice::open(fake.table(), 0);
  device->memory().poison_freed(true);
  Buffer buffer = device->upload(counted(10));
  const Buffer stale =
      Buffer::on_device(device->device(), buffer.address(), buffer.type(), [] {});  // a handle that keeps nothing
  buffer = {};
  EXPECT_NE(*static_cast<float*>(device->download(stale).data()), 0.0f);
}

TEST(CudaDevice, LosesNothingWhenAnyCallFails) {
  for (const CuResult code : {2, 700, 999}) {
    for (int k = 1;; ++k) {
      FakeDriver fake;
      bool failed = false;
      {
        std::shared_ptr<CudaDevice> device;
        const auto work = [&] {
          if (!device) device = CudaDevice::open(fake.table(), 0);
          const Buffer a = device->upload(counted((4 << 20) / 4 + 1));
          const Buffer b = device->upload(counted(10));
          return is_counted(device->download(a)) && is_counted(device->download(b));
        };
        fake.fail_call(k, code);
        try {
          EXPECT_TRUE(work());
        } catch (const DeviceError& error) {
          EXPECT_NE(std::string(error.what()).find('('), std::string::npos) << error.what();
        }
        failed = fake.failed();
        if (failed && code != 700) {
          EXPECT_TRUE(work()) << fake.failed_symbol();  // the next call works
        } else if (failed && device && device->context().lost()) {
          EXPECT_THROW(work(), DeviceError);
        }
      }
      EXPECT_EQ(fake.problems(), Strings()) << fake.failed_symbol() << " " << k;
      EXPECT_EQ(fake.leaks(), Strings()) << fake.failed_symbol() << " " << k;
      if (!failed) break;
    }
  }
}

}  // namespace
}  // namespace fusejit::runtime::cuda
