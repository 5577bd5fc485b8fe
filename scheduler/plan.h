// Plan: what runs for a Graph on a Target: values with their storage, and steps that each launch one kernel.
// An immutable value. Steps are in execution order; every step's kernel is specialised by shape, dtype and layout.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fusejit/target.h"
#include "fusejit/type.h"
#include "ir/graph.h"
#include "ir/kernel/kernel.h"
#include "scheduler/fuse/refusal.h"
#include "scheduler/fuse/rules.h"
#include "scheduler/schedule/schedule.h"

namespace fusejit::scheduler {

enum class Storage : std::uint8_t {
  argument,  // the caller's buffer of parameter `index`
  result,    // a fresh buffer that is handed out as result `index`
  donated,   // a result written into the buffer of the donated parameter `index`
  constant,  // bytes of the plan itself
  derived,   // computed once from the fixed parameter `index` alone, and kept with its buffer
  arena      // [offset, offset + bytes) of the plan's one arena
};

struct PlanValue {
  DType dtype = DType::f32;
  std::int64_t bytes = 0;
  std::string label;  // the graph's name of what it holds first: "%x", "%12 add", "%w packed" (contents.h: and later)
  Storage storage = Storage::arena;
  int index = -1;
  std::int64_t offset = -1;             // arena
  std::vector<std::byte> data;          // constant
  int first_step = -1, last_step = -1;  // written by (-1: before the plan), last used by
  // Arena: the value in whose memory it lies, with gaps: each row of its channels, row by row. `bytes`: to the end of
  // that memory. Kernels know it as they know the whole, from `offset` on.
  int inside = -1;
};

// What a library may do in one call, in place of the kernel that says what it means.
struct LibraryOp {
  ir::Graph graph;  // of primitive ops; its first result has the anchor's elements, all others are sums of these
  std::vector<int> values;  // plan value of each parameter, then of each result; of a mask (bool) that are its bits
};

// A group whose kernel could not be made: its parts were made instead.
struct Fallback {
  std::string layer;  // as the step would be called
  std::string group;  // "%0 conv2d, %1 bias_add"
  std::string why;
};

// A value that a step updates in place, and what it holds from then on.
struct Overwritten {
  int value;
  std::string label;  // "%93 add"
};

struct PlanStep {
  std::string name;   // for people: the layer and what the user wrote (naming.h). Other steps may share the kernel
  std::string layer;  // path of the module that it stands for, "layer1.0.conv2"; empty: none
  std::shared_ptr<const ir::Kernel> kernel;
  std::vector<int> values;  // plan value of each buffer parameter of the kernel
  std::vector<int> nodes;   // of the recorded graph: what they say is computed here, alone or among others
  std::vector<Overwritten> overwrites;
  std::vector<std::string> ops;  // what it computes, for people: "%0 conv2d", "%2 maximum" of the optimised graph
  std::int64_t read_bytes = 0;   // distinct bytes, work included (kernel-ir.md §9)
  std::int64_t written_bytes = 0;
  std::int64_t work_bytes = 0;
  std::int64_t work_offset = -1;  // in the arena, for this step alone
  double flop = 0;
  std::optional<LibraryOp> library;
  std::vector<ScheduledWork> schedules;  // one for each contraction that its anchor is made of, or one for all
};

struct Plan {
  std::string name;
  Target target;
  Rules rules = Rules::all;
  std::vector<PlanValue> values;
  std::vector<PlanStep> steps;
  std::vector<int> parameters;  // plan value of each graph parameter
  std::vector<int> results;     // plan value of each graph result
  std::int64_t arena_bytes = 0;
  std::int64_t bound_bytes = 0;  // that plans with a kernel for each anchor move at least (bound.h)
  // Values of the forward pass that are computed again to meet a memory limit, and the share of a step's time that this
  // is expected to take.
  int recomputed = 0;
  double extra_time = 0;
  std::vector<Refusal> refusals;    // every pair that was not fused, and why
  std::vector<Fallback> fallbacks;  // none, unless something is wrong with fusejit

  // Bytes that a run moves; what is derived from fixed arguments is not computed again.
  std::int64_t ledger_bytes() const;
  // Whether step `s` computes derived values: it runs only where they are not there yet.
  bool is_derivation(int s) const;
};

// Bytes of arena values alive after `step` (still to be read by a later step).
std::int64_t live_arena_bytes_after(const Plan& plan, int step);
// Throws InternalError naming the rule that was broken. Rules: plan_verify.cpp.
void verify(const Plan& plan);
// The canonical text: the plan with storage, steps and refusals, then its kernels. Grammar: plan_print.cpp.
std::string print(const Plan& plan);
// The same without the kernels.
std::string print_outline(const Plan& plan);
// Throws ParseError. Does not verify.
Plan parse_plan(std::string_view text);
// Equal texts.
bool operator==(const Plan& a, const Plan& b);

}  // namespace fusejit::scheduler
