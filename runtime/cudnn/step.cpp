#include "runtime/cudnn/step.h"

#include <algorithm>

#include "ir/base/check.h"
#include "runtime/cuda/time_calls.h"
#include "runtime/cudnn/library/device.h"
#include "runtime/cudnn/support/support.h"

namespace fusejit::runtime::cudnn {
namespace {

// For as long as it lives, a handle puts its work on another stream: that of a capture, or of a trial, which ends
// before the handle does.
class OnStream {
 public:
  OnStream(const CudnnHandle& handle, cuda::CuStream stream) : handle_(handle), own_(stream == handle.own_stream()) {
    handle.use(stream);
  }
  ~OnStream() {
    const Library& library = *handle_.library();
    if (!own_) library.api().cudnnSetStream(handle_.get(), reinterpret_cast<Stream>(handle_.own_stream()));
  }
  OnStream(const OnStream&) = delete;
  OnStream& operator=(const OnStream&) = delete;

 private:
  const CudnnHandle& handle_;
  const bool own_;
};

class StepOnCudnn final : public cuda::LibraryCall {
 public:
  StepOnCudnn(std::shared_ptr<const CudnnHandle> handle, std::shared_ptr<const Plan> plan,
              std::vector<std::size_t> places, std::vector<Role> roles)
      : handle_(std::move(handle)), plan_(std::move(plan)), places_(std::move(places)), roles_(std::move(roles)) {}

  void execute(cuda::CuStream stream, std::span<const cuda::CuPointer> pointers,
               cuda::CuPointer workspace) const override {
    const auto lock = handle_->lock();
    const OnStream on_stream(*handle_, stream);
    const auto address_of = [&](Role role) {
      const auto at = static_cast<std::size_t>(std::find(roles_.begin(), roles_.end(), role) - roles_.begin());
      FJ_ASSERT(at < roles_.size(), "cudnn: no value of the step is {} ({})", name(role), plan_->call);
      return reinterpret_cast<void*>(pointers[places_[at]]);
    };
    cudnn::execute(handle_->library(), handle_->get(), *plan_, address_of, reinterpret_cast<void*>(workspace));
  }
  std::int64_t workspace_bytes() const override { return plan_->workspace_bytes; }
  std::string describe() const override {
    return fmt::format("cudnn {}, engine {} ({}), {} bytes of workspace", plan_->call, plan_->engine.index,
                       name(plan_->engine.tier), plan_->workspace_bytes);
  }

 private:
  const std::shared_ptr<const CudnnHandle> handle_;
  const std::shared_ptr<const Plan> plan_;
  const std::vector<std::size_t> places_;  // of each role, among the step's values
  const std::vector<Role> roles_;
};

}  // namespace

namespace {

// A target that is not strict lets cuDNN round f32 (passes.h, suits_library): its calls are planned so.
Numerics numerics_of(const Target& target) { return {.tf32 = !target.strict_f32}; }
bool is_compiled(const Support& support) { return support.tier == Tier::runtime_compiled || support.slow; }

}  // namespace

scheduler::LibraryAnswer supports_step(const ir::Graph& ops, const Target& target) {
  try {
    const ConvolutionCall call = step_call(ops).call;
    const Support support = supports(call, target.compute_capability, numerics_of(target));
    if (!support.ok) return {false, support.why};
    if (target.cudnn == CudnnMode::compiled || !is_compiled(support)) return {true, ""};
    if (support.slow) return {false, fmt::format("{}: {}", call.str(), support.why)};
    return {false, fmt::format("only engines that cuDNN compiles at run time do {}", call.str())};
  } catch (const UnsupportedError& error) {
    return {false, error.what()};
  }
}

Tier tier_of(const ir::Graph& ops, const Target& target) {
  if (target.cudnn != CudnnMode::compiled) return Tier::precompiled;
  const Support support = supports(step_call(ops).call, target.compute_capability, numerics_of(target));
  return support.ok && is_compiled(support) ? Tier::runtime_compiled : Tier::precompiled;
}

CudnnHandle::CudnnHandle(std::shared_ptr<const Library> library, std::shared_ptr<cuda::CudaDevice> device)
    : device_(std::move(device)), library_(std::move(library)) {
  device_->context().enter();
  library_->check(library_->api().cudnnCreate(&handle_), "cudnnCreate");
  library_->api().cudnnSetStream(handle_, reinterpret_cast<Stream>(own_stream()));  // every use says so again
}

// On whatever thread: without a current context cuDNN would look for its memory on the first device.
CudnnHandle::~CudnnHandle() {
  device_->context().make_current();
  library_->api().cudnnDestroy(handle_);
}

void CudnnHandle::use(cuda::CuStream stream) const {
  library_->check(library_->api().cudnnSetStream(handle_, reinterpret_cast<Stream>(stream)), "cudnnSetStream");
}

CudnnCaller::CudnnCaller(std::shared_ptr<cuda::CudaDevice> device, CallerOptions options)
    : device_(std::move(device)), options_(std::move(options)) {}

std::string CudnnCaller::identity() const { return caller_identity(options_); }

std::string caller_identity(const CallerOptions& options) {
  const auto library = Library::load();
  if (!library->available()) return "";
  const Numerics& n = options.numerics;
  return fmt::format("cudnn {} tf32={:d} nondeterministic={:d} winograd={:d} timed={}", library->version(), n.tf32,
                     n.nondeterministic, n.winograd, options.timed);
}

// Plans give code back to the context that is current.
CudnnCaller::~CudnnCaller() { device_->context().make_current(); }

CudnnCaller::Opened& CudnnCaller::open() {
  const std::lock_guard lock(mutex_);
  if (opened_) return *opened_;
  auto opened = std::make_unique<Opened>();
  const auto library = Library::load();
  try {
    if (!library->available()) throw DeviceError(library->why_not());
    cuda::DeviceContext& context = device_->context();
    check_architecture(*library, context.properties().compute_capability);
    context.enter();
    opened->planner = std::make_unique<Planner>(
        library, read_device(library, context.ordinal()), context.properties().compute_capability,
        [this](const ConvolutionCall& call, std::span<const std::shared_ptr<const Plan>> plans) {
          return choose(call, plans);
        },
        options_.disk);
    opened->handle = std::make_shared<const CudnnHandle>(library, device_);
  } catch (const Error& error) {
    opened->why_not = error.what();
  }
  opened_ = std::move(opened);
  return *opened_;
}

std::vector<std::string> CudnnCaller::texts() {
  {
    const std::lock_guard lock(mutex_);
    if (!opened_ || !opened_->handle) return {};  // nothing was made
  }
  return open().planner->cache().texts();
}

bool CudnnCaller::add_text(std::string_view text) {
  Opened& cudnn = open();
  return cudnn.handle && cudnn.planner->cache().add_text(text);
}

// By time on the device where that can be measured. The calls are given the plan's own tensors, in their order.
std::size_t CudnnCaller::choose(const ConvolutionCall&, std::span<const std::shared_ptr<const Plan>> plans) {
  std::vector<std::int64_t> bytes;
  std::vector<Role> roles;
  std::vector<std::size_t> places;
  for (const TensorUse& tensor : plans[0]->tensors) {
    places.push_back(roles.size());
    roles.push_back(tensor.role);
    bytes.push_back(tensor.type.bytes());
  }
  std::vector<std::shared_ptr<const cuda::LibraryCall>> calls;
  for (const auto& plan : plans) {
    calls.push_back(std::make_shared<const StepOnCudnn>(open().handle, plan, places, roles));
  }
  try {
    return cuda::fastest(*device_, calls, bytes);
  } catch (const DeviceError&) {
    if (device_->context().lost()) throw;
    return 0;  // no room to try them, say: cuDNN's own choice
  }
}

std::shared_ptr<const cuda::LibraryCall> CudnnCaller::make(const scheduler::PlanStep& step, const Target& target,
                                                           std::string& why_not) {
  Opened& cudnn = open();
  why_not = cudnn.why_not;
  if (!cudnn.handle) return nullptr;
  try {
    const StepCall wanted = step_call(step.library->graph);
    const bool compiled = tier_of(step.library->graph, target) == Tier::runtime_compiled;
    device_->context().enter();
    const auto plan = cudnn.planner->plan(
        wanted.call, {.numerics = options_.numerics, .runtime_compiled = compiled, .plans = options_.timed}, why_not);
    if (!plan) return nullptr;
    std::vector<std::size_t> places;
    for (const int value : step.library->values) {
      const auto at = std::find(step.values.begin(), step.values.end(), value);
      places.push_back(static_cast<std::size_t>(at - step.values.begin()));
    }
    return std::make_shared<const StepOnCudnn>(cudnn.handle, plan, std::move(places), wanted.roles);
  } catch (const UnsupportedError& error) {
    why_not = error.what();
  } catch (const DeviceError& error) {
    if (device_->context().lost()) throw;
    why_not = error.what();
  }
  return nullptr;
}

}  // namespace fusejit::runtime::cudnn
