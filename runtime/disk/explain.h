// Why an entry is not there: what the nearest one differs in.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/disk/disk_cache.h"

namespace fusejit::runtime::disk {

// A sentence on a key that is not there: which entry comes nearest, and in which parts it differs.
struct Explanation {
  bool is_there = false;
  std::optional<CacheKey> nearest;     // of the same kind and subject
  std::vector<std::string> differing;  // parts, in the key's order
  std::string text;
};
Explanation explain(const DiskCache& cache, const CacheKey& key);

}  // namespace fusejit::runtime::disk
