// Kernel IR -> CUDA C++ (kernel-ir.md §10): the text of a kernel's entries and what the runtime must launch and hand
// over.
//
// The text of one kernel stands on the prelude (device functions for the hard parts), which a program holds once. It
// needs no header and no include path, and is portable C++ where __CUDACC__ is not defined (with the CPU shim of the
// tests in front of it).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/kernel.h"

namespace fusejit::codegen::cuda {

// One kernel launch. Every launch of a kernel takes the same arguments, in this order: the address of each buffer
// parameter; each scalar parameter by value (CudaSource::scalars); the address of the work memory if work_bytes > 0;
// the address of the counter if counter_bytes > 0.
struct CudaLaunch {
  std::string entry;                              // extern "C" name in the compiled module
  std::array<std::int64_t, 3> grid = {1, 1, 1};   // x, y, z
  std::array<std::int64_t, 3> block = {1, 1, 1};  // x, y, z
  std::int64_t shared_bytes = 0;  // dynamic shared memory; above 48 KiB the launcher must raise the entry's limit
};

struct CudaSource {
  std::string text;                  // the entries, without the prelude
  std::vector<CudaLaunch> launches;  // one after the other on one stream
  int buffers = 0;                   // pointer arguments
  std::vector<DType> scalars;        // dtypes of the scalar arguments; bool is one byte
  std::int64_t work_bytes = 0;       // undefined at entry, 64-byte aligned
  std::int64_t counter_bytes = 0;    // zero before the first run of the kernel; the kernel leaves them zero
};

// What a parameter is, for people: "dy", and what its dims are, "n", "row", "col", "c". Words that C++ has no meaning
// for.
struct ParameterName {
  std::string name;
  std::vector<std::string> axes;  // one a dim, or none
};

// `name` is that of the entries, unique in a program; empty: the kernel's own. `parameters`: what they are called in
// the text, as far as is known; others are p0, p1, …. Nothing else depends on it, and what is run and kept on disk is
// emitted without, so that a kernel's key says all of its text. Throws UnsupportedError for what no launch can do (more
// blocks or shared memory than any device has).
CudaSource emit(const ir::Kernel& kernel, std::string_view name = {}, std::span<const ParameterName> parameters = {});

// The device functions that texts use.
std::string_view prelude();

// One program of several kernels: the prelude, then their texts.
std::string program(std::span<const CudaSource> sources);

}  // namespace fusejit::codegen::cuda
