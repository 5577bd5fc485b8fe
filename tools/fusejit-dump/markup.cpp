#include "tools/fusejit-dump/markup.h"

#include <fmt/format.h>

namespace fusejit::tools {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD", kEllipsis = "\xE2\x80\xA6";

// Bytes of the character that `text` begins with, 0 if they are no UTF-8 or no character of XML.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return first >= 0x20 || first == '\t' || first == '\n' ? 1 : 0;
  const std::size_t count = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < count) return 0;
  std::uint32_t code = first & (0xFFU >> (count + 1));
  for (std::size_t i = 1; i < count; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3F);
  }
  const bool overlong = code < (count == 2 ? 0x80U : count == 3 ? 0x800U : 0x10000U);
  const bool none = (code >= 0xD800 && code < 0xE000) || code == 0xFFFE || code == 0xFFFF || code > 0x10FFFF;
  return overlong || none ? 0 : count;
}

template <class Spell>
std::string spelled(std::string_view text, Spell spell) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t count = character_bytes(text);
    const std::string_view special = count == 1 ? spell(text[0]) : std::string_view();
    out += count == 0 ? kReplacement : special.empty() ? text.substr(0, count) : special;
    text.remove_prefix(count == 0 ? 1 : count);
  }
  return out;
}

}  // namespace

std::string escaped(std::string_view text) {
  return spelled(text, [](char c) -> std::string_view {
    return c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : c == '\'' ? "&#39;" : "";
  });
}

std::string dot_escaped(std::string_view text) {
  return spelled(text, [](char c) -> std::string_view {
    return c == '"' ? "\\\"" : c == '\\' ? "\\\\" : c == '&' ? "&amp;" : c == '\n' ? "\\n" : "";
  });
}

std::string shortened(const std::string& text, std::size_t most) {
  return text.size() <= most ? text : text.substr(0, most - 1) + std::string(kEllipsis);
}

}  // namespace fusejit::tools
