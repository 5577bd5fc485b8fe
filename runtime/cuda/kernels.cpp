#include "runtime/cuda/kernels.h"

#include <fmt/format.h>

#include "ir/base/placed_error.h"
#include "runtime/disk/entries/cuda_entry.h"
#include "runtime/disk/explain.h"

namespace fusejit::runtime::cuda {
namespace {

ir::Hash key_of(const std::string& text) { return ir::hash_text(text); }

}  // namespace

std::string entry_name(const ir::Kernel& kernel) {
  return fmt::format("{}_{:.8}", kernel.name, key_of(ir::kernel_key_text(kernel)).hex());
}

std::vector<CudaKernels::Loaded> CudaKernels::get(std::span<const std::shared_ptr<const ir::Kernel>> kernels,
                                                  int threads, bool frozen, std::span<const std::string> names) {
  std::vector<ir::Hash> keys;
  std::vector<Loaded> result(kernels.size());
  std::vector<Missing> missing;
  std::unordered_map<ir::Hash, std::size_t, ir::HashOfHash> place;  // in `missing`: equal kernels once
  for (const auto& kernel : kernels) {
    std::string text = ir::kernel_key_text(*kernel);
    keys.push_back(key_of(text));
    const std::lock_guard lock(mutex_);
    if (const auto found = loaded_.find(keys.back()); found != loaded_.end()) {
      result[keys.size() - 1] = found->second;
      ++statistics_.hits;
    } else if (place.emplace(keys.back(), missing.size()).second) {
      missing.push_back(
          {keys.back(), std::move(text), kernel, names.empty() ? kernel->name : names[keys.size() - 1], nullptr});
    }
  }
  if (missing.empty()) return result;
  if (disk_ || frozen) load(missing, frozen);
  build(missing, threads);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (!result[i]) result[i] = missing[place.at(keys[i])].loaded;
  }
  return result;
}

void CudaKernels::load(std::vector<Missing>& missing, bool frozen) {
  DeviceContext& context = device_->context();
  std::unordered_map<std::string, std::shared_ptr<Module>> modules;  // by program
  std::int64_t loaded = 0;
  for (Missing& kernel : missing) {
    const disk::CacheKey key = disk::cuda_kernel_key(kernel.text, capability());
    const auto entry = disk_ ? disk::find_cuda_kernel(*disk_, key) : std::nullopt;
    if (entry) {
      try {
        std::shared_ptr<Module>& module = modules[entry->program];
        if (!module) {
          const std::string cubin = disk::find_program(*disk_, entry->program, capability());
          if (!cubin.empty())
            module = device_->memory().with_room([&] { return std::make_shared<Module>(context, cubin); });
        }
        if (module) {
          kernel.loaded = device_->memory().with_room([&] {
            return std::make_shared<const LoadedKernel>(load_kernel(context, module, entry->source, entry->resources));
          });
        }
      } catch (const DriverError& error) {
        if (error.code == kOutOfMemory) throw;  // there is nothing wrong with it
        disk::refused_cuda_kernel(*disk_, key, entry->program, error.what());
      }
    }
    if (frozen && !kernel.loaded) {
      throw UserError(fmt::format("{}: frozen: kernel @{} would have to be compiled; {}", kernel.name,
                                  kernel.kernel->name,
                                  disk_ ? explain(*disk_, key).text : "there is no cache on disk"));
    }
    loaded += kernel.loaded != nullptr;
  }
  const std::lock_guard lock(mutex_);
  statistics_.loaded += loaded;
  for (const Missing& kernel : missing) {
    if (kernel.loaded) keep(kernel.key, kernel.loaded);
  }
}

// Compiles and loads what is still missing. Outside the lock; two threads that miss the same kernel both compile it.
void CudaKernels::build(std::vector<Missing>& missing, int threads) {
  std::vector<Missing*> wanted;
  std::vector<codegen::cuda::CudaSource> sources;
  for (Missing& kernel : missing) {
    if (kernel.loaded) continue;
    wanted.push_back(&kernel);
    try {
      sources.push_back(codegen::cuda::emit(*kernel.kernel, entry_name(*kernel.kernel)));
    } catch (const Error& error) {
      ir::throw_with_sentence(error, fmt::format("{}: {}", kernel.name, error.what()));
    }
  }
  if (wanted.empty()) return;
  const std::vector<Program> programs = compile_programs(sources, capability(), threads, compile_);
  DeviceContext& context = device_->context();
  for (const Program& program : programs) {
    const auto module =
        device_->memory().with_room([&] { return std::make_shared<Module>(context, program.binary.cubin); });
    std::vector<disk::CacheKey> keys;
    std::vector<codegen::cuda::CudaSource> kept;
    for (const std::size_t member : program.members) {
      wanted[member]->loaded = device_->memory().with_room([&] {  // code is loaded when a function is asked for
        return std::make_shared<const LoadedKernel>(
            load_kernel(context, module, sources[member], program.binary.entries));
      });
      if (!disk_) continue;
      keys.push_back(disk::cuda_kernel_key(wanted[member]->text, capability()));
      kept.push_back(sources[member]);
    }
    if (disk_) disk::put_program(*disk_, keys, kept, program.binary);
  }
  const std::lock_guard lock(mutex_);
  for (const Missing* kernel : wanted) keep(kernel->key, kernel->loaded);
  statistics_.compiled += static_cast<std::int64_t>(wanted.size());
  statistics_.programs += static_cast<std::int64_t>(programs.size());
  for (const Program& program : programs) statistics_.compile_milliseconds += program.binary.compile_milliseconds;
}

void CudaKernels::keep(const ir::Hash& key, Loaded kernel) {
  if (!loaded_.emplace(key, std::move(kernel)).second) return;
  oldest_.push_back(key);
  if (oldest_.size() <= capacity_) return;
  loaded_.erase(oldest_.front());
  oldest_.pop_front();
}

CudaKernelsStatistics CudaKernels::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

}  // namespace fusejit::runtime::cuda
