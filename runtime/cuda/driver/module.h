// Compiled kernels on a device: a module of machine code, and kernels in it that are ready to be launched.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/cuda/emit.h"
#include "codegen/cuda/nvrtc.h"
#include "runtime/cuda/driver/context.h"

namespace fusejit::runtime::cuda {

// A loaded cubin. The context outlives it.
class Module {
 public:
  // Throws DriverError: not for this architecture, damaged, or made by a compiler that is newer than the driver.
  Module(DeviceContext& context, const std::string& cubin);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Its entry of that name, allowed to use so much dynamic shared memory.
  CuFunction function(const std::string& entry, std::int64_t shared_bytes);

 private:
  DeviceContext& context_;
  CuModule module_ = nullptr;
};

struct Launch {
  std::string entry;
  CuFunction function = nullptr;
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_bytes = 0;
  codegen::cuda::Resources resources;  // as the compiler said
};

// A kernel whose launches all take: buffers, scalars, work memory if any, counters if any.
struct LoadedKernel {
  std::shared_ptr<Module> module;  // owns the functions
  std::vector<Launch> launches;
  int buffers = 0;
  int scalars = 0;
  std::int64_t work_bytes = 0;
  std::int64_t counter_bytes = 0;
};

// The kernel that `source` describes, from the module that holds its entries; `resources` are those of the module's.
LoadedKernel load_kernel(DeviceContext& context, std::shared_ptr<Module> module,
                         const codegen::cuda::CudaSource& source,
                         std::span<const codegen::cuda::Resources> resources = {});

}  // namespace fusejit::runtime::cuda
