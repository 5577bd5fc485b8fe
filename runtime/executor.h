// Executor: runs one plan, as often as it is asked to. The processor's is in runtime/cpu, a CUDA device's in
// runtime/cuda.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/kernel/interp/interp.h"
#include "runtime/buffer.h"
#include "scheduler/plan.h"

namespace fusejit::runtime {

using ir::TaskOrder;

// Ways to run that must change no bit of any result (design: tests). Tests set them; users do not.
struct Checks {
  bool separate_values = false;  // one allocation a value instead of the arena
  bool poison = false;           // freed ranges of the arena are filled with NaN
  TaskOrder order = TaskOrder::ascending;
  bool kernel_interpreter = false;
  // Kernels of this name count as ones that cannot be made; "*": all.
  std::string refused_kernel = {};
  // Called before and after each step with the memory of every value of the plan.
  std::function<void(int step, std::span<void* const> values, bool is_done)> observe = {};
};

struct RunReport {
  std::int64_t kernels = 0;  // launches; none for derived values that are kept
  std::int64_t ledger_bytes = 0;
  std::int64_t bound_bytes = 0;
  std::int64_t arena_bytes = 0;
  std::int64_t memory_bytes = 0;  // arguments, results and arena
  std::int64_t recomputed = 0;    // Plan::recomputed, Plan::extra_time
  double extra_time = 0;
  // Alive after the step that wrote result 0, the loss of a training step: arena, arguments and results.
  std::int64_t end_of_first_result_bytes = 0;
  double kernel_milliseconds = 0;  // wall time of the launches; 0 where nobody waits for them
};

// What of a report the plan says.
RunReport report_of(const scheduler::Plan& plan);

struct Ran {
  std::vector<Buffer> results;  // where the plan ran
  RunReport report;
};

class Executor {
 public:
  virtual ~Executor() = default;
  // `graph` is the one that was planned. Arguments may be in any memory; donated ones become results.
  virtual Ran run(const ir::Graph& graph, std::span<const Buffer> arguments) = 0;
  // Runs so far that were one launch of a graph of the device.
  virtual std::int64_t graph_launches() const { return 0; }
  // Whether some of its code was made in haste. Then with_full_code() is one with the same bits and better code, which
  // is made on this thread; null if that was stopped.
  virtual bool is_quick() const { return false; }
  virtual std::shared_ptr<Executor> with_full_code(const std::stop_token&) const { return nullptr; }
};

struct Pieces;  // runtime/pieces.h

// What a session keeps of a graph.
struct Executable {
  std::shared_ptr<const scheduler::Plan> plan;
  std::shared_ptr<Executor> executor;
  std::shared_ptr<const Pieces> pieces;  // instead of both, for a graph that has no plan as a whole
};

}  // namespace fusejit::runtime
