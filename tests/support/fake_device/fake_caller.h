// A library for CUDA devices that are not there: its calls launch the steps' own kernels, and what it takes, refuses
// and how long it thinks is the test's to say.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/cuda/kernels.h"
#include "runtime/cuda/step_caller.h"

namespace fusejit::test {

class FakeCaller final : public runtime::cuda::StepCaller {
 public:
  // `compile` teaches the kernels to the driver (fake_compiler.h).
  FakeCaller(std::shared_ptr<runtime::cuda::CudaDevice> device, runtime::cuda::CompileProgram compile)
      : device_(device), kernels_(std::move(device), std::move(compile)) {}

  std::string why_none() override { return nothing; }
  // cuDNN's table answers.
  scheduler::LibraryAnswer supports(const ir::Graph& ops, const Target& target) const override;
  std::shared_ptr<const runtime::cuda::LibraryCall> make(const scheduler::PlanStep& step, const Target& target,
                                                         std::string& why_not) override;

  std::string nothing;  // why there is no library
  // Of a step of a plan for cudnn=1 or 2, before its call is made: a sentence refuses it, what is thrown goes on.
  std::function<std::string(const scheduler::PlanStep& step, CudnnMode cudnn)> before = nullptr;
  // Why a call that was made does not run; empty: it does.
  std::function<std::string(const scheduler::PlanStep& step)> stumbles = nullptr;
  // "1: conv2d", "2: maximum": what was asked for, by the result.
  std::vector<std::string> asked() const;

 private:
  const std::shared_ptr<runtime::cuda::CudaDevice> device_;
  runtime::cuda::CudaKernels kernels_;
  mutable std::mutex mutex_;
  std::vector<std::string> asked_;
};

}  // namespace fusejit::test
