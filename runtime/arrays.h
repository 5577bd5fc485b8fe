// Between the arrays of the graph interpreter (logical row-major order) and buffers (the order of the layout).
#pragma once

#include "ir/interp.h"
#include "runtime/buffer.h"

namespace fusejit::runtime {

ir::Array to_array(const Buffer& buffer);
Buffer to_buffer(const ir::Array& array);

}  // namespace fusejit::runtime
