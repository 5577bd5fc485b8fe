#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "frontend/context.h"
#include "frontend/evaluation/evaluation.h"
#include "frontend/nn/family.h"
#include "frontend/parameter_storage.h"
#include "frontend/record.h"
#include "frontend/step.h"
#include "fusejit/grad.h"
#include "fusejit/optim.h"
#include "ir/base/check.h"

namespace fusejit::optim {

Optimizer::Optimizer(const char* name, std::vector<ParameterGroup> groups, double lr, double weight_decay)
    : name_(name) {
  std::set<const ParameterStorage*> seen;
  for (ParameterGroup& group : groups) {
    const std::size_t first = parameters_.size();
    for (nn::Parameter& parameter : group.parameters) {
      FJ_CHECK(seen.insert(parameter.storage().get()).second, "{}: parameter '{}' is given twice", name,
               parameter.name());
      FJ_CHECK(parameter.trainable(), "{}: '{}' is state, not a parameter to train", name, parameter.name());
      parameters_.push_back(std::move(parameter));
    }
    groups_.push_back({group.lr.value_or(lr), group.weight_decay.value_or(weight_decay), first, parameters_.size()});
    check_finite("learning rate", groups_.back().lr, 0, HUGE_VAL);
    check_finite("weight decay", groups_.back().weight_decay, 0, HUGE_VAL);
  }
  FJ_CHECK(!parameters_.empty(), "{}: there are no parameters to train", name);
  nn::mark_trained(parameters_);
  state_.resize(parameters_.size());
}

Optimizer::~Optimizer() = default;

void Optimizer::check_finite(const char* what, double value, double low, double high) const {
  FJ_CHECK(std::isfinite(value) && value >= low && value <= high, "{}: the {} is {}, it must be finite and {}", name_,
           what, value,
           high < HUGE_VAL ? fmt::format("between {} and {}", low, high) : fmt::format("at least {}", low));
}

void Optimizer::add_state(const std::string& name) {
  state_names_.push_back(name);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Type type = parameters_[i].value().type();
    const std::vector<std::byte> zero(static_cast<std::size_t>(type.bytes()));
    state_[i].emplace_back(parameters_[i].name() + "." + name,
                           copy_on(from_host(zero.data(), type.shape, type.dtype), parameters_[i].value().device()),
                           false);
  }
}

double Optimizer::lr(std::size_t group) const {
  FJ_CHECK(group < groups_.size(), "{}: there is no parameter group {} ({} groups)", name_, group, groups_.size());
  return groups_[group].lr;
}

void Optimizer::set_lr(std::size_t group, double lr) {
  static_cast<void>(this->lr(group));
  check_finite("learning rate", lr, 0, HUGE_VAL);
  groups_[group].lr = lr;
}

void Optimizer::set_lr(double lr) {
  check_finite("learning rate", lr, 0, HUGE_VAL);
  for (Group& group : groups_) group.lr = lr;
}

namespace {

// The state's value, moved to where its parameter is now.
Tensor follow(const nn::Parameter& state, const Device& device) {
  Tensor value = state.value();
  if (value.device() == device) return value;
  value = copy_on(value, device);
  Tensor old = value;  // released after the lock
  const std::lock_guard lock(state.storage()->mutex);
  std::swap(state.storage()->value, old);
  return value;
}

bool is_deferred(const Tensor& tensor) {
  const std::lock_guard lock(context().graph_mutex);
  return deferred(tensor.state()->value.get());
}

}  // namespace

void Optimizer::check_gradients(const std::vector<Tensor>& gradients) const {
  FJ_CHECK(gradients.size() == parameters_.size(), "{}: {} gradients are given for {} parameters", name_,
           gradients.size(), parameters_.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    const Type type = parameters_[i].value().type();
    FJ_CHECK(is_float(gradients[i].dtype()) && gradients[i].shape() == type.shape,
             "{}: parameter '{}' is {}, its gradient is {}", name_, parameters_[i].name(), type.str(),
             gradients[i].type().str());
  }
}

// A loop that never asks for a value would otherwise record its whole history, and compute all of it at the end.
void Optimizer::compute_last_update(const std::vector<Tensor>& gradients) const {
  if (thread_state().recording) return;
  std::vector<Tensor> open;
  const auto note = [&open](const nn::Parameter& p) {
    if (Tensor value = p.value(); is_deferred(value)) open.push_back(std::move(value));
  };
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    note(parameters_[i]);
    for (const nn::Parameter& s : state_[i]) note(s);
  }
  if (open.empty()) return;
  std::vector<Tensor> later;
  std::copy_if(gradients.begin(), gradients.end(), std::back_inserter(later), [](auto& g) { return g.defined(); });
  evaluate_before(later, open);
}

namespace {

// "sgd"
const char* called(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return ir::kept_name(name);
}

}  // namespace

void Optimizer::step(const Tensor& loss) {
  if (steps_ == 0) nn::check_families(loss, parameters_, name_ + ": step");
  update(gradients_of(loss, parameters_, name_ + ": step"));
  join_plans(loss);
}

void Optimizer::update(const std::vector<Tensor>& gradients) {
  check_gradients(gradients);
  compute_last_update(gradients);
  const NoGrad off;
  const char* const rule = called(name_);
  const std::int64_t step = steps_ + 1;
  for (const Group& group : groups_) {
    std::vector<double> values = numbers(group, step);
    if (group.weight_decay != 0) values.push_back(group.weight_decay);
    std::map<DType, std::vector<Tensor>> scalars;  // the numbers, as each dtype that is met
    for (std::size_t i = group.first; i < group.last; ++i) {
      if (!gradients[i].defined()) continue;
      const ir::OriginScope scope({value_of(gradients[i])->origin.module, rule, ir::Role::update});
      // An update is arithmetic on values: the old parameter without its mark.
      Update update{parameters_[i].value().requires_grad(false), gradients[i], {}};
      for (const nn::Parameter& s : state_[i]) update.state.push_back(follow(s, update.value.device()));
      const DType dtype = update.value.dtype();
      std::vector<Tensor>& n = scalars[compute_type(dtype)];
      for (std::size_t v = n.size(); v < values.size(); ++v) n.push_back(scalar(values[v], compute_type(dtype)));
      if (group.weight_decay != 0) update.gradient = update.gradient + update.value * n.back();
      apply(update, n);
      parameters_[i].set(update.value.to(dtype));
      for (std::size_t s = 0; s < state_[i].size(); ++s) state_[i][s].set(update.state[s].to(dtype));
    }
  }
  steps_ = step;
}

StateDict Optimizer::state_dict() const {
  StateDict values{{"steps", from_host(std::vector<std::int64_t>{steps_}, {})}};
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    for (std::size_t s = 0; s < state_names_.size(); ++s)
      values.emplace(fmt::format("{}.{}", i, state_names_[s]), state_[i][s].value());
  }
  return values;
}

void Optimizer::load_state_dict(const StateDict& values) {
  const StateDict own = state_dict();
  for (const auto& [key, value] : own) {
    const auto given = values.find(key);
    FJ_CHECK(given != values.end(), "{}: the state has no entry '{}'", name_, key);
    FJ_CHECK(given->second.dtype() == value.dtype() && given->second.shape() == value.shape(),
             "{}: state '{}' is {} and should be {}", name_, key, given->second.type().str(), value.type().str());
  }
  const auto steps = values.at("steps").item<std::int64_t>();
  FJ_CHECK(steps >= 0, "{}: the state's number of steps is {}", name_, steps);
  steps_ = steps;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    for (std::size_t s = 0; s < state_names_.size(); ++s)
      state_[i][s].set(copy_on(values.at(fmt::format("{}.{}", i, state_names_[s])), state_[i][s].value().device()));
  }
}

StepLR::StepLR(Optimizer& optimizer, std::int64_t step_size, double gamma)
    : optimizer_(optimizer), step_size_(step_size), gamma_(gamma) {
  FJ_CHECK(step_size >= 1, "StepLR: step_size is {}, it must be at least 1", step_size);
  FJ_CHECK(std::isfinite(gamma) && gamma >= 0, "StepLR: gamma is {}, it must be finite and not negative", gamma);
}

void StepLR::step() {
  if (++calls_ % step_size_ != 0) return;
  for (std::size_t g = 0; g < optimizer_.groups(); ++g) optimizer_.set_lr(g, optimizer_.lr(g) * gamma_);
}

Tensor clip_grad_norm(std::vector<Tensor>& gradients, double max_norm) {
  FJ_CHECK(std::isfinite(max_norm) && max_norm >= 0,
           "clip_grad_norm: max_norm is {}, it must be finite and not negative", max_norm);
  Tensor total;
  constexpr const char* kCalled = "clip_grad_norm";
  const CalledAs clipping(kCalled);
  for (const Tensor& g : gradients) {
    if (!g.defined()) continue;
    const Tensor part = sum(square(g.to(compute_type(g.dtype()))));
    total = total.defined() ? total + part : part;
  }
  FJ_CHECK(total.defined(), "clip_grad_norm: there are no gradients");
  const Tensor norm = sqrt(total);
  const Tensor factor = minimum(scalar(max_norm, norm.dtype()) / (norm + 1e-6), 1);
  for (Tensor& g : gradients) {
    if (!g.defined()) continue;
    const ir::OriginScope of_parameter({value_of(g)->origin.module, kCalled, ir::Role::update});
    g = (g * factor.to(compute_type(g.dtype()))).to(g.dtype());
  }
  return norm;
}

}  // namespace fusejit::optim
