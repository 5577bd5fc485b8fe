// ResNet-50's convolutions with bias and relu by tier: a precompiled engine, a runtime-compiled one, and a plain
// convolution with a generated kernel behind it.
#include <fmt/format.h>

#include <chrono>

#include "tests/gpu_check/cudnn_run.h"
#include "tests/gpu_check/sections.h"
#include "tests/unit/cudnn/networks.h"

namespace fusejit::gpu_check {
namespace {

cudnn::ConvolutionCall call_of(const cudnn::Anchor& anchor, std::int64_t batch, DType dtype) {
  cudnn::ConvolutionCall call;
  call.dtype = dtype;
  call.x = Shape{batch, anchor.in, anchor.size, anchor.size};
  call.w = Shape{anchor.out, anchor.in / anchor.groups, anchor.kernel, anchor.kernel};
  call.stride = {anchor.stride, anchor.stride}, call.groups = anchor.groups;
  const std::int64_t pad = anchor.kernel / 2;
  call.padding = {pad, pad, pad, pad};
  return call;
}

double time_plan(Machine& machine, CudnnOnDevice& on_device, const cudnn::Plan& plan) {
  CudnnOnDevice::Ready ready = on_device.ready(plan);
  return machine.milliseconds([&] { ready.execute(); });
}

// y, bias -> relu(y + bias), as generated.
double time_epilogue(Machine& machine, const cudnn::ConvolutionCall& call) {
  const std::string type = Type{call.dtype, call.y(), Layout::nhwc}.str();
  const std::string channels = Type{call.dtype, {call.y()[1]}, Layout::standard}.str();
  const Planned planned = machine.plan(ir::parse_graph(fmt::format(
      "graph @g(%y: {0}, %b: {1}) {{ %0 = bias_add(%y, %b) : {0} %1 = relu(%0) : {0} return %1 }}", type, channels)));
  std::vector<Buffer> arguments;
  for (const ir::Value& parameter : planned.graph.parameters()) {
    arguments.push_back(machine.device().allocate(parameter.type()));
  }
  return machine.milliseconds([&] { machine.run(planned, arguments); });
}

void measure(Machine& machine, CudnnOnDevice& on_device, Report& report, const cudnn::Anchor& anchor, DType dtype,
             std::int64_t batch) {
  const cudnn::ConvolutionCall plain = call_of(anchor, batch, dtype);
  cudnn::ConvolutionCall fused = plain;
  fused.bias = true, fused.activation = cudnn::Activation::relu;
  const cudnn::Numerics numerics{.tf32 = true};
  const double flop =
      2.0 * static_cast<double>(plain.y().elements() * plain.w.elements()) / static_cast<double>(anchor.out);
  Json row = {{"layer", fmt::format("{}x{} {}->{} {}x{}/{}", anchor.size, anchor.size, anchor.in, anchor.out,
                                    anchor.kernel, anchor.kernel, anchor.stride)},
              {"dtype", dtype == DType::f32 ? "tf32" : std::string(name(dtype))}};
  const auto time = [&](const char* column, const NamedCall& call) {
    try {
      const auto start = std::chrono::steady_clock::now();
      const cudnn::Plan plan = plan_of(on_device.library(), on_device.device(), call);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (call.compiled) row["R plan s"] = seconds;
      row[column] = time_plan(machine, on_device, plan);
    } catch (const Error&) {
      row[column] = "none";
    }
  };
  time("conv ms", {"", plain, numerics});
  time("P ms", {"", fused, numerics});
  time("R ms", {"", fused, numerics, true});
  if (row["conv ms"].is_number()) {
    row["split ms"] = row["conv ms"].get<double>() + time_epilogue(machine, plain);
    row["conv TFLOP/s"] = 1e-9 * flop / row["conv ms"].get<double>();
  }
  report.row(row);
}

}  // namespace

void time_tiers(Machine& machine, Report& report) {
  const Clock clock(machine);
  CudnnOnDevice on_device(machine);
  const std::int64_t batch = 64;
  for (const DType dtype : {DType::f16, DType::f32}) {
    for (const cudnn::Anchor& anchor : cudnn::resnet50()) {
      if (clock.over()) throw Skipped("out of time; the layers from here on were not measured");
      if (anchor.size == 1) continue;  // the linear layer
      try {
        measure(machine, on_device, report, anchor, dtype, batch);
      } catch (const Error& error) {
        report.check(fmt::format("{} {}->{} {}", name(dtype), anchor.in, anchor.out, anchor.size), error.what());
      }
      machine.device().memory().release_cached();
    }
  }
  report.say(
      "batch 64, nhwc. P: precompiled conv, bias, relu. R: the same, compiled by cuDNN (in \"R plan s\"). split: "
      "plain convolution, then a generated kernel.");
}

}  // namespace fusejit::gpu_check
