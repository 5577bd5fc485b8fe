// The one schedule that goes by data: a count of calls without improvement.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "frontend/nn/check_state.h"
#include "frontend/optim/settings.h"
#include "fusejit/optim/lr_scheduler.h"
#include "ir/base/check.h"

namespace fusejit::optim {

struct ReduceLROnPlateau::State {
  Optimizer optimizer;
  ReduceLROnPlateauOptions options;
  double best;
  std::int64_t t = 0, bad = 0, cooldown = 0;  // calls; those without improvement; those still to come that do not count

  bool improves(double metric) const {
    const double sign = options.mode == "min" ? -1 : 1;
    const double bound =
        options.threshold_mode == "rel" ? best * (1 + sign * options.threshold) : best + sign * options.threshold;
    return sign * metric > sign * bound;
  }

  void reduce() {
    for (std::size_t g = 0; g < optimizer.groups(); ++g) {
      const double lr = optimizer.lr(g), next = std::max(lr * options.factor, options.min_lr);
      if (lr - next > options.eps) optimizer.set_lr(g, next);
    }
  }
};

namespace {

constexpr const char* kName = "ReduceLROnPlateau";

void check_count(const char* what, std::int64_t value) {
  FJ_CHECK(value >= 0, "{}: {} is {}, it must not be negative", kName, what, value);
}

Tensor number(std::int64_t value) { return from_host(std::vector<std::int64_t>{value}, {}); }

}  // namespace

ReduceLROnPlateau::ReduceLROnPlateau(const Optimizer& optimizer, ReduceLROnPlateauOptions o) {
  FJ_CHECK(o.mode == "min" || o.mode == "max", "{}: mode is '{}', it must be 'min' or 'max'", kName, o.mode);
  FJ_CHECK(o.threshold_mode == "rel" || o.threshold_mode == "abs",
           "{}: threshold_mode is '{}', it must be 'rel' or 'abs'", kName, o.threshold_mode);
  check_setting(kName, "factor", o.factor, 0, kBelowOne);
  check_setting(kName, "threshold", o.threshold);
  check_setting(kName, "min_lr", o.min_lr);
  check_setting(kName, "eps", o.eps);
  check_count("patience", o.patience), check_count("cooldown", o.cooldown);
  const double worst = std::numeric_limits<double>::infinity() * (o.mode == "min" ? 1 : -1);
  state_ = std::make_shared<State>(State{optimizer, std::move(o), worst});
}

void ReduceLROnPlateau::step(double metric) {
  State& s = *state_;
  ++s.t;
  if (s.improves(metric)) {
    s.best = metric;
    s.bad = 0;
  } else {
    ++s.bad;
  }
  if (s.cooldown > 0) {
    --s.cooldown;
    s.bad = 0;
  }
  if (s.bad <= s.options.patience) return;
  s.reduce();
  s.cooldown = s.options.cooldown;
  s.bad = 0;
}

std::int64_t ReduceLROnPlateau::last_epoch() const { return state_->t; }

std::vector<double> ReduceLROnPlateau::get_last_lr() const {
  std::vector<double> lrs;
  for (std::size_t g = 0; g < state_->optimizer.groups(); ++g) lrs.push_back(state_->optimizer.lr(g));
  return lrs;
}

StateDict ReduceLROnPlateau::state_dict() const {
  return {{"best", from_host(std::vector<double>{state_->best}, {})},
          {"last_epoch", number(state_->t)},
          {"num_bad_epochs", number(state_->bad)},
          {"cooldown_counter", number(state_->cooldown)}};
}

void ReduceLROnPlateau::load_state_dict(const StateDict& values) {
  nn::check_state(state_dict(), values, kName, "schedule");
  std::int64_t counts[3];
  const char* const names[] = {"last_epoch", "num_bad_epochs", "cooldown_counter"};
  for (std::size_t i = 0; i < 3; ++i) {
    counts[i] = values.at(names[i]).item<std::int64_t>();
    check_count(names[i], counts[i]);
  }
  state_->best = values.at("best").item<double>();
  state_->t = counts[0], state_->bad = counts[1], state_->cooldown = counts[2];
}

}  // namespace fusejit::optim
