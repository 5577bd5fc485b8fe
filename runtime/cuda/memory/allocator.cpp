#include "runtime/cuda/memory/allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "ir/base/number.h"

namespace fusejit::runtime::cuda {
namespace {

constexpr std::int64_t kSmallUnit = 512;
constexpr std::int64_t kLargeUnit = 64 << 10;
constexpr std::int64_t kLarge = 1 << 20;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;  // so that sums of sizes are numbers
// A cached block serves a request if it wastes at most an eighth of itself (or a unit).
constexpr std::int64_t waste_limit(std::int64_t bytes) { return std::max(bytes / 8, kSmallUnit); }

constexpr std::int64_t rounded(std::int64_t bytes) {
  const std::int64_t unit = bytes >= kLarge ? kLargeUnit : kSmallUnit;
  return std::max(kSmallUnit, (bytes + unit - 1) / unit * unit);
}

}  // namespace

DeviceAllocator::~DeviceAllocator() { release_cached(); }

CuPointer DeviceAllocator::allocate(std::int64_t bytes) {
  const std::int64_t size = rounded(std::min(bytes, kMostBytes));
  const std::lock_guard lock(mutex_);
  ++statistics_.requests;
  CuPointer block = 0;
  std::int64_t block_size = size;
  if (auto found = free_.lower_bound(size); found != free_.end() && found->first - size <= waste_limit(size)) {
    // Of equal blocks the one given back last: what every step asks for in the same order it gets at the same
    // addresses.
    found = std::prev(free_.upper_bound(found->first));
    block_size = found->first;
    block = found->second;
    free_.erase(found);
  } else {
    block = fresh(size);
    statistics_.reserved += size;
    ++statistics_.driver_allocations;
  }
  live_.emplace(block, block_size);
  statistics_.allocated += block_size;
  statistics_.peak = std::max(statistics_.peak, statistics_.allocated);
  return block;
}

// A new block of the driver; nothing is counted yet.
CuPointer DeviceAllocator::fresh(std::int64_t bytes) {
  const auto within_limit = [&] { return statistics_.limit == 0 || statistics_.reserved + bytes <= statistics_.limit; };
  if (!within_limit()) release_locked();
  if (!within_limit()) refuse(bytes);
  const auto& entry = context_.driver().memory_allocate;
  CuPointer block = 0;
  CuResult code = context_.ask(entry, &block, bytes);
  if (code == kOutOfMemory) {
    release_locked();
    code = context_.ask(entry, &block, bytes);
  }
  if (code == kOutOfMemory) refuse(bytes);
  context_.check(entry.symbol, code);
  return block;
}

void DeviceAllocator::refuse(std::int64_t bytes) {
  std::size_t free = 0, total = 0;
  std::string device;
  if (context_.ask(context_.driver().memory_get_info, &free, &total) == kSuccess) {
    device = fmt::format("; the device has {} of {} free", ir::bytes_text(static_cast<std::int64_t>(free)),
                         ir::bytes_text(static_cast<std::int64_t>(total)));
  }
  if (statistics_.limit > 0) device += fmt::format("; the limit set is {}", ir::bytes_text(statistics_.limit));
  throw DeviceError(
      fmt::format("{}: out of memory: {} asked for with {} in use by fusejit{}; a smaller batch needs less",
                  context_.name(), ir::bytes_text(bytes), ir::bytes_text(statistics_.allocated), device));
}

void DeviceAllocator::deallocate(CuPointer block) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(block);
  if (found == live_.end()) return;
  const std::int64_t size = found->second;
  live_.erase(found);
  statistics_.allocated -= size;
  if (poison_) context_.release(context_.driver().fill_bytes, block, 0xff, size, stream_);
  try {
    free_.emplace(size, block);
  } catch (...) {  // no host memory to remember it by
    context_.release(context_.driver().stream_synchronize, stream_);
    context_.release(context_.driver().memory_free, block);
    statistics_.reserved -= size;
  }
}

DeviceMemoryStatistics DeviceAllocator::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

void DeviceAllocator::reset_peak() {
  const std::lock_guard lock(mutex_);
  statistics_.peak = statistics_.allocated;
}

void DeviceAllocator::set_limit(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  statistics_.limit = bytes;
  if (bytes > 0 && statistics_.reserved > bytes) release_locked();
}

void DeviceAllocator::release_cached() noexcept {
  const std::lock_guard lock(mutex_);
  release_locked();
}

// Queued work may still use a block that was given back, and that cuMemFree waits for it is promised nowhere.
void DeviceAllocator::release_locked() noexcept {
  if (free_.empty()) return;
  context_.release(context_.driver().stream_synchronize, stream_);
  for (const auto& [size, block] : free_) {
    context_.release(context_.driver().memory_free, block);
    statistics_.reserved -= size;
  }
  free_.clear();
}

}  // namespace fusejit::runtime::cuda
