// Kernels compiled by NVRTC few programs at a time: a program of many kernels costs a third of many programs.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "codegen/cuda/emit.h"
#include "codegen/cuda/nvrtc.h"

namespace fusejit::runtime::cuda {

// codegen::cuda::compile, or what a test puts in its place.
using CompileProgram = std::function<codegen::cuda::CudaBinary(std::string_view program, int compute_capability)>;

struct Program {
  std::vector<std::size_t> members;  // of the sources
  codegen::cuda::CudaBinary binary;
};

// How `sources` are divided among programs, for so many threads: the members of each, of about equal length.
std::vector<std::vector<std::size_t>> divide(std::span<const codegen::cuda::CudaSource> sources, int threads);
// All of them compiled, on up to `threads` threads. Throws what `compile` throws.
std::vector<Program> compile_programs(std::span<const codegen::cuda::CudaSource> sources, int compute_capability,
                                      int threads, const CompileProgram& compile);

}  // namespace fusejit::runtime::cuda
