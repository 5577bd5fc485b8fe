#include "runtime/arrays.h"

#include <cstring>

namespace fusejit::runtime {
namespace {

// Physical offset, in elements, of row-major logical element `index` of a 4-d NCHW value stored as NHWC.
std::int64_t nhwc_offset(const Shape& s, std::int64_t index) {
  const std::int64_t w = index % s[3], h = index / s[3] % s[2], c = index / (s[3] * s[2]) % s[1],
                     n = index / (s[3] * s[2] * s[1]);
  return ((n * s[2] + h) * s[3] + w) * s[1] + c;
}

}  // namespace

ir::Array to_array(const Buffer& buffer) {
  ir::Array array(buffer.type());
  if (buffer.type().layout == Layout::standard) {
    std::memcpy(array.bytes.data(), buffer.data(), array.bytes.size());
  } else {
    for (std::int64_t i = 0; i < buffer.type().elements(); ++i) {
      array.set(i, ir::load_element(buffer.data(), buffer.type().dtype, nhwc_offset(buffer.type().shape, i)));
    }
  }
  return array;
}

Buffer to_buffer(const ir::Array& array) {
  Buffer buffer = Buffer::allocate(array.type);
  if (array.type.layout == Layout::standard) {
    std::memcpy(buffer.data(), array.bytes.data(), array.bytes.size());
  } else {
    for (std::int64_t i = 0; i < array.type.elements(); ++i) {
      ir::store_element(buffer.data(), array.type.dtype, nhwc_offset(array.type.shape, i), array.at(i));
    }
  }
  return buffer;
}

}  // namespace fusejit::runtime
