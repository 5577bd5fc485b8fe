#include "runtime/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <unordered_map>

#include "ir/base/check.h"

namespace fusejit::runtime {
namespace {

constexpr std::int64_t kAlignment = 64;
constexpr std::int64_t kHugePage = 2 << 20;
// A cached block serves a request if it wastes at most an eighth of itself (or a page).
constexpr std::int64_t waste_limit(std::int64_t bytes) { return std::max<std::int64_t>(bytes / 8, 4096); }

class Allocator {
 public:
  void* allocate(std::int64_t bytes) {
    const std::int64_t size = rounded(bytes);
    std::lock_guard lock(mutex_);
    void* block = nullptr;
    std::int64_t block_size = size;
    if (auto found = free_.lower_bound(size); found != free_.end() && found->first - size <= waste_limit(size)) {
      block_size = found->first;
      block = found->second;
      free_.erase(found);
    } else {
      block = fresh(size);
      statistics_.reserved += size;
    }
    live_.emplace(block, block_size);
    statistics_.allocated += block_size;
    statistics_.peak = std::max(statistics_.peak, statistics_.allocated);
    return block;
  }

  void deallocate(void* block) noexcept {
    std::lock_guard lock(mutex_);
    const auto found = live_.find(block);
    if (found == live_.end()) return;
    statistics_.allocated -= found->second;
    try {
      free_.emplace(found->second, block);
    } catch (const std::bad_alloc&) {  // not even room to note it down
      statistics_.reserved -= found->second;
      std::free(block);
    }
    live_.erase(found);
  }

  MemoryStatistics statistics() {
    std::lock_guard lock(mutex_);
    return statistics_;
  }
  void reset_peak() {
    std::lock_guard lock(mutex_);
    statistics_.peak = statistics_.allocated;
  }
  void release() {
    std::lock_guard lock(mutex_);
    release_locked();
  }
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  static std::int64_t rounded(std::int64_t bytes) {
    const std::int64_t unit = bytes >= kHugePage ? 4096 : kAlignment;
    return std::max<std::int64_t>((bytes + unit - 1) / unit * unit, kAlignment);
  }
  void* fresh(std::int64_t size) {
    void* block = take_from_system(size);
    if (block == nullptr) {
      release_locked();
      block = take_from_system(size);
    }
    if (block == nullptr) {
      throw DeviceError(
          fmt::format("out of memory: {} bytes asked for with {} bytes in use; a smaller batch needs less", size,
                      statistics_.allocated));
    }
    return block;
  }
  static void* take_from_system(std::int64_t size) {
    const bool huge = size >= kHugePage;
    void* block =
        std::aligned_alloc(static_cast<std::size_t>(huge ? kHugePage : kAlignment),
                           static_cast<std::size_t>(huge ? (size + kHugePage - 1) / kHugePage * kHugePage : size));
    if (block != nullptr && huge) madvise(block, static_cast<std::size_t>(size), MADV_HUGEPAGE);
    return block;
  }
  void release_locked() {
    for (auto& [size, block] : free_) {
      std::free(block);
      statistics_.reserved -= size;
    }
    free_.clear();
  }

  std::mutex mutex_;
  std::multimap<std::int64_t, void*> free_;
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
std::int64_t machine_memory() { return std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE); }
void release_cached_memory() { allocator().release(); }
void lock_memory_for_fork() { allocator().lock(); }
void unlock_memory_after_fork() { allocator().unlock(); }

}  // namespace fusejit::runtime
