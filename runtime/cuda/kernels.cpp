#include "runtime/cuda/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <set>
#include <thread>

namespace fusejit::runtime::cuda {
namespace {

// A program costs about as much as two more kernels in another one; a longer program is more to wait for.
constexpr std::size_t kFewestInProgram = 4;
constexpr std::size_t kMostInProgram = 16;

std::size_t programs_for(std::size_t kernels, int threads) {
  const std::size_t in_parallel = std::min<std::size_t>(static_cast<std::size_t>(std::max(threads, 1)),
                                                        (kernels + kFewestInProgram - 1) / kFewestInProgram);
  return std::max(in_parallel, (kernels + kMostInProgram - 1) / kMostInProgram);
}

ir::Hash key_of(const ir::Kernel& kernel) { return ir::hash_text(ir::kernel_key_text(kernel)); }

}  // namespace

std::string entry_name(const ir::Kernel& kernel) { return fmt::format("{}_{:.8}", kernel.name, key_of(kernel).hex()); }

std::vector<CudaKernels::Loaded> CudaKernels::get(std::span<const std::shared_ptr<const ir::Kernel>> kernels,
                                                  int threads) {
  std::vector<ir::Hash> keys;
  for (const auto& kernel : kernels) keys.push_back(key_of(*kernel));
  std::vector<Loaded> result(kernels.size());
  std::vector<Missing> missing;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const auto found = loaded_.find(keys[i]);
      if (found == loaded_.end()) continue;
      result[i] = found->second;
      ++statistics_.hits;
    }
  }
  std::set<std::string> seen;  // equal kernels once
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (result[i] || !seen.insert(keys[i].hex()).second) continue;
    missing.push_back({keys[i], codegen::cuda::emit(*kernels[i], entry_name(*kernels[i])), 0, nullptr});
  }
  if (missing.empty()) return result;
  build(missing, threads);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (result[i]) continue;
    result[i] =
        std::find_if(missing.begin(), missing.end(), [&](const Missing& m) { return m.key == keys[i]; })->loaded;
  }
  return result;
}

// Compiles and loads what is missing. Outside the lock; two threads that miss the same kernel both compile it.
void CudaKernels::build(std::vector<Missing>& missing, int threads) {
  struct Program {
    std::vector<codegen::cuda::CudaSource> sources;
    std::size_t text_bytes = 0;
    codegen::cuda::CudaBinary binary;
    std::exception_ptr error;
  };
  std::vector<Program> programs(programs_for(missing.size(), threads));
  for (Missing& kernel : missing) {  // to the shortest program
    const auto shortest = std::min_element(programs.begin(), programs.end(), [](const Program& a, const Program& b) {
      return a.text_bytes < b.text_bytes;
    });
    kernel.program = static_cast<std::size_t>(shortest - programs.begin());
    shortest->sources.push_back(kernel.source);
    shortest->text_bytes += kernel.source.text.size();
  }
  const int capability = device_->context().properties().compute_capability;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < programs.size(); i = next++) {
      try {
        programs[i].binary = compile_(codegen::cuda::program(programs[i].sources), capability);
      } catch (...) {
        programs[i].error = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t t = 1; t < std::min(programs.size(), static_cast<std::size_t>(std::max(threads, 1))); ++t) {
      others.emplace_back(work);
    }
    work();
  }
  DeviceContext& context = device_->context();
  std::vector<std::shared_ptr<Module>> modules;
  for (const Program& program : programs) {
    if (program.error) std::rethrow_exception(program.error);
    modules.push_back(
        device_->memory().with_room([&] { return std::make_shared<Module>(context, program.binary.cubin); }));
  }
  for (Missing& kernel : missing) {
    kernel.loaded = device_->memory().with_room([&] {  // code is loaded when a function is asked for
      return std::make_shared<const LoadedKernel>(
          load_kernel(context, modules[kernel.program], kernel.source, programs[kernel.program].binary.entries));
    });
  }
  const std::lock_guard lock(mutex_);
  for (const Missing& kernel : missing) keep(kernel.key, kernel.loaded);
  statistics_.compiled += static_cast<std::int64_t>(missing.size());
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
