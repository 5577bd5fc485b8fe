// CudaKernels: kernel -> what can be launched on a device, kept by text, in memory and below it on disk. What is
// missing is emitted as CUDA C++ and compiled in few programs, in parallel.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/base/hash.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/driver/module.h"
#include "runtime/cuda/programs.h"

namespace fusejit::runtime::disk {
class DiskCache;
}

namespace fusejit::runtime::cuda {

// The kernel's name with the beginning of its key: what profilers show, and unique in a program.
std::string entry_name(const ir::Kernel& kernel);

struct CudaKernelsStatistics {
  std::int64_t hits = 0;
  std::int64_t loaded = 0;  // from disk
  std::int64_t compiled = 0;
  std::int64_t programs = 0;
  double compile_milliseconds = 0;  // summed over programs
};

class CudaKernels {
 public:
  // `disk`: where kernels outlive the process; may be null.
  explicit CudaKernels(std::shared_ptr<CudaDevice> device, CompileProgram compile = codegen::cuda::compile,
                       std::shared_ptr<disk::DiskCache> disk = nullptr, std::size_t capacity = 4096)
      : device_(std::move(device)), compile_(std::move(compile)), disk_(std::move(disk)), capacity_(capacity) {}

  // One for each of `kernels`, which are for cuda. Compiles on up to `threads` threads. Throws what emitter, compiler
  // and driver throw, and UserError for what is missing if `frozen`. `names`: of the steps that ask for them, said in
  // errors; may be empty.
  std::vector<std::shared_ptr<const LoadedKernel>> get(std::span<const std::shared_ptr<const ir::Kernel>> kernels,
                                                       int threads, bool frozen = false,
                                                       std::span<const std::string> names = {});
  CudaKernelsStatistics statistics() const;

 private:
  using Loaded = std::shared_ptr<const LoadedKernel>;
  struct Missing {
    ir::Hash key;
    std::string text;  // kernel_key_text
    std::shared_ptr<const ir::Kernel> kernel;
    std::string name;  // of the first step that asks for it, else its own
    Loaded loaded;
  };
  int capability() const { return device_->context().properties().compute_capability; }
  // What is on disk; the rest stays missing. UserError for that if `frozen`.
  void load(std::vector<Missing>& missing, bool frozen);
  void build(std::vector<Missing>& missing, int threads);
  void keep(const ir::Hash& key, Loaded kernel);

  const std::shared_ptr<CudaDevice> device_;
  const CompileProgram compile_;
  const std::shared_ptr<disk::DiskCache> disk_;
  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::unordered_map<ir::Hash, Loaded, ir::HashOfHash> loaded_;
  std::deque<ir::Hash> oldest_;
  CudaKernelsStatistics statistics_;
};

}  // namespace fusejit::runtime::cuda
