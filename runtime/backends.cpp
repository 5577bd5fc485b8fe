#include "runtime/backends.h"

#include <algorithm>
#include <thread>

#include "ir/base/check.h"
#include "runtime/cpu/backend.h"
#include "runtime/cuda/backend.h"
#include "runtime/process/fork.h"

namespace fusejit::runtime {
namespace {

constexpr int kTimedEngines = 4;

std::shared_ptr<CudaBackend> open(const SessionOptions& options, const Device& device) {
  CudaBackendOptions wanted;
  wanted.cudnn = options.cudnn != CudnnMode::off;
  wanted.numerics.tf32 = options.tf32;
  wanted.timed_engines = options.tune == Tune::full ? kTimedEngines : 1;
  wanted.disk = options.disk, wanted.frozen = options.frozen;
  return CudaBackend::open(device, wanted);
}

int thread_count(const SessionOptions& options) {
  return options.threads > 0 ? options.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

// Interpreters run plans for a CUDA device too.
bool has_plans_on_device(const SessionOptions& options) {
  return options.target.isa == Isa::cuda && options.engine == Engine::compiled;
}

std::unique_ptr<Backend> host_backend(const SessionOptions& options) {
  CpuBackendOptions wanted;
  wanted.threads = has_plans_on_device(options) ? 1 : thread_count(options);
  wanted.kernels = options.kernels, wanted.disk = options.disk, wanted.frozen = options.frozen;
  wanted.checks = options.checks;
  wanted.tune = options.tune, wanted.log = options.log;
  wanted.checks.kernel_interpreter |= options.engine == Engine::kernel_interpreter;
  return std::make_unique<CpuBackend>(std::move(wanted));
}

}  // namespace

SessionOptions on_device(SessionOptions options, const Device& device) {
  FJ_ASSERT(!device.is_cpu(), "the cpu needs no options");
  if (!options.backend || options.device != device) options.backend = open(options, device);
  options.device = device;
  options.results_on_device = true;
  if (options.target.isa != Isa::cuda) {
    options.target = options.backend->target();
    if (options.target.cudnn != CudnnMode::off) options.target.cudnn = options.cudnn;
    options.target.fast_norm = options.target.cudnn != CudnnMode::off && options.fast_norm;
  }
  return options;
}

Backends::Backends(const SessionOptions& options)
    : plans_on_device_(has_plans_on_device(options)),
      results_on_device_(options.results_on_device),
      threads_(thread_count(options)),
      options_(options),
      generation_(process_generation()),
      host_(host_backend(options)),
      device_(options.backend) {}

Backends::~Backends() = default;

Backend& Backends::device() {
  if (generation_ != process_generation()) {
    throw DeviceError(
        fmt::format("{}: the child of a fork() cannot use a CUDA device of its parent; use fusejit in one of them, or "
                    "exec after fork",
                    options_.device.str()));
  }
  const std::lock_guard lock(mutex_);
  if (!device_) device_ = open(options_, options_.device);
  return *device_;
}

KernelCounts Backends::kernels() const {
  KernelCounts all = host_->kernels();
  const std::lock_guard lock(mutex_);
  if (!device_) return all;
  const KernelCounts there = device_->kernels();
  all.hits += there.hits, all.loaded += there.loaded, all.compiled += there.compiled, all.evictions += there.evictions;
  return all;
}

std::string Backends::why_no_library() const {
  const std::lock_guard lock(mutex_);
  return device_ ? device_->why_no_library() : "";
}

}  // namespace fusejit::runtime
