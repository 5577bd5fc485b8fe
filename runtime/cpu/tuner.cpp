#include "runtime/cpu/tuner.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <variant>

#include "ir/strict.h"
#include "runtime/cpu/timed_plan.h"
#include "scheduler/choose/neighbours.h"

namespace fusejit::runtime {
namespace {

using scheduler::Plan;
using scheduler::PlanStep;
using scheduler::Schedule;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kQuickTrials = 6;  // of each kernel
constexpr int kRounds = 4;               // of `full`, each of which begins where the one before ended
constexpr double kGain = 0.98;           // of the time, that is worth another schedule
constexpr double kLeastPart = 0.002;     // of a step, that is worth trying anything
constexpr int kLeastRuns = 3, kRunsToConfirm = 5, kMostRuns = 40;
constexpr double kLeastSeconds = 0.1;  // of runs, where they are short

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// One contraction of an anchor, or all that a group without one does.
struct Part {
  std::variant<ir::Contraction, scheduler::Domain> work;
  bool sums = false;
  std::vector<Schedule> known;  // the chooser's, best first
};

using Schedules = std::vector<Schedule>;  // one a part

// Steps that share machine code.
struct Kernel {
  std::vector<std::size_t> steps;
  std::vector<Part> parts;
  Schedules now;
  std::vector<Schedules> trials;
  bool is_new = true;  // nothing was tried around what it has now
};

// What the same kernels of two plans take, the second as a part of the first; and all steps.
struct Compared {
  std::vector<double> kernels;
  double all = 1;
};

class Tuner {
 public:
  Tuner(const ir::Graph& graph, const scheduler::PlanOptions& wanted, const TuneOptions& options, Workers& workers)
      : graph_(graph), wanted_(wanted), options_(options), workers_(workers), arguments_(made_up_arguments(graph)) {}

  Plan run() {
    const Clock::time_point start = Clock::now();
    std::unique_ptr<TimedPlan> now = timed(collected(), nullptr);
    drop_small(*now);
    double gained = 1;
    for (int round = 0; round < (options_.tune == Tune::full ? kRounds : 1); ++round)
      if (!improve(now, gained)) break;
    const auto changed = std::count_if(kernels_.begin(), kernels_.end(), [](const Kernel& kernel) {
      for (std::size_t p = 0; p < kernel.parts.size(); ++p)
        if (kernel.now[p] != kernel.parts[p].known.front()) return true;
      return false;
    });
    if (options_.log)
      options_.log(
          fmt::format("tune={}: {} of {} kernels of @{} have other schedules, which take {:.3f} of the time of "
                      "a step; {} were tried in {:.0f} s",
                      name(options_.tune), changed, all_kernels_, graph_.name(), gained, tried_, seconds_since(start)));
    return now->plan();
  }

 private:
  using Key = std::pair<std::string, std::string>;  // op, work
  struct Place {
    std::size_t kernel = 0, part = 0;
  };

  // The plan as it is; what there is to choose from.
  Plan collected() {
    std::map<Key, Part> parts;
    scheduler::PlanOptions options = wanted_;
    options.reschedule.anchor = [&](const std::string& op, const scheduler::AnchorChoice& choice) {
      parts.insert_or_assign({op, str(choice.contraction)}, Part{choice.contraction, choice.sums, choice.candidates});
      return choice.chosen();
    };
    options.reschedule.domain = [&](const std::string& op, const scheduler::Domain& domain, const Schedule& chosen) {
      parts.insert_or_assign({op, str(domain)}, Part{domain, false, {chosen}});
      return chosen;
    };
    Plan plan = make_plan(graph_, options);
    std::map<std::string, std::size_t> by_text;
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      const PlanStep& step = plan.steps[s];
      std::vector<Key> keys;
      std::set<std::string> anchors;
      for (const scheduler::ScheduledWork& one : step.schedules) {
        for (const std::string& op : step.ops) {
          if (!parts.contains({op, one.work})) continue;
          keys.push_back({op, one.work});
          if (one.kind == scheduler::Work::contraction) anchors.insert(op);
        }
      }
      // Both gradients of a convolution go over the same rows; with other schedules they would be two steps.
      if (step.library || keys.empty() || keys.size() != step.schedules.size() || anchors.size() > 1) continue;
      const auto [known, is_new] = by_text.try_emplace(ir::kernel_key_text(*step.kernel), kernels_.size());
      if (is_new) kernels_.emplace_back();
      Kernel& kernel = kernels_[known->second];
      kernel.steps.push_back(s);
      for (std::size_t p = 0; p < keys.size(); ++p) {
        places_.emplace(keys[p], Place{known->second, p});
        if (!is_new) continue;
        kernel.parts.push_back(parts.at(keys[p]));
        kernel.now.push_back(step.schedules[p].schedule);
      }
    }
    all_kernels_ = kernels_.size();
    return plan;
  }

  std::unique_ptr<TimedPlan> timed(Plan plan, const TimedPlan* like) {
    std::vector<std::shared_ptr<const ir::Kernel>> wanted;
    std::vector<std::string> names;
    std::vector<std::size_t> places;
    CpuExecutor::Kernels kernels(plan.steps.size());
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      const PlanStep& step = plan.steps[s];
      if (like != nullptr && ir::kernel_key_text(*step.kernel) == ir::kernel_key_text(*like->plan().steps[s].kernel)) {
        kernels[s] = like->kernels()[s];
        continue;
      }
      wanted.push_back(step.kernel), names.push_back(step.name), places.push_back(s);
    }
    KernelCache& cache = like == nullptr ? *options_.kernels : trial_kernels_;
    const CpuExecutor::Kernels made =
        cache.get(wanted, plan.target, options_.threads, KernelCache::Missing::compile, names);
    for (std::size_t i = 0; i < places.size(); ++i) kernels[places[i]] = made[i];
    return std::make_unique<TimedPlan>(graph_, arguments_, wanted_.fixed, std::move(plan), std::move(kernels),
                                       workers_);
  }

  // The plan with these schedules, a list for each kernel. Where one of them cannot be built it is as it was before.
  // Null: that is no plan of the same steps.
  std::unique_ptr<TimedPlan> timed_with(std::vector<Schedules>& schedules, const TimedPlan& now) {
    while (true) {
      std::size_t last = kernels_.size();  // whose schedule was asked for last
      const auto wanted = [&](const std::string& op, const std::string& work, const Schedule& chosen) {
        const auto place = places_.find({op, work});
        if (place == places_.end()) return chosen;
        last = place->second.kernel;
        return schedules[last][place->second.part];
      };
      scheduler::PlanOptions options = wanted_;
      options.reschedule.anchor = [&](const std::string& op, const scheduler::AnchorChoice& choice) {
        return wanted(op, str(choice.contraction), choice.chosen());
      };
      options.reschedule.domain = [&](const std::string& op, const scheduler::Domain& domain, const Schedule& chosen) {
        return wanted(op, str(domain), chosen);
      };
      try {
        Plan plan = make_plan(graph_, options);
        const auto same = [](const PlanStep& a, const PlanStep& b) { return a.name == b.name; };
        if (!std::equal(plan.steps.begin(), plan.steps.end(), now.plan().steps.begin(), now.plan().steps.end(), same))
          return nullptr;
        return timed(std::move(plan), &now);
      } catch (const Error&) {
        if (ir::is_strict() || last == kernels_.size() || schedules[last] == kernels_[last].now) throw;
        schedules[last] = kernels_[last].now;
      }
    }
  }

  // Kernels of which a step does not consist stay as they are.
  void drop_small(TimedPlan& now) {
    const std::vector<double> least = least_seconds({&now}, 1).front();
    double all = 0;
    for (const double one : least) all += one;
    for (Kernel& kernel : kernels_) kernel.is_new = seconds_of(kernel, least) > kLeastPart * all;
  }

  // The shortest time of each step.
  std::vector<std::vector<double>> least_seconds(const std::vector<TimedPlan*>& plans, int runs) {
    std::vector<std::vector<double>> least;
    for (TimedPlan* plan : plans) least.push_back(plan->run());  // caches fill, pages come
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < runs || (i < kMostRuns && seconds_since(start) < kLeastSeconds); ++i) {
      for (std::size_t p = 0; p < plans.size(); ++p) {
        const std::vector<double>& one = plans[p]->run();
        for (std::size_t s = 0; s < one.size(); ++s) least[p][s] = i == 0 ? one[s] : std::min(least[p][s], one[s]);
      }
    }
    return least;
  }
  static double seconds_of(const Kernel& kernel, const std::vector<double>& steps) {
    double all = 0;
    for (const std::size_t s : kernel.steps) all += steps[s];
    return all;
  }
  Compared compare(TimedPlan& now, TimedPlan& other, int runs) {
    const std::vector<std::vector<double>> least = least_seconds({&now, &other}, runs);
    Compared compared;
    for (const Kernel& kernel : kernels_)
      compared.kernels.push_back(seconds_of(kernel, least[1]) / std::max(1e-9, seconds_of(kernel, least[0])));
    double before = 0, after = 0;
    for (std::size_t s = 0; s < least[0].size(); ++s) before += least[0][s], after += least[1][s];
    compared.all = after / std::max(1e-9, before);
    return compared;
  }

  // Other schedules for one part, likelier ones first.
  std::vector<Schedule> others(const Part& part, const Schedule& now) const {
    std::vector<Schedule> list;
    const auto* contraction = std::get_if<ir::Contraction>(&part.work);
    if (contraction != nullptr) {
      list = part.known;
      const std::vector<Schedule> near = neighbours(*contraction, now, wanted_.target, part.sums);
      list.insert(list.end(), near.begin(), near.end());
      if (options_.tune == Tune::quick) list = of_same_order(std::move(list), *contraction, now, part.sums);
    } else {
      const auto& domain = std::get<scheduler::Domain>(part.work);
      if (options_.tune == Tune::quick && !domain.sums.empty()) return {};
      list = neighbours(domain, now, wanted_.target);
    }
    std::erase(list, now);
    if (options_.tune == Tune::quick && list.size() > kQuickTrials) list.resize(kQuickTrials);
    return list;
  }

  void propose(Kernel& kernel) const {
    kernel.trials.clear();
    if (!kernel.is_new) return;
    std::vector<std::vector<Schedule>> lists;
    std::size_t most = 0;
    for (std::size_t p = 0; p < kernel.parts.size(); ++p) {
      lists.push_back(others(kernel.parts[p], kernel.now[p]));
      most = std::max(most, lists.back().size());
    }
    for (std::size_t t = 0; t < most; ++t) {
      Schedules trial = kernel.now;
      for (std::size_t p = 0; p < trial.size(); ++p)
        if (t < lists[p].size()) trial[p] = lists[p][t];
      kernel.trials.push_back(std::move(trial));
    }
    kernel.is_new = false;
  }

  std::vector<Schedules> schedules_now() const {
    std::vector<Schedules> list;
    for (const Kernel& kernel : kernels_) list.push_back(kernel.now);
    return list;
  }

  // Whether `now` is a better plan than before.
  bool improve(std::unique_ptr<TimedPlan>& now, double& gained) {
    std::size_t trials = 0;
    for (Kernel& kernel : kernels_) {
      propose(kernel);
      trials = std::max(trials, kernel.trials.size());
    }
    std::vector<double> best(kernels_.size(), kGain);
    std::vector<Schedules> better = schedules_now();
    for (std::size_t t = 0; t < trials; ++t) {
      std::vector<Schedules> tried = schedules_now();
      for (std::size_t k = 0; k < kernels_.size(); ++k)
        if (t < kernels_[k].trials.size()) tried[k] = kernels_[k].trials[t];
      const std::unique_ptr<TimedPlan> other = timed_with(tried, *now);
      if (!other) continue;
      const Compared compared = compare(*now, *other, kLeastRuns);
      for (std::size_t k = 0; k < kernels_.size(); ++k) {
        if (tried[k] == kernels_[k].now) continue;
        ++tried_;
        if (compared.kernels[k] < best[k]) best[k] = compared.kernels[k], better[k] = tried[k];
      }
    }
    if (better == schedules_now()) return false;
    std::unique_ptr<TimedPlan> other = timed_with(better, *now);
    if (!other) return false;
    const Compared compared = compare(*now, *other, kRunsToConfirm);
    bool holds = true, any = false;
    for (std::size_t k = 0; k < kernels_.size(); ++k) {
      if (better[k] == kernels_[k].now) continue;
      const bool is_faster = compared.kernels[k] < kGain;
      if (!is_faster) better[k] = kernels_[k].now;
      holds &= is_faster, any |= is_faster;
    }
    if (!any) return false;
    if (!holds) other = timed_with(better, *now);
    if (!other) return false;
    gained *= holds ? compared.all : compare(*now, *other, kLeastRuns).all;
    for (std::size_t k = 0; k < kernels_.size(); ++k) {
      kernels_[k].is_new = better[k] != kernels_[k].now;
      kernels_[k].now = better[k];
    }
    now = std::move(other);
    return true;
  }

  const ir::Graph& graph_;
  const scheduler::PlanOptions& wanted_;
  const TuneOptions& options_;
  Workers& workers_;
  const std::vector<Buffer> arguments_;
  KernelCache trial_kernels_;
  std::vector<Kernel> kernels_;
  std::map<Key, Place> places_;
  std::size_t all_kernels_ = 0;
  int tried_ = 0;
};

}  // namespace

Plan tuned_plan(const ir::Graph& graph, const scheduler::PlanOptions& wanted, const TuneOptions& options,
                Workers& workers) {
  try {
    return Tuner(graph, wanted, options, workers).run();
  } catch (const scheduler::NoKernel&) {
    throw;
  } catch (const Error& error) {
    if (ir::is_strict()) throw;
    if (options.log) options.log(fmt::format("@{} is not tuned: {}", graph.name(), error.what()));
    return make_plan(graph, wanted);
  }
}

}  // namespace fusejit::runtime
