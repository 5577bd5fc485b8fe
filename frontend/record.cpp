#include "frontend/record.h"

#include <algorithm>
#include <cmath>

#include "frontend/context.h"
#include "frontend/evaluation/evaluation.h"
#include "frontend/ops/random.h"
#include "ir/base/check.h"

namespace fusejit {
namespace {

int kind(DType d) { return is_float(d) ? 2 : is_int(d) ? 1 : 0; }

// Numbers that stay literals, because code generation profits from knowing them (design: lazy semantics).
bool stays_literal(Number n) {
  if (n.is_integer) return n.integer >= -1 && n.integer <= 2;
  const double v = n.real;
  return (v == 0 && !std::signbit(v)) || v == 1 || v == -1 || v == 0.5 || v == 2;
}

ir::Operand literal(Number n) { return n.is_integer ? ir::Operand(n.integer) : ir::Operand(n.real); }

void check_present(ir::Op op, const Input& input) {
  FJ_CHECK(!input.tensor || input.tensor->defined(), "{}: an operand is an empty tensor", ir::name(op));
}

// Cast of a recorded tensor, or the tensor itself.
Tensor as_dtype(const Tensor& x, DType dtype) {
  return x.dtype() == dtype ? x : record(ir::Op::cast, {x}, {{"dtype", dtype}});
}

// Operands as the innermost Autocast has them.
class Autocasted {
 public:
  Autocasted(ir::Op op, std::span<const Input> inputs) : inputs_(inputs) {
    const ir::AutocastRule rule = ir::op_def(op).autocast;
    if (!thread_state().autocast || rule == ir::AutocastRule::as_given) return;
    tensors_.reserve(inputs.size());  // inputs point into it
    for (const Input& input : inputs) {
      if (!input.tensor) {
        own_.push_back(input);
      } else {
        own_.push_back(tensors_.emplace_back(autocast(rule, *input.tensor)));
      }
    }
    inputs_ = own_;
  }
  std::span<const Input> inputs() const { return inputs_; }

 private:
  std::span<const Input> inputs_;
  std::vector<Tensor> tensors_;
  std::vector<Input> own_;
};

[[noreturn]] void refuse_devices(ir::Op op, std::span<const Input> inputs, const Device& wanted) {
  std::string operands, devices;
  for (const Input& input : inputs) {
    if (!input.tensor) continue;
    operands += fmt::format("{}{} on {}", operands.empty() ? "" : ", ", input.tensor->type().str(),
                            input.tensor->device().str());
  }
  throw UserError(fmt::format("{}: all tensors must be on one device ({}); .to(\"{}\") moves one", ir::name(op),
                              operands, wanted.str()));
}

// The one device of the operands. Host numbers go along with any, and so do 0-d tensors of the cpu, as in PyTorch.
std::optional<Device> common_device(ir::Op op, std::span<const Input> inputs) {
  std::optional<Device> common;
  bool along = false;  // what is common so far goes along with another device
  bool any = false;
  for (const Input& input : inputs) {
    if (!input.tensor) continue;
    any = true;
    const TensorState& state = *input.tensor->state();
    if (!state.device) continue;
    const bool goes_along = state.device->is_cpu() && state.type.shape.rank() == 0;
    if (!common || along) {
      common = !common || !goes_along ? state.device : common;
      along = goes_along;
    } else if (!goes_along && *state.device != *common) {
      refuse_devices(op, inputs, common->is_cpu() ? *state.device : *common);
    }
  }
  return any ? common : default_device();
}

}  // namespace

Tensor autocast(ir::AutocastRule rule, const Tensor& x) {
  const std::optional<DType> narrow = thread_state().autocast;
  if (!narrow || rule == ir::AutocastRule::as_given || !x.defined() || !is_float(x.dtype()) || x.dtype() == f64)
    return x;
  return as_dtype(x, rule == ir::AutocastRule::narrow ? *narrow : f32);
}

std::vector<Tensor> autocast_to_widest(std::vector<Tensor> tensors) {
  if (!thread_state().autocast) return tensors;
  const auto takes_part = [](const Tensor& t) { return t.defined() && is_float(t.dtype()) && t.dtype() != f64; };
  std::optional<DType> widest;
  for (const Tensor& t : tensors)
    if (takes_part(t)) widest = widest ? *promote(*widest, t.dtype()) : t.dtype();
  for (Tensor& t : tensors)
    if (takes_part(t)) t = as_dtype(t, *widest);
  return tensors;
}

std::string text(const Tensor& tensor) { return tensor.defined() ? tensor.type().str() : "empty"; }

ir::AttrInit number_attr(std::string_view name, Number value) {
  return value.is_integer ? ir::AttrInit(name, value.integer) : ir::AttrInit(name, value.real);
}

ir::Scalar scalar_in(Number value, DType dtype) {
  const bool whole = value.is_integer && !is_float(dtype);
  return ir::cast(whole ? ir::Scalar::of(value.integer) : ir::Scalar::of(value.real), dtype);
}

Tensor record_value(ir::Value value, std::span<const Input> inputs, std::optional<Device> device) {
  const std::int64_t now = thread_state().moment;
  bool needs_grad = false, joins_plans = false;
  int depth = 0;
  for (const Input& input : inputs) {
    if (!input.tensor || !input.tensor->defined()) continue;
    const TensorState& state = *input.tensor->state();
    needs_grad |= state.needs_grad;
    // What is recorded on a value that the thread's last evaluations have passed over, such as a moving average that
    // nothing asks for until the end, would grow with every round of a loop.
    joins_plans |= state.joins_plans || (state.depth > 0 && was_before(state.recorded, now));
    depth = std::max(depth, state.depth.load());
  }
  needs_grad = needs_grad && thread_state().gradients && is_float(value.type().dtype);
  Tensor result = tensor_of(std::move(value), needs_grad, depth + 1, device);
  result.state()->without_history = !thread_state().gradients;
  if (joins_plans) result.state()->joins_plans = true, join_plans(result);
  if (const int limit = context().trace_limit.load(std::memory_order_relaxed); depth >= limit) {
    log_line(
        fmt::format("a chain of {} recorded operations is evaluated now, because nothing has asked for its value "
                    "(set_trace_limit)",
                    depth + 1));
    result.eval();
  }
  return result;
}

Tensor record(ir::Op op, std::span<const Input> given, std::vector<ir::AttrInit> attrs) {
  ThreadState& thread = thread_state();
  const Autocasted autocasted(op, given);
  const std::span<const Input> inputs = autocasted.inputs();
  std::vector<ir::Operand> operands;
  operands.reserve(inputs.size());
  {
    const std::lock_guard lock(context().graph_mutex);
    for (const Input& input : inputs) {
      check_present(op, input);
      operands.push_back(input.tensor ? ir::Operand(input.tensor->state()->value) : literal(input.number));
    }
  }
  if (!thread.gradients) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].tensor && inputs[i].tensor->state()->needs_grad && op != ir::Op::detach) {
        operands[i].value =
            ir::build(ir::Op::detach, {std::move(operands[i].value)}, std::vector<ir::AttrInit>{}, thread.region);
      }
    }
  }
  ir::Value value = ir::build(op, std::move(operands), std::move(attrs), thread.region);
  return record_value(std::move(value), inputs, common_device(op, inputs));
}

Tensor record_promoted(ir::Op op, std::initializer_list<Input> given, std::vector<ir::AttrInit> attrs) {
  const Autocasted autocasted(op, {given.begin(), given.size()});
  const std::span<const Input> inputs = autocasted.inputs();
  const ir::DTypeRule rule = ir::op_def(op).dtype_rule;
  int highest = rule == ir::DTypeRule::floating ? 2 : 0;
  for (const Input& input : inputs) {
    check_present(op, input);
    highest = std::max(highest, input.tensor ? kind(input.tensor->dtype()) : input.number.is_integer ? 0 : 2);
  }
  // The dtype that the tensors of the highest kind promote to; the rest is cast to it.
  std::optional<DType> common;
  bool integer_number = false;
  for (const Input& input : inputs) {
    integer_number |= !input.tensor && input.number.is_integer;
    if (!input.tensor || kind(input.tensor->dtype()) != highest) continue;
    common = common ? *promote(*common, input.tensor->dtype()) : input.tensor->dtype();
  }
  if (highest == 0 && integer_number && rule != ir::DTypeRule::integral) highest = 1, common = DType::i64;
  if (!common) common = highest == 2 ? DType::f32 : DType::i64;

  std::vector<Tensor> converted;
  converted.reserve(inputs.size());  // Inputs point into it
  std::vector<Input> operands;
  operands.reserve(inputs.size());
  bool widened = false;
  for (const Input& input : inputs) {
    if (input.tensor) {
      if (kind(input.tensor->dtype()) == highest) {
        operands.push_back(input);
      } else {
        operands.push_back(converted.emplace_back(as_dtype(*input.tensor, *common)));
      }
    } else if (stays_literal(input.number) || kind(*common) == 0) {
      if (is_float(*common)) {
        operands.push_back(Number(input.number.real));
      } else {  // a number wraps as an integer of the tensor's dtype, as PyTorch's does
        operands.push_back(kind(*common) == 0 ? input : Number(scalar_in(input.number, *common).integer()));
      }
    } else {
      const DType dtype = is_float(*common) ? compute_type(*common) : *common;
      operands.push_back(
          converted.emplace_back(tensor_of(leaf(scalar_in(input.number, dtype)), false, 0, std::nullopt)));
      widened |= dtype != *common;
    }
  }
  Tensor result = record(op, operands, std::move(attrs));
  // A 16-bit tensor beside an f32 argument gives f32: back to the tensor's dtype, rounding once as a literal would.
  return widened && is_float(result.dtype()) ? as_dtype(result, *common) : result;
}

Tensor record_float(ir::Op op, const Tensor& x, std::vector<ir::AttrInit> attrs) {
  check_present(op, x);
  const Tensor floating = is_float(x.dtype()) ? x : as_dtype(x, f32);
  return record(op, {floating}, std::move(attrs));
}

Tensor record_on(std::optional<Device> device, ir::Op op, std::vector<ir::Operand> operands,
                 std::vector<ir::AttrInit> attrs) {
  return record_value(ir::build(op, std::move(operands), std::move(attrs), thread_state().region), {}, device);
}

DType common_dtype(std::span<const Tensor> tensors) {
  DType common = tensors[0].dtype();
  for (const Tensor& t : tensors) {
    if (kind(t.dtype()) > kind(common)) common = t.dtype();
    if (kind(t.dtype()) == kind(common)) common = *promote(common, t.dtype());
  }
  return common;
}

Draw next_draw() {
  Recording* recording = thread_state().recording;
  if (!recording) return {leaf(ir::Scalar::of(static_cast<std::int64_t>(next_seed()))), 0};
  if (!recording->seed_leaf) recording->seed_leaf = leaf(ir::Scalar::of(static_cast<std::int64_t>(recording->seed)));
  return {recording->seed_leaf, recording->streams++};
}

}  // namespace fusejit
