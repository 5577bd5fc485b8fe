// The only door to everything that runs: Graph + arguments -> Buffers. Owns the plan cache; the kernel cache may be
// shared.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fusejit/target.h"
#include "ir/graph.h"
#include "runtime/buffer.h"
#include "runtime/executor.h"
#include "runtime/memory_statistics.h"
#include "runtime/tune.h"
#include "scheduler/recompute/memory_limit.h"

namespace fusejit::runtime {

enum class Engine : std::uint8_t {
  compiled,           // plans and machine code
  graph_interpreter,  // ir/interp.h on the graph
  kernel_interpreter  // plans, every kernel on ir/kernel/interp/interp.h
};

class Backend;
class KernelCache;
namespace disk {
class DiskCache;
}

struct SessionOptions {
  Target target = Target::host();
  Engine engine = Engine::compiled;
  scheduler::Rules rules = scheduler::Rules::all;
  scheduler::MemoryLimit memory_limit = {};  // of each plan
  int threads = 0;                           // 0: every processor
  // Where machine code is kept; sessions may share it, and their statistics of it. Null: a cache of the session's own.
  std::shared_ptr<KernelCache> kernels = nullptr;
  // Where plans, and kernels unless `kernels` is given, outlive the process. Null: nowhere.
  std::shared_ptr<disk::DiskCache> disk = nullptr;
  bool frozen = false;  // what is in no cache is a UserError that says what is missing, instead of being made
  Checks checks = {};   // for tests: ways to run that must change no bit
  // For a cuda target: where plans run, and whether results stay there (arguments may be on either side).
  Device device = Device("cuda:0");
  bool results_on_device = false;
  std::shared_ptr<Backend> backend = nullptr;  // of the device, else it is opened when it is first used
  // On the cpu a new plan runs with quick code (codegen/x86/machine.h) until a thread in the background has made the
  // rest, with the same bits. On a CUDA device one for cudnn=2 runs as one for cudnn=1 until its engines are compiled:
  // bits are those of one plan at first and of the other later.
  bool compile_in_background = false;
  CudnnMode cudnn = CudnnMode::precompiled;  // the most, where the target is the device's own
  bool tf32 = false;                         // f32 convolutions may be rounded to it
  bool fast_norm = false;                    // statistics of f16 convolutions are what cuDNN leaves (Target::fast_norm)
  Tune tune = Tune::off;                     // kept with plans on disk
  // What cannot be compiled as planned is compiled in parts, and what cannot be compiled at all is interpreted: slower,
  // with the same results. False: UnsupportedError instead, as in strict mode and with a `reschedule`.
  bool fall_back = true;
  // Other schedules than the chosen ones, for experiments: such plans are not kept on disk, nor taken from there.
  scheduler::Reschedule reschedule = {};
  std::function<void(const std::string& line)> log = {};  // lost chances, each once; may be called by any thread
  bool log_fusions = false;  // and what is fused, a line each (scheduler/report/fusions.h), as plans are made or loaded
};

struct SessionStatistics {
  std::int64_t runs = 0;
  std::int64_t plans_made = 0;
  std::int64_t plans_loaded = 0;  // of those made, the ones that came from disk
  std::int64_t plan_cache_hits = 0;
  std::int64_t kernels_compiled = 0;
  std::int64_t kernels_loaded = 0;  // from disk
  std::int64_t kernel_cache_hits = 0;
  std::int64_t evictions = 0;         // plans and kernels forgotten, since there are too many or they take too much
  std::int64_t graph_launches = 0;    // runs that were one launch of a CUDA graph
  std::int64_t fallbacks = 0;         // groups made from their parts, ops and graphs that are interpreted, as planned
  double compile_milliseconds = 0;    // wall time of plans and kernels
  std::int64_t background_plans = 0;  // plans that were made in the background and took their place
  std::int64_t background_failures = 0;
  std::string why_no_background_plan;  // of the last failure
  RunReport last_run;                  // of the plan that ran last
};

class Session {
 public:
  explicit Session(SessionOptions options);
  ~Session();
  // One buffer per parameter, in order, of exactly its type; `donated[i]`: the caller gives argument i up, its memory
  // may be reused for a result. Results in order; a result that is a parameter shares its buffer.
  std::vector<Buffer> run(const ir::Graph& graph, std::span<const Buffer> arguments,
                          std::span<const bool> donated = {});
  // The plan that run() would use, for tools. UnsupportedError where it would run in pieces.
  std::shared_ptr<const scheduler::Plan> plan(const ir::Graph& graph, std::span<const bool> donated = {});
  // Plans and compiles what run() would, for arguments of which these are donated and fixed (Buffer::fix), and runs
  // nothing. Empty lists: none are.
  void prepare(const ir::Graph& graph, const std::vector<bool>& donated, const std::vector<bool>& fixed);
  // The same value where results are: in host memory, or on the device. Throws DeviceError.
  Buffer place(const Buffer& buffer);
  // As Backend::borrow, where results are.
  Buffer borrow(std::uint64_t address, const Type& type, std::function<void()> deleter);
  // Why convolutions on a CUDA device are generated kernels, not calls of cuDNN; empty if they are, or on the host.
  std::string why_no_library() const;
  // Waits until everything is computed. Throws DeviceError if something went wrong there.
  void synchronize();
  // Waits until nothing is made in the background; from then on runs are reproducible.
  void finish_background();
  // Ends what is made in the background: plans stay as they are.
  void stop_background();
  // Memory of where results are. Limit: at most so many bytes are taken from the device, 0 for all it has.
  MemoryStatistics memory() const;
  void reset_peak_memory();
  void release_memory();
  void limit_memory(std::int64_t bytes);
  const SessionOptions& options() const;
  SessionStatistics statistics() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fusejit::runtime
