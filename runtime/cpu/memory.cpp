#include "runtime/cpu/memory.h"

#include <malloc.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <new>
#include <unordered_map>

#include "ir/base/check.h"
#include "runtime/cpu/page_pool.h"

namespace fusejit::runtime {
namespace {

constexpr std::int64_t kAlignment = 64;
// Where a sanitizer watches, every block is one of malloc's, with nothing but forbidden bytes around it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::int64_t kPooled = std::numeric_limits<std::int64_t>::max();
#else
constexpr std::int64_t kPooled = 64 << 10;
#endif

// Regions of the pool are reserved without being promised (page_pool.cpp), so nobody else refuses what can never be
// there.
std::int64_t memory_and_swap() {
  struct sysinfo machine {};
  if (sysinfo(&machine) != 0) return std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>((machine.totalram + machine.totalswap) * machine.mem_unit);
}

class Allocator {
 public:
  void* allocate(std::int64_t bytes) {
    const std::int64_t unit = bytes >= kPooled ? PagePool::kPage : kAlignment;
    const std::int64_t size = std::max((bytes + unit - 1) / unit * unit, kAlignment);
    std::lock_guard lock(mutex_);
    void* const block = take(size);
    if (block == nullptr) refuse(size);
    try {
      live_.emplace(block, size);
    } catch (const std::bad_alloc&) {
      give(block, size);
      refuse(size);
    }
    statistics_.allocated += size;
    statistics_.peak = std::max(statistics_.peak, statistics_.allocated);
    return block;
  }

  void deallocate(void* block) noexcept {
    std::lock_guard lock(mutex_);
    const auto found = live_.find(block);
    if (found == live_.end()) return;
    statistics_.allocated -= found->second;
    give(block, found->second);
    live_.erase(found);
  }

  MemoryStatistics statistics() {
    std::lock_guard lock(mutex_);
    MemoryStatistics now = statistics_;
    now.reserved = reserved();
    return now;
  }
  void reset_peak() {
    std::lock_guard lock(mutex_);
    statistics_.peak = statistics_.allocated;
  }
  void set_limit(std::int64_t bytes) {
    std::lock_guard lock(mutex_);
    limit_ = bytes > 0 ? bytes : kNoLimit;
    if (reserved() > limit_) pool_.release();
  }
  void release() {
    std::lock_guard lock(mutex_);
    pool_.release();
#ifdef __GLIBC__
    malloc_trim(0);
#endif
  }
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

  std::int64_t reserved() const { return pool_.held() + small_; }
  // Null where there is no more, also without what is kept for reuse.
  void* take(std::int64_t size) {
    if (size > machine_) return nullptr;
    try {
      if (size >= kPooled) return pool_.take(size, limit_ - small_);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    if (size > limit_ - reserved()) pool_.release();
    if (size > limit_ - reserved()) return nullptr;
    void* block = std::aligned_alloc(kAlignment, static_cast<std::size_t>(size));
    if (block == nullptr) {
      pool_.release();
      block = std::aligned_alloc(kAlignment, static_cast<std::size_t>(size));
    }
    if (block != nullptr) small_ += size;
    return block;
  }
  void give(void* block, std::int64_t size) noexcept {
    if (size >= kPooled) return pool_.give(block, size);
    small_ -= size;
    std::free(block);
  }
  [[noreturn]] void refuse(std::int64_t size) const {
    throw DeviceError(
        fmt::format("out of memory: {} bytes asked for with {} bytes in use{}; a smaller batch needs less", size,
                    statistics_.allocated, limit_ == kNoLimit ? "" : fmt::format(" and a limit of {} bytes", limit_)));
  }

  std::mutex mutex_;
  PagePool pool_;
  std::int64_t small_ = 0;  // bytes of blocks that are not of the pool
  std::int64_t limit_ = kNoLimit;
  const std::int64_t machine_ = memory_and_swap();
  std::unordered_map<void*, std::int64_t> live_;
  MemoryStatistics statistics_;
};

// One heap for the process, never destroyed: handles in static objects may outlive main().
Allocator& allocator() {
  static Allocator* instance = new Allocator;
  return *instance;
}

}  // namespace

void* allocate(std::int64_t bytes) { return allocator().allocate(bytes); }
void deallocate(void* block) noexcept { allocator().deallocate(block); }
MemoryStatistics memory_statistics() { return allocator().statistics(); }
void reset_peak() { allocator().reset_peak(); }
void set_memory_limit(std::int64_t bytes) { allocator().set_limit(bytes); }
std::int64_t machine_memory() { return std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE); }
void release_cached_memory() { allocator().release(); }
void lock_memory_for_fork() { allocator().lock(); }
void unlock_memory_after_fork() { allocator().unlock(); }

}  // namespace fusejit::runtime
