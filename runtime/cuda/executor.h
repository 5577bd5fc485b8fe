// Runs the steps of a plan on a device: in the order of one stream, without waiting for it.
//
// What a launch is given is a table made once; a run fills in addresses and scalars. The second run whose library calls
// see the same addresses as an earlier one is captured into a CUDA graph; from then on such a run is one launch of that
// graph, in which arguments of kernels that differ (scalars, and buffers that moved) are changed in place. A few graphs
// are kept, so that buffers which take turns are no reason to capture anew. A plan that overwrites arguments is
// captured at its first run if it has no library calls (which may not be captured before they ran once): then either
// all of the run is launched or nothing, and an error leaves the arguments as they were. While a profile is taken,
// steps are launched one by one with an event between them, and a run is waited for.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "runtime/cuda/device.h"
#include "runtime/cuda/driver/graph.h"
#include "runtime/cuda/driver/module.h"
#include "runtime/cuda/library_call.h"
#include "scheduler/plan.h"

namespace fusejit::runtime::cuda {

// What performs a step of the plan, with the step's values as buffers in their order.
using CudaStep = std::variant<std::shared_ptr<const LoadedKernel>, std::shared_ptr<const LibraryCall>>;

// The most bytes of an argument that run() takes from the host.
constexpr std::int64_t kSmallArgument = 256;

struct ExecutorStatistics {
  std::int64_t runs = 0;
  std::int64_t kernel_launches = 0;  // of one run: kernels, library calls not counted
  std::int64_t library_calls = 0;    // of one run
  std::int64_t captures = 0;
  std::int64_t graph_launches = 0;
  std::int64_t nodes_updated = 0;
  std::string why_no_graph;  // set once a capture of library calls failed: runs launch step by step from then on
};

class StepTimes;

class CudaExecutor {
 public:
  // One step of `steps` for each of the plan. Puts the plan's constants on the device. Throws DeviceError.
  CudaExecutor(std::shared_ptr<CudaDevice> device, std::shared_ptr<const scheduler::Plan> plan,
               std::vector<CudaStep> steps);
  ~CudaExecutor();

  // Buffers of the device: `arguments` by parameter, `results` by result (the plan's storage says which of them are
  // written). Small arguments may be on the host: they are copied together. `scalars` are those of all kernels, in the
  // order of steps. Throws DeviceError, after which the next run works unless the device is lost.
  void run(std::span<const Buffer> arguments, std::span<const Buffer> results,
           std::span<const std::uint64_t> scalars = {});

  const scheduler::Plan& plan() const { return *plan_; }
  ExecutorStatistics statistics() const;
  void use_graphs(bool on) { graphs_wanted_ = on; }

 private:
  struct Table;
  struct CapturedRun;

  void bind(std::span<const Buffer> arguments, std::span<const Buffer> results, std::span<const std::uint64_t> scalars,
            CuPointer arena);
  void upload_small(std::span<const Buffer> arguments);
  void clear_counters();
  void launch_all(Capture* capture, std::vector<CuGraphNode>* nodes, StepTimes* times = nullptr);
  void launch_one_by_one(bool is_profiled);
  bool run_as_graph();
  std::unique_ptr<CapturedRun> capture(const std::vector<CuPointer>& library_words);
  void replay(CapturedRun& captured);
  void keep_graphs(std::size_t count);

  std::shared_ptr<CudaDevice> device_;
  std::shared_ptr<const scheduler::Plan> plan_;
  std::vector<CudaStep> steps_;
  DeviceBlock resident_;          // constants, then counters
  std::int64_t counters_at_ = 0;  // in resident_
  std::int64_t counter_bytes_ = 0;
  bool counters_clear_ = false;
  // Arguments that come from the host, at addresses that stay; the stream keeps a run's copy behind the run before.
  DeviceBlock small_;
  std::int64_t small_bytes_ = 0;
  std::int64_t arena_bytes_ = 0;  // with the workspace of libraries behind the plan's
  std::unique_ptr<Table> table_;
  std::vector<std::unique_ptr<CapturedRun>> captured_;  // used last at the end
  std::vector<std::vector<CuPointer>> seen_;            // addresses of library calls of runs that were not captured
  bool graphs_wanted_ = true;
  bool overwrites_ = false;    // arguments
  bool at_once_ = false;       // captures at the first run
  std::int64_t launched_ = 0;  // launches and library calls put on a stream
  mutable std::mutex mutex_;
  ExecutorStatistics statistics_;
};

}  // namespace fusejit::runtime::cuda
