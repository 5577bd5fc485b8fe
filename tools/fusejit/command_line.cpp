// The command line of fusejit: CLI11 is met here and nowhere else, it takes long to compile.
#include <CLI/CLI.hpp>
#include <iostream>

#include "runtime/disk/settings.h"
#include "tools/fusejit/command.h"
#include "tools/memory_limit_option.h"
#include "tools/output.h"
#include "tools/rules_option.h"
#include "tools/tune_option.h"

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

void add_targets(CLI::App& command, std::vector<std::string>& targets) {
  command
      .add_option("--target", targets,
                  "For these targets, such as host, x86:avx2 or cuda:sm_90,cudnn=1, each named by an option of its own "
                  "(default: this processor, and for CUDA what was recorded)")
      ->allow_extra_args(false);
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
  add_targets(*command, options->targets);
  add_rules(*command, "--rules", options->rules, kRulesHelp);
  add_memory_limit(*command, options->memory_limit);
  command->add_option("--dtype", options->dtype, "Of models: f32, f64, f16 or bf16");
  command->add_option("--timeout", options->timeout_seconds, "Seconds that one piece of work may take (default 120)")
      ->check(CLI::PositiveNumber);
  command->add_option("--budget", options->budget_seconds, "Seconds for everything; what is begun is finished")
      ->check(CLI::PositiveNumber);
  command->add_flag("--check", options->check, "Make nothing: exit with 3 if something would have to be made");
  command->add_option("--report", options->report, "Write what was done to this file, as JSON");
  command->add_option("-o,--output", options->output, "Write all of it into a bundle too, to be shipped");
  command->add_flag("--worker", options->is_worker)->group("");
  command->callback([&chosen, options] {
    if (!options->is_worker && options->sources.empty()) throw CLI::RequiredError("SOURCE");
    chosen = [options] { return options->is_worker ? warmup_worker() : warmup(*options); };
  });
}

struct CacheCommand {
  CLI::App& app;
  std::shared_ptr<CacheOptions> options;
};

void add_cache(CLI::App& program, std::function<int()>& chosen) {
  CLI::App* cache = program.add_subcommand(
      "cache", "The plans and kernels on disk (FUSEJIT_CACHE_DIR, else ~/.cache/fusejit/compiled)");
  cache->require_subcommand(1);
  const auto add = [&](const char* name, const char* meaning, int (*run)(const CacheOptions&)) {
    auto options = std::make_shared<CacheOptions>();
    CLI::App* command = cache->add_subcommand(name, meaning);
    command->add_option("--cache", options->folder, "Another folder than the user's");
    command->callback([&chosen, options, run] { chosen = [options, run] { return run(*options); }; });
    return CacheCommand{*command, options};
  };
  add("path", "Where it is", cache_path);
  const auto stats = add("stats", "How many entries of each kind, and their bytes", cache_stats);
  stats.app.add_flag("--json", stats.options->json, "JSON instead of a table");
  const auto list = add("list", "Every entry: id, kind, bytes, what it is", cache_list);
  list.app.add_flag("--json", list.options->json, "JSON instead of a table");
  const auto explain = add("explain",
                           "Whether plan and kernels of a SOURCE are there, and which part of the key of the "
                           "nearest entry differs; exit with 3 if they are not",
                           cache_explain);
  explain.app.add_option("SOURCE", explain.options->sources, "As for warmup")->required();
  add_targets(explain.app, explain.options->targets);
  add_rules(explain.app, "--rules", explain.options->rules, kRulesHelp);
  add_memory_limit(explain.app, explain.options->memory_limit);
  explain.app.add_option("--dtype", explain.options->dtype, "Of models: f32, f64, f16 or bf16");
  const auto verify = add("verify", "Reads every entry; exit with 3 if one is damaged", cache_verify);
  verify.app.add_flag("--fix", verify.options->fix, "Remove those");
  const auto prune = add("prune", "Removes what was not used for long, or the least recently used", cache_prune);
  prune.app.add_option_function<std::string>(
      "--max-size",
      [to = prune.options](const std::string& text) { to->most_bytes = runtime::disk::parse_size("--max-size", text); },
      "Until so much is left, such as 500M");
  prune.app.add_option("--max-files", prune.options->most_files, "Until so many are left")
      ->check(CLI::NonNegativeNumber);
  prune.app.add_option("--older-than", prune.options->older_than_days, "What was not used for so many days")
      ->check(CLI::NonNegativeNumber);
  prune.app.add_flag("--dry-run", prune.options->dry_run, "Only say what would go");
  const auto clear = add("clear", "Removes everything", cache_prune);
  clear.options->clear = true;
  const auto out = add("export",
                       "Writes everything into one file, to be shipped and imported, or used as it is "
                       "(FUSEJIT_CACHE_BUNDLES)",
                       cache_export);
  out.app.add_option("-o,--output", out.options->output, "The bundle to write, such as kernels.fjb")->required();
  const auto in = add("import", "Takes the entries of bundles into the cache", cache_import);
  in.app.add_option("BUNDLE", in.options->sources, "Files that export or merge wrote")->required();
  in.app.add_flag("--trust", in.options->trust, "They hold machine code; you know who made it");
  const auto merge = add("merge", "Makes one bundle of several", cache_merge);
  merge.app.add_option("BUNDLE", merge.options->sources, "Files that export or merge wrote")->required();
  merge.app.add_option("-o,--output", merge.options->output, "The bundle to write")->required();
}

void add_bench(CLI::App& program, std::function<int()>& chosen) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = program.add_subcommand("bench", "Times a built-in model's step, or a graph file");
  command->add_option("SOURCE", options->source, "Such as resnet50@16x3x224x224:train, resnet50@1x3x224x224, graph.fj")
      ->required();
  command->add_option("--dtype", options->dtype, "Of a model: f32, f64, f16 or bf16");
  command->add_option("--steps", options->steps, "So many after the first (default 10)")->check(CLI::Range(1, 1000000));
  command->add_option("--threads", options->threads, "Default: one a processor")->check(CLI::Range(0, 1024));
  add_rules(*command, "--rules", options->rules, kRulesHelp);
  add_memory_limit(*command, options->memory_limit);
  add_tune(*command, options->tune, "Schedules chosen by their time, in the first step: off, quick or full");
  command->add_option("--target", options->target, "Such as x86:avx2 (default: this processor)");
  command->add_option("--device", options->device, "cpu or cuda:0");
  command->add_flag("--json", options->json, "JSON instead of sentences");
  command->callback([&chosen, options] { chosen = [options] { return bench(*options); }; });
}

void add_convert(CLI::App& program, std::function<int()>& chosen) {
  auto options = std::make_shared<ConvertOptions>();
  CLI::App* command = program.add_subcommand("convert", "Named values, such as a network's weights, as another file");
  command->add_option("IN", options->input, "A file of .npz, .safetensors or .onnx")->required();
  command->add_option("OUT", options->output, "A file of .npz or .safetensors")->required();
  command->add_option("--model", options->model,
                      "They must be those of this built-in model, such as resnet50; entries called "
                      "num_batches_tracked are left out");
  command->callback([&chosen, options] { chosen = [options] { return convert(*options); }; });
}

}  // namespace

std::function<int()> parse_command_line(int argc, char** argv) {
  CLI::App program("Looks after fusejit on this machine.", "fusejit");
  program.require_subcommand(1);
  program.get_formatter()->column_width(28);
  std::function<int()> chosen;
  add_doctor(program, chosen);
  add_warmup(program, chosen);
  add_cache(program, chosen);
  add_bench(program, chosen);
  add_convert(program, chosen);
  try {
    program.parse(argc, argv);
    return chosen;
  } catch (const CLI::CallForHelp&) {
    const CLI::App* asked = &program;
    while (!asked->get_subcommands().empty()) asked = asked->get_subcommands()[0];
    std::string help = asked->help();
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
