// fusejit: keeps an installation in order. `fusejit doctor` says what this machine has and lacks.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/fusejit/doctor.h"
#include "tools/output.h"

namespace fusejit::tools {
namespace {

// Those of fusejit-dump.
enum ExitCode { kDone = 0, kUsage = 1, kFile = 5, kDevice = 6, kInternal = 7 };

struct DoctorOptions {
  bool json = false;
  std::vector<std::string> required;
};

int doctor(const DoctorOptions& options) {
  const Diagnosis diagnosis = diagnose();
  const std::string report = options.json ? json(diagnosis).dump(2) + "\n" : text(diagnosis);
  std::fputs(report.c_str(), stdout);
  finish_output();
  const auto lacks = [&](const char* name, bool there) {
    const bool wanted = std::find(options.required.begin(), options.required.end(), name) != options.required.end();
    if (wanted && !there) std::fprintf(stderr, "fusejit: error: %s was required and does not work here\n", name);
    return wanted && !there;
  };
  const bool x86 = lacks("x86", diagnosis.x86), code = lacks("cuda-code", diagnosis.cuda_code);
  return lacks("cuda", diagnosis.cuda) || x86 || code ? kDevice : kDone;
}

int run(int argc, char** argv) {
  expect_full_files();
  CLI::App program("Looks after fusejit on this machine.", "fusejit");
  program.require_subcommand(1);
  DoctorOptions options;
  CLI::App* command =
      program.add_subcommand("doctor", "What this machine has for fusejit, and how to get what it lacks");
  command->add_flag("--json", options.json, "JSON instead of a table");
  command->add_option("--require", options.required, "Exit with 6 unless these work: x86, cuda-code, cuda")
      ->delimiter(',')
      ->check(CLI::IsMember({"x86", "cuda-code", "cuda"}));
  try {
    program.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    program.exit(help);
    finish_output();
    return kDone;
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "fusejit: error: %s\n", error.what());
    return kUsage;
  }
  return doctor(options);
}

}  // namespace
}  // namespace fusejit::tools

int main(int argc, char** argv) {
  try {
    return fusejit::tools::run(argc, argv);
  } catch (const fusejit::FileError& error) {
    std::fprintf(stderr, "fusejit: error: %s\n", error.what());
    return fusejit::tools::kFile;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "fusejit: error: cpu: out of memory\n");
    return fusejit::tools::kDevice;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fusejit: error: %s\n", error.what());
    return fusejit::tools::kInternal;
  }
}
