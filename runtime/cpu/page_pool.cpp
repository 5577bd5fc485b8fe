#include "runtime/cpu/page_pool.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <new>

namespace fusejit::runtime {
namespace {

constexpr std::int64_t kHugePage = 2 << 20;
constexpr std::int64_t kSmallRegion = 16 << 20;
// Pages go back once so many times the bytes held were handed out without them. Even where they are wanted again right
// then, fresh pages are a small part of what a program has done with that memory.
constexpr std::int64_t kOld = 16;

std::int64_t rounded_up(std::int64_t bytes, std::int64_t unit) { return (bytes + unit - 1) / unit * unit; }

// Addresses cost nothing, so a region has room for all memory of the machine, unless somebody counts them.
std::int64_t region_bytes() {
  rlimit addresses{};
  if (getrlimit(RLIMIT_AS, &addresses) != 0 || addresses.rlim_cur != RLIM_INFINITY) return kSmallRegion;
  return rounded_up(std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE), kHugePage);
}

}  // namespace

bool PagePool::add_region(std::int64_t bytes) {
  std::int64_t size = std::max(rounded_up(bytes, kGranule), region_bytes());
  const auto map = [](std::int64_t length) {
    return mmap(nullptr, static_cast<std::size_t>(length), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                0);
  };
  void* base = map(size + kHugePage);
  if (base == MAP_FAILED) size = rounded_up(bytes, kGranule), base = map(size + kHugePage);
  if (base == MAP_FAILED) return false;
  auto* first = reinterpret_cast<std::byte*>(
      rounded_up(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(base)), kHugePage));
  madvise(first, static_cast<std::size_t>(size), MADV_HUGEPAGE);
  regions_.push_back({first, size, {}});
  free_.emplace(first, size);
  free_by_size_.emplace(size, first);
  return true;
}

PagePool::Region& PagePool::region_of(const std::byte* address) {
  return *std::find_if(regions_.begin(), regions_.end(),
                       [&](const Region& r) { return address >= r.base && address < r.base + r.bytes; });
}

bool PagePool::open(Region& region, std::int64_t end) {
  const auto opened = static_cast<std::int64_t>(region.granules.size()) * kGranule;
  if (end <= opened) return true;
  const std::int64_t more = rounded_up(end, kGranule) - opened;
  if (mprotect(region.base + opened, static_cast<std::size_t>(more), PROT_READ | PROT_WRITE) != 0) return false;
  region.granules.resize(static_cast<std::size_t>((opened + more) / kGranule));
  return true;
}

std::int64_t PagePool::growth(const Region& region, std::int64_t first, std::int64_t end) const {
  std::int64_t more = 0;
  for (std::int64_t g = first / kGranule; g * kGranule < end; ++g) {
    const auto at = static_cast<std::size_t>(g);
    if (at >= region.granules.size() || !region.granules[at].held) more += kGranule;
  }
  return more;
}

void* PagePool::take(std::int64_t bytes, std::int64_t most) {
  auto found = free_by_size_.lower_bound({bytes, nullptr});
  if (found == free_by_size_.end()) {
    if (!add_region(bytes)) return nullptr;
    found = free_by_size_.lower_bound({bytes, nullptr});
  }
  std::byte* const block = found->second;
  Region& region = region_of(block);
  const std::int64_t first = block - region.base, end = first + bytes;
  if (held_ + growth(region, first, end) > most) release();
  if (held_ + growth(region, first, end) > most) return nullptr;
  if (!open(region, end)) {
    release();
    if (!open(region, end)) return nullptr;
  }
  // The rest stays in the same nodes: nothing is allocated, nothing can fail.
  auto by_address = free_.extract(block);
  auto by_size = free_by_size_.extract(found);
  if (const std::int64_t rest = by_size.value().first - bytes; rest > 0) {
    by_address.key() = block + bytes, by_address.mapped() = rest;
    by_size.value() = {rest, block + bytes};
    free_.insert(std::move(by_address));
    free_by_size_.insert(std::move(by_size));
  }
  held_ += growth(region, first, end);
  taken_ += bytes;
  for (std::int64_t g = first / kGranule; g * kGranule < end; ++g) {
    Granule& granule = region.granules[static_cast<std::size_t>(g)];
    granule = {taken_, granule.blocks + 1, true};
  }
  if (taken_ - checked_ > held_) checked_ = taken_, drop(taken_ - kOld * held_);
  return block;
}

void PagePool::give(void* block, std::int64_t bytes) noexcept {
  auto* at = static_cast<std::byte*>(block);
  Region& region = region_of(at);
  const std::int64_t first = at - region.base;
  for (std::int64_t g = first / kGranule; g * kGranule < first + bytes; ++g) {
    Granule& granule = region.granules[static_cast<std::size_t>(g)];
    granule.used = taken_;
    --granule.blocks;
  }
  const auto forget = [this](std::map<std::byte*, std::int64_t>::iterator range) {
    free_by_size_.erase({range->second, range->first});
    return free_.erase(range);
  };
  auto next = free_.lower_bound(at);
  if (next != free_.end() && next->first == at + bytes && next->first < region.base + region.bytes)
    bytes += next->second, next = forget(next);
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == at && before->first >= region.base)
      at = before->first, bytes += before->second, forget(before);
  }
  try {
    free_.emplace(at, bytes);
    free_by_size_.emplace(bytes, at);
  } catch (const std::bad_alloc&) {  // not even room to note it down: these addresses are lost
    free_.erase(at);
  }
}

void PagePool::drop(std::int64_t before) noexcept {
  for (Region& region : regions_) {
    const auto is_old = [&](std::size_t g) {
      const Granule& granule = region.granules[g];
      return granule.held && granule.blocks == 0 && granule.used < before;
    };
    for (std::size_t g = 0; g < region.granules.size(); ++g) {
      const std::size_t first = g;
      for (; g < region.granules.size() && is_old(g); ++g) region.granules[g].held = false;
      if (g == first) continue;
      const auto bytes = static_cast<std::int64_t>(g - first) * kGranule;
      madvise(region.base + static_cast<std::int64_t>(first) * kGranule, static_cast<std::size_t>(bytes),
              MADV_DONTNEED);
      held_ -= bytes;
    }
  }
}

void PagePool::release() noexcept { drop(std::numeric_limits<std::int64_t>::max()); }

}  // namespace fusejit::runtime
