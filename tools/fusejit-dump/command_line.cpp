#include "tools/fusejit-dump/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <sstream>

#include "tools/memory_limit_option.h"
#include "tools/output.h"
#include "tools/rules_option.h"
#include "tools/tune_option.h"

namespace fusejit::tools {
namespace {

const char* const kScheduleHelp =
    "A file of schedules, as source --stage schedule prints them, that are built in place of the chosen ones";

CLI::Validator is_named() {
  return {[](const std::string& path) { return std::string(path.empty() ? "the name of a file is empty" : ""); }, ""};
}
CLI::Validator dtypes() { return CLI::IsMember({"f32", "f64", "bf16", "f16"}); }

void add_choices(CLI::App& command, PlanOptions& options) {
  command.add_option("--target", options.target, "The machine to generate code for, for example x86:avx2");
  add_rules(command, "--rules", options.rules, kRulesHelp);
  add_memory_limit(command, options.memory_limit);
  command.add_option("--grad", options.grad, "Differentiate by these parameters: x,w");
  command.add_option("--dtype", options.dtype, "Of a built-in model's images and parameters: f32, f64, bf16 or f16")
      ->check(dtypes());
  command.add_option("--schedule", options.schedule, kScheduleHelp)->check(is_named());
}

void add_plan_options(CLI::App& command, PlanOptions& options, bool source_required = true) {
  command
      .add_option("source", options.source,
                  "A .fj file, a built-in model (convnet@256:train), or one of the plans of a run under FUSEJIT_RECORD "
                  "(runs.fjs#2)")
      ->required(source_required);
  add_choices(command, options);
}

void add_format(CLI::App& command, PlanOptions& options) {
  command.add_option("--format", options.format, "text or json")->check(CLI::IsMember({"text", "json"}));
}

CLI::Option* add_output(CLI::App& command, std::string& output, const char* meaning) {
  return command.add_option("-o,--output", output, meaning)->check(is_named());
}

// What the subcommand does with its options, if it is the one that was asked for.
template <class Options>
void on_call(CLI::App& command, const std::shared_ptr<Options>& options, Invocation& invocation,
             int (*subcommand)(const Options&, Invocation&)) {
  command.callback([options, given = &command, &invocation, subcommand] {
    options->has_grad = given->count("--grad") > 0;
    invocation.run = [options, &invocation, subcommand] { return subcommand(*options, invocation); };
  });
}

void add_list(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App& command = *program.add_subcommand("list", "The built-in models, or the kernels of a SOURCE");
  add_plan_options(command, *options, false);
  add_format(command, *options);
  on_call(command, options, invocation, list);
}

void add_show(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<ShowOptions>();
  CLI::App& command =
      *program.add_subcommand("show", "The kernels of a SOURCE: ops, bytes, the ledger beside the bound");
  add_plan_options(command, *options);
  add_format(command, *options);
  command.add_flag(
      "--compile", options->compile,
      "Compile the kernels: LLVM instructions and bytes of code; on cuda registers, spilled bytes and shared "
      "memory, by default where NVRTC is");
  command.add_flag("--no-compile", options->no_compile, "Do not, on cuda");
  command.add_option("--kernel", options->kernel, "Only this kernel, with its schedules: its number, or its name");
  on_call(command, options, invocation, show);
}

void add_why(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<WhyOptions>();
  CLI::App& command = *program.add_subcommand("why", "Every pair that was not fused: reason and bytes, largest first");
  add_plan_options(command, *options);
  add_format(command, *options);
  command.add_flag(
      "--summary", options->summary,
      "Pairs of the same ops and reason together, those that move most first, with the largest one's sentence");
  on_call(command, options, invocation, why);
}

void add_fusions(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App& command = *program.add_subcommand("fusions", "What was fused: the ops of each kernel and the bytes saved");
  add_plan_options(command, *options);
  add_format(command, *options);
  command.footer(
      "A line has key=value pairs: what each op is in the kernel (contraction, bias_add, normalization, activation,\n"
      "side_input, reduction, window, layout, elementwise, loss, update; gradients end in _grad) with the ops as\n"
      "LAYER/OP, several joined by commas; then ops (recorded ones), kernel, and saved_bytes: of each value of the\n"
      "recorded graph that is not written because nobody else needs it, and of each that an op of the same kernel "
      "does\n"
      "not read back. The last line sums up.");
  on_call(command, options, invocation, fusions);
}

void add_texts(CLI::App& command, const std::shared_ptr<TextOptions>& options, Invocation& invocation) {
  add_plan_options(command, *options);
  add_format(command, *options);
  command.add_option("--kernel", options->kernel, "Only this kernel: its number in the plan, or its name");
  on_call(command, options, invocation, put_stage);
}

void add_source(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<TextOptions>();
  CLI::App& command = *program.add_subcommand("source", "The text of a SOURCE at one stage");
  command
      .add_option("--stage", options->stage,
                  "graph, optimised (the graph that show and why speak of), plan, schedule (what --schedule reads), "
                  "kernel, llvm (x86) or cuda (CUDA C++); where "
                  "none is said, cuda for a cuda target, else kernel")
      ->check(CLI::IsMember({"graph", "optimised", "plan", "schedule", "kernel", "llvm", "cuda"}));
  command.add_flag(
      "--standalone", options->standalone,
      "One file that a compiler takes as it stands, each different kernel once: cuda (for NVRTC, nvcc, or a "
      "C++ compiler to check it) or llvm (for llc, opt, clang); it says the compiler's options and how each "
      "kernel is launched");
  add_texts(command, options, invocation);
}

void add_asm(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<TextOptions>();
  options->stage = "asm";
  add_texts(*program.add_subcommand("asm", "The assembly of a SOURCE's kernels; on cuda their PTX"), options,
            invocation);
}

void add_extract(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<ExtractOptions>();
  CLI::App& command = *program.add_subcommand("extract", "One kernel of a SOURCE as a file for other tools");
  add_plan_options(command, *options);
  command.add_option("--kernel", options->kernel, "The kernel: its number in the plan, or its name");
  add_output(
      command, options->output,
      "The file to write. Its suffix says what: .kir (loops); for x86 .ll (LLVM IR), .s (assembly, for llvm-mca), "
      ".o (for objdump); for cuda .cu (CUDA C++), .ptx, .cubin (for cuobjdump, nvdisasm, ncu)");
  command.get_option("--output")->required();
  on_call(command, options, invocation, extract);
}

void add_graph(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<GraphOptions>();
  CLI::App& command = *program.add_subcommand("graph", "A picture of a SOURCE's plan, or of the SOURCE as recorded");
  add_plan_options(command, *options);
  options->format.clear();
  add_output(command, options->output, "The file to write: x.svg, x.dot or x.html");
  command.add_option("--format", options->format, "svg or dot, whatever the file is called")
      ->check(CLI::IsMember({"svg", "dot"}));
  command.add_option("--stage", options->stage, "before (as recorded) or after (the plan)")
      ->check(CLI::IsMember({"before", "after"}));
  on_call(command, options, invocation, graph);
}

void add_html(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<HtmlOptions>();
  CLI::App& command =
      *program.add_subcommand("html", "Everything about a SOURCE's plan as one page to be read in a browser");
  add_plan_options(command, *options);
  add_output(command, options->output, "The file to write");
  command.add_flag("--asm", options->code,
                   "Assembly (on cuda PTX) and figures of every kernel, by default where there are fewer than 60");
  command.add_flag("--no-asm", options->no_code, "Neither");
  command.add_flag(
      "--measure", options->measure,
      "Run the plan on made-up arguments: how long each kernel takes on this machine, and how long it takes at least");
  on_call(command, options, invocation, html);
}

void add_diff(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<DiffOptions>();
  CLI::App& command =
      *program.add_subcommand("diff", "How the plans of two SOURCEs differ, or of one under two options");
  command.add_option("old", options->before.source, "A .fj file, or a built-in model")->required();
  command.add_option("new", options->after.source, "Another one, or the same")->required();
  add_choices(command, *options);
  add_format(command, *options);
  for (const auto& [name, side] : {std::pair("old", &options->before), std::pair("new", &options->after)}) {
    const std::string prefix = std::string("--") + name, meaning = std::string("Of the ") + name + " one alone";
    command.add_option(prefix + "-target", side->target, meaning);
    add_rules(command, prefix + "-rules", side->rules, meaning);
    command.add_option(prefix + "-dtype", side->dtype, meaning)->check(dtypes());
    command.add_option(prefix + "-schedule", side->schedule, meaning)->check(is_named());
  }
  on_call(command, options, invocation, diff);
}

void add_steps(CLI::App& command, int& steps, int& threads) {
  command.add_option("--steps", steps, "How many are run")->check(CLI::Range(1, 1000000));
  command.add_option("--threads", threads, "0: every processor")->check(CLI::Range(0, 4096));
}

void add_time(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<TimeOptions>();
  CLI::App& command = *program.add_subcommand(
      "time", "Run a SOURCE on made-up arguments: how long each kernel takes, beside what this machine can do");
  add_plan_options(command, *options);
  add_format(command, *options);
  add_steps(command, options->steps, options->threads);
  add_tune(command, options->tune,
           "quick or full: with schedules chosen by their time (Options::tune), beside the plan as it is without");
  add_output(command, options->output, "A file to write the schedules to that were timed, as --schedule reads them");
  on_call(command, options, invocation, time_kernels);
}

void add_timeline(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<TimelineOptions>();
  CLI::App& command = *program.add_subcommand(
      "timeline", "Plan, compile and run a SOURCE on made-up arguments: a trace of it for ui.perfetto.dev");
  add_plan_options(command, *options);
  add_output(command, options->output, "The file to write, JSON of Chrome's trace events")->required();
  add_steps(command, options->steps, options->threads);
  on_call(command, options, invocation, timeline);
}

void add_repro(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<ReproOptions>();
  CLI::App& command = *program.add_subcommand(
      "repro",
      "Run a SOURCE on made-up arguments and write a folder that reproduces one of its kernels: graph, inputs, "
      "what is expected, loops, assembly, and a CMake project that checks and times it");
  add_plan_options(command, *options);
  command.add_option("--kernel", options->kernel, "Its number in the plan, or its name")->required();
  add_output(command, options->output, "The folder to make")->required();
  on_call(command, options, invocation, repro);
}

void add_run(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<RunOptions>();
  CLI::App& command = *program.add_subcommand("run", "Run a graph file on arrays");
  command.add_option("graph", options->graph, "The graph, a .fj file")->required();
  command.add_option("--inputs", options->inputs, "An .npz or .safetensors with one array per parameter")
      ->check(is_named());
  command
      .add_option("--outputs", options->outputs,
                  "The .npz or .safetensors that the results out0, out1, ... are written to")
      ->check(is_named());
  command.add_option("--grad", options->grad, "Differentiate by these parameters: x,w");
  command.add_option("--device", options->device, "cpu or cuda:0");
  command.add_option("--check", options->check, "An .npz or .safetensors with the expected results")->check(is_named());
  command.add_option("--rtol", options->tolerance.relative, "Relative tolerance of --check")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--atol", options->tolerance.absolute, "Absolute tolerance of --check")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--engine", options->engine, "What runs the graph")
      ->check(CLI::IsMember({"compiled", "graph", "kernel"}));
  add_rules(command, "--rules", options->rules, kRulesHelp);
  command.add_option("--target", options->target, "The machine to generate code for, for example x86:avx2");
  command.add_option("--schedule", options->schedule, kScheduleHelp)->check(is_named());
  on_call(command, options, invocation, run_graph);
}

int put_help(const std::string& text) {
  std::cout << text;
  finish_output();
  return kDone;
}

}  // namespace

void parse_command_line(int argc, char** argv, Invocation& invocation) {
  CLI::App program("Runs graph files and shows what fusejit makes of them.", "fusejit-dump");
  program.require_subcommand(1);
  for (const auto add : {add_list, add_show, add_why, add_fusions, add_source, add_asm, add_extract, add_graph,
                         add_html, add_diff, add_time, add_timeline, add_repro, add_run})
    add(program, invocation);
  try {
    program.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    std::ostringstream text;
    program.exit(help, text);
    invocation.run = [text = text.str()] { return put_help(text); };
  } catch (const CLI::ParseError& error) {
    if (program.get_subcommands().empty() && argc > 1 && argv[1][0] != '-')
      throw UsageError{fmt::format("there is no subcommand {}; see fusejit-dump --help", argv[1])};
    throw UsageError{error.what()};
  }
}

}  // namespace fusejit::tools
