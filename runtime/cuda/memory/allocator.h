// DeviceAllocator: memory of one device, kept for reuse, because cuMemAlloc and cuMemFree are slow and wait. It is
// ordered by one stream: a block given back may be handed out at once, to later work of the same stream, though the
// device still works with it. Big enough cached blocks serve a request if they waste little.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "runtime/cuda/driver/context.h"

namespace fusejit::runtime::cuda {

struct DeviceMemoryStatistics {
  std::int64_t allocated = 0;  // bytes handed out now
  std::int64_t peak = 0;       // the most since the last reset
  std::int64_t reserved = 0;   // bytes taken from the driver, cached blocks included
  std::int64_t limit = 0;      // `reserved` stays below; 0: what the device has
  std::int64_t requests = 0;
  std::int64_t driver_allocations = 0;  // requests that no cached block could serve
};

class DeviceAllocator {
 public:
  // `context` outlives the allocator; `stream` is the one whose work uses the memory.
  DeviceAllocator(DeviceContext& context, CuStream stream) : context_(context), stream_(stream) {}
  ~DeviceAllocator();
  DeviceAllocator(const DeviceAllocator&) = delete;
  DeviceAllocator& operator=(const DeviceAllocator&) = delete;

  // 256-byte aligned. Where the device or the limit is full, cached blocks are given back first; then DeviceError with
  // the sizes.
  CuPointer allocate(std::int64_t bytes);
  void deallocate(CuPointer block) noexcept;

  DeviceMemoryStatistics statistics() const;
  void reset_peak();
  // 0: no limit. Blocks in use stay.
  void set_limit(std::int64_t bytes);
  // Gives cached blocks back to the driver, after the stream's work is done.
  void release_cached() noexcept;
  // make(), which takes memory that is not the allocator's (modules, graphs); where the device is full, again without
  // the cached blocks.
  template <class Make>
  auto with_room(const Make& make) {
    try {
      return make();
    } catch (const DriverError& error) {
      if (error.code != kOutOfMemory) throw;
    }
    release_cached();
    return make();
  }
  // For tests: blocks given back are filled with NaN, so that a use after that shows.
  void poison_freed(bool on) { poison_ = on; }

 private:
  CuPointer fresh(std::int64_t bytes);
  void release_locked() noexcept;
  [[noreturn]] void refuse(std::int64_t bytes);

  DeviceContext& context_;
  const CuStream stream_;
  bool poison_ = false;
  mutable std::mutex mutex_;
  std::multimap<std::int64_t, CuPointer> free_;
  std::unordered_map<CuPointer, std::int64_t> live_;
  DeviceMemoryStatistics statistics_;
};

// A block, owned.
class DeviceBlock {
 public:
  DeviceBlock() = default;
  // Empty for 0 bytes.
  DeviceBlock(DeviceAllocator& allocator, std::int64_t bytes)
      : allocator_(&allocator), address_(bytes > 0 ? allocator.allocate(bytes) : 0) {}
  ~DeviceBlock() {
    if (address_ != 0) allocator_->deallocate(address_);
  }
  DeviceBlock(DeviceBlock&& other) noexcept
      : allocator_(other.allocator_), address_(std::exchange(other.address_, 0)) {}
  DeviceBlock& operator=(DeviceBlock&& other) noexcept {
    std::swap(allocator_, other.allocator_);
    std::swap(address_, other.address_);
    return *this;
  }
  CuPointer get() const { return address_; }
  // The caller gives the block back.
  CuPointer give_up() { return std::exchange(address_, 0); }

 private:
  DeviceAllocator* allocator_ = nullptr;
  CuPointer address_ = 0;
};

}  // namespace fusejit::runtime::cuda
