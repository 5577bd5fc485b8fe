// Little-endian integers in strings of bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/base/hash.h"

namespace fusejit::runtime::disk {

template <typename T>
void append(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(value >> (8 * i));
}
inline void append(std::string& out, const ir::Hash& hash) {
  append(out, hash.high);
  append(out, hash.low);
}

// Takes bytes from the front, or fails for good.
struct Reader {
  std::string_view rest;
  bool failed = false;

  std::string_view bytes(std::uint64_t count) {
    if (failed || count > rest.size()) return failed = true, std::string_view();
    const std::string_view taken = rest.substr(0, count);
    rest.remove_prefix(count);
    return taken;
  }
  template <typename T>
  T integer() {
    const std::string_view taken = bytes(sizeof(T));
    T value = 0;
    for (std::size_t i = 0; i < taken.size(); ++i)
      value |= static_cast<T>(static_cast<unsigned char>(taken[i])) << (8 * i);
    return value;
  }
  ir::Hash hash() {
    const auto high = integer<std::uint64_t>();
    return {high, integer<std::uint64_t>()};
  }
};

}  // namespace fusejit::runtime::disk
