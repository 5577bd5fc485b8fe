// The command line of fusejit: CLI11 is met here and nowhere else, it takes long to compile.
#include <CLI/CLI.hpp>
#include <iostream>

#include "tools/fusejit/command.h"
#include "tools/output.h"

namespace fusejit::tools {
namespace {

void add_doctor(CLI::App& program, std::function<int()>& chosen) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command =
      program.add_subcommand("doctor", "What this machine has for fusejit, and how to get what it lacks");
  command->add_flag("--json", options->json, "JSON instead of a table");
  command->add_option("--require", options->required, "Exit with 6 unless these work: x86, cuda-code, cuda")
      ->delimiter(',')
      ->check(CLI::IsMember({"x86", "cuda-code", "cuda"}));
  command->callback([&chosen, options] { chosen = [options] { return doctor(*options); }; });
}

void add_warmup(CLI::App& program, std::function<int()>& chosen) {
  auto options = std::make_shared<WarmupOptions>();
  CLI::App* command = program.add_subcommand(
      "warmup",
      "Plans and compiles before it is needed: what runs recorded with FUSEJIT_RECORD=FILE, graph files, "
      "built-in models");
  command->add_option("SOURCE", options->sources,
                      "Signature files, .fj graphs, or models such as resnet50@16x3x224x224:train (fusejit-dump list)");
  command->add_option("-j,--workers", options->workers, "Worker processes (default: one a processor)")
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("--target", options->targets,
                   "For these targets, such as host, x86:avx2 or cuda:sm_90,cudnn=1, each named by an option of its "
                   "own (default: this processor, and for CUDA what was recorded)")
      ->allow_extra_args(false);
  command->add_option("--rules", options->rules, "Of graphs and models: all or none")
      ->check(CLI::IsMember({"all", "none"}));
  command->add_option("--dtype", options->dtype, "Of models: f32, f64, f16 or bf16");
  command->add_option("--timeout", options->timeout_seconds, "Seconds that one piece of work may take (default 120)")
      ->check(CLI::PositiveNumber);
  command->add_option("--budget", options->budget_seconds, "Seconds for everything; what is begun is finished")
      ->check(CLI::PositiveNumber);
  command->add_flag("--check", options->check, "Make nothing: exit with 3 if something would have to be made");
  command->add_option("--report", options->report, "Write what was done to this file, as JSON");
  command->add_flag("--worker", options->is_worker)->group("");
  command->callback([&chosen, options] {
    if (!options->is_worker && options->sources.empty()) throw CLI::RequiredError("SOURCE");
    chosen = [options] { return options->is_worker ? warmup_worker() : warmup(*options); };
  });
}

}  // namespace

std::function<int()> parse_command_line(int argc, char** argv) {
  CLI::App program("Looks after fusejit on this machine.", "fusejit");
  program.require_subcommand(1);
  program.get_formatter()->column_width(28);
  std::function<int()> chosen;
  add_doctor(program, chosen);
  add_warmup(program, chosen);
  try {
    program.parse(argc, argv);
    return chosen;
  } catch (const CLI::CallForHelp&) {
    const auto parsed = program.get_subcommands();
    std::string help = parsed.empty() ? program.help() : parsed[0]->help();
    return [help = std::move(help)] {
      std::cout << help;
      finish_output();
      return kDone;
    };
  } catch (const CLI::ParseError& error) {
    throw UsageError{error.what()};
  }
}

}  // namespace fusejit::tools
