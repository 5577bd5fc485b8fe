// Gradients of recorded values: finds the custom rules on the way, asks ir/passes/grad, hands back lazy tensors.
#include "fusejit/grad.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "frontend/context.h"
#include "frontend/evaluation/evaluation.h"
#include "frontend/evaluation/trace.h"
#include "frontend/grad.h"
#include "frontend/record.h"
#include "fusejit/autocast.h"
#include "fusejit/ops.h"
#include "ir/base/check.h"
#include "ir/passes/grad.h"

namespace fusejit {
namespace {

// Everything the results were computed from, across evaluated values and custom gradients, as far as `ends`.
struct History {
  NodeNumbers numbers;
  std::vector<std::pair<ir::Value, std::shared_ptr<const CustomNote>>> customs;
  int evaluated_values = 0;
};

History history_of(const std::vector<ir::Value>& results, const std::vector<ir::Value>& ends = {}) {
  History history;
  std::unordered_set<const ir::Node*> stop;
  for (const ir::Value& end : ends) stop.insert(end.get());
  std::vector<ir::Value> stack = results;
  const std::lock_guard lock(context().graph_mutex);
  int count = 0;
  while (!stack.empty()) {
    const ir::Value value = std::move(stack.back());
    stack.pop_back();
    if (history.numbers.find(value.get()) >= 0) continue;
    history.numbers.add(value.get(), count++);
    if (stop.contains(value.get())) continue;
    const Attachment* note = attachment(value.get());
    if (note && note->evaluated() && value->op != ir::Op::parameter) ++history.evaluated_values;
    if (note && note->custom) {
      history.customs.emplace_back(value, note->custom);
      stack.insert(stack.end(), note->custom->inputs.begin(), note->custom->inputs.end());
      continue;
    }
    for (const ir::Operand& operand : value->operands) {
      if (operand.value) stack.push_back(operand.value);
    }
  }
  return history;
}

// While one lives, what this thread records is in a region of its own.
class RegionScope {
 public:
  explicit RegionScope(std::uint32_t region) : before_(std::exchange(thread_state().region, region)) {}
  ~RegionScope() { thread_state().region = before_; }
  RegionScope(const RegionScope&) = delete;
  RegionScope& operator=(const RegionScope&) = delete;

 private:
  std::uint32_t before_;
};

ir::CustomRule rule_of(const ir::Value& result, std::shared_ptr<const CustomNote> note) {
  ir::CustomRule rule{note->inputs, {result}, {}};
  rule.backward = [result, note = std::move(note)](std::span<const ir::Value> cotangents) {
    const RegionScope region(++context().regions);
    std::vector<Tensor> saved = note->saved;
    for (Tensor& tensor : saved) {
      if (!tensor.defined()) tensor = tensor_of(result, false, 0, note->device);
    }
    std::vector<ir::Value> gradients;
    for (const Tensor& g : note->backward(saved, tensor_of(cotangents[0], false, 0, note->device))) {
      gradients.push_back(g.defined() ? value_of(g) : ir::Value());
    }
    return gradients;
  };
  return rule;
}

}  // namespace

std::vector<bool> leads_to(const std::vector<Tensor>& values, const Tensor& result, bool end_at_values) {
  std::vector<ir::Value> ends;
  for (const Tensor& t : values)
    if (end_at_values) ends.push_back(value_of(t));
  const History history = history_of({value_of(result)}, ends);
  std::vector<bool> found;
  for (const Tensor& t : values) found.push_back(history.numbers.find(value_of(t).get()) >= 0);
  return found;
}

std::vector<Tensor> grad(const std::vector<Tensor>& results, const std::vector<Tensor>& cotangents,
                         const std::vector<Tensor>& inputs) {
  return grad_through(results, cotangents, inputs, false);
}

std::vector<Tensor> grad_through(const std::vector<Tensor>& results, const std::vector<Tensor>& cotangents,
                                 const std::vector<Tensor>& inputs, bool end_at_inputs) {
  FJ_CHECK(results.size() == cotangents.size(), "grad: {} results and {} cotangents are given", results.size(),
           cotangents.size());
  std::vector<ir::Value> result_values, cotangent_values, input_values;
  for (const Tensor& t : results) result_values.push_back(value_of(t));
  for (const Tensor& t : cotangents) cotangent_values.push_back(t.defined() ? value_of(t) : ir::Value());
  for (const Tensor& t : inputs) input_values.push_back(value_of(t));
  const std::vector<ir::Value> ends = end_at_inputs ? input_values : std::vector<ir::Value>();
  const History history = history_of(result_values, ends);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    FJ_CHECK(is_float(inputs[i].dtype()), "grad: input {} is {}, only float tensors have gradients", i,
             inputs[i].type().str());
    FJ_CHECK(
        history.numbers.find(input_values[i].get()) >= 0,
        "grad: input {} ({}) does not lead to the result (a tensor evaluated without requires_grad() forgets what it "
        "was computed from)",
        i, inputs[i].type().str());
  }
  if (history.evaluated_values > 0) {
    log_line(
        fmt::format("grad: {} values were evaluated before their gradient was asked for: they are arguments now, and "
                    "forward and backward do not fuse across them",
                    history.evaluated_values));
  }
  std::vector<ir::CustomRule> rules;
  for (const auto& [value, note] : history.customs) rules.push_back(rule_of(value, note));
  for (const ir::Value& end : ends) rules.push_back({{}, {end}, {}});
  std::vector<Tensor> gradients;
  int depth = 0;
  for (const Tensor& t : results) depth = std::max(depth, t.state()->depth.load());
  for (ir::Value& g : ir::gradient(result_values, cotangent_values, input_values, rules)) {
    const std::optional<Device> device = inputs[gradients.size()].state()->device;
    gradients.push_back(tensor_of(std::move(g), false, depth + 1, device));
    if (!inputs[gradients.size() - 1].needs_grad()) continue;
    gradients.back().state()->joins_plans = true;
    join_plans(gradients.back());
  }
  return gradients;
}

std::vector<Tensor> grad(const Tensor& loss, const std::vector<Tensor>& inputs) {
  FJ_CHECK(loss.defined(), "grad: the loss is an empty tensor");
  FJ_CHECK(loss.elements() == 1 && is_float(loss.dtype()), "grad: the loss must be one float number (loss: {})",
           loss.type().str());
  const Tensor one = ones(loss.shape(), loss.dtype());
  one.state()->device = loss.state()->device;
  return grad(std::vector{loss}, {one}, inputs);
}

std::function<ValueAndGrad(const std::vector<Tensor>&)> value_and_grad(TensorFunction f, std::vector<int> which) {
  FJ_CHECK(f, "value_and_grad: there is no function");
  return [f = std::move(f), which = std::move(which)](const std::vector<Tensor>& arguments) {
    std::vector<Tensor> marked = arguments, inputs;
    for (const int i : which) {
      FJ_CHECK(i >= 0 && static_cast<std::size_t>(i) < arguments.size(),
               "value_and_grad: there is no argument {} ({} are given)", i, arguments.size());
      inputs.push_back(marked[static_cast<std::size_t>(i)].requires_grad());
    }
    ValueAndGrad result{f(marked), {}};
    result.gradients = grad(result.value, inputs);
    return result;
  };
}

std::function<std::vector<Tensor>(const std::vector<Tensor>&)> grad_of(TensorFunction f, std::vector<int> which) {
  return [both = value_and_grad(std::move(f), std::move(which))](const std::vector<Tensor>& arguments) {
    return both(arguments).gradients;
  };
}

Tensor with_gradient(const Saved& made, const std::vector<Tensor>& inputs, CustomBackward backward,
                     std::shared_ptr<const std::vector<ir::Value>> kept) {
  ir::Value value = value_of(made.result);
  // The rule hangs on a node that nothing else has: not on an input, a leaf, or the result of another custom
  // gradient.
  const bool is_plain =
      value->op != ir::Op::parameter && !value->attachment &&
      std::none_of(inputs.begin(), inputs.end(), [&](const Tensor& t) { return t.defined() && value_of(t) == value; });
  const ir::Value inner = value;
  if (!is_plain) value = ir::build(ir::Op::detach, {value}, std::vector<ir::AttrInit>{}, thread_state().region);
  auto custom = std::make_shared<CustomNote>();
  bool needs_grad = false;
  for (const Tensor& input : inputs) {
    custom->inputs.push_back(value_of(input));
    needs_grad |= input.needs_grad();
  }
  for (const Tensor& tensor : made.saved)
    custom->saved.push_back(tensor.defined() && value_of(tensor) == inner && is_plain ? Tensor() : tensor);
  // What it computes again it computes as it was computed.
  custom->backward = [backward = std::move(backward), narrow = thread_state().autocast](
                         const std::vector<Tensor>& saved, const Tensor& g) {
    const Autocast scope(narrow.value_or(f32));
    return backward(saved, g);
  };
  custom->device = made.result.state()->device;
  custom->kept = std::move(kept);
  auto note = std::make_shared<Attachment>();
  note->custom = std::move(custom);
  {
    const std::lock_guard lock(context().graph_mutex);
    value->attachment = std::move(note);
  }
  return tensor_of(std::move(value), needs_grad && thread_state().gradients, made.result.state()->depth + 1,
                   made.result.state()->device);
}

TensorFunction custom_gradient(CustomForward forward, CustomBackward backward) {
  FJ_CHECK(forward && backward, "custom_gradient: there is no {} function", forward ? "backward" : "forward");
  return [forward = std::move(forward), backward = std::move(backward)](const std::vector<Tensor>& inputs) {
    const Saved made = forward(inputs);
    FJ_CHECK(made.result.defined(), "custom_gradient: the forward function gave an empty result");
    return with_gradient(made, inputs, backward);
  };
}

namespace {

// Fixed weights, none of them special, so that errors of different elements cannot cancel.
Tensor weights_for(const Shape& shape) {
  std::vector<double> weights(static_cast<std::size_t>(shape.elements()));
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = 0.5 + static_cast<double>((i * 37 + 11) % 101) / 101;
  return from_host(weights, shape);
}

}  // namespace

GradcheckResult gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    FJ_CHECK(inputs[i].defined() && inputs[i].dtype() == f64, "gradcheck: input {} must be f64", i);
  }
  const TensorFunction weighted = [&f](const std::vector<Tensor>& x) {
    const Tensor y = f(x);
    FJ_CHECK(y.dtype() == f64, "gradcheck: the function's result is {}, it must be f64", y.type().str());
    return sum(y * weights_for(y.shape()).to(y.device()));
  };
  std::vector<int> all;
  for (std::size_t i = 0; i < inputs.size(); ++i) all.push_back(static_cast<int>(i));
  const ValueAndGrad exact = value_and_grad(weighted, all)(inputs);
  eval(exact.gradients);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<double> gradient = exact.gradients[i].to_vector<double>(), values = inputs[i].to_vector<double>();
    for (std::size_t e = 0; e < values.size(); ++e) {
      double at[2] = {};
      for (const int side : {0, 1}) {
        std::vector<double> moved = values;
        moved[e] += side == 0 ? options.step : -options.step;
        std::vector<Tensor> arguments = inputs;
        arguments[i] = from_host(moved, inputs[i].shape()).to(inputs[i].device());
        at[side] = weighted(arguments).item<double>();
      }
      const double numeric = (at[0] - at[1]) / (2 * options.step);
      if (!(std::abs(numeric - gradient[e]) <= options.absolute + options.relative * std::abs(numeric))) {
        return {false, fmt::format("input {}, element {}: the gradient is {}, differences give {}", i, e, gradient[e],
                                   numeric)};
      }
    }
  }
  return {};
}

}  // namespace fusejit
