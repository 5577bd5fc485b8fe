// Schedules of learning rates: PyTorch's torch.optim.lr_scheduler, by its closed forms.
//
//   fj::optim::AdamW opt(net.parameters(), {.lr = 0.1});
//   fj::optim::LinearLR warm_up(opt, {.start_factor = 0.25, .total_iters = 3});
//   fj::optim::SequentialLR schedule(opt, {warm_up, fj::optim::CosineAnnealingLR(opt, 7)}, {3});
//   for (int epoch = 0; epoch < 10; ++epoch) {
//     opt.step(fj::mse_loss(net(x), y));
//     schedule.step();  // after each epoch, or each update, as it is meant
//   }
//
// Each group's rate is a function of the number t of calls of step() and of the rate `base` that the group had when the
// first schedule of the optimiser was made, or when the first one since set_lr() was. Making a schedule sets the rates
// of t = 0. A rate set by hand holds until the next call. The rates are arguments of the trace: nothing is compiled
// anew.
//
// A schedule is a handle, as its optimiser, which it holds: copies name the same count. A number that is not finite or
// out of its range is a UserError; so is a step() to a rate that is, and then nothing has changed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fusejit/optim.h"

namespace fusejit::optim {

// What all schedules have: step() once an epoch, or once an update.
class LRScheduler {
 public:
  LRScheduler(const LRScheduler&) = default;
  LRScheduler& operator=(const LRScheduler&) = default;
  virtual ~LRScheduler() = default;

  void step();
  // Calls of step() so far, t above.
  std::int64_t last_epoch() const;
  // The optimiser's rates, one a group.
  std::vector<double> get_last_lr() const;

  // "last_epoch" and "base_lrs", f64 [groups]: all there is of schedules within others too. The rates themselves, and
  // momenta, are in the optimiser's state.
  StateDict state_dict() const;
  // All of it or nothing; UserError as of Optimizer's.
  void load_state_dict(const StateDict& values);

 protected:
  // What a group has at t.
  struct Rates {
    double lr = 0;
    std::optional<double> momentum = {};
  };
  using Formula = std::function<Rates(double base, std::size_t group, std::int64_t t)>;
  LRScheduler(std::string name, const Optimizer& optimizer, Formula formula);
  struct State;
  static std::vector<Formula> formulas_of(const std::string& name, const Optimizer& optimizer,
                                          const std::vector<LRScheduler>& schedulers);
  static const Optimizer& optimizer_of(const std::vector<LRScheduler>& schedulers);
  static void start_from(Optimizer optimizer, const std::vector<double>& lrs);

 private:
  void set(const std::vector<Rates>& rates);
  std::shared_ptr<State> state_;
};

// base*f(t).
class LambdaLR : public LRScheduler {
 public:
  LambdaLR(const Optimizer& optimizer, std::function<double(std::int64_t t)> f);
};

// base*gamma^floor(t/step_size)
class StepLR : public LRScheduler {
 public:
  StepLR(const Optimizer& optimizer, std::int64_t step_size, double gamma = 0.1);
};

// base*gamma^(number of milestones <= t)
class MultiStepLR : public LRScheduler {
 public:
  MultiStepLR(const Optimizer& optimizer, std::vector<std::int64_t> milestones, double gamma = 0.1);
};

// base*gamma^t
class ExponentialLR : public LRScheduler {
 public:
  ExponentialLR(const Optimizer& optimizer, double gamma);
};

// eta_min + (base - eta_min)*(1 + cos(pi*t/T_max))/2: down to eta_min at T_max, up again after it. Loshchilov and
// Hutter 2017, without restarts.
class CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(const Optimizer& optimizer, std::int64_t T_max, double eta_min = 0);
};

struct LinearLROptions {
  double start_factor = 1.0 / 3;  // above 0, at most 1
  double end_factor = 1;          // from 0 to 1
  std::int64_t total_iters = 5;
};
// base*(start_factor + (end_factor - start_factor)*min(t, total_iters)/total_iters): a warm-up.
class LinearLR : public LRScheduler {
 public:
  LinearLR(const Optimizer& optimizer, LinearLROptions options = {});
};

struct OneCycleLROptions {
  double pct_start = 0.3;               // of the steps are for the way up
  std::string anneal_strategy = "cos";  // or "linear"
  bool cycle_momentum = true;           // from max_momentum down and up again
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  double div_factor = 25;
  double final_div_factor = 1e4;
  bool three_phase = false;  // down to where it started, then to the end; else to the end at once
};
// From max_lr/div_factor up to max_lr, down to max_lr/div_factor/final_div_factor, in total_steps calls of step(), of
// which the last changes nothing (PyTorch runs past the end there); more are a UserError. With momenta the other way
// round, unless cycle_momentum is off: UserError for an optimiser without one. What schedules made afterwards start
// from is max_lr/div_factor. Smith and Topin 2019.
class OneCycleLR : public LRScheduler {
 public:
  OneCycleLR(const Optimizer& optimizer, double max_lr, std::int64_t total_steps, OneCycleLROptions options = {});
  // max_lr: one a group.
  OneCycleLR(const Optimizer& optimizer, const std::vector<double>& max_lr, std::int64_t total_steps,
             OneCycleLROptions options = {});
};

// The first schedule until t is milestones[0], then the second, from its own t = 0, until milestones[1], and so on. One
// milestone fewer than schedules, rising. UserError for schedules of another optimiser. step() is called
// on this one alone.
class SequentialLR : public LRScheduler {
 public:
  SequentialLR(const Optimizer& optimizer, const std::vector<LRScheduler>& schedulers,
               std::vector<std::int64_t> milestones);
};

// All at once: each takes the rate that the one before it gives for its base, so that factors are multiplied.
class ChainedScheduler : public LRScheduler {
 public:
  explicit ChainedScheduler(const std::vector<LRScheduler>& schedulers);
};

struct ReduceLROnPlateauOptions {
  std::string mode = "min";            // what is better: less, or "max": more
  double factor = 0.1;                 // of each reduction, below 1
  std::int64_t patience = 10;          // calls without improvement that are borne
  double threshold = 1e-4;             // what an improvement must exceed:
  std::string threshold_mode = "rel";  // a share of the best metric so far, or "abs": a number
  std::int64_t cooldown = 0;           // calls after a reduction that do not count
  double min_lr = 0;                   // no rate is reduced below it
  double eps = 1e-8;                   // reductions by no more than this are left out
};
// Multiplies the rates by `factor` once the metric, a loss or an accuracy, has not improved for more than `patience`
// calls. NaN is no improvement. What it goes by is data, so it is no function of t as the others are, and is not
// combined with one: a schedule sets its own rates at its next step().
//
//   fj::optim::ReduceLROnPlateau plateau(opt, {.factor = 0.5, .patience = 1});
//   for (double loss : {1.0, 0.8, 0.8, 0.8}) plateau.step(loss);
//   plateau.get_last_lr();  // half of what they were
class ReduceLROnPlateau {
 public:
  explicit ReduceLROnPlateau(const Optimizer& optimizer, ReduceLROnPlateauOptions options = {});
  void step(double metric);
  std::int64_t last_epoch() const;  // calls of step() so far
  std::vector<double> get_last_lr() const;

  // "best", f64 [], "last_epoch", "num_bad_epochs" and "cooldown_counter", i64 []. The rates are in the optimiser's.
  StateDict state_dict() const;
  // All of it or nothing; UserError as of Optimizer's.
  void load_state_dict(const StateDict& values);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace fusejit::optim
