#include "tests/gpu_check/carry.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "codegen/cuda/nvrtc.h"
#include "ir/base/check.h"
#include "runtime/cudnn/support/probe.h"
#include "tests/gpu_check/cudnn_run.h"
#include "tests/gpu_check/kernel_run.h"
#include "tests/gpu_check/sections.h"

namespace fusejit::gpu_check {
namespace {

constexpr int kArchitectures[] = {80, 90, 100, 120};

std::vector<codegen::cuda::CudaSource> sources(const std::vector<KernelCase>& cases) {
  std::vector<codegen::cuda::CudaSource> list;
  for (const KernelCase& c : cases) {
    list.push_back(codegen::cuda::emit(*c.kernel, runtime::cuda::entry_name(*c.kernel)));
  }
  return list;
}

std::vector<KernelCase> carried_cases() {
  std::vector<KernelCase> cases;
  for (const EmbeddedKernel& embedded : embedded_kernels()) cases.push_back(case_of(embedded));
  return cases;
}

void write(const std::filesystem::path& file, std::string_view bytes) {
  std::ofstream out(file, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw FileError("cannot write " + file.string());
}

std::string read(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw FileError("cannot read " + file.string());
  std::stringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

void carry_cubins(const std::filesystem::path& folder, Json& manifest) {
  const std::string program = codegen::cuda::program(sources(carried_cases()));
  for (const int architecture : kArchitectures) {
    try {
      const std::string file = fmt::format("kernels_sm_{}.cubin", architecture);
      write(folder / file, codegen::cuda::compile(program, architecture).cubin);
      manifest["cubins"].push_back({{"architecture", architecture}, {"file", file}});
    } catch (const UnsupportedError& error) {
      manifest["missing"].push_back(fmt::format("cubin for sm_{}: {}", architecture, error.what()));
    }
  }
}

void carry_plans(const std::filesystem::path& folder, Json& manifest) {
  // Runtime-compiled engines are planned only where a driver can be loaded.
  const std::string substitute = FUSEJIT_DRIVER_WITHOUT_DEVICE;
  const bool has_driver = cudnn::load_driver_for_planning(substitute);
  const auto library = cudnn::Library::load();
  if (!library->available()) {
    manifest["missing"].push_back("cuDNN plans: " + library->why_not());
    return;
  }
  manifest["cudnn"] = library->version_text();
  if (!has_driver) manifest["missing"].push_back("runtime-compiled cuDNN plans: no driver can be loaded");
  for (const int architecture : {80, 90, 100}) {
    cudnn::Descriptor device;
    try {
      device = cudnn::describe_device(library, *cudnn::device_of(architecture));
    } catch (const Error& error) {
      manifest["missing"].push_back(fmt::format("cuDNN plans for sm_{}: {}", architecture, error.what()));
      continue;
    }
    for (const NamedCall& call : checked_calls()) {
      if (call.compiled && !has_driver) continue;
      try {
        const std::string file = fmt::format("plan_sm_{}_{}.json", architecture, manifest["plans"].size());
        write(folder / file, plan_of(library, device, call).json());
        manifest["plans"].push_back({{"architecture", architecture}, {"call", call.name}, {"file", file}});
      } catch (const DeviceError& error) {
        manifest["missing"].push_back(fmt::format("{} for sm_{}: {}", call.name, architecture, error.what()));
      }
    }
  }
}

void check_carried_cubins(Machine& machine, Report& report, const Json& manifest) {
  const int capability = machine.device().context().properties().compute_capability;
  const std::vector<KernelCase> cases = carried_cases();
  const std::vector<codegen::cuda::CudaSource> texts = sources(cases);
  for (const Json& cubin : manifest["cubins"]) {
    if (cubin["architecture"] != capability) continue;
    const std::string bytes = read(machine.options().carried / cubin["file"].get<std::string>());
    const auto module = std::make_shared<runtime::cuda::Module>(machine.device().context(), bytes);
    for (std::size_t c = 0; c < cases.size(); ++c) {
      std::string wrong;
      try {
        wrong =
            disagreement(machine, runtime::cuda::load_kernel(machine.device().context(), module, texts[c]), cases[c]);
      } catch (const Error& error) {
        wrong = error.what();
      }
      report.check("cubin: " + cases[c].name, wrong);
    }
    report.say(fmt::format("{} kernels of {} run", cases.size(), cubin["file"].get<std::string>()));
    return;
  }
  report.say(fmt::format("no cubin for sm_{} was carried", capability));
}

std::string check_carried_plan(Machine& machine, CudnnOnDevice& on_device, const NamedCall& call,
                               const std::string& file) {
  const cudnn::Plan plan =
      cudnn::reload_plan(on_device.library(), on_device.device(), call.call, read(machine.options().carried / file));
  const Tensors inputs = made_up(call.call, plan.tensors, 3), want = meant(call.call, inputs);
  const Tensors got = on_device.run(plan, call.call, inputs);
  for (const auto& [role, values] : want) {
    double worst = 0, largest = 1e-30;
    for (std::size_t i = 0; i < values.size(); ++i) {
      worst = std::max(worst, std::abs(got.at(role)[i] - values[i]));
      largest = std::max(largest, std::abs(values[i]));
    }
    if (!(worst <= call.tolerance * largest))
      return fmt::format("{} is off by {:.2g} of its largest", name(role), worst / largest);
  }
  return "";
}

}  // namespace

void carry(const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw FileError(fmt::format("cannot make the folder {}: {}", folder.string(), failed.message()));
  Json manifest = {{"nvrtc", codegen::cuda::nvrtc_identity()},
                   {"cudnn", "none"},
                   {"cubins", Json::array()},
                   {"plans", Json::array()},
                   {"missing", Json::array()}};
  carry_cubins(folder, manifest);
  carry_plans(folder, manifest);
  write(folder / "manifest.json", manifest.dump(1) + "\n");
  fmt::print("{}: {} cubins, {} cuDNN plans\n", folder.string(), manifest["cubins"].size(), manifest["plans"].size());
  for (const Json& missing : manifest["missing"]) fmt::print("not made: {}\n", missing.get<std::string>());
}

void check_carried(Machine& machine, Report& report) {
  const std::filesystem::path folder = machine.options().carried;
  if (folder.empty()) throw Skipped("nothing was carried here (--carried)");
  const Json manifest = Json::parse(read(folder / "manifest.json"));
  report.say(fmt::format("made with {}, cuDNN {}", manifest.value("nvrtc", ""), manifest.value("cudnn", "")));
  check_carried_cubins(machine, report, manifest);
  const int capability = machine.device().context().properties().compute_capability;
  CudnnOnDevice on_device(machine);
  int run = 0;
  for (const Json& carried : manifest["plans"]) {
    if (carried["architecture"] != capability) continue;
    for (const NamedCall& call : checked_calls()) {
      if (call.name != carried["call"]) continue;
      std::string wrong;
      try {
        wrong = check_carried_plan(machine, on_device, call, carried["file"].get<std::string>());
      } catch (const Error& error) {
        wrong = error.what();
      }
      report.check("plan made elsewhere: " + call.name, wrong);
      ++run;
    }
  }
  report.say(fmt::format("{} plans for sm_{}", run, capability));
}

}  // namespace fusejit::gpu_check
