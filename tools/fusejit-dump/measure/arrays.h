// Arrays of files and of the interpreter, whose elements are in logical order, and buffers, which have a layout.
#pragma once

#include "ir/interp.h"
#include "runtime/buffer.h"

namespace fusejit::tools {

runtime::Buffer to_buffer(const ir::Array& array);
ir::Array to_array(const runtime::Buffer& buffer);

}  // namespace fusejit::tools
