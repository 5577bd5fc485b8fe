// fusejit-dump: one file a subcommand, which takes its options as a struct and answers with an exit code. The structs
// are filled in by command_line.cpp.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/io/graph_file.h"
#include "fusejit/target.h"
#include "runtime/tune.h"
#include "scheduler/fuse/rules.h"
#include "scheduler/recompute/memory_limit.h"
#include "tools/exit_code.h"

namespace fusejit::tools {

// What the command line asks for.
struct Invocation {
  std::function<int()> run;  // answers with an exit code; throws fusejit::Error
  std::string source;        // the .fj file being read: positions of ParseErrors are in it
  std::string graph_text;    // what an InternalError's repro holds
};

// "x,w" -> x, w. UsageError for an empty name.
std::vector<std::string> split_names(std::string_view list);
// Opens a .fj file, differentiated by `grad` ("x,w"; empty: not), and notes it in the invocation.
io::GraphFile open_source(Invocation& invocation, const std::string& path, const std::string& grad);

// Reads --target; UsageError for what is none.
Target parse_target(const std::string& text);

struct PlanOptions {
  std::string source, format = "text", target = "host", grad, dtype;  // dtype: empty where none was said
  std::string schedule;                                               // a file (schedules.h); empty: none
  scheduler::Rules rules = scheduler::Rules::all;
  scheduler::MemoryLimit memory_limit = {};
  bool has_grad = false;
  bool json() const { return format == "json"; }
};

// The built-in models; of a SOURCE, its kernels.
int list(const PlanOptions& options, Invocation& invocation);

struct ShowOptions : PlanOptions {
  bool compile = false, no_compile = false;
  std::string kernel;  // empty: all of them, without schedules
};
int show(const ShowOptions& options, Invocation& invocation);

struct WhyOptions : PlanOptions {
  bool summary = false;  // pairs of the same kinds of ops together
};
int why(const WhyOptions& options, Invocation& invocation);
int fusions(const PlanOptions& options, Invocation& invocation);

struct TextOptions : PlanOptions {
  std::string stage, kernel;
  bool standalone = false;
};
// source, and asm, which is a stage.
int put_stage(const TextOptions& options, Invocation& invocation);

struct ExtractOptions : PlanOptions {
  std::string kernel, output;
};
int extract(const ExtractOptions& options, Invocation& invocation);

struct GraphOptions : PlanOptions {
  std::string output, stage = "after";  // output: empty for standard output; format: empty for what its name says
};
int graph(const GraphOptions& options, Invocation& invocation);

struct HtmlOptions : PlanOptions {
  std::string output;
  bool code = false, no_code = false;  // assembly or PTX of every kernel; neither: where there are few
  bool measure = false;                // this machine and the plan on it
};
int html(const HtmlOptions& options, Invocation& invocation);

// What one side has of its own; empty: what both have.
struct DiffSide {
  std::string source, target, dtype, schedule;
  std::optional<scheduler::Rules> rules;
};
struct DiffOptions : PlanOptions {
  DiffSide before, after;
};
int diff(const DiffOptions& options, Invocation& invocation);

struct TimeOptions : PlanOptions {
  int steps = 10, threads = 0;  // 0: every processor
  runtime::Tune tune = runtime::Tune::off;
  std::string output;  // a file for the schedules of what was timed; empty: none
};
int time_kernels(const TimeOptions& options, Invocation& invocation);

struct TimelineOptions : PlanOptions {
  std::string output;
  int steps = 3, threads = 0;
};
int timeline(const TimelineOptions& options, Invocation& invocation);

struct ReproOptions : PlanOptions {
  std::string kernel, output;
};
int repro(const ReproOptions& options, Invocation& invocation);

struct RunOptions {
  std::string graph, inputs, outputs, grad, device = "cpu", check, engine = "compiled", target, schedule;
  scheduler::Rules rules = scheduler::Rules::all;
  bool has_grad = false;
  io::Tolerance tolerance;
};
int run_graph(const RunOptions& options, Invocation& invocation);

}  // namespace fusejit::tools
