#include "runtime/cuda/driver/module.h"

#include "ir/base/check.h"

namespace fusejit::runtime::cuda {
namespace {

constexpr std::int64_t kSharedBytesUnasked = 48 << 10;
constexpr std::int64_t kMostBlocks = 0x7fffffff, kMostBlocksYZ = 65535;

}  // namespace

Module::Module(DeviceContext& context, const std::string& cubin) : context_(context) {
  context.call(context.driver().module_load_data, &module_, cubin.data());
}

Module::~Module() { context_.release(context_.driver().module_unload, module_); }

CuFunction Module::function(const std::string& entry, std::int64_t shared_bytes) {
  const Driver& driver = context_.driver();
  CuFunction function = nullptr;
  context_.call(driver.module_get_function, &function, module_, entry.c_str());
  if (shared_bytes > kSharedBytesUnasked) {
    const std::int64_t most = context_.properties().shared_bytes_per_block_optin;
    if (shared_bytes > most) {
      throw UnsupportedError(fmt::format("kernel {} needs {} bytes of shared memory a block, {} ({}) has {}", entry,
                                         shared_bytes, context_.name(), context_.properties().name, most));
    }
    context_.call(driver.function_set_attribute, function, kFunctionMaxDynamicSharedBytes, shared_bytes);
  }
  return function;
}

LoadedKernel load_kernel(DeviceContext& context, std::shared_ptr<Module> module,
                         const codegen::cuda::CudaSource& source, std::span<const codegen::cuda::Resources> resources) {
  LoadedKernel kernel;
  for (const codegen::cuda::CudaLaunch& planned : source.launches) {
    Launch launch;
    launch.entry = planned.entry;
    const auto& [gx, gy, gz] = planned.grid;
    const auto& [bx, by, bz] = planned.block;
    FJ_ASSERT(gx >= 1 && gx <= kMostBlocks && gy >= 1 && gy <= kMostBlocksYZ && gz >= 1 && gz <= kMostBlocksYZ,
              "{} has a grid of {} x {} x {} blocks", planned.entry, gx, gy, gz);
    FJ_ASSERT(bx * by * bz <= context.properties().threads_per_block, "{} has {} threads a block", planned.entry,
              bx * by * bz);
    launch.grid_x = static_cast<unsigned>(gx), launch.grid_y = static_cast<unsigned>(gy);
    launch.grid_z = static_cast<unsigned>(gz);
    launch.block_x = static_cast<unsigned>(bx), launch.block_y = static_cast<unsigned>(by);
    launch.block_z = static_cast<unsigned>(bz);
    launch.shared_bytes = static_cast<unsigned>(planned.shared_bytes);
    for (const codegen::cuda::Resources& r : resources)
      if (r.entry == launch.entry) launch.resources = r;
    launch.function = module->function(planned.entry, planned.shared_bytes);
    kernel.launches.push_back(std::move(launch));
  }
  kernel.module = std::move(module);
  kernel.buffers = source.buffers;
  kernel.scalars = static_cast<int>(source.scalars.size());
  kernel.work_bytes = source.work_bytes;
  kernel.counter_bytes = source.counter_bytes;
  return kernel;
}

}  // namespace fusejit::runtime::cuda
