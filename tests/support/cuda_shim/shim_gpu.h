// A CUDA device for the front end whose kernels are the generated text itself, compiled for the CPU by the shim: any
// program that computes on "cuda:0" runs it, access by access checked.
#pragma once

#include <mutex>
#include <set>

#include "tests/support/cuda_shim/fake_kernels.h"
#include "tests/support/fake_device/fake_compiler.h"
#include "tests/support/fake_device/fake_gpu.h"

namespace fusejit::test {

class ShimGpu {
 public:
  explicit ShimGpu(FakeDevice device = {}) : gpu_(std::move(device)) {}

  // Makes the default session one for which this is cuda:0.
  void use(runtime::SessionOptions rest = {}) {
    gpu_.use(std::move(rest), false, [this](std::string_view program, int compute_capability) {
      return compiled(program, compute_capability);
    });
  }
  FakeDriver& driver() { return gpu_.driver; }
  std::size_t kernels() const { return entries_.size(); }

 private:
  // Programs are compiled by several threads.
  codegen::cuda::CudaBinary compiled(std::string_view program, int compute_capability);

  std::mutex mutex_;
  std::set<std::string> entries_;
  std::vector<std::unique_ptr<Shim>> shims_;
  FakeGpu gpu_;  // goes first
};

}  // namespace fusejit::test
