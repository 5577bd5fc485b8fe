#include "frontend/evaluation/statistics.h"

#include <cstdio>
#include <cstdlib>

#include "frontend/evaluation/engine.h"
#include "fusejit/memory.h"
#include "fusejit/runtime.h"
#include "ir/base/check.h"

namespace fusejit {

std::string Statistics::str() const {
  return fmt::format(
      "{} plan{} ({} from disk) and {} kernel{} ({} from disk, {} compiled) in {:.0f} ms, for {} evaluation{}",
      plans_made, plans_made == 1 ? "" : "s", plans_loaded, kernels_loaded + kernels_compiled,
      kernels_loaded + kernels_compiled == 1 ? "" : "s", kernels_loaded, kernels_compiled, compile_milliseconds,
      evaluations, evaluations == 1 ? "" : "s");
}

Statistics stats() {
  const std::shared_ptr<Engine> engine = default_engine();
  Statistics all;
  Device ran_last;
  {
    const std::lock_guard lock(engine->mutex);
    all.evaluations = engine->evaluations, all.traces = engine->traces, all.trace_cache_hits = engine->hits;
    all.evictions = engine->graphs.evictions();
    ran_last = engine->ran_last;
  }
  const std::lock_guard lock(engine->sessions_mutex);
  for (const auto& [device, session] : engine->sessions) {
    const runtime::SessionStatistics s = session->statistics();
    all.plans_made += s.plans_made, all.plans_loaded += s.plans_loaded;
    all.kernels_compiled += s.kernels_compiled, all.kernels_loaded += s.kernels_loaded;
    all.plan_cache_hits += s.plan_cache_hits;
    all.fallbacks += s.fallbacks;
    all.kernel_cache_hits += s.kernel_cache_hits;
    all.evictions += s.evictions;
    all.compile_milliseconds += s.compile_milliseconds;
    all.graph_launches += s.graph_launches;
    all.background_plans += s.background_plans, all.background_failures += s.background_failures;
    if (device != ran_last) continue;
    all.last_plan = {.kernels = s.last_run.kernels,
                     .ledger_bytes = s.last_run.ledger_bytes,
                     .bound_bytes = s.last_run.bound_bytes,
                     .arena_bytes = s.last_run.arena_bytes,
                     .memory_bytes = s.last_run.memory_bytes,
                     .recomputed = s.last_run.recomputed,
                     .extra_time = s.last_run.extra_time,
                     .end_of_forward_bytes = s.last_run.end_of_first_result_bytes,
                     .kernel_milliseconds = s.last_run.kernel_milliseconds};
  }
  return all;
}

void say_statistics_at_exit() {
  static const bool kAsked = [] {
    const char* wish = std::getenv("FUSEJIT_STATS");
    if (wish == nullptr || *wish == '\0' || *wish == '0') return false;
    std::atexit([] {
      const double peak = static_cast<double>(memory::peak()) / (1 << 20);
      std::fputs(fmt::format("fusejit: {}; at most {:.1f} MiB in use\n", stats().str(), peak).c_str(), stderr);
    });
    return true;
  }();
  static_cast<void>(kAsked);
}

}  // namespace fusejit
