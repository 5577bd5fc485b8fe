#include "tools/fusejit-dump/measure/measured.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "ir/base/check.h"
#include "runtime/profiler.h"

namespace fusejit::tools {
namespace {

double milliseconds(const runtime::ProfileEvent& event) { return static_cast<double>(event.end - event.begin) * 1e-6; }

void measure_step(Running& running, Measured& measured) {
  runtime::Profiler& profiler = runtime::Profiler::the();
  const std::int64_t began = profiler.start();
  running.step();
  measured.whole.milliseconds.push_back(static_cast<double>(runtime::Profiler::now() - began) * 1e-6);
  const std::vector<runtime::ProfileEvent> events = profiler.events_since(began);
  profiler.stop();
  std::size_t s = 0;
  for (const runtime::ProfileEvent& event : events) {
    if (std::strcmp(event.category, "launch") == 0) measured.steps.at(s++).milliseconds.push_back(milliseconds(event));
  }
  FJ_ASSERT(s == measured.steps.size(), "{} launches were noted of {}", s, measured.steps.size());
}

}  // namespace

std::vector<double> Times::sorted() const {
  std::vector<double> copy = milliseconds;
  std::sort(copy.begin(), copy.end());
  return copy;
}

std::vector<Measured> measure(const std::vector<Running*>& all, int count) {
  constexpr int kWarm = 2;  // caches fill, pages come
  std::vector<Measured> measured(all.size());
  for (std::size_t r = 0; r < all.size(); ++r) {
    for (int i = 0; i < kWarm; ++i) all[r]->step();
    measured[r].steps.resize(all[r]->plan().steps.size());
  }
  for (int i = 0; i < count; ++i) {
    for (std::size_t r = 0; r < all.size(); ++r) {
      // The threads of the one before still look for work (runtime/cpu/thread_pool.h), and would take a processor.
      if (all.size() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      measure_step(*all[r], measured[r]);
    }
  }
  return measured;
}

Measured measure(Running& running, int count) { return std::move(measure(std::vector{&running}, count).front()); }

}  // namespace fusejit::tools
