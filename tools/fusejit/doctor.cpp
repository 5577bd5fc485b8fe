#include "tools/fusejit/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "fusejit/error.h"
#include "fusejit/target.h"
#include "ir/base/number.h"
#include "runtime/cuda/backend.h"
#include "runtime/cuda/driver/context.h"
#include "runtime/cuda/memory/allocator.h"
#include "runtime/cudnn/library/device.h"
#include "runtime/disk/settings.h"

#if defined(FUSEJIT_X86)
#include "codegen/x86/compile.h"
#endif

namespace fusejit::tools {
namespace {

struct Libraries {
  const runtime::cuda::DriverState& driver;
  const codegen::cuda::NvrtcState& nvrtc;
  const runtime::cudnn::Library& cudnn;
};

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

// What stands in the way of cuDNN on a device; empty: nothing, or cuDNN is not there at all.
std::string why_no_cudnn(const runtime::cudnn::Library& cudnn, int compute_capability) {
  try {
    if (cudnn.available()) runtime::cudnn::check_architecture(cudnn, compute_capability);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Finding find_device(const Libraries& libraries, int ordinal) {
  using namespace runtime::cuda;
  Finding found{fmt::format("cuda:{}", ordinal), State::works, "", "", ""};
  try {
    const DeviceProperties p = device_properties(*libraries.driver.driver, ordinal);
    found.what =
        fmt::format("{}, sm_{}, {} multiprocessors, {} of memory, {} of L2 cache", p.name, p.compute_capability,
                    p.multiprocessors, ir::bytes_text(p.memory_bytes), ir::bytes_text(p.l2_bytes));
    if (p.memory_gigabytes_per_second > 0) found.what += fmt::format(", {:.0f} GB/s", p.memory_gigabytes_per_second);
    if (libraries.nvrtc.available) {
      found.help = runtime::why_no_kernels(found.part, p.compute_capability, libraries.nvrtc, libraries.driver.version);
    }
    if (!found.help.empty()) found.state = State::missing;
    if (found.help.empty()) found.help = why_no_cudnn(libraries.cudnn, p.compute_capability);
  } catch (const Error& error) {
    found.state = State::missing;
    found.what = error.what();
  }
  return found;
}

void find_devices(Diagnosis& diagnosis, const Libraries& libraries) {
  const runtime::cuda::DriverState& state = libraries.driver;
  if (!state.driver) {
    diagnosis.findings.push_back({"driver", State::missing, state.why_not, state.path, ""});
    return;
  }
  diagnosis.findings.push_back({"driver", State::works,
                                fmt::format("for CUDA {}", runtime::cuda::cuda_version_text(state.version)), state.path,
                                ""});
  for (int ordinal = 0; ordinal < state.devices; ++ordinal) {
    diagnosis.findings.push_back(find_device(libraries, ordinal));
    diagnosis.cuda |= diagnosis.findings.back().state == State::works;
  }
}

void find_nvrtc(Diagnosis& diagnosis, const codegen::cuda::NvrtcState& state) {
  if (!state.available) {
    diagnosis.findings.push_back({"NVRTC", State::missing, state.why_not, state.library, ""});
    return;
  }
  Finding found{"NVRTC", State::works, fmt::format("{}.{}", state.major, state.minor), state.library, ""};
  if (!state.architectures.empty()) {
    found.what += fmt::format(", for sm_{} to sm_{}", state.architectures.front(), state.architectures.back());
  }
  diagnosis.cuda_code = true;
  diagnosis.findings.push_back(std::move(found));
}

void find_cudnn(Diagnosis& diagnosis, const runtime::cudnn::Library& library) {
  if (library.available()) {
    diagnosis.findings.push_back({"cuDNN", State::works, library.version_text(), library.path(), ""});
  } else {
    diagnosis.findings.push_back({"cuDNN", State::missing, library.why_not(), library.path(), ""});
  }
}

// Where plans and kernels are kept, who said so, and whether that can be used. Nothing is made for the question.
void find_cache(Diagnosis& diagnosis) {
  using namespace runtime::disk;
  Finding found{"cache", State::works, "", "", ""};
  try {
    CacheSettings settings = cache_settings();
    if (!settings.off.empty()) {
      found.what = "off: " + settings.off;
    } else {
      settings.options.read_only = true;
      const bool is_there = std::filesystem::exists(settings.options.folder);
      const std::string why = is_there ? DiskCache(settings.options).why_unusable() : "";
      found.state = why.empty() ? State::works : State::missing;
      found.what = fmt::format("{}, at most {}{}", settings.origin, ir::bytes_text(settings.options.most.bytes),
                               why.empty() ? "" : "; cannot be used: " + why);
      found.where = settings.options.folder;
      if (!why.empty()) found.help = "FUSEJIT_CACHE_DIR names another folder, FUSEJIT_CACHE=off does without";
    }
  } catch (const UserError& error) {
    found.state = State::missing, found.what = error.what();
  }
  diagnosis.findings.push_back(std::move(found));
}

std::string summary(const Diagnosis& d) {
  std::string line = d.x86 ? "Runs on this processor" : "Runs on this processor by the interpreters only";
  if (d.cuda && d.cuda_code) return line + " and on the GPU.";
  const bool gpu = std::any_of(d.findings.begin(), d.findings.end(),
                               [](const Finding& finding) { return finding.part.starts_with("cuda:"); });
  if (d.cuda_code && gpu) return line + "; CUDA kernels can be compiled, but not run: what is MISSING above says why.";
  if (d.cuda_code) return line + "; CUDA kernels can be compiled and looked at, but there is no GPU to run them.";
  return line + (gpu ? "; there is a GPU, but no NVRTC to compile for it." : "; nothing for CUDA.");
}

}  // namespace

Diagnosis diagnose(const runtime::cuda::DriverState& driver, const codegen::cuda::NvrtcState& nvrtc,
                   const runtime::cudnn::Library& cudnn) {
  Diagnosis diagnosis;
  find_processor(diagnosis);
  find_llvm(diagnosis);
  find_devices(diagnosis, {driver, nvrtc, cudnn});
  find_nvrtc(diagnosis, nvrtc);
  find_cudnn(diagnosis, cudnn);
  find_cache(diagnosis);
  diagnosis.cuda &= diagnosis.cuda_code;
  return diagnosis;
}

Diagnosis diagnose() {
  return diagnose(runtime::cuda::installed_driver(), codegen::cuda::nvrtc(), *runtime::cudnn::Library::load());
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
