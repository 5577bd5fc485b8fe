// NamedArray: one array of a file, as its format's reader hands it over and its writer takes it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fusejit/dtype.h"
#include "fusejit/shape.h"

namespace fusejit::io {

// Elements in row-major order; bool elements are the bytes 0 and 1.
struct NamedArray {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::vector<std::byte> bytes;
};

// Arrays to be read; the others are passed over, whatever is in them. Empty: all.
using WantedName = std::function<bool(std::string_view name)>;
// Asked with name, dtype and shape before the elements are read: no leaves them out. It may throw.
using WantedArray = std::function<bool(const NamedArray& described)>;

// A text of a file that may hold any, for people: between quotes, on one line, not longer than a line.
std::string shown(std::string_view text);

// UserError unless the bytes are those of the dtype and shape.
void check_bytes(const NamedArray& array);

}  // namespace fusejit::io
