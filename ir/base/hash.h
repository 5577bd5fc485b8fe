// A stable 128-bit hash (XXH3), the same on every machine and in every process: it goes into keys and files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fusejit::ir {

struct Hash {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  std::string hex() const;  // 32 digits
  friend bool operator==(const Hash&, const Hash&) = default;
  friend auto operator<=>(const Hash&, const Hash&) = default;
};

Hash hash_bytes(const void* data, std::size_t size);
inline Hash hash_text(std::string_view text) { return hash_bytes(text.data(), text.size()); }

// Cheap order-dependent mixing for structural hashes that stay in the process or are built only from stable parts.
constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  a ^= b + 0x9e3779b97f4a7c15ull + (a << 6) + (a >> 2);
  a ^= a >> 32, a *= 0xd6e8feb86659fd93ull, a ^= a >> 32;
  return a;
}

struct HashOfHash {
  std::size_t operator()(const Hash& h) const { return h.low; }
};

}  // namespace fusejit::ir
