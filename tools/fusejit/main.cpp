// fusejit: keeps an installation in order. `doctor` says what this machine has and lacks, `warmup` compiles before it
// is needed. This file turns every outcome into an exit code and one first line on stderr (docs/ops.md §14).
#include <cstdio>

#include "tools/fusejit/command.h"
#include "tools/output.h"

namespace {

int failed(int code, const std::string& sentence) {
  std::fprintf(stderr, "fusejit: error: %s\n", sentence.c_str());
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace fusejit::tools;
  try {
    expect_full_files();
    return parse_command_line(argc, argv)();
  } catch (const UsageError& error) {
    return failed(kUsage, error.sentence);
  } catch (const std::exception& error) {
    return failed(exit_code_of(error), sentence_of(error));
  }
}
