#include "frontend/io/named_array.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ir/base/check.h"

namespace fusejit::io {

std::string shown(std::string_view text) {
  using Json = nlohmann::json;
  constexpr std::size_t kMost = 80;
  std::size_t kept = std::min(text.size(), kMost);
  while (kept > 0 && kept < text.size() && (text[kept] & 0xc0) == 0x80) --kept;  // not within a character
  // What is no UTF-8 becomes U+FFFD.
  const std::string json = Json(text.substr(0, kept)).dump(-1, ' ', false, Json::error_handler_t::replace);
  return fmt::format("'{}{}'", json.substr(1, json.size() - 2), kept < text.size() ? "..." : "");
}

void check_bytes(const NamedArray& array) {
  const std::int64_t expected = bytes(array.dtype, array.shape.elements());
  FJ_CHECK(static_cast<std::int64_t>(array.bytes.size()) == expected, "array {}: {} bytes given, {}{} has {}",
           shown(array.name), array.bytes.size(), name(array.dtype), array.shape.str(), expected);
}

}  // namespace fusejit::io
