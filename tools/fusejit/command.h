// fusejit: one file a subcommand, which takes its options as a struct and answers with an exit code. The structs are
// filled in by command_line.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/tune.h"
#include "scheduler/fuse/rules.h"
#include "scheduler/recompute/memory_limit.h"
#include "tools/exit_code.h"

namespace fusejit::tools {

struct DoctorOptions {
  bool json = false;
  std::vector<std::string> required;
};
int doctor(const DoctorOptions& options);

struct WarmupOptions {
  std::vector<std::string> sources;  // signature files, .fj graphs, MODEL@SHAPE[:train]
  std::vector<std::string> targets;  // empty: this processor for what ran on a cpu, what was recorded for the rest
  scheduler::Rules rules = scheduler::Rules::all;
  scheduler::MemoryLimit memory_limit = {};
  std::string dtype, report, output;
  int workers = 0;  // 0: every processor
  double timeout_seconds = 120, budget_seconds = 0;
  bool check = false;
  bool is_worker = false;  // the other side: takes work from standard input until it ends
};
int warmup(const WarmupOptions& options);
int warmup_worker();

struct BenchOptions {
  std::string source;  // MODEL@SHAPE[:train] or a .fj graph
  std::string dtype, target = "host", device = "cpu";
  scheduler::Rules rules = scheduler::Rules::all;
  scheduler::MemoryLimit memory_limit = {};
  runtime::Tune tune = runtime::Tune::off;
  int threads = 0, steps = 10;
  bool json = false;
};
int bench(const BenchOptions& options);

struct ConvertOptions {
  std::string input, output;  // .npz, .safetensors or .onnx; .npz or .safetensors
  std::string model;          // a built-in one whose values they must be; empty: any
};
int convert(const ConvertOptions& options);

struct CacheOptions {
  std::string folder;                // empty: the user's
  std::vector<std::string> sources;  // explain: as warmup; import and merge: bundles
  std::vector<std::string> targets;
  scheduler::Rules rules = scheduler::Rules::all;
  scheduler::MemoryLimit memory_limit = {};
  std::string dtype, output;
  bool json = false, fix = false, trust = false, dry_run = false, clear = false;
  std::int64_t most_bytes = -1, most_files = -1;  // prune; -1: any
  double older_than_days = -1;
};
int cache_path(const CacheOptions& options);
int cache_stats(const CacheOptions& options);
int cache_list(const CacheOptions& options);
int cache_explain(const CacheOptions& options);
int cache_verify(const CacheOptions& options);
int cache_prune(const CacheOptions& options);
int cache_export(const CacheOptions& options);
int cache_import(const CacheOptions& options);
int cache_merge(const CacheOptions& options);

// What to do, or to print the help that was asked for. Throws UsageError.
std::function<int()> parse_command_line(int argc, char** argv);

}  // namespace fusejit::tools
