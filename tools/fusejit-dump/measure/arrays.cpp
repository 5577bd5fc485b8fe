#include "tools/fusejit-dump/measure/arrays.h"

namespace fusejit::tools {
namespace {

// Elements in logical order <-> bytes in the order of the layout.
template <class F>
void each_physical(const Type& type, F f) {
  const Shape& s = type.shape;
  if (type.layout == Layout::standard) {
    for (std::int64_t i = 0; i < s.elements(); ++i) f(i, i);
    return;
  }
  std::int64_t logical = 0;
  for (std::int64_t n = 0; n < s[0]; ++n)
    for (std::int64_t c = 0; c < s[1]; ++c)
      for (std::int64_t h = 0; h < s[2]; ++h)
        for (std::int64_t w = 0; w < s[3]; ++w) f(logical++, ((n * s[2] + h) * s[3] + w) * s[1] + c);
}

}  // namespace

runtime::Buffer to_buffer(const ir::Array& array) {
  runtime::Buffer buffer = runtime::Buffer::allocate(array.type);
  each_physical(array.type, [&](std::int64_t logical, std::int64_t physical) {
    ir::store_element(buffer.data(), array.type.dtype, physical, array.at(logical));
  });
  return buffer;
}

ir::Array to_array(const runtime::Buffer& buffer) {
  ir::Array array(buffer.type());
  each_physical(array.type, [&](std::int64_t logical, std::int64_t physical) {
    array.set(logical, ir::load_element(buffer.data(), array.type.dtype, physical));
  });
  return array;
}

}  // namespace fusejit::tools
