// Training steps of the built-in image networks: milliseconds, images per second, and the host's share.
#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "tests/gpu_check/model.h"
#include "tests/gpu_check/sections.h"

namespace fusejit::gpu_check {
namespace {

// bf16 and f16: parameters, images and the optimiser's state are of that type. Autocast: they are f32, as in PyTorch's.
struct Precision {
  const char* name;
  DType dtype;
  CudnnMode cudnn;
  bool tf32;
  const char* suffix = "";  // of the model's source
  int timed_engines = 1;    // of cuDNN, for each call
  bool fast_norm = false;
};
constexpr CudnnMode kOff = CudnnMode::off, kReady = CudnnMode::precompiled, kCompiled = CudnnMode::compiled;
constexpr Precision kPrecisions[] = {
    {"tf32", DType::f32, kReady, true},
    {"tf32, timed", DType::f32, kReady, true, "", 8},
    {"bf16", DType::bf16, kReady, false},
    {"bf16, timed", DType::bf16, kReady, false, "", 8},
    {"bf16, compiled", DType::bf16, kCompiled, false},
    {"bf16 autocast", DType::f32, kReady, false, ":autocast=bf16"},
    {"bf16 autocast, timed", DType::f32, kReady, false, ":autocast=bf16", 8},
    {"f16", DType::f16, kReady, false},
    {"f16, fast norm", DType::f16, kReady, false, "", 1, true},
    {"f32, no cuDNN", DType::f32, kOff, false},
};

struct Model {
  const char* name;
  std::int64_t channels, size;
};
constexpr Model kModels[] = {{"resnet50", 3, 224}, {"mobilenet_v2", 3, 224}};
constexpr Model kToy[] = {{"convnet", 1, 28}};

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// How long the host needs to put a step on the stream, while the device is at work.
double host_milliseconds(Machine& machine, ModelStep& step) {
  constexpr int kSteps = 5;
  machine.device().synchronize();
  const double start = seconds_now();
  for (int i = 0; i < kSteps; ++i) step.run();
  const double seconds = seconds_now() - start;
  machine.device().synchronize();
  return 1e3 * seconds / kSteps;
}

void measure(Machine& machine, Report& report, const Model& model, std::int64_t batch, const Precision& precision) {
  const std::string name = model.name;
  Json row = {{"model", name}, {"batch", batch}, {"precision", precision.name}};
  runtime::cuda::CudaDevice& device = machine.device();
  const double start = seconds_now();
  device.memory().reset_peak();
  ModelStep step(
      machine,
      fmt::format("{}@{}x{}x{}x{}:train{}", name, batch, model.channels, model.size, model.size, precision.suffix),
      {.cudnn = precision.cudnn,
       .tf32 = precision.tf32,
       .fast_norm = precision.fast_norm,
       .timed_engines = precision.timed_engines},
      precision.dtype);
  step.run();
  const double loss = step.loss();
  row["first s"] = seconds_now() - start;
  const double ms = machine.milliseconds([&] { step.run(); });
  const runtime::cuda::ExecutorStatistics ran = step.planned().executor->statistics();
  row["ms"] = ms, row["images/s"] = 1e3 * static_cast<double>(batch) / ms;
  if (!machine.toy()) row["host ms"] = host_milliseconds(machine, step);
  row["kernels"] = ran.kernel_launches, row["cuDNN"] = ran.library_calls;
  row["GB touched"] = 1e-9 * static_cast<double>(step.planned().plan->ledger_bytes());
  row["peak GB"] = 1e-9 * static_cast<double>(device.memory().statistics().peak);
  row["first loss"] = loss, row["last loss"] = step.loss();
  report.row(row);
  if (!ran.why_no_graph.empty()) report.say("launched step by step: " + ran.why_no_graph);
  if (precision.dtype != DType::f32) return;  // sums of images leave the range of f16 when nothing is scaled
  report.check(fmt::format("{} {} {}: the loss is a number", name, batch, precision.name),
               std::isfinite(loss) && std::isfinite(step.loss()) ? "" : "it is not");
}

}  // namespace

void time_steps(Machine& machine, Report& report) {
  const Clock clock(machine);
  const std::vector<std::int64_t> batches =
      machine.toy() ? std::vector<std::int64_t>{1} : std::vector<std::int64_t>{64, 256};
  const std::span<const Model> list = machine.toy() ? std::span<const Model>(kToy) : kModels;
  for (const std::int64_t batch : batches) {
    for (const Model& model : list) {
      const std::string name = model.name;
      for (const Precision& precision : kPrecisions) {
        if (precision.cudnn != kOff && (machine.toy() || !machine.options().cudnn)) continue;
        const std::string what = fmt::format("{} {} {}", name, batch, precision.name);
        if (clock.over()) {
          report.say(what + " is not measured: out of time");
          continue;
        }
        try {
          measure(machine, report, model, batch, precision);
        } catch (const Error& error) {
          report.check(what, error.what());
        }
        machine.device().memory().release_cached();
      }
    }
  }
  std::vector<std::string> refusals;
  if (machine.options().cudnn && !machine.toy()) refusals = machine.backend(true).refusals();
  for (const std::string& refusal : refusals) report.say("done by a kernel instead of cuDNN: " + refusal);
}

}  // namespace fusejit::gpu_check
