#include "runtime/cudnn/step_call.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/base/check.h"
#include "ir/op.h"
#include "ir/passes/passes.h"
#include "runtime/cudnn/graph/activation.h"

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

// Reads a graph of ops from its first result down to the convolution, then the sums, and gives each parameter and
// result its role.
class Reader {
 public:
  explicit Reader(const ir::Graph& ops) : ops_(ops), result_(*ops.results()[0]) {}

  StepCall read() {
    if (!is_float(result_.type.dtype)) throw_unsupported();
    const ir::Node* node = under_casts(&result_);
    const ir::Node* gradient = node->op == ir::Op::where ? masked(*node) : nullptr;
    if (gradient) {
      node = under_casts(gradient);
    } else if (const auto found = find_activation(*node)) {
      step_.call.activation = found->activation;
      if (found->activation == Activation::leaky_relu) step_.call.slope = found->slope;
      node = under_casts(found->input);
    }
    while (!anchor_of(*node)) node = under_casts(before(*node));
    convolution(*node);
    if (mask_) {
      const bool bits = mask_->type.dtype == DType::boolean;
      const Type own{mask_->type.dtype, result_.type.shape, result_.type.layout};
      if (mask_->type != (bits ? own : result_.type)) throw_unsupported();
      step_.call.mask = bits ? Mask::bits : Mask::output;
      take(*mask_, Role::mask);
    }
    for (const ir::Node* addend : addends_) add(*addend);
    for (const auto& [vector, role] : vectors_) take_vector(*vector, role);
    std::vector<Role> sums;
    for (std::size_t i = 1; i < ops_.results().size(); ++i) sums.push_back(sum(*ops_.results()[i]));
    check_sums(sums);
    for (const ir::Value& parameter : ops_.parameters()) {
      if (!roles_.count(parameter.get())) throw_unsupported();
      step_.roles.push_back(roles_.at(parameter.get()));
    }
    step_.roles.push_back(result_role_);
    step_.roles.insert(step_.roles.end(), sums.begin(), sums.end());
    return std::move(step_);
  }

 private:
  [[noreturn]] void throw_unsupported() const {
    throw UnsupportedError(fmt::format("cudnn: {} with what stands before it is none of its calls ({})",
                                       ir::name(result_.op), result_.type.str()));
  }
  static const Anchor* anchor_of(const ir::Node& node) {
    const auto* found =
        std::find_if(std::begin(kAnchors), std::end(kAnchors), [&](const Anchor& a) { return a.op == node.op; });
    return found == std::end(kAnchors) ? nullptr : found;
  }
  // Between its steps a call rounds nothing, so it does not matter where the ops do.
  static const ir::Node* under_casts(const ir::Node* node) {
    while (node->op == ir::Op::cast && is_float(node->type.dtype) && !node->operands[0].is_number() &&
           is_float(node->operands[0].value.type().dtype)) {
      node = node->operands[0].value.get();
    }
    return node;
  }
  static bool leads_to_convolution(const ir::Operand& operand) {
    if (operand.is_number()) return false;
    std::vector<const ir::Node*> open{operand.value.get()};
    std::set<const ir::Node*> seen;
    while (!open.empty()) {
      const ir::Node* node = open.back();
      open.pop_back();
      if (anchor_of(*node)) return true;
      for (const ir::Operand& inner : node->operands) {
        if (!inner.is_number() && seen.insert(inner.value.get()).second) open.push_back(inner.value.get());
      }
    }
    return false;
  }

  // The value that this step of the chain is applied to; notes the step. From the outside in: at most two additions, a
  // scale, what is subtracted before it.
  const ir::Node* before(const ir::Node& node) {
    const bool add = node.op == ir::Op::add, mul = node.op == ir::Op::mul, sub = node.op == ir::Op::sub;
    if (!add && !mul && !sub) throw_unsupported();
    const bool first = sub || leads_to_convolution(node.operands[0]);
    const ir::Operand &inner = node.operands[first ? 0 : 1], &other = node.operands[first ? 1 : 0];
    if (inner.is_number() || other.is_number()) throw_unsupported();
    ConvolutionCall& call = step_.call;
    const bool in_order = add ? !call.scale && addends_.size() < 2 : mul ? !call.scale : call.scale && !call.centre;
    if (!in_order) throw_unsupported();
    if (add) addends_.push_back(other.value.get());
    if (mul) call.scale = true, vectors_.emplace_back(other.value.get(), Role::output_scale);
    if (sub) call.centre = true, vectors_.emplace_back(other.value.get(), Role::output_mean);
    return inner.value.get();
  }

  // The gradient of which a relu lets through what belongs to outputs above 0, or what a mask says, and notes these;
  // null if it is none.
  const ir::Node* masked(const ir::Node& node) {
    const ir::Operand& condition = node.operands[0];
    if (condition.is_number()) return nullptr;
    if (condition.value->op == ir::Op::parameter) {
      const ir::Operand &gradient = node.operands[1], &zero = node.operands[2];
      if (gradient.is_number() || !zero.is_number() || zero.number != 0) return nullptr;
      mask_ = condition.value.get();
      return gradient.value.get();
    }
    const bool zero_first = condition.value->op == ir::Op::le;
    if (!zero_first && condition.value->op != ir::Op::gt) return nullptr;
    const ir::Operand &zero = node.operands[zero_first ? 1 : 2], &gradient = node.operands[zero_first ? 2 : 1];
    const ir::Operand &output = condition.value->operands[0], &bound = condition.value->operands[1];
    const bool fits = zero.is_number() && zero.number == 0 && bound.is_number() && bound.number == 0 &&
                      !gradient.is_number() && !output.is_number();
    if (!fits) return nullptr;
    mask_ = under_casts(output.value.get());
    return gradient.value.get();
  }

  void convolution(const ir::Node& node) {
    const Anchor* anchor = anchor_of(node);
    const ConvolutionCall& asked = step_.call;
    const bool alone = &node == &result_;
    const bool forward = anchor->direction == Direction::forward && !mask_;
    const bool gradient = anchor->direction == Direction::input_gradient && asked.activation == Activation::none &&
                          !asked.scale && addends_.size() < 2;
    if (!alone && !forward && !gradient) throw_unsupported();
    const auto type_of = [&](Role role) -> const Type& {
      if (anchor->roles[2] == role) return node.type;
      return node.operands[anchor->roles[0] == role ? 0 : 1].value.type();
    };
    ConvolutionCall& call = step_.call;
    call.direction = anchor->direction;
    const bool nhwc =
        ir::lies_as_nhwc(node.type) && std::all_of(node.operands.begin(), node.operands.end(),
                                                   [](auto& o) { return ir::lies_as_nhwc(o.value.type()); });
    call.dtype = node.type.dtype, call.layout = nhwc ? Layout::nhwc : Layout::standard;
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

  // Which sum of the first result's elements over all but channels this is: Σy or Σy² of a convolution, Σdz or
  // Σdz·(y − mean) of an input gradient.
  Role sum(const ir::Node& node) {
    const bool over_channels =
        node.op == ir::Op::sum && node.type.dtype == DType::f32 && node.type.elements() == result_.type.shape[1];
    const bool forward = step_.call.direction == Direction::forward;
    if (step_.call.direction == Direction::weight_gradient || !over_channels) throw_no_sum(node);
    const ir::Node& summed = *node.operands[0].value;
    if (summed.type.shape != result_.type.shape || !ir::reduces_to_channels(node)) throw_no_sum(node);
    if (under_casts(&summed) == under_casts(&result_)) return Role::sum;
    if (summed.op != ir::Op::mul) throw_no_sum(node);
    for (const std::size_t i : {0, 1}) {
      const ir::Operand &gradient = summed.operands[i], &centred = summed.operands[1 - i];
      if (gradient.is_number() || centred.is_number()) throw_no_sum(node);
      if (under_casts(gradient.value.get()) != under_casts(&result_)) continue;
      if (forward && under_casts(centred.value.get()) == under_casts(&result_)) return Role::second_sum;
      if (forward) throw_no_sum(node);
      const ir::Node& difference = *centred.value;
      if (difference.op != ir::Op::sub || difference.operands[0].is_number() || difference.operands[1].is_number())
        throw_no_sum(node);
      const ir::Node& normalised = *under_casts(difference.operands[0].value.get());
      if (normalised.type != result_.type) throw_no_sum(node);
      take(normalised, Role::pre_norm);
      take_vector(*difference.operands[1].value, Role::mean, DType::f32);
      return Role::second_sum;
    }
    throw_no_sum(node);
  }
  void check_sums(const std::vector<Role>& sums) {
    if (sums.empty()) return;
    const auto first = std::count(sums.begin(), sums.end(), Role::sum),
               second = std::count(sums.begin(), sums.end(), Role::second_sum);
    if (first != 1 || second > 1) throw_no_sum(*ops_.results().back());
    ConvolutionCall& call = step_.call;
    const bool forward = call.direction == Direction::forward;
    if (forward && second != 1) throw_no_sum(*ops_.results().back());
    call.sums = forward ? Sums::statistics : second == 1 ? Sums::gradient : Sums::bias;
  }
  [[noreturn]] static void throw_no_sum(const ir::Node& node) {
    throw UnsupportedError(
        fmt::format("cudnn: this {} ({}) is none of the sums of its calls", ir::name(node.op), node.type.str()));
  }

  // A value of the result's type, or one number a channel.
  void add(const ir::Node& addend) {
    const ir::Node& value = *under_casts(&addend);
    if (value.type == result_.type && !step_.call.side) {
      step_.call.side = true;
      return take(value, Role::side);
    }
    if (step_.call.bias || step_.call.direction != Direction::forward) throw_unsupported();
    step_.call.bias = true;
    take_vector(addend, Role::bias);
  }
  void take_vector(const ir::Node& vector, Role role) {
    take_vector(vector, role, step_.call.scale ? DType::f32 : result_.type.dtype);
  }
  // One number a channel: [C,1,1] or [1,C,1,1], and under it what is stored.
  void take_vector(const ir::Node& vector, Role role, DType dtype) {
    const Shape& shape = vector.type.shape;
    const std::int64_t channels = result_.type.shape[1];
    if (shape.rank() < 3 || shape[shape.rank() - 3] != channels || shape.elements() != channels) throw_unsupported();
    const ir::Node* value = &vector;
    while (value->op == ir::Op::reshape) value = value->operands[0].value.get();
    if (value->type.dtype != dtype) throw_unsupported();
    take(*value, role);
  }
  void take(const ir::Node& value, Role role) {
    if (value.op != ir::Op::parameter || !roles_.emplace(&value, role).second) throw_unsupported();
  }

  const ir::Graph& ops_;
  const ir::Node& result_;
  StepCall step_;
  Role result_role_ = Role::y;
  const ir::Node* mask_ = nullptr;
  std::vector<const ir::Node*> addends_;  // outermost first
  std::vector<std::pair<const ir::Node*, Role>> vectors_;
  std::map<const ir::Node*, Role> roles_;
};

}  // namespace

StepCall step_call(const ir::Graph& ops) { return Reader(ops).read(); }

}  // namespace fusejit::runtime::cudnn
