#include "runtime/disk/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>

namespace fusejit::runtime::disk {
namespace {

std::vector<std::string> differing_parts(const CacheKey& wanted, const CacheKey& there) {
  std::vector<std::string> names;
  for (const KeyPart& part : wanted.parts()) {
    const auto same = std::find(there.parts().begin(), there.parts().end(), part);
    if (same == there.parts().end()) names.push_back(part.name);
  }
  return names;
}

std::string age(std::time_t seconds) {
  if (seconds < 120) return fmt::format("{} s", std::max<std::time_t>(seconds, 0));
  if (seconds < 2 * 3600) return fmt::format("{} min", seconds / 60);
  return seconds < 48 * 3600 ? fmt::format("{} h", seconds / 3600) : fmt::format("{} d", seconds / 86400);
}

// The first line in which two texts differ, of each, cut to what can be read at a glance.
std::pair<std::string, std::string> first_difference(std::string_view a, std::string_view b) {
  const auto line = [](std::string_view& text) {
    const std::size_t end = text.find('\n');
    const std::string_view taken = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    return taken;
  };
  std::string_view one, other;
  do {
    one = line(a), other = line(b);
  } while (one == other && !(a.empty() && b.empty()));
  constexpr std::size_t kMost = 96;
  return {std::string(one.substr(0, kMost)), std::string(other.substr(0, kMost))};
}

}  // namespace

Explanation explain(const DiskCache& cache, const CacheKey& key) {
  Explanation result;
  std::time_t made = 0;
  for (auto& [entry, used] : cache.neighbours(key)) {
    std::vector<std::string> differing = differing_parts(key, entry.key);
    const bool is_nearer = !result.nearest || differing.size() < result.differing.size() ||
                           (differing.size() == result.differing.size() && used > made);
    if (!is_nearer) continue;
    made = used;
    result.nearest = std::move(entry.key), result.differing = std::move(differing);
  }
  result.is_there = result.nearest && result.differing.empty();
  const std::string what = fmt::format("{} {:.8}", key.kind(), key.hash().hex());
  if (result.is_there) {
    result.text = fmt::format("{} is there", what);
  } else if (!cache.why_unusable().empty()) {
    result.text = fmt::format("{}: nothing is kept: {}", what, cache.why_unusable());
  } else if (!result.nearest) {
    result.text = fmt::format("{}: no entry has the same {}", what, key.parts()[0].name);
  } else {
    const std::string& part = result.differing[0];
    const auto [there, here] = first_difference(result.nearest->part(part), key.part(part));
    const std::string old = made == 0 ? "in a bundle" : age(std::time(nullptr) - made) + " old";
    result.text = fmt::format("{}: the nearest entry ({:.8}, {}) differs in {}: '{}' there, '{}' here", what,
                              result.nearest->hash().hex(), old, fmt::join(result.differing, ", "), there, here);
  }
  return result;
}

}  // namespace fusejit::runtime::disk
