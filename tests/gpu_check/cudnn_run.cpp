#include "tests/gpu_check/cudnn_run.h"

#include "ir/base/check.h"
#include "tests/gpu_check/report.h"

namespace fusejit::gpu_check {

using cudnn::ConvolutionCall;
using cudnn::Direction;
using cudnn::Role;

namespace {

ConvolutionCall basic(DType dtype, Layout layout = Layout::nhwc) {
  ConvolutionCall call;
  call.dtype = dtype, call.layout = layout;
  call.x = Shape{2, 64, 14, 14}, call.w = Shape{64, 64, 3, 3};
  call.padding = {1, 1, 1, 1};
  return call;
}

double tolerance_of(DType dtype, bool tf32) {
  if (dtype == DType::f16) return 2e-3;
  if (dtype == DType::bf16) return 1.6e-2;
  return tf32 ? 2e-3 : 1e-5;
}

}  // namespace

std::vector<NamedCall> checked_calls() {
  std::vector<NamedCall> calls;
  const auto add = [&](std::string name, ConvolutionCall call, bool compiled = false, bool tf32 = false) {
    calls.push_back({std::move(name), call, {.tf32 = tf32}, compiled, tolerance_of(call.dtype, tf32)});
  };
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const Layout layout : {Layout::nhwc, Layout::standard}) {
      const std::string kind = fmt::format(" {} {}", name(dtype), layout == Layout::nhwc ? "nhwc" : "nchw");
      ConvolutionCall call = basic(dtype, layout);
      add("conv" + kind, call);
      call.side = call.bias = true, call.activation = cudnn::Activation::relu;
      add("conv, side, bias, relu" + kind, call);
      for (const Direction direction : {Direction::input_gradient, Direction::weight_gradient}) {
        ConvolutionCall gradient = basic(dtype, layout);
        gradient.direction = direction;
        add((direction == Direction::input_gradient ? "dgrad" : "wgrad") + kind, gradient);
      }
    }
  }
  add("conv tf32 nhwc", basic(DType::f32), false, true);
  ConvolutionCall call = basic(DType::f16);
  call.sums = cudnn::Sums::statistics;
  add("conv, statistics f16 nhwc", call);
  call = basic(DType::f16);
  call.bias = true, call.activation = cudnn::Activation::silu;
  add("conv, bias, silu f16 nhwc", call, true);
  call.dtype = DType::f32;
  add("conv, bias, silu f32 nhwc", call, true);
  call = basic(DType::f16);
  call.direction = Direction::input_gradient, call.mask = cudnn::Mask::bits;
  add("dgrad, mask bits f16 nhwc", call, true);
  call.mask = cudnn::Mask::output, call.side = true, call.sums = cudnn::Sums::gradient;
  add("dgrad, side, mask, sums f16 nhwc", call, true);
  call.mask = cudnn::Mask::bits, call.dtype = DType::bf16;
  add("dgrad, side, mask bits, sums bf16 nhwc", call, true);
  call.dtype = DType::f32;
  add("dgrad, side, mask bits, sums tf32 nhwc", call, true, true);
  call.dtype = DType::f16, call.side = false, call.mask = cudnn::Mask::output, call.sums = cudnn::Sums::bias;
  add("dgrad, mask, sum f16 nhwc", call, true);
  call.mask = cudnn::Mask::recompute, call.sums = cudnn::Sums::batch_norm_weights;
  add("dgrad, recomputed mask, batch-norm weights f16 nhwc", call);
  return calls;
}

cudnn::Plan plan_of(const std::shared_ptr<const cudnn::Library>& library, const cudnn::Descriptor& device,
                    const NamedCall& call) {
  cudnn::PlanResult found = cudnn::find_plans(
      library, device, call.call,
      {.numerics = call.numerics, .precompiled = !call.compiled, .runtime_compiled = call.compiled, .plans = 1});
  if (found.plans.empty()) throw DeviceError(found.why_not());
  return std::move(found.plans[0]);
}

CudnnOnDevice::CudnnOnDevice(Machine& machine) : machine_(machine) {
  const auto library = cudnn::Library::load();
  if (!machine.options().cudnn) throw Skipped("cuDNN is not to be used");
  if (!library->available()) throw Skipped(library->why_not());
  runtime::cuda::DeviceContext& context = machine.device().context();
  context.enter();
  device_ = cudnn::read_device(library, context.ordinal());
  handle_ = std::make_shared<const cudnn::CudnnHandle>(library, machine.shared_device());
  handle_->use(handle_->own_stream());
}

CudnnOnDevice::Ready CudnnOnDevice::ready(const cudnn::Plan& plan) {
  Ready ready;
  ready.machine_ = &machine_, ready.handle_ = handle_.get(), ready.plan_ = &plan;
  runtime::cuda::DeviceAllocator& memory = machine_.device().memory();
  const runtime::cuda::Driver& driver = machine_.device().context().driver();
  for (const cudnn::TensorUse& tensor : plan.tensors) {
    const auto address = ready.blocks_.emplace_back(memory, tensor.type.bytes()).get();
    ready.addresses_[tensor.role] = address;
    machine_.device().context().call(driver.fill_bytes, address, 0u, tensor.type.bytes(), machine_.device().stream());
  }
  // Some engines want an address even for no workspace.
  ready.workspace_ = ready.blocks_.emplace_back(memory, std::max<std::int64_t>(plan.workspace_bytes, 256)).get();
  return ready;
}

void CudnnOnDevice::Ready::execute() {
  machine_->device().context().enter();
  cudnn::execute(
      handle_->library(), handle_->get(), *plan_,
      [this](Role role) { return reinterpret_cast<void*>(addresses_.at(role)); }, reinterpret_cast<void*>(workspace_));
}

Tensors CudnnOnDevice::run(const cudnn::Plan& plan, const ConvolutionCall& call, const Tensors& inputs) {
  Ready there = ready(plan);
  runtime::cuda::Staging& staging = machine_.device().staging();
  for (const cudnn::TensorUse& tensor : plan.tensors) {
    if (!is_read(call, tensor.role)) continue;
    const std::vector<std::byte> bytes = to_bytes(tensor.type, inputs.at(tensor.role));
    staging.upload(there.address(tensor.role), bytes.data(), static_cast<std::int64_t>(bytes.size()));
  }
  there.execute();
  Tensors results;
  for (const cudnn::TensorUse& tensor : plan.tensors) {
    if (is_read(call, tensor.role)) continue;
    std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.type.bytes()));
    staging.download(bytes.data(), there.address(tensor.role), static_cast<std::int64_t>(bytes.size()));
    results[tensor.role] = from_bytes(tensor.type, bytes);
  }
  return results;
}

}  // namespace fusejit::gpu_check
