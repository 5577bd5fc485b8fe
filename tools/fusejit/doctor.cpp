#include "tools/fusejit/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "codegen/cuda/nvrtc.h"
#include "fusejit/error.h"
#include "fusejit/target.h"
#include "runtime/cuda/allocator.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/driver.h"
#include "runtime/cudnn/library.h"

#if defined(FUSEJIT_X86)
#include "codegen/x86/compile.h"
#endif

namespace fusejit::tools {
namespace {

// "model name : AMD EPYC 9654" in /proc/cpuinfo.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "a processor of no name";
}

void find_processor(Diagnosis& diagnosis) {
  diagnosis.findings.push_back(
      {"processor", State::works,
       fmt::format("{}, {} threads", processor_name(), std::max(1u, std::thread::hardware_concurrency())), "", ""});
  diagnosis.findings.push_back({"target", State::works, Target::host().str(), "", ""});
}

void find_llvm(Diagnosis& diagnosis) {
#if defined(FUSEJIT_X86)
  const bool can_run = codegen::x86::host_supports(Target::host().isa);
  diagnosis.x86 = can_run;
  diagnosis.findings.push_back({"LLVM", can_run ? State::works : State::missing, codegen::x86::toolchain(), "",
                                can_run ? "" : "a processor with SSE4.2, AVX2 or AVX-512"});
#else
  diagnosis.findings.push_back({"LLVM", State::missing, "this build generates no x86 code", "",
                                "build with FUSEJIT_X86=ON and llvm-19-dev installed"});
#endif
}

void find_devices(Diagnosis& diagnosis) {
  using namespace runtime::cuda;
  const DriverState& state = installed_driver();
  if (!state.driver) {
    diagnosis.findings.push_back({"driver", State::missing, state.why_not, state.path, ""});
    return;
  }
  diagnosis.findings.push_back(
      {"driver", State::works, fmt::format("for CUDA {}", cuda_version_text(state.version)), state.path, ""});
  for (int ordinal = 0; ordinal < state.devices; ++ordinal) {
    Finding found{fmt::format("cuda:{}", ordinal), State::works, "", "", ""};
    try {
      const DeviceProperties p = device_properties(*state.driver, ordinal);
      found.what =
          fmt::format("{}, sm_{}, {} multiprocessors, {} of memory, {} of L2 cache", p.name, p.compute_capability,
                      p.multiprocessors, bytes_text(p.memory_bytes), bytes_text(p.l2_bytes));
      if (p.memory_gigabytes_per_second > 0) found.what += fmt::format(", {:.0f} GB/s", p.memory_gigabytes_per_second);
      diagnosis.cuda = true;
    } catch (const Error& error) {
      found.state = State::missing;
      found.what = error.what();
    }
    diagnosis.findings.push_back(std::move(found));
  }
}

void find_nvrtc(Diagnosis& diagnosis) {
  const codegen::cuda::NvrtcState& state = codegen::cuda::nvrtc();
  if (!state.available) {
    diagnosis.findings.push_back({"NVRTC", State::missing, state.why_not, state.library, ""});
    return;
  }
  Finding found{"NVRTC", State::works, fmt::format("{}.{}", state.major, state.minor), state.library, ""};
  if (!state.architectures.empty()) {
    found.what += fmt::format(", for sm_{} to sm_{}", state.architectures.front(), state.architectures.back());
  }
  const int driver = runtime::cuda::installed_driver().version;
  if (diagnosis.cuda && driver / 1000 < state.major) {
    found.state = State::missing;
    found.what +=
        fmt::format(", whose kernels the driver for CUDA {} cannot load", runtime::cuda::cuda_version_text(driver));
    found.help = fmt::format("a newer driver, or NVRTC {} in FUSEJIT_NVRTC", driver / 1000);
  }
  diagnosis.cuda_code = true;
  diagnosis.cuda &= found.state == State::works;
  diagnosis.findings.push_back(std::move(found));
}

void find_cudnn(Diagnosis& diagnosis) {
  const auto library = runtime::cudnn::Library::load();
  if (library->available()) {
    diagnosis.findings.push_back({"cuDNN", State::works, library->version_text(), library->path(), ""});
  } else {
    diagnosis.findings.push_back({"cuDNN", State::missing, library->why_not(), library->path(), ""});
  }
}

std::string summary(const Diagnosis& d) {
  std::string line = d.x86 ? "Runs on this processor" : "Runs on this processor by the interpreters only";
  if (d.cuda && d.cuda_code) return line + " and on the GPU.";
  if (d.cuda_code) return line + "; CUDA kernels can be compiled and looked at, but there is no GPU to run them.";
  return line + (d.cuda ? "; there is a GPU, but no NVRTC to compile for it." : "; nothing for CUDA.");
}

}  // namespace

Diagnosis diagnose() {
  Diagnosis diagnosis;
  find_processor(diagnosis);
  find_llvm(diagnosis);
  find_devices(diagnosis);
  find_nvrtc(diagnosis);
  find_cudnn(diagnosis);
  diagnosis.cuda &= diagnosis.cuda_code;
  return diagnosis;
}

std::string text(const Diagnosis& diagnosis) {
  std::size_t width = 0;
  for (const Finding& finding : diagnosis.findings) width = std::max(width, finding.part.size());
  std::string result;
  const std::string indent(width + 11, ' ');
  for (const Finding& finding : diagnosis.findings) {
    result += fmt::format("{:<{}}  {:<7}  {}\n", finding.part, width,
                          finding.state == State::works ? "works" : "MISSING", finding.what);
    if (!finding.where.empty()) result += fmt::format("{}at {}\n", indent, finding.where);
    if (!finding.help.empty()) result += fmt::format("{}help: {}\n", indent, finding.help);
  }
  return result + "\n" + summary(diagnosis) + "\n";
}

nlohmann::ordered_json json(const Diagnosis& diagnosis) {
  nlohmann::ordered_json findings = nlohmann::ordered_json::array();
  for (const Finding& finding : diagnosis.findings) {
    findings.push_back({{"part", finding.part},
                        {"works", finding.state == State::works},
                        {"what", finding.what},
                        {"where", finding.where},
                        {"help", finding.help}});
  }
  return {{"findings", findings},
          {"x86", diagnosis.x86},
          {"cuda_code", diagnosis.cuda_code},
          {"cuda", diagnosis.cuda},
          {"summary", summary(diagnosis)}};
}

}  // namespace fusejit::tools
