// The update rules, as PyTorch writes them. A rule's numbers become arguments of the trace: n[0], n[1], ...
#include <cmath>

#include "fusejit/ops.h"
#include "fusejit/optim.h"
#include "ir/base/check.h"

namespace fusejit::optim {
namespace {

std::vector<ParameterGroup> one_group(std::vector<nn::Parameter> parameters) {
  std::vector<ParameterGroup> groups(1);
  groups[0].parameters = std::move(parameters);
  return groups;
}

}  // namespace

SGD::SGD(std::vector<nn::Parameter> parameters, SgdOptions options) : SGD(one_group(std::move(parameters)), options) {}
SGD::SGD(std::vector<ParameterGroup> groups, SgdOptions options)
    : Optimizer("SGD", std::move(groups), options.lr, options.weight_decay), options_(options) {
  check_finite("momentum", options.momentum, 0, HUGE_VAL);
  check_finite("dampening", options.dampening, 0, 1);
  FJ_CHECK(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
           "SGD: nesterov needs a momentum and no dampening");
  if (options.momentum != 0) add_state("momentum");
}

std::vector<double> SGD::numbers(const Group& group, std::int64_t step) const {
  // The first buffer is the gradient itself, undamped.
  const double fresh = step == 1 ? 1 : 1 - options_.dampening;
  std::vector<double> numbers{group.lr};
  if (options_.momentum != 0) numbers.push_back(options_.momentum);
  if (options_.dampening != 0) numbers.push_back(fresh);
  return numbers;
}

void SGD::apply(Update& u, const std::vector<Tensor>& n) const {
  Tensor direction = u.gradient;
  if (options_.momentum != 0) {
    u.state[0] = u.state[0] * n[1] + (options_.dampening != 0 ? direction * n[2] : direction);
    direction = options_.nesterov ? direction + u.state[0] * n[1] : u.state[0];
  }
  u.value = u.value - direction * n[0];
}

Adam::Adam(std::vector<nn::Parameter> parameters, AdamOptions options)
    : Adam(one_group(std::move(parameters)), options) {}
Adam::Adam(std::vector<ParameterGroup> groups, AdamOptions options)
    : Optimizer("Adam", std::move(groups), options.lr, options.weight_decay), options_(options) {
  check_finite("beta1", options.beta1, 0, 0.9999999999);
  check_finite("beta2", options.beta2, 0, 0.9999999999);
  check_finite("eps", options.eps, 0, HUGE_VAL);
  add_state("exp_avg");
  add_state("exp_avg_sq");
}

std::vector<double> Adam::numbers(const Group& group, std::int64_t step) const {
  const auto t = static_cast<double>(step);
  const double correction1 = 1 - std::pow(options_.beta1, t), correction2 = 1 - std::pow(options_.beta2, t);
  return {options_.beta1,         1 - options_.beta1, options_.beta2,        1 - options_.beta2,
          std::sqrt(correction2), options_.eps,       group.lr / correction1};
}

void Adam::apply(Update& u, const std::vector<Tensor>& n) const {
  u.state[0] = u.state[0] * n[0] + u.gradient * n[1];
  u.state[1] = u.state[1] * n[2] + square(u.gradient) * n[3];
  u.value = u.value - u.state[0] / (sqrt(u.state[1]) / n[4] + n[5]) * n[6];
}

Adadelta::Adadelta(std::vector<nn::Parameter> parameters, AdadeltaOptions options)
    : Adadelta(one_group(std::move(parameters)), options) {}
Adadelta::Adadelta(std::vector<ParameterGroup> groups, AdadeltaOptions options)
    : Optimizer("Adadelta", std::move(groups), options.lr, options.weight_decay), options_(options) {
  check_finite("rho", options.rho, 0, 1);
  check_finite("eps", options.eps, 0, HUGE_VAL);
  add_state("square_avg");
  add_state("acc_delta");
}

std::vector<double> Adadelta::numbers(const Group& group, std::int64_t) const {
  return {options_.rho, 1 - options_.rho, options_.eps, group.lr};
}

void Adadelta::apply(Update& u, const std::vector<Tensor>& n) const {
  u.state[0] = u.state[0] * n[0] + square(u.gradient) * n[1];
  const Tensor delta = sqrt(u.state[1] + n[2]) / sqrt(u.state[0] + n[2]) * u.gradient;
  u.state[1] = u.state[1] * n[0] + square(delta) * n[1];
  u.value = u.value - delta * n[3];
}

}  // namespace fusejit::optim
