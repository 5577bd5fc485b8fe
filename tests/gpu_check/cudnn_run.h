// Calls of cuDNN on the device, on tensors of the test's making, and what they must give.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cudnn/library/device.h"
#include "runtime/cudnn/step.h"
#include "tests/gpu_check/machine.h"

namespace fusejit::gpu_check {

namespace cudnn = runtime::cudnn;

// Logical row-major order ([N,C,H,W]), whatever the layout.
using Tensors = std::map<cudnn::Role, std::vector<double>>;

struct NamedCall {
  std::string name;
  cudnn::ConvolutionCall call;
  cudnn::Numerics numerics = {};
  bool compiled = false;  // by a runtime-compiled engine
  double tolerance = 0;   // of the largest element of each result
};
// What is executed, and carried: small, one of each kind that docs/cudnn.md speaks of.
std::vector<NamedCall> checked_calls();
// The first plan of the tier that the call names. Throws DeviceError with cuDNN's reasons if there is none.
cudnn::Plan plan_of(const std::shared_ptr<const cudnn::Library>& library, const cudnn::Descriptor& device,
                    const NamedCall& call);

// Whether `execute` reads the tensor.
bool is_read(const cudnn::ConvolutionCall& call, cudnn::Role role);
// Values in [-1, 1] that the tensor's dtype can hold; masks of bits are 0 and 1.
Tensors made_up(const cudnn::ConvolutionCall& call, const std::vector<cudnn::TensorUse>& tensors, std::uint64_t seed);
// What a call's results are, computed in f64.
Tensors meant(const cudnn::ConvolutionCall& call, const Tensors& inputs);

// Physical bytes of a tensor and back. Bits go eight to a byte, the first lowest, in the order of the layout.
std::vector<std::byte> to_bytes(const Type& type, const std::vector<double>& values);
std::vector<double> from_bytes(const Type& type, const std::vector<std::byte>& bytes);

// cuDNN on the machine's device. Throws Skipped where it is not there.
class CudnnOnDevice {
 public:
  explicit CudnnOnDevice(Machine& machine);
  const std::shared_ptr<const cudnn::Library>& library() const { return handle_->library(); }
  const cudnn::Descriptor& device() const { return device_; }
  // The results.
  Tensors run(const cudnn::Plan& plan, const cudnn::ConvolutionCall& call, const Tensors& inputs);
  // A plan with memory of its own, to be put on the stream again and again.
  class Ready {
   public:
    void execute();
    runtime::cuda::CuPointer address(cudnn::Role role) const { return addresses_.at(role); }

   private:
    friend class CudnnOnDevice;
    Machine* machine_ = nullptr;
    const cudnn::CudnnHandle* handle_ = nullptr;
    const cudnn::Plan* plan_ = nullptr;
    std::vector<runtime::cuda::DeviceBlock> blocks_;
    std::map<cudnn::Role, runtime::cuda::CuPointer> addresses_;
    runtime::cuda::CuPointer workspace_ = 0;
  };
  Ready ready(const cudnn::Plan& plan);

 private:
  Machine& machine_;
  std::shared_ptr<const cudnn::CudnnHandle> handle_;
  cudnn::Descriptor device_;
};

}  // namespace fusejit::gpu_check
