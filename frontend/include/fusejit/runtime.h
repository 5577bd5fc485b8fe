// What runs the traces: options, statistics, the log.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace fusejit {

//   fj::set_options({.rules = "none", .threads = 1});
struct Options {
  std::string engine = "compiled";  // "compiled", "graph_interpreter", "kernel_interpreter"
  std::string target = "host";      // "x86:avx512", "x86:avx2", "x86:v2", "host"
  std::string rules = "all";        // "all", or "none": one kernel per recorded op
  int threads = 0;                  // 0: every processor
};
// Replaces the default session: caches start empty. Values computed so far stay. UserError for an unknown word.
void set_options(const Options& options);
// As set last, or the defaults.
Options options();

// Of the plan that ran last.
struct PlanStatistics {
  std::int64_t kernels = 0;               // launches
  std::int64_t ledger_bytes = 0;          // distinct bytes touched, over all launches
  std::int64_t bound_bytes = 0;           // no plan of this graph touches less
  std::int64_t arena_bytes = 0;           // of the one allocation that holds all inner values
  std::int64_t end_of_forward_bytes = 0;  // alive when the first result, a step's loss, was written
  double kernel_milliseconds = 0;         // wall time of the launches; the rest of a step is the host's
};

struct Statistics {
  std::int64_t evaluations = 0;  // plans run
  std::int64_t traces = 0;       // different traces seen
  std::int64_t trace_cache_hits = 0;
  std::int64_t plans_made = 0;
  std::int64_t plan_cache_hits = 0;
  std::int64_t kernels_compiled = 0;
  std::int64_t kernel_cache_hits = 0;
  double compile_milliseconds = 0;  // wall time of making plans and kernels
  PlanStatistics last_plan;
};
// Of the default session, since it was made (set_options makes another).
Statistics stats();

// The log speaks of lost chances only (a split step, an argument that could not be donated): a line each. Silent unless
// a function is set; FUSEJIT_LOG=1 in the environment sends lines to stderr.
void set_log(std::function<void(std::string_view line)> log);

// A chain of recorded operations longer than this is evaluated on the spot, so that a loop that never asks for a value
// does not grow without bound. Default 10000.
void set_trace_limit(int operations);

// Whether every use of borrowed memory verifies that its owner has not changed it. Default: debug builds only.
void check_borrowed(bool on);

}  // namespace fusejit
