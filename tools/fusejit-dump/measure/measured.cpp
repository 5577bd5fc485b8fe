#include "tools/fusejit-dump/measure/measured.h"

#include <algorithm>
#include <cstring>

#include "ir/base/check.h"
#include "runtime/profiler.h"

namespace fusejit::tools {
namespace {

double milliseconds(const runtime::ProfileEvent& event) { return static_cast<double>(event.end - event.begin) * 1e-6; }

}  // namespace

std::vector<double> Times::sorted() const {
  std::vector<double> copy = milliseconds;
  std::sort(copy.begin(), copy.end());
  return copy;
}

Measured measure(Running& running, int count) {
  constexpr int kWarm = 2;  // caches fill, pages come
  for (int i = 0; i < kWarm; ++i) running.step();
  Measured measured;
  measured.steps.resize(running.plan().steps.size());
  runtime::Profiler& profiler = runtime::Profiler::the();
  for (int i = 0; i < count; ++i) {
    const std::int64_t began = profiler.start();
    running.step();
    measured.whole.milliseconds.push_back(static_cast<double>(runtime::Profiler::now() - began) * 1e-6);
    const std::vector<runtime::ProfileEvent> events = profiler.events_since(began);
    profiler.stop();
    std::size_t s = 0;
    for (const runtime::ProfileEvent& event : events) {
      if (std::strcmp(event.category, "launch") == 0)
        measured.steps.at(s++).milliseconds.push_back(milliseconds(event));
    }
    FJ_ASSERT(s == measured.steps.size(), "{} launches were noted of {}", s, measured.steps.size());
  }
  return measured;
}

}  // namespace fusejit::tools
