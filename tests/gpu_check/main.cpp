// fusejit-gpu-check: what fusejit does on this machine's GPU. Every section runs in a process of its own, because a
// kernel that goes wrong takes the device's context with it; the parent puts what they wrote together.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>

#include "ir/base/check.h"
#include "tests/gpu_check/carry.h"
#include "tests/gpu_check/children.h"
#include "tests/gpu_check/sections.h"
#include "tools/fusejit/doctor.h"
#include "tools/output.h"

namespace fusejit::gpu_check {
namespace {

// Those of fusejit-dump.
enum ExitCode { kDone = 0, kUsage = 1, kDifferent = 3, kFile = 5, kDevice = 6, kInternal = 7 };

struct Arguments {
  std::vector<std::string> only;
  std::string json = "gpu_check.json", table, child, child_file, carry;
  std::string carried, data, peers;
  double minutes = 3;
  bool list = false, no_cudnn = false, anyway = false;
};

MachineOptions machine_options(const Arguments& arguments) {
  MachineOptions options;
  options.cudnn = !arguments.no_cudnn;
  options.minutes = arguments.minutes;
  options.carried = arguments.carried, options.data = arguments.data, options.peers = arguments.peers;
  return options;
}

// Without a GPU: what is missing, and how to get it.
int explain(const tools::Diagnosis& diagnosis) {
  std::fputs(tools::text(diagnosis).c_str(), stdout);
  std::fputs(
      "fusejit-gpu-check: there is nothing to check here: it needs an NVIDIA GPU with its driver, NVRTC (of the CUDA "
      "toolkit, or the wheel nvidia-cuda-nvrtc) and, for convolutions, cuDNN 9 (or the wheel nvidia-cudnn-cu13). What "
      "is MISSING above says where it was looked for.\n",
      stderr);
  return kDevice;
}

int run_child(const Arguments& arguments) {
  const Section* section = find_section(arguments.child);
  FJ_CHECK(section, "no section is named '{}'", arguments.child);
  Machine machine(machine_options(arguments));
  Report report(std::string(section->name), arguments.child_file);
  run(*section, machine, report);
  return kDone;
}

int run_all(const Arguments& arguments, const std::vector<std::string>& forwarded) {
  const tools::Diagnosis diagnosis = tools::diagnose();
  if (!diagnosis.cuda && !arguments.anyway) return explain(diagnosis);
  std::string table = tools::text(diagnosis) + "\n";
  Json all = {{"fusejit_gpu_check", 1}, {"machine", tools::json(diagnosis)}, {"sections", Json::array()}};
  int failed = 0;
  std::fputs(table.c_str(), stdout);
  for (const Section& section : sections()) {
    const bool wanted = arguments.only.empty() ||
                        std::count(arguments.only.begin(), arguments.only.end(), std::string(section.name)) > 0;
    if (!wanted) continue;
    std::fflush(stdout);
    // Compiling and cleaning up take time beside what a section allows itself.
    const Json result = run_section_in_child(section, forwarded, 60 * arguments.minutes + 240);
    failed += result.value("state", "") == "failed";
    const std::string part = text(result);
    std::fputs(part.c_str(), stdout);
    table += part;
    all["sections"].push_back(result);
    std::ofstream(arguments.json) << all.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
  }
  if (!arguments.table.empty()) std::ofstream(arguments.table) << table;
  std::printf("%s: %zu sections, %d failed\n", arguments.json.c_str(), all["sections"].size(), failed);
  tools::finish_output();
  return failed > 0 ? kDifferent : kDone;
}

int run_program(int argc, char** argv) {
  CLI::App program("Checks and measures fusejit on the GPU of this machine.", "fusejit-gpu-check");
  Arguments arguments;
  program.add_option("--only", arguments.only, "These sections only")->delimiter(',');
  program.add_option("--json", arguments.json, "Where the results go");
  program.add_option("--table", arguments.table, "A file for what is printed, too");
  program.add_option("--minutes", arguments.minutes, "What a section may take, about")->check(CLI::Range(0.05, 600.0));
  program.add_option("--carried", arguments.carried, "The folder that --carry made on another machine");
  program.add_option("--carry", arguments.carry,
                     "Compile and plan into this folder, for a machine with a GPU; needs none");
  program.add_option("--data", arguments.data, "The folder of an image set in IDX files; otherwise images are made up");
  program.add_option("--peers", arguments.peers, "The folder of the scripts that measure PyTorch");
  program.add_flag("--no-cudnn", arguments.no_cudnn, "Without cuDNN");
  program.add_flag("--anyway", arguments.anyway, "Run the sections though there is no GPU: each says what it lacks");
  program.add_flag("--list", arguments.list, "The sections");
  program.add_option("--child", arguments.child)->group("");
  program.add_option("--child-file", arguments.child_file)->group("");
  try {
    program.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    program.exit(help);
    tools::finish_output();
    return kDone;
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "fusejit-gpu-check: error: %s\n", error.what());
    return kUsage;
  }
  for (const std::string& name : arguments.only) {
    if (find_section(name)) continue;
    std::fprintf(stderr, "fusejit-gpu-check: error: no section is named '%s' (see --list)\n", name.c_str());
    return kUsage;
  }
  if (arguments.list) {
    for (const Section& section : sections()) {
      std::printf("%-14s %s\n", std::string(section.name).c_str(), std::string(section.meaning).c_str());
    }
    tools::finish_output();
    return kDone;
  }
  if (!arguments.carry.empty()) return carry(arguments.carry), kDone;
  if (!arguments.child.empty()) return run_child(arguments);
  std::vector<std::string> forwarded = {"--minutes", std::to_string(arguments.minutes)};
  for (const auto& [option, value] :
       {std::pair("--carried", arguments.carried), {"--data", arguments.data}, {"--peers", arguments.peers}}) {
    if (!value.empty()) forwarded.insert(forwarded.end(), {option, value});
  }
  if (arguments.no_cudnn) forwarded.push_back("--no-cudnn");
  return run_all(arguments, forwarded);
}

}  // namespace
}  // namespace fusejit::gpu_check

int main(int argc, char** argv) {
  try {
    return fusejit::gpu_check::run_program(argc, argv);
  } catch (const fusejit::FileError& error) {
    std::fprintf(stderr, "fusejit-gpu-check: error: %s\n", error.what());
    return fusejit::gpu_check::kFile;
  } catch (const fusejit::Error& error) {
    std::fprintf(stderr, "fusejit-gpu-check: error: %s\n", error.what());
    return fusejit::gpu_check::kUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fusejit-gpu-check: error: %s\n", error.what());
    return fusejit::gpu_check::kInternal;
  }
}
