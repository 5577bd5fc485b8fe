#include "runtime/profiler.h"

#include <algorithm>
#include <chrono>

namespace fusejit::runtime {
namespace {

int thread_number() {
  static std::atomic<int> threads{0};
  thread_local const int number = threads++;
  return number;
}

}  // namespace

Profiler& Profiler::the() {
  static Profiler& one = *new Profiler;
  return one;
}

std::int64_t Profiler::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::int64_t Profiler::start() {
  thread_number();
  ++users_;
  return now();
}

void Profiler::stop() {
  const std::lock_guard lock(mutex_);
  if (--users_ == 0) events_.clear(), events_.shrink_to_fit();
}

void Profiler::add(ProfileEvent event) {
  event.thread = thread_number();
  const std::lock_guard lock(mutex_);
  if (users_ > 0) events_.push_back(std::move(event));
}

std::vector<ProfileEvent> Profiler::events_since(std::int64_t began) const {
  std::vector<ProfileEvent> events;
  {
    const std::lock_guard lock(mutex_);
    std::copy_if(events_.begin(), events_.end(), std::back_inserter(events),
                 [&](const ProfileEvent& event) { return event.begin >= began; });
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const ProfileEvent& a, const ProfileEvent& b) { return a.begin < b.begin; });
  return events;
}

}  // namespace fusejit::runtime
