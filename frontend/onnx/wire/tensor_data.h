// Tensors of ONNX files: their numbers stand in the message as bytes or one by one, or in another file of its folder.
#pragma once

#include <string>

#include "fusejit/tensor.h"

namespace fusejit::onnx::wire {

class TensorValue;

struct Decoded {
  Tensor tensor;        // in host memory
  std::string problem;  // why there is none: of a dtype that we have not
};
// The tensor, which gives its bytes away. `model` is the path of the file it stands in, `name` what messages call it.
// UserError if its bytes are not those of its shape, or if it is in a file outside the model's folder; FileError.
Decoded decode(TensorValue& value, const std::string& model, const std::string& name);

}  // namespace fusejit::onnx::wire
