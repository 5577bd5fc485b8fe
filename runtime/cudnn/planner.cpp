#include "runtime/cudnn/planner.h"

#include "ir/base/check.h"

namespace fusejit::runtime::cudnn {
namespace {

constexpr std::size_t kMostRefused = 4096;

}  // namespace

Planner::Planner(std::shared_ptr<const Library> library, Descriptor device, int compute_capability, ChoosePlan choose)
    : library_(std::move(library)),
      device_(std::move(device)),
      compute_capability_(compute_capability),
      choose_(std::move(choose)) {}

std::shared_ptr<const Plan> Planner::find_or_make(const std::string& key, const ConvolutionCall& call,
                                                  const PlanOptions& options, std::string& why_not) {
  const auto reload = [&](const std::string& json) {
    Plan plan = reload_plan(library_, device_, call, json);
    if (!allows(options, plan.engine, call.dtype))
      throw DeviceError("cudnn: a kept plan has an engine that is not allowed");
    return plan;
  };
  if (auto kept = cache_.find(key, reload)) return kept;
  PlanResult found = find_plans(library_, device_, call, options);
  if (found.plans.empty()) {
    why_not = found.why_not();
    return nullptr;
  }
  std::vector<std::shared_ptr<const Plan>> plans;
  for (Plan& each : found.plans) plans.push_back(std::make_shared<const Plan>(std::move(each)));
  const std::size_t chosen = plans.size() > 1 && choose_ ? choose_(call, plans) : 0;
  FJ_ASSERT(chosen < plans.size(), "cudnn: plan {} of {} is chosen", chosen, plans.size());
  cache_.keep(key, plans[chosen]);
  return plans[chosen];
}

std::shared_ptr<const Plan> Planner::plan(const ConvolutionCall& call, const PlanOptions& options,
                                          std::string& why_not) {
  const std::string key = plan_key(*library_, compute_capability_, call, options);
  {
    std::unique_lock lock(mutex_);
    made_.wait(lock, [&] { return making_.count(key) == 0; });
    if (const auto refused = refused_.find(key); refused != refused_.end()) {
      why_not = refused->second;
      return nullptr;
    }
    making_.insert(key);
  }
  const auto done = [&](bool refused) {
    {
      const std::lock_guard lock(mutex_);
      making_.erase(key);
      if (refused && refused_.size() < kMostRefused) refused_[key] = why_not;
    }
    made_.notify_all();
  };
  try {
    std::shared_ptr<const Plan> plan = find_or_make(key, call, options, why_not);
    done(plan == nullptr);
    return plan;
  } catch (...) {
    done(false);
    throw;
  }
}

}  // namespace fusejit::runtime::cudnn
