// Schedules: each is a function of t and a base; those that hold others call their functions, so that a schedule's
// whole state is t and the bases.
#include "fusejit/optim/lr_scheduler.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "frontend/nn/check_state.h"
#include "frontend/optim/settings.h"
#include "ir/base/check.h"

namespace fusejit::optim {

struct LRScheduler::State {
  std::string name;
  Optimizer optimizer;
  Formula formula;
  std::vector<double> bases;  // of each group
  std::int64_t t = 0;

  // All of them first: what is refused, is refused before anything has changed.
  std::vector<Rates> rates_at(std::int64_t t) const {
    std::vector<Rates> rates;
    for (std::size_t g = 0; g < bases.size(); ++g) {
      rates.push_back(formula(bases[g], g, t));
      check_setting(fmt::format("{}: step {}", name, t), "learning rate", rates.back().lr);
    }
    return rates;
  }
};

LRScheduler::LRScheduler(std::string name, const Optimizer& optimizer, Formula formula)
    : state_(std::make_shared<State>(State{std::move(name), optimizer, std::move(formula), {}})) {
  std::vector<Optimizer::State::Group>& groups = optimizer.state_->groups;
  for (const auto& group : groups) state_->bases.push_back(group.initial_lr.value_or(group.settings.lr));
  const std::vector<Rates> rates = state_->rates_at(0);
  for (std::size_t g = 0; g < groups.size(); ++g) groups[g].initial_lr = state_->bases[g];
  set(rates);
}

// Unlike set_lr(), which begins anew.
void LRScheduler::set(const std::vector<Rates>& rates) {
  for (std::size_t g = 0; g < rates.size(); ++g) {
    Rule::Settings& settings = state_->optimizer.state_->groups[g].settings;
    settings.lr = rates[g].lr;
    if (rates[g].momentum) settings.momentum = rates[g].momentum;
  }
}

void LRScheduler::step() {
  set(state_->rates_at(state_->t + 1));
  ++state_->t;
}

std::int64_t LRScheduler::last_epoch() const { return state_->t; }

std::vector<double> LRScheduler::get_last_lr() const {
  std::vector<double> lrs;
  for (std::size_t g = 0; g < state_->optimizer.groups(); ++g) lrs.push_back(state_->optimizer.lr(g));
  return lrs;
}

StateDict LRScheduler::state_dict() const {
  return {{"last_epoch", from_host(std::vector<std::int64_t>{state_->t}, {})},
          {"base_lrs", tensor<double>(state_->bases)}};
}

void LRScheduler::load_state_dict(const StateDict& values) {
  nn::check_state(state_dict(), values, state_->name, "schedule");
  const auto t = values.at("last_epoch").item<std::int64_t>();
  FJ_CHECK(t >= 0, "{}: the state's number of steps is {}", state_->name, t);
  const std::vector<double> bases = values.at("base_lrs").to_vector<double>();
  for (const double base : bases) check_setting(state_->name, "state's learning rate", base);
  state_->t = t;
  state_->bases = bases;
}

std::vector<LRScheduler::Formula> LRScheduler::formulas_of(const std::string& name, const Optimizer& optimizer,
                                                           const std::vector<LRScheduler>& schedulers) {
  FJ_CHECK(!schedulers.empty(), "{}: there are no schedules", name);
  std::vector<Formula> formulas;
  for (std::size_t i = 0; i < schedulers.size(); ++i) {
    FJ_CHECK(schedulers[i].state_->optimizer == optimizer, "{}: schedule {} ({}) is one of another optimiser", name, i,
             schedulers[i].state_->name);
    formulas.push_back(schedulers[i].state_->formula);
  }
  return formulas;
}

LambdaLR::LambdaLR(const Optimizer& optimizer, std::function<double(std::int64_t t)> f)
    : LRScheduler("LambdaLR", optimizer, [&] {
        FJ_CHECK(f, "LambdaLR: there is no function");
        return [f](double base, std::size_t, std::int64_t t) { return Rates{base * f(t)}; };
      }()) {}

namespace {

double power(double base, std::int64_t exponent) { return std::pow(base, static_cast<double>(exponent)); }

void check_at_least_one(const char* name, const char* what, std::int64_t value) {
  FJ_CHECK(value >= 1, "{}: {} is {}, it must be at least 1", name, what, value);
}

}  // namespace

StepLR::StepLR(const Optimizer& optimizer, std::int64_t step_size, double gamma)
    : LRScheduler("StepLR", optimizer, [=] {
        check_at_least_one("StepLR", "step_size", step_size);
        check_setting("StepLR", "gamma", gamma);
        return [=](double base, std::size_t, std::int64_t t) { return Rates{base * power(gamma, t / step_size)}; };
      }()) {}

MultiStepLR::MultiStepLR(const Optimizer& optimizer, std::vector<std::int64_t> milestones, double gamma)
    : LRScheduler("MultiStepLR", optimizer, [&] {
        check_setting("MultiStepLR", "gamma", gamma);
        std::sort(milestones.begin(), milestones.end());
        return [milestones = std::move(milestones), gamma](double base, std::size_t, std::int64_t t) {
          const auto passed = std::upper_bound(milestones.begin(), milestones.end(), t) - milestones.begin();
          return Rates{base * power(gamma, passed)};
        };
      }()) {}

ExponentialLR::ExponentialLR(const Optimizer& optimizer, double gamma)
    : LRScheduler("ExponentialLR", optimizer, [=] {
        check_setting("ExponentialLR", "gamma", gamma);
        return [=](double base, std::size_t, std::int64_t t) { return Rates{base * power(gamma, t)}; };
      }()) {}

CosineAnnealingLR::CosineAnnealingLR(const Optimizer& optimizer, std::int64_t T_max, double eta_min)
    : LRScheduler("CosineAnnealingLR", optimizer, [=] {
        check_at_least_one("CosineAnnealingLR", "T_max", T_max);
        check_setting("CosineAnnealingLR", "eta_min", eta_min);
        return [=](double base, std::size_t, std::int64_t t) {
          const double angle = std::numbers::pi * static_cast<double>(t) / static_cast<double>(T_max);
          return Rates{eta_min + (base - eta_min) * (1 + std::cos(angle)) / 2};
        };
      }()) {}

LinearLR::LinearLR(const Optimizer& optimizer, LinearLROptions o)
    : LRScheduler("LinearLR", optimizer, [=] {
        FJ_CHECK(o.start_factor > 0 && o.start_factor <= 1,
                 "LinearLR: start_factor is {}, it must be above 0, at most 1", o.start_factor);
        check_setting("LinearLR", "end_factor", o.end_factor, 0, 1);
        check_at_least_one("LinearLR", "total_iters", o.total_iters);
        return [=](double base, std::size_t, std::int64_t t) {
          const double part = static_cast<double>(std::min(t, o.total_iters)) / static_cast<double>(o.total_iters);
          return Rates{base * (o.start_factor + (o.end_factor - o.start_factor) * part)};
        };
      }()) {}

namespace {

// One way up or down, as far as the step `end`, which may lie between two.
struct Phase {
  double end, start_lr, end_lr, start_momentum, end_momentum;
};

std::vector<Phase> phases_of(const OneCycleLROptions& o, double start, double top, std::int64_t total_steps) {
  const auto steps = static_cast<double>(total_steps);
  const double up = o.pct_start * steps - 1, last = start / o.final_div_factor;
  std::vector<Phase> phases{{up, start, top, o.max_momentum, o.base_momentum}};
  if (o.three_phase) {
    phases.push_back({2 * o.pct_start * steps - 2, top, start, o.base_momentum, o.max_momentum});
    phases.push_back({steps - 1, start, last, o.max_momentum, o.max_momentum});
  } else {
    phases.push_back({steps - 1, top, last, o.base_momentum, o.max_momentum});
  }
  return phases;
}

void check_one_cycle(const Optimizer& optimizer, const std::vector<double>& max_lr, std::int64_t total_steps,
                     const OneCycleLROptions& o) {
  constexpr const char* kName = "OneCycleLR";
  check_at_least_one(kName, "total_steps", total_steps);
  FJ_CHECK(max_lr.size() == optimizer.groups(), "OneCycleLR: {} rates are given for {} parameter groups", max_lr.size(),
           optimizer.groups());
  for (const double lr : max_lr) check_setting(kName, "max_lr", lr);
  check_setting(kName, "pct_start", o.pct_start, 0, 1);
  FJ_CHECK(o.anneal_strategy == "cos" || o.anneal_strategy == "linear",
           "OneCycleLR: anneal_strategy is '{}', it must be 'cos' or 'linear'", o.anneal_strategy);
  check_setting(kName, "base_momentum", o.base_momentum, 0, kBelowOne);
  check_setting(kName, "max_momentum", o.max_momentum, 0, kBelowOne);
  for (const double factor : {o.div_factor, o.final_div_factor})
    FJ_CHECK(std::isfinite(factor) && factor > 0, "OneCycleLR: a div_factor is {}, it must be finite and above 0",
             factor);
  if (!o.cycle_momentum) return;
  try {
    static_cast<void>(optimizer.momentum());
  } catch (const UserError& error) {
    throw UserError(fmt::format("OneCycleLR: {} to cycle: give it one, or set cycle_momentum = false", error.what()));
  }
}

}  // namespace

void LRScheduler::start_from(Optimizer optimizer, const std::vector<double>& lrs) {
  for (std::size_t g = 0; g < lrs.size(); ++g) optimizer.state_->groups[g].initial_lr = lrs[g];
}

OneCycleLR::OneCycleLR(const Optimizer& optimizer, double max_lr, std::int64_t total_steps, OneCycleLROptions options)
    : OneCycleLR(optimizer, std::vector<double>(optimizer.groups(), max_lr), total_steps, std::move(options)) {}

OneCycleLR::OneCycleLR(const Optimizer& optimizer, const std::vector<double>& max_lr, std::int64_t total_steps,
                       OneCycleLROptions o)
    : LRScheduler("OneCycleLR", optimizer, [&] {
        check_one_cycle(optimizer, max_lr, total_steps, o);
        std::vector<double> first = max_lr;
        for (double& lr : first) lr /= o.div_factor;
        start_from(optimizer, first);
        return [o, max_lr, total_steps](double base, std::size_t group, std::int64_t t) {
          FJ_CHECK(t <= total_steps, "OneCycleLR: step {} is asked for, the cycle has {}", t, total_steps);
          const std::vector<Phase> phases = phases_of(o, base, max_lr[group], total_steps);
          const auto now = static_cast<double>(t);
          std::size_t i = 0;
          while (i + 1 < phases.size() && now > phases[i].end) ++i;
          const double begin = i == 0 ? 0 : phases[i - 1].end, length = phases[i].end - begin;
          const double part = length > 0 ? std::min((now - begin) / length, 1.0) : 1;  // a phase of no length is over
          const auto between = [&](double from, double to) {
            return o.anneal_strategy == "cos" ? to + (from - to) / 2 * (std::cos(std::numbers::pi * part) + 1)
                                              : (to - from) * part + from;
          };
          Rates rates{between(phases[i].start_lr, phases[i].end_lr)};
          if (o.cycle_momentum) rates.momentum = between(phases[i].start_momentum, phases[i].end_momentum);
          return rates;
        };
      }()) {}

SequentialLR::SequentialLR(const Optimizer& optimizer, const std::vector<LRScheduler>& schedulers,
                           std::vector<std::int64_t> milestones)
    : LRScheduler("SequentialLR", optimizer, [&] {
        std::vector<Formula> formulas = formulas_of("SequentialLR", optimizer, schedulers);
        FJ_CHECK(milestones.size() + 1 == schedulers.size(), "SequentialLR: {} milestones are given for {} schedules",
                 milestones.size(), schedulers.size());
        for (std::size_t i = 0; i < milestones.size(); ++i)
          FJ_CHECK(milestones[i] > (i == 0 ? 0 : milestones[i - 1]), "SequentialLR: milestone {} is {}, they must rise",
                   i, milestones[i]);
        return [formulas = std::move(formulas), milestones = std::move(milestones)](double base, std::size_t group,
                                                                                    std::int64_t t) {
          const auto next = std::upper_bound(milestones.begin(), milestones.end(), t);
          const auto i = static_cast<std::size_t>(next - milestones.begin());
          return formulas[i](base, group, i == 0 ? t : t - milestones[i - 1]);
        };
      }()) {}

const Optimizer& LRScheduler::optimizer_of(const std::vector<LRScheduler>& schedulers) {
  FJ_CHECK(!schedulers.empty(), "ChainedScheduler: there are no schedules");
  return schedulers[0].state_->optimizer;
}

ChainedScheduler::ChainedScheduler(const std::vector<LRScheduler>& schedulers)
    : LRScheduler("ChainedScheduler", optimizer_of(schedulers), [&] {
        return [formulas = formulas_of("ChainedScheduler", optimizer_of(schedulers), schedulers)](
                   double base, std::size_t group, std::int64_t t) {
          Rates rates{base};
          for (const Formula& formula : formulas) {
            const Rates next = formula(rates.lr, group, t);
            rates = {next.lr, next.momentum ? next.momentum : rates.momentum};
          }
          return rates;
        };
      }()) {}

}  // namespace fusejit::optim
