// Optimisers, with PyTorch's formulas and defaults. Learning rates and step numbers are arguments of the trace:
// changing them compiles nothing. Momentum, decay and the like are too; only whether they are zero changes the trace.
// State is there, zero, before the first update: all updates are one plan.
//
//   fj::optim::SGD opt({{.parameters = body.parameters()}, {.parameters = head.parameters(), .lr = 0.01}},
//                      fj::optim::SgdOptions{.lr = 0.1, .momentum = 0.9});
//   fj::optim::StepLR schedule(opt, 1, 0.7);  // schedule.step() after each epoch: lr_scheduler.h
//
// A loop of one's own; each round is one plan, as with train_step (train.h), and keeps nothing of the rounds before:
//   fj::Tensor loss = fj::mse_loss(head(body(x)), y);
//   opt.step(loss);              // or: opt.update(fj::grad(loss, ...)), with clip_grad_norm() in between
//   float value = loss.item<float>();
//
// A setting that is not finite or out of its range is a UserError, and so are a parameter given twice and none at all.
// In the formulas p is a parameter, g its gradient, t the number of this update, from 1. weight_decay adds
// weight_decay*p to g first, unless it is said to be decoupled: then p is multiplied by 1 - lr*weight_decay first
// (Loshchilov and Hutter 2019).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fusejit/module.h"

namespace fusejit::optim {

// Parameters that share settings; what is left out is the optimiser's own.
struct ParameterGroup {
  std::vector<nn::Parameter> parameters;
  std::optional<double> lr = {};
  std::optional<double> weight_decay = {};
};

// What an optimiser does with one parameter; never changes. One of one's own is given to Optimizer's constructor:
//   struct SignDescent : fj::optim::Rule {
//     std::string name() const override { return "SignDescent"; }
//     std::vector<double> numbers(const Settings& group, std::int64_t) const override { return {group.lr}; }
//     void apply(Update& u, const std::vector<fj::Tensor>& n) const override {
//       u.value = u.value - fj::sign(u.gradient) * n[0];
//     }
//   };
//   fj::optim::Optimizer signs(std::make_shared<SignDescent>(), {{.parameters = net.parameters()}}, {.lr = 0.1});
class Rule {
 public:
  // Of a group. momentum: SGD's and RMSprop's momentum, beta1 of the others; nothing where the rule has none.
  struct Settings {
    double lr = 0;
    double weight_decay = 0;
    std::optional<double> momentum = {};
  };
  // One parameter's update in progress: read, then replaced.
  struct Update {
    Tensor value, gradient;
    std::vector<Tensor> state;  // in the order of state()
  };
  // What weight decay changes, before apply(): the gradient, the value, or nothing, because the rule sees to it.
  enum class Decay : std::uint8_t { of_gradient, of_value, of_rule };

  virtual ~Rule() = default;
  virtual std::string name() const = 0;
  // Names of what is kept beside each parameter, of its type, zero at first.
  virtual std::vector<std::string> state() const { return {}; }
  virtual Decay decay() const { return Decay::of_gradient; }
  // Numbers of update `step`, from 1, the same for every parameter of a group; apply() gets them as arguments of the
  // trace.
  virtual std::vector<double> numbers(const Settings& group, std::int64_t step) const = 0;
  virtual void apply(Update& update, const std::vector<Tensor>& numbers) const = 0;
};

// A handle: copies, also those of a class derived from it as this class, name the same groups, state and number of
// updates, which live as long as one of them.
class Optimizer {
 public:
  // settings: of groups that leave them out.
  Optimizer(std::shared_ptr<const Rule> rule, std::vector<ParameterGroup> groups, Rule::Settings settings);
  Optimizer(const Optimizer&) = default;
  Optimizer& operator=(const Optimizer&) = default;
  virtual ~Optimizer() = default;

  // The learning rate of a group. UserError if it is not finite or negative; then nothing has changed.
  double lr(std::size_t group = 0) const;
  void set_lr(double lr);  // of all groups
  void set_lr(std::size_t group, double lr);
  // SGD's and RMSprop's momentum, beta1 of Adam, AdamW, Lion and LAMB. UserError, here and for a new one, if the
  // optimiser has none or was made with a momentum of 0; for a new one below 0, or of 1 and more, too.
  double momentum(std::size_t group = 0) const;
  void set_momentum(std::size_t group, double momentum);
  std::size_t groups() const;
  // All groups' parameters, in order.
  const std::vector<nn::Parameter>& parameters() const;
  // Updates so far.
  std::int64_t steps() const;

  // Records one update: gradients in the order of parameters(); where one is empty, that parameter keeps its value.
  // What it leaves are leaves: gradients end there, and once a value is asked for, all that the update changed is
  // computed with it and keeps no history. An update on top of one that nothing has asked for computes that one first.
  // UserError, and nothing has changed, for another number of gradients than parameters or one of another type.
  // train_step does this; a loop of one's own calls it with what grad() gave.
  void update(const std::vector<Tensor>& gradients);
  // The same, of which nothing is kept if `unless`, bool [], is true; it counts all the same (set_steps()).
  void update(const std::vector<Tensor>& gradients, const Tensor& unless);
  // grad() of the loss for all parameters() and update(); those that it does not depend on keep their values. UserError
  // if it depends on none, or is not one float number; and, at the first update, if it depends on a parameter that
  // nothing trains (train.h). The loss is computed with the update, in one plan, when any of
  // them is asked for.
  void step(const Tensor& loss);

  // Momentum buffers and the like, under "<parameter number>.<name>"; "steps"; "lr" and, where there is one,
  // "momentum", f64 [groups].
  StateDict state_dict() const;
  // All of it or nothing: one UserError that counts what is missing, unknown, or of another shape or dtype, and names
  // the first five of each; and one for numbers that cannot be.
  void load_state_dict(const StateDict& values);

  // A number of updates to go back to; for a step that failed.
  void set_steps(std::int64_t steps);

  bool operator==(const Optimizer& other) const { return state_ == other.state_; }  // names the same

 private:
  friend class LRScheduler;
  struct State;
  std::shared_ptr<State> state_;
};

struct SgdOptions {
  double lr = 1e-3;
  double momentum = 0;
  double weight_decay = 0;
  double dampening = 0;
  bool nesterov = false;
};
// m = momentum*m + (1 - dampening)*g, at the first update m = g; p -= lr*m, or lr*(g + momentum*m) if nesterov, which
// needs a momentum and no dampening.
class SGD : public Optimizer {
 public:
  SGD(std::vector<nn::Parameter> parameters, SgdOptions options = {});
  SGD(std::vector<ParameterGroup> groups, SgdOptions options = {});
};

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
};
// m = beta1*m + (1 - beta1)*g, v = beta2*v + (1 - beta2)*g^2;
// p -= lr/(1 - beta1^t) * m/(sqrt(v)/sqrt(1 - beta2^t) + eps). Kingma and Ba 2015. amsgrad: with the largest v so far
// in place of v. Reddi et al. 2018.
class Adam : public Optimizer {
 public:
  Adam(std::vector<nn::Parameter> parameters, AdamOptions options = {});
  Adam(std::vector<ParameterGroup> groups, AdamOptions options = {});
};

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
};
// Adam with decoupled weight decay.
class AdamW : public Optimizer {
 public:
  AdamW(std::vector<nn::Parameter> parameters, AdamWOptions options = {});
  AdamW(std::vector<ParameterGroup> groups, AdamWOptions options = {});
};

struct AdadeltaOptions {
  double lr = 1.0;
  double rho = 0.9;
  double eps = 1e-6;
  double weight_decay = 0;
};
// v = rho*v + (1 - rho)*g^2, d = sqrt(a + eps)/sqrt(v + eps)*g, a = rho*a + (1 - rho)*d^2; p -= lr*d. Zeiler 2012.
class Adadelta : public Optimizer {
 public:
  Adadelta(std::vector<nn::Parameter> parameters, AdadeltaOptions options = {});
  Adadelta(std::vector<ParameterGroup> groups, AdadeltaOptions options = {});
};

struct RmspropOptions {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
};
// v = alpha*v + (1 - alpha)*g^2, d = g/(sqrt(v) + eps); p -= lr*d, with a momentum m = momentum*m + d and p -= lr*m.
// centered: a += (1 - alpha)*(g - a), and v - a^2 in place of v in the root; 0 where rounding takes it below. Graves
// 2013.
class RMSprop : public Optimizer {
 public:
  RMSprop(std::vector<nn::Parameter> parameters, RmspropOptions options = {});
  RMSprop(std::vector<ParameterGroup> groups, RmspropOptions options = {});
};

struct LionOptions {
  double lr = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0;
};
// p -= lr*sign(beta1*m + (1 - beta1)*g), then m = beta2*m + (1 - beta2)*g; decoupled weight decay. Chen et al. 2023,
// algorithm 2. Not in PyTorch.
class Lion : public Optimizer {
 public:
  Lion(std::vector<nn::Parameter> parameters, LionOptions options = {});
  Lion(std::vector<ParameterGroup> groups, LionOptions options = {});
};

struct LambOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-6;
  double weight_decay = 0;
};
// m and v as Adam's, u = m/(1 - beta1^t) / (sqrt(v/(1 - beta2^t)) + eps) + weight_decay*p; p -= lr*|p|/|u|*u, with the
// 2-norms of the whole parameter; their ratio is 1 where one of them is 0. You et al. 2020, algorithm 2, with the
// identity for phi. Not in PyTorch.
class LAMB : public Optimizer {
 public:
  LAMB(std::vector<nn::Parameter> parameters, LambOptions options = {});
  LAMB(std::vector<ParameterGroup> groups, LambOptions options = {});
};

// Gradients times min(1, max_norm/(norm + 1e-6)), so that their joint 2-norm is at most max_norm, lazily and in place
// of the given ones; returns the norm before. Empty gradients are passed over; none at all is a UserError.
Tensor clip_grad_norm(std::vector<Tensor>& gradients, double max_norm);

}  // namespace fusejit::optim
