// What happens when, noted while somebody takes a profile, and not looked at otherwise: one load and one branch a
// place.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace fusejit::runtime {

struct ProfileEvent {
  const char* category = "";  // "record", "trace", "schedule", "disk", "codegen", "load", "launch", "run"
  std::string name;
  std::int64_t begin = 0, end = 0;  // nanoseconds of a clock that does not jump
  int thread = 0;                   // numbered as they appear
  // Of a launch:
  std::vector<std::string> ops;
  std::string layer;       // PlanStep::layer
  std::int64_t bytes = 0;  // read and written
  double flop = 0;
  std::int64_t live_bytes = 0;  // in use by the plan while it ran: arena, arguments, results
  bool on_device = false;       // a CUDA device's, as its events tell
};

class Profiler {
 public:
  static Profiler& the();
  bool is_on() const { return users_.load(std::memory_order_relaxed) > 0; }
  // Events from now on, until as many have stopped as have started.
  std::int64_t start();
  // Those that ended since `began` (what start() gave).
  std::vector<ProfileEvent> events_since(std::int64_t began) const;
  void stop();
  void add(ProfileEvent event);
  static std::int64_t now();

 private:
  std::atomic<int> users_{0};
  mutable std::mutex mutex_;
  std::vector<ProfileEvent> events_;
};

// Notes the time between its making and its end.
class ProfileScope {
 public:
  ProfileScope(const char* category, std::string_view name)
      : is_on_(Profiler::the().is_on()), category_(category), name_(is_on_ ? name : std::string_view()) {
    if (is_on_) begin_ = Profiler::now();
  }
  ~ProfileScope() {
    if (is_on_) Profiler::the().add({category_, std::move(name_), begin_, Profiler::now(), 0, {}, {}, 0, 0, 0});
  }
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

 private:
  const bool is_on_;
  const char* category_;
  std::string name_;
  std::int64_t begin_ = 0;
};

}  // namespace fusejit::runtime
