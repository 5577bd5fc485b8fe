#include "runtime/cudnn/step.h"

#include <algorithm>
#include <map>

#include "ir/base/check.h"
#include "ir/op.h"
#include "runtime/cudnn/support.h"

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

namespace {

// Reads a graph of ops from its result down to the convolution, and gives each parameter its role.
class Reader {
 public:
  explicit Reader(const ir::Graph& ops) : ops_(ops), result_(*ops.results()[0]) {}

  StepCall read() {
    const ir::Node* node = after_relu(&result_);
    std::vector<const ir::Node*> addends;  // outermost first
    while (node->op == ir::Op::add && addends.size() < 2) {
      const bool first = leads_to_convolution(node->operands[0]);
      const ir::Operand &sum = node->operands[first ? 0 : 1], &addend = node->operands[first ? 1 : 0];
      if (sum.is_number() || addend.is_number()) throw_unsupported();
      addends.push_back(addend.value.get());
      node = sum.value.get();
    }
    convolution(*node);
    for (const ir::Node* addend : addends) add(*addend);
    for (const ir::Value& parameter : ops_.parameters()) {
      if (!roles_.count(parameter.get())) throw_unsupported();
      step_.roles.push_back(roles_.at(parameter.get()));
    }
    step_.roles.push_back(result_role_);
    return std::move(step_);
  }

 private:
  [[noreturn]] void throw_unsupported() const {
    throw UnsupportedError(fmt::format("cudnn: {} with what stands before it is none of its calls ({})",
                                       ir::name(result_.op), result_.type.str()));
  }
  const ir::Node* after_relu(const ir::Node* node) {
    if (node->op != ir::Op::maximum) return node;
    if (node->operands[0].is_number() || !node->operands[1].is_number() || node->operands[1].number != 0)
      throw_unsupported();
    step_.call.activation = Activation::relu;
    return node->operands[0].value.get();
  }
  static bool is_convolution(const ir::Node& node) {
    return std::any_of(std::begin(kAnchors), std::end(kAnchors), [&](const Anchor& a) { return a.op == node.op; });
  }
  static bool leads_to_convolution(const ir::Operand& operand) {
    if (operand.is_number()) return false;
    const ir::Node* node = operand.value.get();
    while (node->op == ir::Op::add) {
      const auto inner = std::find_if(node->operands.begin(), node->operands.end(), [](const ir::Operand& o) {
        return !o.is_number() && (o.value->op == ir::Op::add || is_convolution(*o.value));
      });
      if (inner == node->operands.end()) return false;
      node = inner->value.get();
    }
    return is_convolution(*node);
  }

  void convolution(const ir::Node& node) {
    const auto* anchor =
        std::find_if(std::begin(kAnchors), std::end(kAnchors), [&](const Anchor& a) { return a.op == node.op; });
    if (anchor == std::end(kAnchors)) throw_unsupported();
    if (&node != &result_ && anchor->direction != Direction::forward) throw_unsupported();
    const auto type_of = [&](Role role) -> const Type& {
      if (anchor->roles[2] == role) return node.type;
      return node.operands[anchor->roles[0] == role ? 0 : 1].value.type();
    };
    ConvolutionCall& call = step_.call;
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
    take(*node.operands[0].value, anchor->roles[0]);
    take(*node.operands[1].value, anchor->roles[1]);
    result_role_ = anchor->roles[2];
    if (node.type != result_.type) throw_unsupported();
  }

  // A value of the result's shape, or one number a channel.
  void add(const ir::Node& addend) {
    const ir::Node& value = addend.op == ir::Op::reshape ? *addend.operands[0].value : addend;
    const Type& type = addend.type;
    if (type == result_.type && !step_.call.side) {
      step_.call.side = true;
      return take(addend, Role::side);
    }
    const int rank = type.shape.rank();
    const bool per_channel = rank >= 3 && type.shape[rank - 3] == result_.type.shape[1] &&
                             type.shape.elements() == result_.type.shape[1] && type.dtype == result_.type.dtype;
    if (!per_channel || step_.call.bias) throw_unsupported();
    step_.call.bias = true;
    take(value, Role::bias);
  }
  void take(const ir::Node& value, Role role) {
    if (value.op != ir::Op::parameter || !roles_.emplace(&value, role).second) throw_unsupported();
  }

  const ir::Graph& ops_;
  const ir::Node& result_;
  StepCall step_;
  Role result_role_ = Role::y;
  std::map<const ir::Node*, Role> roles_;
};

}  // namespace

StepCall step_call(const ir::Graph& ops) { return Reader(ops).read(); }

scheduler::LibraryAnswer supports_step(const ir::Graph& ops, const Target& target) {
  try {
    const ConvolutionCall call = step_call(ops).call;
    const Support support = supports(call, target.compute_capability);
    if (!support.ok) return {false, support.why};
    if (support.tier == Tier::precompiled) return {true, ""};
    return {false, fmt::format("only engines that cuDNN compiles at run time do {}", call.str())};
  } catch (const UnsupportedError& error) {
    return {false, error.what()};
  }
}

CudnnHandle::CudnnHandle(std::shared_ptr<const Library> library) : library_(std::move(library)) {
  library_->check(library_->api().cudnnCreate(&handle_), "cudnnCreate");
}
CudnnHandle::~CudnnHandle() { library_->api().cudnnDestroy(handle_); }

std::shared_ptr<const cuda::LibraryCall> library_call(const std::shared_ptr<const CudnnHandle>& handle,
                                                      const Descriptor& device, const scheduler::PlanStep& step,
                                                      const PlanOptions& options, std::string& why_not) {
  const StepCall wanted = step_call(step.library->graph);
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
