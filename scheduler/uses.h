// What a step does with each of its values.
#pragma once

#include "ir/kernel/kernel.h"
#include "scheduler/plan.h"

namespace fusejit::scheduler {

// found(value, kind) for each buffer parameter of the step's kernel, in their order.
template <class F>
void for_each_use(const PlanStep& step, F&& found) {
  auto value = step.values.begin();
  for (const ir::KernelParam& param : step.kernel->params) {
    if (param.memory >= 0) found(*value++, step.kernel->memories[static_cast<std::size_t>(param.memory)].kind);
  }
}

}  // namespace fusejit::scheduler
