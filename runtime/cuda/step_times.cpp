#include "runtime/cuda/step_times.h"

#include "runtime/profiler.h"

namespace fusejit::runtime::cuda {

void StepTimes::begin(const scheduler::PlanStep& step) {
  if (!steps_.empty() && steps_.back() == &step) return;
  events_.emplace_back(device_.context(), /*timing=*/true).record(device_.stream());
  steps_.push_back(&step);
}

void StepTimes::note() {
  if (steps_.empty()) return;
  Event& last = events_.emplace_back(device_.context(), /*timing=*/true);
  last.record(device_.stream());
  last.synchronize();
  const std::int64_t now = Profiler::now();
  std::int64_t outside = 0;
  for (const scheduler::PlanValue& value : plan_.values) {
    if (value.storage != scheduler::Storage::arena) outside += value.bytes;
  }
  const auto at = [&](std::size_t i) {
    return now - static_cast<std::int64_t>(static_cast<double>(last.elapsed_milliseconds(events_[i])) * 1e6);
  };
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const scheduler::PlanStep& step = *steps_[i];
    const int number = static_cast<int>(&step - plan_.steps.data());
    ProfileEvent event;
    event.category = "launch", event.name = step.name;
    event.begin = at(i), event.end = i + 1 < steps_.size() ? at(i + 1) : now;
    event.ops = step.ops, event.layer = step.layer;
    event.bytes = step.read_bytes + step.written_bytes, event.flop = step.flop;
    event.live_bytes = scheduler::live_arena_bytes_after(plan_, number) + outside;
    event.on_device = true;
    Profiler::the().add(std::move(event));
  }
}

}  // namespace fusejit::runtime::cuda
