// Where the time of a training step goes: its kernels and calls of cuDNN, with an event of the stream between them.
#include "fusejit/profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/gpu_check/model.h"
#include "tests/gpu_check/sections.h"

namespace fusejit::gpu_check {
namespace {

struct Profiled {
  const char* model;
  const char* precision;
  DType dtype;
  bool tf32;
};
constexpr Profiled kProfiled[] = {
    {"resnet50", "bf16", DType::bf16, false},
    {"resnet50", "tf32", DType::f32, true},
    {"mobilenet_v2", "bf16", DType::bf16, false},
    {"mobilenet_v2", "tf32", DType::f32, true},
};
constexpr int kSteps = 5, kMostRows = 60;

std::string joined(const std::vector<std::string>& ops) {
  const std::string all = fmt::format("{}", fmt::join(ops, " "));
  return all.size() > 70 ? fmt::format("{:.67}...", all) : all;
}

void measure(Machine& machine, Report& report, const Profiled& profiled) {
  const std::string model =
      machine.toy() ? "convnet@1x1x28x28:train" : fmt::format("{}@64x3x224x224:train", profiled.model);
  const std::string what = fmt::format("{} {}", profiled.model, profiled.precision);
  const CudnnMode cudnn = machine.options().cudnn ? CudnnMode::precompiled : CudnnMode::off;
  ModelStep step(machine, model, {.cudnn = cudnn, .tf32 = profiled.tf32}, profiled.dtype);
  const int steps = machine.toy() ? 1 : kSteps;
  for (int i = 0; i < steps; ++i) step.run();
  machine.device().synchronize();
  Profile profile;
  for (int i = 0; i < steps; ++i) step.run();
  machine.device().synchronize();
  profile.stop();
  double all = 0, all_bytes = 0;
  int shown = 0;
  for (const Profile::Row& kernel : profile.rows()) {
    const double ms = kernel.milliseconds / steps, bytes = static_cast<double>(kernel.bytes) / steps;
    all += ms, all_bytes += bytes;
    if (shown++ >= kMostRows) continue;
    report.row({{"model", profiled.model},
                {"precision", profiled.precision},
                {"kernel", kernel.name},
                {"calls", kernel.calls / steps},
                {"ms", ms},
                {"MB", 1e-6 * bytes},
                {"GB/s", 1e-6 * bytes / ms},
                {"TFLOP/s", kernel.gflop / steps / ms},
                {"ops", joined(kernel.ops)}});
  }
  for (const Profile::Row& op : profile.rows(ProfileBy::op)) {
    report.say(fmt::format("{}: {:.2f} ms in {}", what, op.milliseconds / steps, op.name));
  }
  report.say(fmt::format("{}: {:.2f} ms, {:.2f} GB, launched one by one", what, all, 1e-9 * all_bytes));
}

}  // namespace

void profile_steps(Machine& machine, Report& report) {
  const Clock clock(machine);
  for (const Profiled& profiled : kProfiled) {
    if (machine.toy() && profiled.dtype != DType::f32) continue;
    if (clock.over())
      throw Skipped(fmt::format("out of time; {} {} was not measured", profiled.model, profiled.precision));
    try {
      measure(machine, report, profiled);
    } catch (const Error& error) {
      report.check(fmt::format("{} {}", profiled.model, profiled.precision), error.what());
    }
    machine.device().memory().release_cached();
  }
}

}  // namespace fusejit::gpu_check
