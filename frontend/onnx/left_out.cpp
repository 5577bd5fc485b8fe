// In the place of frontend/onnx/wire, where that is left out of the build.
#include "frontend/onnx/graph.h"
#include "fusejit/error.h"

namespace fusejit::onnx {

Graph read_model(const std::string& path) {
  throw UnsupportedError(path +
                         ": this build of fusejit reads no ONNX files (it was configured with FUSEJIT_ONNX=OFF)");
}

}  // namespace fusejit::onnx
