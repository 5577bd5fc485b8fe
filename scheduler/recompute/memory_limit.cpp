#include "scheduler/recompute/memory_limit.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

#include "ir/base/check.h"

namespace fusejit::scheduler {
namespace {

constexpr std::pair<std::string_view, double> kUnits[] = {
    {"", 1}, {"b", 1}, {"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", double(1LL << 40)}};

}  // namespace

std::string MemoryLimit::str() const { return is_none() ? "none" : is_least() ? "least" : std::to_string(bytes); }

MemoryLimit parse_memory_limit(std::string_view text) {
  if (text == "none") return {MemoryLimit::kNone};
  if (text == "least") return {MemoryLimit::kLeast};
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  std::string unit;
  for (const char* c = after; c != end; ++c)
    if (*c != ' ' || !unit.empty()) unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  const auto* const known =
      std::find_if(std::begin(kUnits), std::end(kUnits), [&](const auto& one) { return one.first == unit; });
  const bool is_read = error == std::errc() && known != std::end(kUnits) && number > 0 && std::isfinite(number);
  FJ_CHECK(is_read, "memory limit '{}' is not known (none, least, or bytes: 838860800, 800MiB, 1.5GiB)", text);
  const double bytes = std::floor(number * known->second);
  FJ_CHECK(bytes >= 1 && bytes < 0x1p62, "memory limit '{}' is {} bytes, it must lie between 1 and 4 EiB", text, bytes);
  return {static_cast<std::int64_t>(bytes)};
}

}  // namespace fusejit::scheduler
