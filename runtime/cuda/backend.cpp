#include "runtime/cuda/backend.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "ir/base/check.h"
#include "runtime/cuda/time_calls.h"
#include "runtime/cudnn/step.h"
#include "runtime/profiler.h"
#include "runtime/results.h"

namespace fusejit::runtime {
namespace {

constexpr int kMostRounds = 16;  // of planning anew without what the library refused

std::shared_ptr<cuda::StepCaller> caller_of(const std::shared_ptr<cuda::CudaDevice>& device,
                                            CudaBackendOptions& options) {
  if (options.caller || !options.cudnn) return std::move(options.caller);
  return std::make_shared<cudnn::CudnnCaller>(
      device, cudnn::CallerOptions{.numerics = options.numerics, .disk = options.disk, .timed = options.timed_engines});
}

// What is alive after the step that writes result 0, the loss of a training step.
std::int64_t end_of_first_result_bytes(const scheduler::Plan& plan) {
  if (plan.results.empty()) return 0;
  const scheduler::PlanValue& loss = plan.values[static_cast<std::size_t>(plan.results[0])];
  std::int64_t bytes = scheduler::live_arena_bytes_after(plan, loss.first_step);
  for (const scheduler::PlanValue& value : plan.values) {
    if (value.storage != scheduler::Storage::arena) bytes += value.bytes;
  }
  return bytes;
}

class PlanOnDevice : public Executor {
 public:
  PlanOnDevice(CudaBackend& backend, std::shared_ptr<cuda::CudaExecutor> executor)
      : backend_(backend), executor_(std::move(executor)) {}

  Ran run(const ir::Graph& graph, std::span<const Buffer> arguments) override {
    Ran ran{backend_.run(*executor_, graph, arguments), {}};
    if (Profiler::the().is_on()) backend_.synchronize();  // else the time would be that of asking for it
    const cuda::ExecutorStatistics now = executor_->statistics();
    const scheduler::Plan& plan = executor_->plan();
    ran.report = report_of(plan);
    ran.report.kernels = now.kernel_launches + now.library_calls;
    ran.report.end_of_first_result_bytes = end_of_first_result_bytes(plan);
    return ran;
  }
  std::int64_t graph_launches() const override { return executor_->statistics().graph_launches; }

 private:
  CudaBackend& backend_;
  const std::shared_ptr<cuda::CudaExecutor> executor_;
};

}  // namespace

CudaBackend::CudaBackend(std::shared_ptr<cuda::CudaDevice> device, CudaBackendOptions options)
    : device_(device),
      use_cudnn_(options.cudnn),
      tf32_(options.numerics.tf32),
      caller_(caller_of(device_, options)),
      store_(options.disk, options.frozen),
      frozen_(options.frozen),
      kernels_(std::move(device), std::move(options.compile), options.disk) {}

CudaBackend::~CudaBackend() = default;

std::string why_no_kernels(const std::string& device, int compute_capability, const codegen::cuda::NvrtcState& nvrtc,
                           int driver_version) {
  if (!nvrtc.available) return fmt::format("{}: kernels cannot be compiled: {}", device, nvrtc.why_not);
  // Machine code is good for every driver of the compiler's major version and later ones.
  if (const int driver = driver_version / 1000; driver > 0 && driver < nvrtc.major) {
    return fmt::format(
        "{}: its driver is for CUDA {} and cannot load what NVRTC {}.{} ({}) compiles; update the driver, or let "
        "FUSEJIT_NVRTC name an NVRTC {}",
        device, cuda::cuda_version_text(driver_version), nvrtc.major, nvrtc.minor, nvrtc.library, driver);
  }
  const std::vector<int>& known = nvrtc.architectures;
  if (std::binary_search(known.begin(), known.end(), compute_capability)) return "";
  const bool is_old = !known.empty() && compute_capability < known.front();
  return fmt::format(
      "{} is of the architecture sm_{}, for which NVRTC {}.{} ({}) does not compile (it does for sm_{}); {}", device,
      compute_capability, nvrtc.major, nvrtc.minor, nvrtc.library, fmt::join(known, ", sm_"),
      is_old ? "let FUSEJIT_NVRTC name an older NVRTC, or use a newer device"
             : "install a newer NVRTC, or let FUSEJIT_NVRTC name it");
}

std::shared_ptr<CudaBackend> CudaBackend::open(const Device& device, CudaBackendOptions options) {
  auto opened = cuda::cuda_device(device);
  const std::string why = why_no_kernels(device.str(), opened->context().properties().compute_capability);
  if (!why.empty()) throw UnsupportedError(why);
  return std::make_shared<CudaBackend>(std::move(opened), std::move(options));
}

Target CudaBackend::target() const {
  Target target = device_->target();
  target.cudnn = why_no_library().empty() ? CudnnMode::precompiled : CudnnMode::off;
  target.strict_f32 = target.cudnn != CudnnMode::off && !tf32_;
  return target;
}

std::string CudaBackend::why_no_library() const {
  return use_cudnn_ ? cudnn::Library::load()->why_not() : "cuDNN: it is switched off";
}

Target CudaBackend::first_target(const Target& target) const {
  Target first = target;
  first.cudnn = std::min(first.cudnn, CudnnMode::precompiled);
  return first;
}

KernelCounts CudaBackend::kernels() const {
  const cuda::CudaKernelsStatistics now = kernels_.statistics();
  return {now.hits, now.loaded, now.compiled, 0};
}

Buffer CudaBackend::place(const Buffer& buffer) {
  return buffer.device() == device_->device() ? buffer : device_->upload(buffer.on_host());
}

MemoryStatistics CudaBackend::memory() const {
  const cuda::DeviceMemoryStatistics now = device_->memory().statistics();
  return {now.allocated, now.peak, now.reserved};
}

std::vector<std::string> CudaBackend::refusals() const {
  const std::lock_guard lock(mutex_);
  return refusals_;
}

scheduler::LibraryAnswer CudaBackend::supports(const ir::Graph& ops, const Target& target) const {
  if (!caller_) return {false, "cuDNN is not used"};
  {
    const std::lock_guard lock(mutex_);
    const auto refused = refused_.find(ir::hash(ops));
    if (refused != refused_.end()) return {false, refused->second};
  }
  return caller_->supports(ops, target);
}

void CudaBackend::note(const std::string& refusal) {
  if (std::find(refusals_.begin(), refusals_.end(), refusal) == refusals_.end()) refusals_.push_back(refusal);
}

// Each call is run once before a plan relies on it.
std::shared_ptr<const cuda::LibraryCall> CudaBackend::make_call(const scheduler::Plan& plan,
                                                                const scheduler::PlanStep& step, std::string& why_not) {
  std::shared_ptr<const cuda::LibraryCall> call = caller_->make(step, plan.target, why_not);
  if (!call) return nullptr;
  const std::string described = call->describe();
  {
    const std::lock_guard lock(mutex_);
    if (tried_.contains(described)) return call;
  }
  std::vector<std::int64_t> bytes;
  for (const int value : step.values) bytes.push_back(plan.values[static_cast<std::size_t>(value)].bytes);
  why_not = cuda::why_it_fails(*device_, *call, bytes);
  if (!why_not.empty()) return why_not = fmt::format("{} does not run: {}", described, why_not), nullptr;
  const std::lock_guard lock(mutex_);
  tried_.insert(described);
  return call;
}

CudaBackend::StepCalls CudaBackend::make_calls(const scheduler::Plan& plan, const std::stop_token& stop) {
  StepCalls calls;
  calls.by_step.resize(plan.steps.size());
  const bool any = std::any_of(plan.steps.begin(), plan.steps.end(),
                               [](const scheduler::PlanStep& step) { return step.library.has_value(); });
  if (!any || !caller_) return calls;
  if (const std::string why_none = caller_->why_none(); !why_none.empty()) {
    const std::lock_guard lock(mutex_);
    note(why_none);
    return calls;
  }
  for (std::size_t s = 0; s < plan.steps.size() && !stop.stop_requested(); ++s) {
    const scheduler::PlanStep& step = plan.steps[s];
    if (!step.library) continue;
    std::string why_not;
    calls.by_step[s] = make_call(plan, step, why_not);
    if (calls.by_step[s]) continue;
    const std::lock_guard lock(mutex_);
    note(why_not);
    refused_[ir::hash(step.library->graph)] = why_not;
    calls.plan_again |= step.library->graph.nodes().size() > 1;
  }
  return calls;
}

std::optional<Planned> CudaBackend::plan(const ir::Graph& graph, scheduler::PlanOptions wanted,
                                         const std::stop_token& stop) {
  wanted.supports = [this](const ir::Graph& ops, const Target& target) { return supports(ops, target); };
  const std::string library = caller_ ? caller_->identity() : "";
  disk::PlanStore::Planned planned;
  StepCalls calls;
  for (int round = 0; round < kMostRounds; ++round) {
    if (round == 0) {
      planned = store_.schedule(graph, wanted, {library});
    } else {
      planned = {scheduler::make_plan(graph, wanted)};
    }
    calls = make_calls(planned.plan, stop);
    if (stop.stop_requested()) return std::nullopt;
    if (!calls.plan_again) break;
  }
  if (!planned.was_kept) store_.put(graph, wanted, planned.plan, {library});
  return Planned{std::make_shared<const scheduler::Plan>(std::move(planned.plan)), planned.was_kept,
                 std::move(calls.by_step)};
}

std::shared_ptr<Executor> CudaBackend::prepare(const Planned& planned, const PrepareOptions& options) {
  return std::make_shared<PlanOnDevice>(*this, load(planned, options.threads));
}

std::shared_ptr<cuda::CudaExecutor> CudaBackend::load(const Planned& planned, int threads) {
  const scheduler::Plan& plan = *planned.plan;
  std::vector<cuda::CudaStep> steps(plan.steps.size());
  std::vector<std::size_t> places;
  std::vector<std::shared_ptr<const ir::Kernel>> wanted;
  std::vector<std::string> names;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    if (!planned.calls.empty() && planned.calls[s]) {
      steps[s] = planned.calls[s];
      continue;
    }
    places.push_back(s);
    wanted.push_back(plan.steps[s].kernel), names.push_back(plan.steps[s].name);
  }
  auto kernels = kernels_.get(wanted, threads, frozen_, names);
  for (std::size_t i = 0; i < places.size(); ++i) steps[places[i]] = std::move(kernels[i]);
  return std::make_shared<cuda::CudaExecutor>(device_, planned.plan, std::move(steps));
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
