#include "tests/gpu_check/sections.h"

#include "fusejit/error.h"

namespace fusejit::gpu_check {
namespace {

constexpr Section kSections[] = {
    {"machine", "device, driver, NVRTC, cuDNN; copies and launches work", describe_machine},
    {"errors", "no memory, foreign machine code, a bad kernel: a sentence each, and what can go on does", check_errors},
    {"conformance", "the graphs of tests/conformance against the graph interpreter", check_conformance},
    {"random", "random graphs of every dtype against the graph interpreter", check_random_graphs},
    {"kernels", "generated kernels, bit for bit what the kernel interpreter says", check_kernels},
    {"carried", "cubins and cuDNN plans that were made on a machine without a GPU", check_carried},
    {"cudnn-device", "the real device's description against the written one, and the table probed with it",
     check_cudnn_device},
    {"cudnn-numbers", "precompiled, runtime-compiled and reloaded plans, statistics, masks, NaN", check_cudnn_numbers},
    {"background", "engines compiled at run time take their place in a session", check_background},
    {"training", "the digits network: the step against the interpreter, and the curve", check_training},
    {"bandwidth", "element-wise and reduce kernels against copying", time_bandwidth},
    {"tiers", "ResNet-50's convolutions by cuDNN tier", time_tiers},
    {"steps", "training steps of ResNet-50 and MobileNet-v2", time_steps},
    {"profile", "where the time of ResNet-50's step goes, kernel by kernel", profile_steps},
    {"peers", "the same steps in PyTorch, eager and compiled", time_peers},
};

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

std::span<const Section> sections() { return kSections; }

const Section* find_section(std::string_view name) {
  for (const Section& section : kSections) {
    if (section.name == name) return &section;
  }
  return nullptr;
}

void run(const Section& section, Machine& machine, Report& report) {
  const Clock clock(machine);
  std::string state = "passed", sentence;
  try {
    section.run(machine, report);
    if (report.failures() > 0) state = "failed", sentence = std::to_string(report.failures()) + " checks failed";
  } catch (const Skipped& skipped) {
    state = report.failures() > 0 ? "failed" : "skipped", sentence = first_line(skipped.what());
  } catch (const std::exception& error) {
    state = "failed", sentence = first_line(error.what());
    if (sentence != error.what()) report.say(error.what());
  }
  report.finish(state, sentence, clock.seconds());
}

}  // namespace fusejit::gpu_check
