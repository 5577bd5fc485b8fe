// Planner: makes plans for one device and keeps them. A call is planned once, however many threads ask for it; what
// cuDNN refused once is not asked again, because asking can cost seconds.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <unordered_map>

#include "runtime/cudnn/graph/plan_cache.h"
#include "runtime/disk/disk_cache.h"

namespace fusejit::runtime::cudnn {

// The index of the plan to take, of several that compute the same: what timing them on the device is for.
using ChoosePlan =
    std::function<std::size_t(const ConvolutionCall& call, std::span<const std::shared_ptr<const Plan>>)>;

class Planner {
 public:
  // `device` is a finalised descriptor of that capability. `disk`: where plans outlive the process; may be null.
  Planner(std::shared_ptr<const Library> library, Descriptor device, int compute_capability,
          ChoosePlan choose = nullptr, std::shared_ptr<disk::DiskCache> disk = nullptr);

  // A plan for the call; null with `why_not` where cuDNN has none. With options.plans above 1 it is chosen among so
  // many, and the choice is kept with the plan.
  std::shared_ptr<const Plan> plan(const ConvolutionCall& call, const PlanOptions& options, std::string& why_not);

  PlanCache& cache() { return cache_; }
  const std::shared_ptr<const Library>& library() const { return library_; }

 private:
  // Null with `why_not`: cuDNN has none.
  std::shared_ptr<const Plan> find_or_make(const std::string& key, const ConvolutionCall& call,
                                           const PlanOptions& options, std::string& why_not);
  // Null: it is not on disk, or not of use any more.
  std::shared_ptr<const Plan> load(const disk::CacheKey& key, const PlanCache::Reload& reload);

  const std::shared_ptr<const Library> library_;
  const Descriptor device_;
  const int compute_capability_;
  const ChoosePlan choose_;
  const std::shared_ptr<disk::DiskCache> disk_;
  PlanCache cache_;
  std::mutex mutex_;
  std::condition_variable made_;
  std::set<std::string> making_;
  std::unordered_map<std::string, std::string> refused_;  // key -> why; bounded
};

}  // namespace fusejit::runtime::cudnn
