// Texts that the program carries, because the machine it runs on has no source tree: the CUDA kernels of tests/kernels.
#pragma once

#include <span>
#include <string_view>

namespace fusejit::gpu_check {

struct EmbeddedKernel {
  std::string_view name, text;
};
// Made by tests/gpu_check/embed.cmake.
std::span<const EmbeddedKernel> embedded_kernels();

}  // namespace fusejit::gpu_check
