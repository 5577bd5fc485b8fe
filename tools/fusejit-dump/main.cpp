// fusejit-dump: what ran, how it was grouped, why not more, what code, how good, what changed. This file turns every
// outcome into an exit code and one first line on stderr (ops.md §14).
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>

#include "frontend/io/files.h"
#include "tools/fusejit-dump/command.h"
#include "tools/fusejit-dump/command_line.h"
#include "tools/output.h"

namespace fusejit::tools {
namespace {

int failed(ExitCode code, const std::string& message) {
  std::fprintf(stderr, "fusejit-dump: error: %s\n", message.c_str());
  return code;
}

// The graph and what went wrong, in a file that can be sent to us.
void write_repro(const Invocation& invocation, const std::string& message) {
  try {
    std::string text = "; ";
    for (char c : message) c == '\n' ? text += "\n; " : text += c;
    text += "\n" + invocation.graph_text;
    const std::string path =
        (std::filesystem::temp_directory_path() / ("fusejit-repro-" + std::to_string(getpid()) + ".fj")).string();
    io::write_file(path, std::as_bytes(std::span(text)));
    std::fprintf(stderr, "this is a bug in fusejit; the graph was written to %s\n", path.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "this is a bug in fusejit; the graph could not be written: %s\n", error.what());
  }
}

int run_program(int argc, char** argv) {
  Invocation invocation;
  expect_full_files();
  try {
    parse_command_line(argc, argv, invocation);
    return invocation.run();
  } catch (const UsageError& error) {
    return failed(kUsage, error.sentence);
  } catch (const ParseError& error) {
    std::fprintf(stderr, "%s:%s\n", invocation.source.c_str(), error.what());
    return kUser;
  } catch (const std::exception& error) {
    const int code = failed(exit_code_of(error), sentence_of(error));
    if (code == kInternal) write_repro(invocation, error.what());
    return code;
  }
}

}  // namespace
}  // namespace fusejit::tools

int main(int argc, char** argv) {
  using namespace fusejit::tools;
  try {
    return run_program(argc, argv);
  } catch (const std::bad_alloc&) {  // before there is anything to run
    return failed(kDevice, "cpu: out of memory");
  }
}
