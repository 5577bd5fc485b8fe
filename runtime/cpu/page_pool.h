// PagePool: big blocks of host memory, cut out of few long ranges of addresses and joined again when they are given
// back, so that whatever is asked for next, of whatever size, lies on pages that have been used already: fresh pages
// cost more than many kernels. Pages that nothing has used for long go back to the system. Not thread-safe: its owner
// locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace fusejit::runtime {

class PagePool {
 public:
  static constexpr std::int64_t kPage = 4096;

  // A block of `bytes`, a multiple of kPage, aligned to it. Null where the system has no more or more than `most` bytes
  // would be held, also after everything free was given back.
  void* take(std::int64_t bytes, std::int64_t most);
  // `bytes` as taken.
  void give(void* block, std::int64_t bytes) noexcept;
  // Bytes of the pages that blocks have or had, which are not the system's again.
  std::int64_t held() const { return held_; }
  // All pages that no block has go back to the system.
  void release() noexcept;

 private:
  // What is told apart when pages go back.
  static constexpr std::int64_t kGranule = 64 << 10;
  struct Granule {
    std::int64_t used = 0;    // taken_ when a block with it came or went last
    std::int32_t blocks = 0;  // that have a part of it
    bool held = false;
  };
  struct Region {
    std::byte* base = nullptr;
    std::int64_t bytes = 0;
    std::vector<Granule> granules;  // of the part that may be read and written, from `base`
  };

  bool add_region(std::int64_t bytes);
  Region& region_of(const std::byte* address);
  // Granules of the block, opened. False where the system refuses.
  bool open(Region& region, std::int64_t end);
  std::int64_t growth(const Region& region, std::int64_t first, std::int64_t end) const;
  // Gives back what is free and was used last before `taken_` was `before`.
  void drop(std::int64_t before) noexcept;

  std::vector<Region> regions_;
  std::map<std::byte*, std::int64_t> free_;                     // address, bytes; no two of a region adjoin
  std::set<std::pair<std::int64_t, std::byte*>> free_by_size_;  // the same
  std::int64_t held_ = 0;
  std::int64_t taken_ = 0;    // bytes of all blocks so far: the clock
  std::int64_t checked_ = 0;  // taken_ when pages last went back for their age
};

}  // namespace fusejit::runtime
