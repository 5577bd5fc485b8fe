// A step of a plan that cuDNN may take (scheduler/plan.h, LibraryOp): as a call to plan for, and as what the executor
// runs in place of the step's kernel.
#pragma once

#include <array>
#include <memory>
#include <mutex>

#include "runtime/cuda/library_call.h"
#include "runtime/cudnn/plan.h"
#include "scheduler/library.h"
#include "scheduler/plan.h"

namespace fusejit::runtime::cudnn {

struct StepCall {
  ConvolutionCall call;
  // Which tensor of the call each value of the LibraryOp is: its parameters, then its result.
  std::vector<Role> roles;
};
// Throws UnsupportedError, with a sentence, for ops that are not one call: a convolution or a gradient of one, after a
// forward one a side input, a bias and a relu.
StepCall step_call(const ir::Graph& ops);

// The scheduler's question (scheduler/library.h), answered from the table: only precompiled engines count, since
// nothing may wait for cuDNN's own compiler.
scheduler::LibraryAnswer supports_step(const ir::Graph& ops, const Target& target);

// A cudnnHandle_t of the current context. Calls hold its lock: they set its stream.
class CudnnHandle {
 public:
  explicit CudnnHandle(std::shared_ptr<const Library> library);
  ~CudnnHandle();
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;
  Handle get() const { return handle_; }
  const std::shared_ptr<const Library>& library() const { return library_; }
  std::unique_lock<std::mutex> lock() const { return std::unique_lock(mutex_); }

 private:
  const std::shared_ptr<const Library> library_;
  Handle handle_ = nullptr;
  mutable std::mutex mutex_;
};

// The step as a call. Nothing if cuDNN has no engine for it; `why_not` then says why in a sentence, and the step's
// kernel does the work.
std::shared_ptr<const cuda::LibraryCall> library_call(const std::shared_ptr<const CudnnHandle>& handle,
                                                      const Descriptor& device, const scheduler::PlanStep& step,
                                                      const PlanOptions& options, std::string& why_not);

}  // namespace fusejit::runtime::cudnn
