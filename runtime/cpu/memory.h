// The allocator of host memory: 64-byte aligned blocks, big ones from a pool of pages (page_pool.h). Counts bytes in
// use and their peak, arenas and workspace included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/memory_statistics.h"

namespace fusejit::runtime {

// Thread-safe. Throws DeviceError("out of memory: ...") naming the bytes asked for and in use, and the limit.
void* allocate(std::int64_t bytes);
void deallocate(void* block) noexcept;

// Memory of allocate(), given back where its owner ends.
struct Deallocate {
  void operator()(void* block) const { deallocate(block); }
};
using Block = std::unique_ptr<void, Deallocate>;

MemoryStatistics memory_statistics();
void reset_peak();
// At most so many bytes are taken from the system; 0: all it has. What is in use stays.
void set_memory_limit(std::int64_t bytes);
// Bytes of memory that this machine has.
std::int64_t machine_memory();
// Gives what is kept for reuse back to the system.
void release_cached_memory();

// For fork() alone (runtime/process/fork.cpp): no other thread is in the middle of an allocation between the two.
void lock_memory_for_fork();
void unlock_memory_after_fork();

}  // namespace fusejit::runtime
