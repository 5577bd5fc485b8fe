// fusejit-dump: one file a subcommand. Each adds its options to the program and leaves what to do in the Invocation.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/io/graph_file.h"
#include "fusejit/target.h"

namespace fusejit::tools {

// Exit codes (ops.md §14).
enum ExitCode {
  kDone = 0,
  kUsage = 1,
  kUser = 2,
  kDifferent = 3,
  kUnsupported = 4,
  kFile = 5,
  kDevice = 6,
  kInternal = 7
};

// What the command line asks for.
struct Invocation {
  std::function<int()> run;  // answers with an exit code; throws fusejit::Error
  std::string source;        // the .fj file being read: positions of ParseErrors are in it
  std::string graph_text;    // what an InternalError's repro holds
};

// A wrong option value that CLI11 does not see: exit code 1.
struct UsageError {
  std::string sentence;
};

// "x,w" -> x, w. UsageError for an empty name.
std::vector<std::string> split_names(std::string_view list);
// Opens a .fj file, differentiated by `grad` ("x,w"; empty: not), and notes it in the invocation.
io::GraphFile open_source(Invocation& invocation, const std::string& path, const std::string& grad);

// Reads --target; UsageError for what is none.
Target parse_target(const std::string& text);

void add_run(CLI::App& program, Invocation& invocation);
void add_list(CLI::App& program, Invocation& invocation);
void add_show(CLI::App& program, Invocation& invocation);
void add_why(CLI::App& program, Invocation& invocation);
void add_source(CLI::App& program, Invocation& invocation);
void add_asm(CLI::App& program, Invocation& invocation);

}  // namespace fusejit::tools
