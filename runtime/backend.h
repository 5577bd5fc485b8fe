// Backend: where plans are made and run, and where values live. The processor's is in runtime/cpu, a CUDA device's in
// runtime/cuda. What differs between them is an answer here: a session asks nobody which one it has.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "fusejit/error.h"
#include "fusejit/target.h"
#include "ir/graph.h"
#include "runtime/buffer.h"
#include "runtime/executor.h"
#include "runtime/memory_statistics.h"
#include "scheduler/make_plan.h"
#include "scheduler/plan.h"

namespace fusejit::runtime {

namespace cuda {
class LibraryCall;
}

struct Planned {
  std::shared_ptr<const scheduler::Plan> plan;
  bool was_kept = false;  // by the cache on disk
  // By step, what a library is called with; null, or nothing at all: the step's kernel.
  std::vector<std::shared_ptr<const cuda::LibraryCall>> calls = {};
};

struct PrepareOptions {
  int threads = 1;     // to compile on
  bool quick = false;  // code that is made sooner will do for now (Executor::is_quick)
  // Of what takes so long that a user wonders; may be empty.
  std::function<void(const std::string& sentence)> say = {};
};

struct KernelCounts {
  std::int64_t hits = 0;
  std::int64_t loaded = 0;  // from disk
  std::int64_t compiled = 0;
  std::int64_t evictions = 0;
};

// From any thread.
class Backend {
 public:
  virtual ~Backend() = default;

  // The plan of a graph, unless it is on disk. Nothing if it was stopped. Throws what scheduling throws, DeviceError.
  virtual std::optional<Planned> plan(const ir::Graph& graph, scheduler::PlanOptions wanted,
                                      const std::stop_token& stop) = 0;
  // Compiles and loads what the plan's steps need. Throws what compilers throw, DeviceError, UserError where nothing
  // may be compiled.
  virtual std::shared_ptr<Executor> prepare(const Planned& planned, const PrepareOptions& options) = 0;
  // What plans are made for where nothing else is asked for.
  virtual Target target() const = 0;
  // The target of plans that run first, where better ones are made in the background.
  virtual Target first_target(const Target& target) const { return target; }
  // Whether what a plan computes from fixed arguments alone is kept with them (Buffer::keep).
  virtual bool keeps_derived() const = 0;
  // Whether the error is the device's own: no other way to run is a way out.
  virtual bool is_failure(const Error& error) const = 0;
  virtual KernelCounts kernels() const = 0;
  // Why steps that a library may do are done by kernels; empty if they are not, or there is no such library here.
  virtual std::string why_no_library() const { return ""; }

  // The same value in this memory. Throws DeviceError.
  virtual Buffer place(const Buffer& buffer) = 0;
  // A value in this memory that is somebody else's: nobody here writes there, and `deleter` is called, once, when no
  // work needs it any more. Copied where it is not aligned as kernels ask. Throws DeviceError.
  virtual Buffer borrow(std::uint64_t address, const Type& type, std::function<void()> deleter) = 0;
  // Waits until everything is computed. Throws DeviceError if something went wrong there.
  virtual void synchronize() = 0;
  virtual MemoryStatistics memory() const = 0;
  virtual void reset_peak_memory() = 0;
  virtual void release_memory() = 0;
  // At most so many bytes are taken, 0: all there are.
  virtual void limit_memory(std::int64_t bytes) = 0;
};

}  // namespace fusejit::runtime
