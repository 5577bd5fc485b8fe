// Machine code of kernels for CUDA in the cache on disk. A program of several kernels is one entry; each of its kernels
// is another, which says how it is launched, with its source for people, and names the program. Neither is of use
// without the other, and either may go.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/cuda/emit.h"
#include "codegen/cuda/nvrtc.h"
#include "runtime/disk/disk_cache.h"

namespace fusejit::runtime::disk {

// Parts: kernel, its canonical text without its name; sm; compiler, the sources of the generator; nvrtc.
CacheKey cuda_kernel_key(std::string kernel_key_text, int compute_capability);

// Of the program that a kernel's entry names. Parts: kernels, the hashes of their keys, which say the rest; sm.
CacheKey program_key(const CacheKey& kernel, const std::string& program);

struct CudaKernelEntry {
  codegen::cuda::CudaSource source;
  std::vector<codegen::cuda::Resources> resources;  // of its entries
  std::string program;                              // which one holds its code
};

// A compiled program, and each of its kernels: `keys` and `sources` in the same order.
void put_program(DiskCache& cache, const std::vector<CacheKey>& keys,
                 const std::vector<codegen::cuda::CudaSource>& sources, const codegen::cuda::CudaBinary& binary);
std::optional<CudaKernelEntry> find_cuda_kernel(DiskCache& cache, const CacheKey& key);
// The cubin of the program that a kernel's entry names; empty if it is gone.
std::string find_program(DiskCache& cache, const std::string& program, int compute_capability);
// Whether both are there, without reading the program.
bool contains_cuda_kernel(DiskCache& cache, const CacheKey& key);
// Both are removed, because the driver does not take them.
void refused_cuda_kernel(DiskCache& cache, const CacheKey& key, const std::string& program, const std::string& why);

}  // namespace fusejit::runtime::disk
