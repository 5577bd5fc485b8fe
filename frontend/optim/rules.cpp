// The update rules, as PyTorch and the papers write them. A rule's numbers become arguments of the trace: n[0], n[1],
// ... A class of optimisers is its rule, made of checked options.
#include <cmath>

#include "frontend/optim/settings.h"
#include "fusejit/ops.h"
#include "ir/base/check.h"

namespace fusejit::optim {
namespace {

std::vector<ParameterGroup> one_group(std::vector<nn::Parameter> parameters) {
  std::vector<ParameterGroup> groups(1);
  groups[0].parameters = std::move(parameters);
  return groups;
}

using Numbers = std::vector<double>;
using Settings = Rule::Settings;

struct SgdRule : Rule {
  explicit SgdRule(const SgdOptions& options) : o(options) {
    check_setting(name(), "momentum", o.momentum);
    check_setting(name(), "dampening", o.dampening, 0, 1);
    FJ_CHECK(!o.nesterov || (o.momentum > 0 && o.dampening == 0), "SGD: nesterov needs a momentum and no dampening");
  }
  std::string name() const override { return "SGD"; }
  std::vector<std::string> state() const override {
    return o.momentum != 0 ? std::vector<std::string>{"momentum"} : std::vector<std::string>();
  }
  Numbers numbers(const Settings& group, std::int64_t step) const override {
    Numbers numbers{group.lr};
    if (group.momentum) numbers.push_back(*group.momentum);
    // The first buffer is the gradient itself, undamped.
    if (o.dampening != 0) numbers.push_back(step == 1 ? 1 : 1 - o.dampening);
    return numbers;
  }
  void apply(Update& u, const std::vector<Tensor>& n) const override {
    Tensor direction = u.gradient;
    if (o.momentum != 0) {
      u.state[0] = u.state[0] * n[1] + (o.dampening != 0 ? direction * n[2] : direction);
      direction = o.nesterov ? direction + u.state[0] * n[1] : u.state[0];
    }
    u.value = u.value - direction * n[0];
  }
  SgdOptions o;
};

// Adam's moments and the numbers that every rule with them begins with.
Numbers moment_numbers(double beta1, double beta2, double eps, std::int64_t step) {
  return {beta1, 1 - beta1, beta2, 1 - beta2, std::sqrt(1 - std::pow(beta2, static_cast<double>(step))), eps};
}
void take_in(Rule::Update& u, const std::vector<Tensor>& n) {
  u.state[0] = u.state[0] * n[0] + u.gradient * n[1];
  u.state[1] = u.state[1] * n[2] + square(u.gradient) * n[3];
}
// 1 - beta1^t
double correction(double beta1, std::int64_t step) { return 1 - std::pow(beta1, static_cast<double>(step)); }

template <class Options>
void check_moments(const std::string& name, const Options& o) {
  check_setting(name, "beta1", o.beta1, 0, kBelowOne);
  check_setting(name, "beta2", o.beta2, 0, kBelowOne);
}

// Adam and AdamW.
template <class Options>
struct AdamRule : Rule {
  AdamRule(const char* name, Decay decay, const Options& options) : called(name), decays(decay), o(options) {
    check_moments(called, o);
    check_setting(called, "eps", o.eps);
  }
  std::string name() const override { return called; }
  Decay decay() const override { return decays; }
  std::vector<std::string> state() const override {
    std::vector<std::string> names{"exp_avg", "exp_avg_sq"};
    if (o.amsgrad) names.emplace_back("max_exp_avg_sq");
    return names;
  }
  Numbers numbers(const Settings& group, std::int64_t step) const override {
    Numbers numbers = moment_numbers(*group.momentum, o.beta2, o.eps, step);
    numbers.push_back(group.lr / correction(*group.momentum, step));
    return numbers;
  }
  void apply(Update& u, const std::vector<Tensor>& n) const override {
    take_in(u, n);
    if (o.amsgrad) u.state[2] = maximum(u.state[2], u.state[1]);
    u.value = u.value - u.state[0] / (sqrt(u.state.back()) / n[4] + n[5]) * n[6];
  }
  const char* called;
  Decay decays;
  Options o;
};

struct AdadeltaRule : Rule {
  explicit AdadeltaRule(const AdadeltaOptions& options) : o(options) {
    check_setting(name(), "rho", o.rho, 0, 1);
    check_setting(name(), "eps", o.eps);
  }
  std::string name() const override { return "Adadelta"; }
  std::vector<std::string> state() const override { return {"square_avg", "acc_delta"}; }
  Numbers numbers(const Settings& group, std::int64_t) const override { return {o.rho, 1 - o.rho, o.eps, group.lr}; }
  void apply(Update& u, const std::vector<Tensor>& n) const override {
    u.state[0] = u.state[0] * n[0] + square(u.gradient) * n[1];
    const Tensor delta = sqrt(u.state[1] + n[2]) / sqrt(u.state[0] + n[2]) * u.gradient;
    u.state[1] = u.state[1] * n[0] + square(delta) * n[1];
    u.value = u.value - delta * n[3];
  }
  AdadeltaOptions o;
};

struct RmspropRule : Rule {
  explicit RmspropRule(const RmspropOptions& options) : o(options) {
    check_setting(name(), "alpha", o.alpha, 0, 1);
    check_setting(name(), "eps", o.eps);
    check_setting(name(), "momentum", o.momentum);
  }
  std::string name() const override { return "RMSprop"; }
  std::vector<std::string> state() const override {
    std::vector<std::string> names{"square_avg"};
    if (o.momentum != 0) names.emplace_back("momentum_buffer");
    if (o.centered) names.emplace_back("grad_avg");
    return names;
  }
  Numbers numbers(const Settings& group, std::int64_t) const override {
    Numbers numbers{o.alpha, 1 - o.alpha, o.eps, group.lr};
    if (group.momentum) numbers.push_back(*group.momentum);
    return numbers;
  }
  void apply(Update& u, const std::vector<Tensor>& n) const override {
    u.state[0] = u.state[0] * n[0] + square(u.gradient) * n[1];
    Tensor variance = u.state[0];
    if (o.centered) {
      Tensor& mean = u.state.back();
      mean = mean + (u.gradient - mean) * n[1];
      variance = maximum(variance - square(mean), 0);
    }
    Tensor direction = u.gradient / (sqrt(variance) + n[2]);
    if (o.momentum != 0) direction = u.state[1] = u.state[1] * n[4] + direction;
    u.value = u.value - direction * n[3];
  }
  RmspropOptions o;
};

struct LionRule : Rule {
  explicit LionRule(const LionOptions& options) : o(options) { check_moments(name(), o); }
  std::string name() const override { return "Lion"; }
  Decay decay() const override { return Decay::of_value; }
  std::vector<std::string> state() const override { return {"exp_avg"}; }
  Numbers numbers(const Settings& group, std::int64_t) const override {
    return {*group.momentum, 1 - *group.momentum, o.beta2, 1 - o.beta2, group.lr};
  }
  void apply(Update& u, const std::vector<Tensor>& n) const override {
    u.value = u.value - sign(u.state[0] * n[0] + u.gradient * n[1]) * n[4];
    u.state[0] = u.state[0] * n[2] + u.gradient * n[3];
  }
  LionOptions o;
};

struct LambRule : Rule {
  explicit LambRule(const LambOptions& options) : o(options) {
    check_moments(name(), o);
    check_setting(name(), "eps", o.eps);
  }
  std::string name() const override { return "LAMB"; }
  Decay decay() const override { return Decay::of_rule; }  // it is part of what is scaled by the norms
  std::vector<std::string> state() const override { return {"exp_avg", "exp_avg_sq"}; }
  Numbers numbers(const Settings& group, std::int64_t step) const override {
    Numbers numbers = moment_numbers(*group.momentum, o.beta2, o.eps, step);
    numbers.push_back(correction(*group.momentum, step));
    numbers.push_back(group.lr);
    if (group.weight_decay != 0) numbers.push_back(group.weight_decay);
    return numbers;
  }
  void apply(Update& u, const std::vector<Tensor>& n) const override {
    take_in(u, n);
    Tensor direction = u.state[0] / n[6] / (sqrt(u.state[1]) / n[4] + n[5]);
    if (n.size() > 8) direction = direction + u.value * n[8];
    const DType computed = n[0].dtype();
    const Tensor value_norm = sqrt(sum(square(u.value.to(computed)))),
                 direction_norm = sqrt(sum(square(direction.to(computed))));
    const Tensor trust = where(logical_and(value_norm > 0, direction_norm > 0), value_norm / direction_norm, 1);
    u.value = u.value - direction * (trust * n[7]);
  }
  LambOptions o;
};

// A rule's optimiser with the settings that the options have for every group.
template <class OptimizerRule, class Options, class... Named>
Optimizer made(std::vector<ParameterGroup> groups, const Options& o, std::optional<double> momentum, Named... named) {
  return Optimizer(std::make_shared<OptimizerRule>(named..., o), std::move(groups), {o.lr, o.weight_decay, momentum});
}
std::optional<double> unless_zero(double momentum) {
  return momentum != 0 ? std::optional<double>(momentum) : std::nullopt;
}

}  // namespace

SGD::SGD(std::vector<nn::Parameter> parameters, SgdOptions options) : SGD(one_group(std::move(parameters)), options) {}
SGD::SGD(std::vector<ParameterGroup> groups, SgdOptions o)
    : Optimizer(made<SgdRule>(std::move(groups), o, unless_zero(o.momentum))) {}

Adam::Adam(std::vector<nn::Parameter> parameters, AdamOptions options)
    : Adam(one_group(std::move(parameters)), options) {}
Adam::Adam(std::vector<ParameterGroup> groups, AdamOptions o)
    : Optimizer(made<AdamRule<AdamOptions>>(std::move(groups), o, o.beta1, "Adam", Rule::Decay::of_gradient)) {}

AdamW::AdamW(std::vector<nn::Parameter> parameters, AdamWOptions options)
    : AdamW(one_group(std::move(parameters)), options) {}
AdamW::AdamW(std::vector<ParameterGroup> groups, AdamWOptions o)
    : Optimizer(made<AdamRule<AdamWOptions>>(std::move(groups), o, o.beta1, "AdamW", Rule::Decay::of_value)) {}

Adadelta::Adadelta(std::vector<nn::Parameter> parameters, AdadeltaOptions options)
    : Adadelta(one_group(std::move(parameters)), options) {}
Adadelta::Adadelta(std::vector<ParameterGroup> groups, AdadeltaOptions o)
    : Optimizer(made<AdadeltaRule>(std::move(groups), o, std::nullopt)) {}

RMSprop::RMSprop(std::vector<nn::Parameter> parameters, RmspropOptions options)
    : RMSprop(one_group(std::move(parameters)), options) {}
RMSprop::RMSprop(std::vector<ParameterGroup> groups, RmspropOptions o)
    : Optimizer(made<RmspropRule>(std::move(groups), o, unless_zero(o.momentum))) {}

Lion::Lion(std::vector<nn::Parameter> parameters, LionOptions options)
    : Lion(one_group(std::move(parameters)), options) {}
Lion::Lion(std::vector<ParameterGroup> groups, LionOptions o)
    : Optimizer(made<LionRule>(std::move(groups), o, o.beta1)) {}

LAMB::LAMB(std::vector<nn::Parameter> parameters, LambOptions options)
    : LAMB(one_group(std::move(parameters)), options) {}
LAMB::LAMB(std::vector<ParameterGroup> groups, LambOptions o)
    : Optimizer(made<LambRule>(std::move(groups), o, o.beta1)) {}

}  // namespace fusejit::optim
