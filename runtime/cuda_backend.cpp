#include "runtime/cuda_backend.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "ir/base/check.h"
#include "runtime/cudnn/device.h"
#include "runtime/cudnn/step.h"
#include "runtime/results.h"

namespace fusejit::runtime {

// cuDNN on this device, opened when a plan first has a step for it.
struct CudaBackend::Cudnn {
  std::shared_ptr<const cudnn::CudnnHandle> handle;  // null: `why_not`
  std::optional<cudnn::Descriptor> device;
  std::string why_not;

  explicit Cudnn(cuda::DeviceContext& context) {
    const auto library = cudnn::Library::load();
    if (!library->available()) {
      why_not = library->why_not();
      return;
    }
    try {
      context.enter();
      device = cudnn::read_device(library, context.ordinal());
      handle = std::make_shared<const cudnn::CudnnHandle>(library);
    } catch (const Error& error) {
      why_not = error.what();
    }
  }
};

CudaBackend::CudaBackend(std::shared_ptr<cuda::CudaDevice> device, CudaBackendOptions options)
    : device_(device),
      use_cudnn_(options.cudnn),
      numerics_(options.numerics),
      kernels_(std::move(device), std::move(options.compile)) {}

CudaBackend::~CudaBackend() = default;

std::string why_no_kernels(const std::string& device, int compute_capability, const codegen::cuda::NvrtcState& nvrtc) {
  if (!nvrtc.available) return fmt::format("{}: kernels cannot be compiled: {}", device, nvrtc.why_not);
  const std::vector<int>& known = nvrtc.architectures;
  if (std::binary_search(known.begin(), known.end(), compute_capability)) return "";
  const bool is_old = !known.empty() && compute_capability < known.front();
  return fmt::format(
      "{} is of the architecture sm_{}, for which NVRTC {}.{} ({}) does not compile (it does for sm_{}); {}", device,
      compute_capability, nvrtc.major, nvrtc.minor, nvrtc.library, fmt::join(known, ", sm_"),
      is_old ? "let FUSEJIT_NVRTC name an older NVRTC, or use a newer device"
             : "install a newer NVRTC, or let FUSEJIT_NVRTC name it");
}

std::shared_ptr<CudaBackend> CudaBackend::open(const Device& device) {
  auto opened = cuda::cuda_device(device);
  const std::string why = why_no_kernels(device.str(), opened->context().properties().compute_capability);
  if (!why.empty()) throw UnsupportedError(why);
  return std::make_shared<CudaBackend>(std::move(opened));
}

Target CudaBackend::target() const {
  Target target = device_->target();
  target.cudnn = why_no_cudnn().empty();
  return target;
}

std::string CudaBackend::why_no_cudnn() const {
  return use_cudnn_ ? cudnn::Library::load()->why_not() : "cuDNN: it is switched off";
}

std::vector<std::string> CudaBackend::refusals() const {
  const std::lock_guard lock(mutex_);
  return refusals_;
}

// Null: the step's kernel does the work.
std::shared_ptr<const cuda::LibraryCall> CudaBackend::library_call(const scheduler::PlanStep& step) {
  if (!step.library || !use_cudnn_) return nullptr;
  const std::lock_guard lock(mutex_);
  if (!cudnn_) cudnn_ = std::make_unique<Cudnn>(device_->context());
  std::string why_not = cudnn_->why_not;
  std::shared_ptr<const cuda::LibraryCall> call;
  if (cudnn_->handle) {
    try {
      call = cudnn::library_call(cudnn_->handle, *cudnn_->device, step, {.numerics = numerics_}, why_not);
    } catch (const UnsupportedError& error) {
      why_not = error.what();
    }
  }
  if (!call && std::find(refusals_.begin(), refusals_.end(), why_not) == refusals_.end()) refusals_.push_back(why_not);
  return call;
}

std::shared_ptr<cuda::CudaExecutor> CudaBackend::prepare(std::shared_ptr<const scheduler::Plan> plan, int threads) {
  std::vector<cuda::CudaStep> steps(plan->steps.size());
  std::vector<std::size_t> places;
  std::vector<std::shared_ptr<const ir::Kernel>> wanted;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    if (auto call = library_call(plan->steps[s])) {
      steps[s] = std::move(call);
      continue;
    }
    places.push_back(s);
    wanted.push_back(plan->steps[s].kernel);
  }
  auto kernels = kernels_.get(wanted, threads);
  for (std::size_t i = 0; i < places.size(); ++i) steps[places[i]] = std::move(kernels[i]);
  return std::make_shared<cuda::CudaExecutor>(device_, std::move(plan), std::move(steps));
}

// Small ones stay where they are: the executor copies them together.
std::vector<Buffer> CudaBackend::on_device(const scheduler::Plan& plan, std::span<const Buffer> arguments) {
  std::vector<Buffer> given(arguments.begin(), arguments.end());
  std::vector<bool> is_result(given.size());
  for (const int result : plan.results) {
    const scheduler::PlanValue& value = plan.values[static_cast<std::size_t>(result)];
    const bool argument = value.storage == scheduler::Storage::argument || value.storage == scheduler::Storage::donated;
    if (argument) is_result[static_cast<std::size_t>(value.index)] = true;
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i].device() == device_->device()) continue;
    given[i] = given[i].on_host();
    if (is_result[i] || given[i].bytes() > cuda::kSmallArgument) given[i] = device_->upload(given[i]);
  }
  return given;
}

std::vector<Buffer> CudaBackend::run(cuda::CudaExecutor& executor, const ir::Graph& graph,
                                     std::span<const Buffer> arguments) {
  const scheduler::Plan& plan = executor.plan();
  const std::vector<Buffer> given = on_device(plan, arguments);
  std::vector<Buffer> results = bind_results(
      plan, graph, given, [&](const Type& type) { return device_->allocate(type); },
      [&](const Buffer& to, const std::vector<std::byte>& data) {
        device_->staging().upload(to.address(), data.data(), static_cast<std::int64_t>(data.size()));
      });
  executor.run(given, results);
  return results;
}

}  // namespace fusejit::runtime
