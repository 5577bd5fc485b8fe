// CudaKernels: kernel -> what can be launched on a device, kept by text and toolchain. What is missing is emitted as
// CUDA C++ and compiled in few programs (a program of many kernels costs a third of many programs), in parallel.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "codegen/cuda/nvrtc.h"
#include "ir/base/hash.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/module.h"

namespace fusejit::runtime::cuda {

// codegen::cuda::compile, or what a test puts in its place.
using CompileProgram = std::function<codegen::cuda::CudaBinary(std::string_view program, int compute_capability)>;

// The kernel's name with the beginning of its key: what profilers show, and unique in a program.
std::string entry_name(const ir::Kernel& kernel);

struct CudaKernelsStatistics {
  std::int64_t hits = 0;
  std::int64_t compiled = 0;
  std::int64_t programs = 0;
  double compile_milliseconds = 0;  // summed over programs
};

class CudaKernels {
 public:
  explicit CudaKernels(std::shared_ptr<CudaDevice> device, CompileProgram compile = codegen::cuda::compile,
                       std::size_t capacity = 4096)
      : device_(std::move(device)), compile_(std::move(compile)), capacity_(capacity) {}

  // One for each of `kernels`, which are for cuda. Compiles on up to `threads` threads. Throws what emitter, compiler
  // and driver throw.
  std::vector<std::shared_ptr<const LoadedKernel>> get(std::span<const std::shared_ptr<const ir::Kernel>> kernels,
                                                       int threads);
  CudaKernelsStatistics statistics() const;

 private:
  using Loaded = std::shared_ptr<const LoadedKernel>;
  struct Missing {
    ir::Hash key;
    codegen::cuda::CudaSource source;
    std::size_t program = 0;
    Loaded loaded;
  };
  void build(std::vector<Missing>& missing, int threads);
  void keep(const ir::Hash& key, Loaded kernel);

  const std::shared_ptr<CudaDevice> device_;
  const CompileProgram compile_;
  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::unordered_map<ir::Hash, Loaded, ir::HashOfHash> loaded_;
  std::deque<ir::Hash> oldest_;
  CudaKernelsStatistics statistics_;
};

}  // namespace fusejit::runtime::cuda
