// How much memory a plan may take: a number of bytes, as little as possible, or as much as it likes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fusejit::scheduler {

// Of everything that a run needs at once (report/memory.h).
struct MemoryLimit {
  static constexpr std::int64_t kNone = 0, kLeast = -1;
  std::int64_t bytes = kNone;

  bool is_none() const { return bytes == kNone; }
  bool is_least() const { return bytes == kLeast; }
  // "none", "least", "838860800"
  std::string str() const;
  friend bool operator==(const MemoryLimit&, const MemoryLimit&) = default;
};

// Reads what str() writes, and "800 MiB", "1.5GiB", "64kib", "12 b". UserError for everything else.
MemoryLimit parse_memory_limit(std::string_view text);

}  // namespace fusejit::scheduler
