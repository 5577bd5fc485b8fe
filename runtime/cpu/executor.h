// Executor: runs the steps of a Plan in order on the thread pool.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "codegen/compiled_kernel.h"
#include "ir/kernel/interp.h"
#include "runtime/buffer.h"
#include "runtime/cpu/thread_pool.h"
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

namespace cuda {
class CudaExecutor;
}

struct Pieces;  // runtime/pieces.h

struct Executable {
  scheduler::Plan plan;
  std::shared_ptr<cuda::CudaExecutor> cuda;  // runs the plan if it is for cuda; then there are no `kernels`
  std::vector<std::shared_ptr<const codegen::CompiledKernel>> kernels;  // one a step; empty with kernel_interpreter
  std::vector<ir::Hash> derivations;     // one a plan value: what a derived one is kept as (Buffer::keep)
  std::shared_ptr<const Pieces> pieces;  // instead of all that, for a graph that has no plan as a whole
};

struct RunReport {
  std::int64_t kernels = 0;  // launches; none for derived values that are kept
  std::int64_t ledger_bytes = 0;
  std::int64_t bound_bytes = 0;
  std::int64_t arena_bytes = 0;
  // Alive after the step that wrote result 0, the loss of a training step: arena, arguments and results.
  std::int64_t end_of_first_result_bytes = 0;
  double kernel_milliseconds = 0;  // wall time of the launches
};

// `results[i]` are filled in; donated arguments become results.
RunReport execute(const Executable& executable, std::span<const Buffer> arguments, std::vector<Buffer>& results,
                  ThreadPool& pool, const Checks& checks);

}  // namespace fusejit::runtime
