#include "runtime/cudnn/step.h"

#include <algorithm>

#include "ir/base/check.h"
#include "ir/op.h"

namespace fusejit::runtime::cudnn {
namespace {

// Which tensor each operand and the result of a convolution op is.
struct Anchor {
  ir::Op op;
  Direction direction;
  std::array<Role, 3> roles;
};
constexpr Anchor kAnchors[] = {
    {ir::Op::conv2d, Direction::forward, {Role::x, Role::w, Role::y}},
    {ir::Op::conv2d_input_grad, Direction::input_gradient, {Role::y, Role::w, Role::x}},
    {ir::Op::conv2d_weight_grad, Direction::weight_gradient, {Role::x, Role::y, Role::w}},
};

class StepOnCudnn final : public cuda::LibraryCall {
 public:
  StepOnCudnn(std::shared_ptr<const CudnnHandle> handle, Plan plan, std::vector<std::size_t> places,
              std::vector<Role> roles)
      : handle_(std::move(handle)), plan_(std::move(plan)), places_(std::move(places)), roles_(std::move(roles)) {}

  void execute(cuda::CuStream stream, std::span<const cuda::CuPointer> pointers,
               cuda::CuPointer workspace) const override {
    const Library& library = *handle_->library();
    const auto lock = handle_->lock();
    library.check(library.api().cudnnSetStream(handle_->get(), reinterpret_cast<Stream>(stream)), "cudnnSetStream");
    const auto address_of = [&](Role role) {
      const auto at = static_cast<std::size_t>(std::find(roles_.begin(), roles_.end(), role) - roles_.begin());
      FJ_ASSERT(at < roles_.size(), "cudnn: no value of the step is {} ({})", name(role), plan_.call);
      return reinterpret_cast<void*>(pointers[places_[at]]);
    };
    cudnn::execute(handle_->library(), handle_->get(), plan_, address_of, reinterpret_cast<void*>(workspace));
  }
  std::int64_t workspace_bytes() const override { return plan_.workspace_bytes; }
  std::string describe() const override {
    return fmt::format("cudnn {}, engine {} ({}), {} bytes of workspace", plan_.call, plan_.engine.index,
                       name(plan_.engine.tier), plan_.workspace_bytes);
  }

 private:
  const std::shared_ptr<const CudnnHandle> handle_;
  const Plan plan_;
  const std::vector<std::size_t> places_;  // of each role, among the step's values
  const std::vector<Role> roles_;
};

}  // namespace

StepCall step_call(const scheduler::LibraryOp& library) {
  const ir::Node& node = *library.graph.results()[0];
  const auto* anchor =
      std::find_if(std::begin(kAnchors), std::end(kAnchors), [&](const Anchor& a) { return a.op == node.op; });
  if (anchor == std::end(kAnchors))
    throw UnsupportedError(fmt::format("cudnn: {} is not one of its calls ({})", ir::name(node.op), node.type.str()));
  const auto type_of = [&](Role role) -> const Type& {
    if (anchor->roles[2] == role) return node.type;
    return node.operands[anchor->roles[0] == role ? 0 : 1].value.type();
  };
  StepCall step;
  ConvolutionCall& call = step.call;
  call.direction = anchor->direction;
  call.dtype = node.type.dtype, call.layout = node.type.layout;
  call.x = type_of(Role::x).shape, call.w = type_of(Role::w).shape;
  std::copy_n(node.attrs.ints("stride").begin(), 2, call.stride.begin());
  std::copy_n(node.attrs.ints("padding").begin(), 4, call.padding.begin());
  std::copy_n(node.attrs.ints("dilation").begin(), 2, call.dilation.begin());
  call.groups = node.attrs.integer("groups");
  call.check();
  FJ_ASSERT(call.y() == type_of(Role::y).shape, "cudnn: {} gives {}, the step has {}", call.str(), call.y().str(),
            type_of(Role::y).shape.str());
  for (const ir::Value& parameter : library.graph.parameters()) {
    const bool first = node.operands[0].value.get() == parameter.get();
    FJ_ASSERT(!first || node.operands[1].value.get() != parameter.get(), "cudnn: one value is both operands ({})",
              call.str());
    step.roles.push_back(anchor->roles[first ? 0 : 1]);
  }
  step.roles.push_back(anchor->roles[2]);
  return step;
}

CudnnHandle::CudnnHandle(std::shared_ptr<const Library> library) : library_(std::move(library)) {
  library_->check(library_->api().cudnnCreate(&handle_), "cudnnCreate");
}
CudnnHandle::~CudnnHandle() { library_->api().cudnnDestroy(handle_); }

std::shared_ptr<const cuda::LibraryCall> library_call(const std::shared_ptr<const CudnnHandle>& handle,
                                                      const Descriptor& device, const scheduler::PlanStep& step,
                                                      const PlanOptions& options, std::string& why_not) {
  const StepCall wanted = step_call(*step.library);
  PlanResult found = find_plans(handle->library(), device, wanted.call, options);
  if (found.plans.empty()) {
    why_not = found.why_not();
    return nullptr;
  }
  std::vector<std::size_t> places;
  for (const int value : step.library->values) {
    const auto at = std::find(step.values.begin(), step.values.end(), value);
    places.push_back(static_cast<std::size_t>(at - step.values.begin()));
  }
  return std::make_shared<const StepOnCudnn>(handle, std::move(found.plans[0]), std::move(places), wanted.roles);
}

}  // namespace fusejit::runtime::cudnn
