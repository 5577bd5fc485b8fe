// A step of a plan that cuDNN may take (scheduler/plan.h, LibraryOp): as a call to plan for, and as what the executor
// runs in place of the step's kernel.
#pragma once

#include <memory>
#include <mutex>

#include "runtime/cuda/device.h"
#include "runtime/cuda/step_caller.h"
#include "runtime/cudnn/graph/planner.h"
#include "runtime/cudnn/step_call.h"

namespace fusejit::runtime::cudnn {

// The scheduler's question (scheduler/library.h), answered from the table: for a target with cudnn=1 only precompiled
// engines count, with cudnn=2 those too that cuDNN compiles at run time, or would better.
scheduler::LibraryAnswer supports_step(const ir::Graph& ops, const Target& target);
// Which engines a step of a plan for `target` asks for. Throws UnsupportedError if it is no call.
Tier tier_of(const ir::Graph& ops, const Target& target);

// A cudnnHandle_t of a device, which it keeps open. Calls hold its lock: they set its stream, and leave the device's
// there, which lives as long as the handle.
class CudnnHandle {
 public:
  CudnnHandle(std::shared_ptr<const Library> library, std::shared_ptr<cuda::CudaDevice> device);
  ~CudnnHandle();
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;
  Handle get() const { return handle_; }
  const std::shared_ptr<const Library>& library() const { return library_; }
  // Work of calls goes there now. Throws DeviceError.
  void use(cuda::CuStream stream) const;
  cuda::CuStream own_stream() const { return device_->stream(); }
  std::unique_lock<std::mutex> lock() const { return std::unique_lock(mutex_); }

 private:
  const std::shared_ptr<cuda::CudaDevice> device_;
  const std::shared_ptr<const Library> library_;
  Handle handle_ = nullptr;
  mutable std::mutex mutex_;
};

struct CallerOptions {
  Numerics numerics;
  std::shared_ptr<disk::DiskCache> disk = nullptr;  // where plans outlive the process
  int timed = 1;  // so many of cuDNN's engines are timed for each call and the fastest kept; 1: cuDNN's own first
};

// What decides about the calls besides steps and target, for keys; empty where cuDNN is not there.
std::string caller_identity(const CallerOptions& options);

// Steps as calls of cuDNN on one device, opened when a step first asks.
class CudnnCaller final : public cuda::StepCaller {
 public:
  CudnnCaller(std::shared_ptr<cuda::CudaDevice> device, CallerOptions options);
  ~CudnnCaller() override;
  std::string why_none() override { return open().why_not; }
  scheduler::LibraryAnswer supports(const ir::Graph& ops, const Target& target) const override {
    return supports_step(ops, target);
  }
  std::shared_ptr<const cuda::LibraryCall> make(const scheduler::PlanStep& step, const Target& target,
                                                std::string& why_not) override;
  std::string identity() const override;
  std::vector<std::string> texts() override;
  bool add_text(std::string_view text) override;

 private:
  struct Opened {
    std::shared_ptr<const CudnnHandle> handle;  // null: `why_not`
    std::unique_ptr<Planner> planner;
    std::string why_not;
  };
  Opened& open();  // at first use
  std::size_t choose(const ConvolutionCall& call, std::span<const std::shared_ptr<const Plan>> plans);

  const std::shared_ptr<cuda::CudaDevice> device_;
  const CallerOptions options_;
  std::mutex mutex_;
  std::unique_ptr<Opened> opened_;
};

}  // namespace fusejit::runtime::cudnn
