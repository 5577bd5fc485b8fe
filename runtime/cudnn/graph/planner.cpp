#include "runtime/cudnn/graph/planner.h"

#include "ir/base/check.h"

namespace fusejit::runtime::cudnn {
namespace {

constexpr std::size_t kMostRefused = 4096;

}  // namespace

Planner::Planner(std::shared_ptr<const Library> library, Descriptor device, int compute_capability, ChoosePlan choose,
                 std::shared_ptr<disk::DiskCache> disk)
    : library_(std::move(library)),
      device_(std::move(device)),
      compute_capability_(compute_capability),
      choose_(std::move(choose)),
      disk_(std::move(disk)) {}

std::shared_ptr<const Plan> Planner::load(const disk::CacheKey& key, const PlanCache::Reload& reload) {
  const auto entry = disk_ ? disk_->find(key) : std::nullopt;
  if (!entry) return nullptr;
  try {
    return std::make_shared<const Plan>(reload(entry->section("json")));
  } catch (const Error&) {  // cuDNN does not take it: planned anew
    disk_->remove(key);
    return nullptr;
  }
}

std::shared_ptr<const Plan> Planner::find_or_make(const std::string& key, const ConvolutionCall& call,
                                                  const PlanOptions& options, std::string& why_not) {
  const auto reload = [&](const std::string& json) {
    Plan plan = reload_plan(library_, device_, call, json);
    if (!allows(options, plan.engine, call.dtype))
      throw DeviceError("cudnn: a kept plan has an engine that is not allowed");
    return plan;
  };
  if (auto kept = cache_.find(key, reload)) return kept;
  const disk::CacheKey on_disk("cudnn plan", {{"call", call.str()}, {"how", key}});
  if (auto kept = load(on_disk, reload)) return cache_.keep(key, kept), kept;
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
  if (disk_) disk_->put(on_disk, {{"json", plans[chosen]->json()}});
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
