#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "frontend/context.h"
#include "frontend/evaluation/evaluation.h"
#include "frontend/nn/check_state.h"
#include "frontend/nn/family.h"
#include "frontend/optim/settings.h"
#include "frontend/parameter_storage.h"
#include "frontend/record.h"
#include "frontend/step.h"
#include "fusejit/grad.h"
#include "ir/base/check.h"

namespace fusejit::optim {

void check_setting(const std::string& optimizer, const char* what, double value, double low, double high) {
  FJ_CHECK(std::isfinite(value) && value >= low && value <= high, "{}: the {} is {}, it must be finite and {}",
           optimizer, what, value,
           high < HUGE_VAL ? fmt::format("between {} and {}", low, high) : fmt::format("at least {}", low));
}

void check_setting(const std::string& optimizer, const char* what, double value) {
  check_setting(optimizer, what, value, 0, HUGE_VAL);
}

Optimizer::Optimizer(std::shared_ptr<const Rule> rule, std::vector<ParameterGroup> groups, Rule::Settings settings)
    : state_(std::make_shared<State>()) {
  FJ_CHECK(rule, "an optimiser must have a rule");
  State& s = *state_;
  s.rule = std::move(rule);
  s.name = s.rule->name();
  s.state_names = s.rule->state();
  std::set<const ParameterStorage*> seen;
  for (ParameterGroup& group : groups) {
    const std::size_t first = s.parameters.size();
    for (nn::Parameter& parameter : group.parameters) {
      FJ_CHECK(seen.insert(parameter.storage().get()).second, "{}: parameter '{}' is given twice", s.name,
               parameter.name());
      FJ_CHECK(parameter.trainable(), "{}: '{}' is state, not a parameter to train", s.name, parameter.name());
      s.parameters.push_back(std::move(parameter));
    }
    const Rule::Settings own{group.lr.value_or(settings.lr), group.weight_decay.value_or(settings.weight_decay),
                             settings.momentum};
    check_setting(s.name, "learning rate", own.lr);
    check_setting(s.name, "weight decay", own.weight_decay);
    s.groups.push_back({own, {}, first, s.parameters.size()});
  }
  FJ_CHECK(!s.parameters.empty(), "{}: there are no parameters to train", s.name);
  nn::mark_trained(s.parameters);
  for (const nn::Parameter& parameter : s.parameters) {
    const Tensor value = parameter.value();
    const std::vector<std::byte> zero(s.state_names.empty() ? 0 : static_cast<std::size_t>(value.bytes()));
    std::vector<nn::Parameter>& kept = s.state.emplace_back();
    for (const std::string& name : s.state_names)
      kept.emplace_back(parameter.name() + "." + name,
                        copy_on(from_host(zero.data(), value.shape(), value.dtype()), value.device()), false);
  }
}

std::size_t Optimizer::groups() const { return state_->groups.size(); }
const std::vector<nn::Parameter>& Optimizer::parameters() const { return state_->parameters; }
std::int64_t Optimizer::steps() const { return state_->steps; }
void Optimizer::set_steps(std::int64_t steps) { state_->steps = steps; }

const Optimizer::State::Group& Optimizer::State::group(std::size_t number) const {
  FJ_CHECK(number < groups.size(), "{}: there is no parameter group {} ({} groups)", name, number, groups.size());
  return groups[number];
}

double Optimizer::lr(std::size_t group) const { return state_->group(group).settings.lr; }

// A rate set by hand is what schedules made from now on start from.
void Optimizer::set_lr(std::size_t group, double lr) {
  static_cast<void>(state_->group(group));
  check_setting(state_->name, "learning rate", lr);
  state_->groups[group].settings.lr = lr;
  state_->groups[group].initial_lr.reset();
}

void Optimizer::set_lr(double lr) {
  for (std::size_t g = 0; g < groups(); ++g) set_lr(g, lr);
}

double Optimizer::momentum(std::size_t group) const {
  const std::optional<double> momentum = state_->group(group).settings.momentum;
  FJ_CHECK(momentum, "{}: there is no momentum", state_->name);
  return *momentum;
}

void Optimizer::set_momentum(std::size_t group, double momentum) {
  static_cast<void>(this->momentum(group));
  check_setting(state_->name, "momentum", momentum, 0, kBelowOne);
  state_->groups[group].settings.momentum = momentum;
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

void Optimizer::State::check_gradients(const std::vector<Tensor>& gradients) const {
  FJ_CHECK(gradients.size() == parameters.size(), "{}: {} gradients are given for {} parameters", name,
           gradients.size(), parameters.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    const Type type = parameters[i].value().type();
    FJ_CHECK(is_float(gradients[i].dtype()) && gradients[i].shape() == type.shape,
             "{}: parameter '{}' is {}, its gradient is {}", name, parameters[i].name(), type.str(),
             gradients[i].type().str());
  }
}

// A loop that never asks for a value would otherwise record its whole history, and compute all of it at the end.
void Optimizer::State::compute_last_update(const std::vector<Tensor>& gradients) const {
  if (thread_state().recording) return;
  std::vector<Tensor> open;
  const auto note = [&open](const nn::Parameter& p) {
    if (Tensor value = p.value(); is_deferred(value)) open.push_back(std::move(value));
  };
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    note(parameters[i]);
    for (const nn::Parameter& s : state[i]) note(s);
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
  if (state_->steps == 0) nn::check_families(loss, state_->parameters, state_->name + ": step");
  update(gradients_of(loss, state_->parameters, state_->name + ": step"));
  join_plans(loss);
}

void Optimizer::State::update_group(const Group& group, const std::vector<Tensor>& gradients, const Tensor& unless) {
  const auto kept = [&](const Tensor& old, const Tensor& updated) {
    const Tensor value = updated.to(old.dtype());
    return unless.defined() ? where(unless, old, value) : value;
  };
  const char* const called_rule = called(name);
  const Rule::Decay decay = group.settings.weight_decay == 0 ? Rule::Decay::of_rule : rule->decay();
  std::vector<double> values = rule->numbers(group.settings, steps + 1);
  if (decay == Rule::Decay::of_gradient) values.push_back(group.settings.weight_decay);
  if (decay == Rule::Decay::of_value) values.push_back(1 - group.settings.lr * group.settings.weight_decay);
  std::map<DType, std::vector<Tensor>> scalars;  // the numbers, as each dtype that is met
  for (std::size_t i = group.first; i < group.last; ++i) {
    if (!gradients[i].defined()) continue;
    const ir::OriginScope scope({value_of(gradients[i])->origin.module, called_rule, ir::Role::update});
    // An update is arithmetic on values: the old parameter without its mark.
    Rule::Update update{parameters[i].value().requires_grad(false), gradients[i], {}};
    for (const nn::Parameter& s : state[i]) update.state.push_back(follow(s, update.value.device()));
    const Rule::Update before = update;
    const DType dtype = update.value.dtype();
    std::vector<Tensor>& n = scalars[compute_type(dtype)];
    for (std::size_t v = n.size(); v < values.size(); ++v) n.push_back(scalar(values[v], compute_type(dtype)));
    if (decay == Rule::Decay::of_gradient) update.gradient = update.gradient + update.value * n.back();
    if (decay == Rule::Decay::of_value) update.value = update.value * n.back();
    rule->apply(update, n);
    parameters[i].set(kept(before.value, update.value));
    for (std::size_t s = 0; s < state[i].size(); ++s) state[i][s].set(kept(before.state[s], update.state[s]));
  }
}

void Optimizer::update(const std::vector<Tensor>& gradients) { update(gradients, {}); }

void Optimizer::update(const std::vector<Tensor>& gradients, const Tensor& unless) {
  state_->check_gradients(gradients);
  FJ_CHECK(!unless.defined() || (unless.dtype() == boolean && unless.rank() == 0),
           "{}: whether an update is left out is a bool of shape [], not {}", state_->name, unless.type().str());
  state_->compute_last_update(gradients);
  const NoGrad off;
  for (const State::Group& group : state_->groups) state_->update_group(group, gradients, unless);
  ++state_->steps;
}

StateDict Optimizer::state_dict() const {
  const State& s = *state_;
  const auto of_groups = [&](auto number) {
    std::vector<double> numbers;
    for (const State::Group& group : s.groups) numbers.push_back(number(group));
    return tensor<double>(numbers);
  };
  StateDict values{{"steps", from_host(std::vector<std::int64_t>{s.steps}, {})},
                   {"lr", of_groups([](const State::Group& g) { return g.settings.lr; })}};
  if (s.groups[0].settings.momentum)
    values.emplace("momentum", of_groups([](const State::Group& g) { return *g.settings.momentum; }));
  for (std::size_t i = 0; i < s.parameters.size(); ++i) {
    for (std::size_t k = 0; k < s.state_names.size(); ++k)
      values.emplace(fmt::format("{}.{}", i, s.state_names[k]), s.state[i][k].value());
  }
  return values;
}

void Optimizer::load_state_dict(const StateDict& values) {
  State& s = *state_;
  nn::check_state(state_dict(), values, s.name, "optimiser");
  const auto steps = values.at("steps").item<std::int64_t>();
  FJ_CHECK(steps >= 0, "{}: the state's number of steps is {}", s.name, steps);
  const std::vector<double> lr = values.at("lr").to_vector<double>();
  std::vector<double> momentum;
  if (s.groups[0].settings.momentum) momentum = values.at("momentum").to_vector<double>();
  for (const double rate : lr) check_setting(s.name, "state's learning rate", rate);
  for (std::size_t g = 0; g < momentum.size(); ++g)  // 1 and more, where the program asks for it itself
    check_setting(s.name, "state's momentum", momentum[g], 0, std::max(kBelowOne, *s.groups[g].settings.momentum));
  std::vector<std::pair<const nn::Parameter*, Tensor>> copies;  // all of them first: what fails, fails here
  for (std::size_t i = 0; i < s.parameters.size(); ++i) {
    for (std::size_t k = 0; k < s.state_names.size(); ++k)
      copies.emplace_back(&s.state[i][k], copy_on(values.at(fmt::format("{}.{}", i, s.state_names[k])),
                                                  s.state[i][k].value().device()));
  }
  for (const auto& [place, copy] : copies) place->set(copy);
  s.steps = steps;
  for (std::size_t g = 0; g < s.groups.size(); ++g) {
    s.groups[g].settings.lr = lr[g];
    if (!momentum.empty()) s.groups[g].settings.momentum = momentum[g];
  }
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
