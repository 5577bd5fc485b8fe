// CudaBackend: plans on a CUDA device. Kernels are compiled by NVRTC; steps that a library may take go to cuDNN where
// it is there and has an engine, otherwise to their own kernel.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "runtime/backend.h"
#include "runtime/buffer.h"
#include "runtime/cuda/executor.h"
#include "runtime/cuda/kernels.h"
#include "runtime/cuda/step_caller.h"
#include "runtime/cudnn/call.h"
#include "runtime/disk/plan_store.h"

namespace fusejit::runtime {

struct CudaBackendOptions {
  cuda::CompileProgram compile = codegen::cuda::compile;
  bool cudnn = true;
  cudnn::Numerics numerics = {};  // of cuDNN's calls
  int timed_engines = 1;          // so many are timed for each call of cuDNN, and the fastest taken: other bits
  std::shared_ptr<cuda::StepCaller> caller = nullptr;  // in place of cuDNN, for tests
  // Where plans, kernels and plans of cuDNN outlive the process; null: nowhere.
  std::shared_ptr<disk::DiskCache> disk = nullptr;
  bool frozen = false;  // what is in no cache is a UserError
};

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(std::shared_ptr<cuda::CudaDevice> device, CudaBackendOptions options = {});
  // On the device of that name. Throws DeviceError if it cannot be used, UnsupportedError if nothing compiles for it.
  static std::shared_ptr<CudaBackend> open(const Device& device, CudaBackendOptions options = {});
  ~CudaBackend() override;

  // What the library turns out not to do is planned without. Library calls can take seconds each to make; between two
  // of them it is looked whether to stop.
  std::optional<Planned> plan(const ir::Graph& graph, scheduler::PlanOptions wanted,
                              const std::stop_token& stop = {}) override;
  // What runs does not wait for the device, unless a profile is taken. A donated argument of the host stays what it
  // is: its copy is overwritten.
  std::shared_ptr<Executor> prepare(const Planned& planned, const PrepareOptions& options) override;
  // The device's, with the precompiled engines of cuDNN if that is used and there.
  Target target() const override;
  // Engines that cuDNN compiles at run time take long.
  Target first_target(const Target& target) const override;
  bool keeps_derived() const override { return false; }  // what libraries want packed, they pack
  bool is_failure(const Error& error) const override { return dynamic_cast<const DeviceError*>(&error) != nullptr; }
  KernelCounts kernels() const override;
  // Why cuDNN does nothing on this device; empty if it is there.
  std::string why_no_library() const override;

  Buffer place(const Buffer& buffer) override;
  Buffer borrow(std::uint64_t address, const Type& type, std::function<void()> deleter) override {
    return device_->borrow(address, type, std::move(deleter));
  }
  void synchronize() override { device_->synchronize(); }
  MemoryStatistics memory() const override;
  void reset_peak_memory() override { device_->memory().reset_peak(); }
  void release_memory() override { device_->memory().release_cached(); }
  void limit_memory(std::int64_t bytes) override { device_->memory().set_limit(bytes); }

  // prepare() and a run in two steps, for who looks into the executor.
  std::shared_ptr<cuda::CudaExecutor> load(const Planned& planned, int threads);
  std::vector<Buffer> run(cuda::CudaExecutor& executor, const ir::Graph& graph, std::span<const Buffer> arguments);

  cuda::CudaDevice& device() { return *device_; }
  // The engines of cuDNN that were made, as texts that spare another process their compilation (StepCaller).
  std::vector<std::string> engine_texts() const { return caller_ ? caller_->texts() : std::vector<std::string>(); }
  bool add_engine_text(std::string_view text) { return caller_ && caller_->add_text(text); }
  // Why steps that cuDNN may take are done by kernels instead: a sentence each.
  std::vector<std::string> refusals() const;

 private:
  // What the steps of a plan are to call; null: their own kernel.
  struct StepCalls {
    std::vector<std::shared_ptr<const cuda::LibraryCall>> by_step;
    // A step was planned as one call because the library was to do more in it than its anchor, and it does not:
    // planned again, the anchor is a call of its own.
    bool plan_again = false;
  };
  // The scheduler's question: what the library says it does, less what it refused when it was to be done.
  scheduler::LibraryAnswer supports(const ir::Graph& ops, const Target& target) const;
  StepCalls make_calls(const scheduler::Plan& plan, const std::stop_token& stop);
  std::shared_ptr<const cuda::LibraryCall> make_call(const scheduler::Plan& plan, const scheduler::PlanStep& step,
                                                     std::string& why_not);
  std::vector<Buffer> on_device(const scheduler::Plan& plan, std::span<const Buffer> arguments);
  void note(const std::string& refusal);  // under mutex_

  const std::shared_ptr<cuda::CudaDevice> device_;
  const bool use_cudnn_, tf32_;
  const std::shared_ptr<cuda::StepCaller> caller_;  // null: no library
  const disk::PlanStore store_;
  const bool frozen_;
  cuda::CudaKernels kernels_;
  mutable std::mutex mutex_;  // of what follows
  std::vector<std::string> refusals_;
  std::unordered_map<ir::Hash, std::string, ir::HashOfHash> refused_;  // by the step's ops
  std::set<std::string> tried_;                                        // calls that ran, as they describe themselves
};

// Why kernels cannot be compiled for a device, or not be loaded by its driver, with what to try; empty if they can.
std::string why_no_kernels(const std::string& device, int compute_capability,
                           const codegen::cuda::NvrtcState& nvrtc = codegen::cuda::nvrtc(),
                           int driver_version = cuda::installed_driver().version);

}  // namespace fusejit::runtime
