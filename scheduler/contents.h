// What each value of a plan holds, by its label, while the plan's steps are gone through.
#pragma once

#include <string>
#include <vector>

#include "scheduler/plan.h"

namespace fusejit::scheduler {

class Contents {
 public:
  // Before the first step, or before `step`, which is one of the plan's.
  explicit Contents(const Plan& plan) {
    for (const PlanValue& value : plan.values) labels_.push_back(value.label);
  }
  Contents(const Plan& plan, const PlanStep& step) : Contents(plan) {
    for (const PlanStep* earlier = plan.steps.data(); earlier != &step; ++earlier) pass(*earlier);
  }
  const std::string& operator[](int value) const { return labels_[static_cast<std::size_t>(value)]; }
  // The step is over.
  void pass(const PlanStep& step) {
    for (const auto& [value, label] : step.overwrites) labels_[static_cast<std::size_t>(value)] = label;
  }

 private:
  std::vector<std::string> labels_;
};

}  // namespace fusejit::scheduler
