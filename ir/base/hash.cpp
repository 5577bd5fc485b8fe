#include "ir/base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace fusejit::ir {

std::string Hash::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

Hash hash_bytes(const void* data, std::size_t size) {
  const XXH128_hash_t hash = XXH3_128bits(data, size);
  return {hash.high64, hash.low64};
}

}  // namespace fusejit::ir
