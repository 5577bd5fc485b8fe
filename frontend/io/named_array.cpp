#include "frontend/io/named_array.h"

#include "ir/base/check.h"

namespace fusejit::io {

void check_bytes(const NamedArray& array) {
  const std::int64_t expected = bytes(array.dtype, array.shape.elements());
  FJ_CHECK(static_cast<std::int64_t>(array.bytes.size()) == expected, "array '{}': {} bytes given, {}{} has {}",
           array.name, array.bytes.size(), name(array.dtype), array.shape.str(), expected);
}

}  // namespace fusejit::io
