// Optimisers, with PyTorch's formulas. Learning rates and step numbers are arguments of the trace: changing them
// compiles nothing. Momentum, decay and the like are too; only whether they are zero changes the trace. State is there,
// zero, before the first update: all updates are one plan.
//
//   fj::optim::SGD opt({{.parameters = body.parameters()}, {.parameters = head.parameters(), .lr = 0.01}},
//                      fj::optim::SgdOptions{.lr = 0.1, .momentum = 0.9});
//   fj::optim::StepLR schedule(opt, 1, 0.7);  // schedule.step() after each epoch
//
// A loop of one's own; each round is one plan, as with train_step (train.h), and keeps nothing of the rounds before:
//   fj::Tensor loss = fj::mse_loss(head(body(x)), y);
//   opt.step(loss);              // or: opt.update(fj::grad(loss, ...)), with clip_grad_norm() in between
//   float value = loss.item<float>();
//
// A setting that is not finite or out of its range is a UserError, and so are a parameter given twice and none at all.
// In the formulas p is a parameter, g its gradient + weight_decay*p, t the number of this update, from 1.
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

class Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // The learning rate of a group. UserError if it is not finite or negative; then nothing has changed.
  double lr(std::size_t group = 0) const;
  void set_lr(double lr);  // of all groups
  void set_lr(std::size_t group, double lr);
  std::size_t groups() const { return groups_.size(); }
  // All groups' parameters, in order.
  const std::vector<nn::Parameter>& parameters() const { return parameters_; }
  // Updates so far.
  std::int64_t steps() const { return steps_; }

  // Records one update: gradients in the order of parameters(); where one is empty, that parameter keeps its value.
  // What it leaves are leaves: gradients end there, and once a value is asked for, all that the update changed is
  // computed with it and keeps no history. An update on top of one that nothing has asked for computes that one first.
  // UserError, and nothing has changed, for another number of gradients than parameters or one of another type.
  // train_step does this; a loop of one's own calls it with what grad() gave.
  void update(const std::vector<Tensor>& gradients);
  // grad() of the loss for all parameters() and update(); those that it does not depend on keep their values. UserError
  // if it depends on none, or is not one float number; and, at the first update, if it depends on a parameter that
  // nothing trains (train.h). The loss is computed with the update, in one plan, when any of
  // them is asked for.
  void step(const Tensor& loss);

  // Momentum buffers and the like, under "<parameter number>.<name>", and "steps".
  StateDict state_dict() const;
  // All of it or nothing: UserError that names an entry that is missing or of another type.
  void load_state_dict(const StateDict& values);

  // A number of updates to go back to; for a step that failed.
  void set_steps(std::int64_t steps) { steps_ = steps; }

 protected:
  struct Group {
    double lr = 0;
    double weight_decay = 0;
    std::size_t first = 0, last = 0;  // of parameters()
  };
  Optimizer(const char* name, std::vector<ParameterGroup> groups, double lr, double weight_decay);
  // Zero-filled state beside every parameter, under `name`. Called by constructors.
  void add_state(const std::string& name);
  void check_finite(const char* what, double value, double low, double high) const;

  // One parameter's update in progress.
  struct Update {
    Tensor value, gradient;     // gradient: weight decay included
    std::vector<Tensor> state;  // read, then replaced
  };
  // Numbers of this update, the same for every parameter of a group; made as scalars of one dtype.
  virtual std::vector<double> numbers(const Group& group, std::int64_t step) const = 0;
  virtual void apply(Update& update, const std::vector<Tensor>& numbers) const = 0;

 private:
  void check_gradients(const std::vector<Tensor>& gradients) const;
  void compute_last_update(const std::vector<Tensor>& gradients) const;
  std::string name_;
  std::vector<Group> groups_;
  std::vector<nn::Parameter> parameters_;
  std::vector<std::string> state_names_;
  std::vector<std::vector<nn::Parameter>> state_;  // of each parameter
  std::int64_t steps_ = 0;
};

struct SgdOptions {
  double lr = 0.01;
  double momentum = 0;
  double weight_decay = 0;
  double dampening = 0;
  bool nesterov = false;
};
// m = momentum*m + (1 - dampening)*g, at the first update m = g; p -= lr*m, or lr*(g + momentum*m) if nesterov, which
// needs a momentum and no dampening.
class SGD : public Optimizer {
 public:
  SGD(std::vector<nn::Parameter> parameters, SgdOptions options);
  SGD(std::vector<ParameterGroup> groups, SgdOptions options);

 private:
  std::vector<double> numbers(const Group& group, std::int64_t step) const override;
  void apply(Update& update, const std::vector<Tensor>& numbers) const override;
  SgdOptions options_;
};

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
};
// m = beta1*m + (1 - beta1)*g, v = beta2*v + (1 - beta2)*g^2;
// p -= lr/(1 - beta1^t) * m/(sqrt(v)/sqrt(1 - beta2^t) + eps). Kingma and Ba 2015.
class Adam : public Optimizer {
 public:
  Adam(std::vector<nn::Parameter> parameters, AdamOptions options = {});
  Adam(std::vector<ParameterGroup> groups, AdamOptions options = {});

 private:
  std::vector<double> numbers(const Group& group, std::int64_t step) const override;
  void apply(Update& update, const std::vector<Tensor>& numbers) const override;
  AdamOptions options_;
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

 private:
  std::vector<double> numbers(const Group& group, std::int64_t step) const override;
  void apply(Update& update, const std::vector<Tensor>& numbers) const override;
  AdadeltaOptions options_;
};

// Multiplies every learning rate by gamma after each step_size calls of step(). The optimiser must outlive it.
class StepLR {
 public:
  StepLR(Optimizer& optimizer, std::int64_t step_size, double gamma = 0.1);
  void step();

 private:
  Optimizer& optimizer_;
  std::int64_t step_size_;
  double gamma_;
  std::int64_t calls_ = 0;
};

// Gradients times min(1, max_norm/(norm + 1e-6)), so that their joint 2-norm is at most max_norm, lazily and in place
// of the given ones; returns the norm before. Empty gradients are passed over; none at all is a UserError.
Tensor clip_grad_norm(std::vector<Tensor>& gradients, double max_norm);

}  // namespace fusejit::optim
