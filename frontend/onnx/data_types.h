// Element types by their numbers in ONNX's TensorProto.DataType.
#pragma once

#include <optional>
#include <string>

#include "fusejit/dtype.h"

namespace fusejit::onnx {

// The dtype of that number, or nothing: ONNX has more than we.
std::optional<DType> dtype_of(std::int64_t data_type);
// What ONNX calls it.
std::string data_type_name(std::int64_t data_type);

}  // namespace fusejit::onnx
