# Writes the CUDA kernels of tests/kernels as a source file, at configure time.
file(GLOB kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/kernels/cuda/*.kir ${PROJECT_SOURCE_DIR}/tests/kernels/toy/*_cuda.kir)
set(rows "")
foreach(kernel ${kernels})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${kernel})
  file(READ ${kernel} text)
  get_filename_component(name ${kernel} NAME_WE)
  string(APPEND rows "    {\"${name}\", R\"~~~(${text})~~~\"},\n")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/tests/gpu_check/embedded.cpp @ONLY CONTENT [[
#include "tests/gpu_check/embedded.h"

namespace fusejit::gpu_check {
namespace {
constexpr EmbeddedKernel kKernels[] = {
@rows@};
}  // namespace
std::span<const EmbeddedKernel> embedded_kernels() { return kKernels; }
}  // namespace fusejit::gpu_check
]])
