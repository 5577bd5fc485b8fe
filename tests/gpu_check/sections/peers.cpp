// The same training steps in PyTorch, where this machine has a Python with torch.
#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdio>

#include "tests/gpu_check/sections.h"

namespace fusejit::gpu_check {
namespace {

std::string quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// The exit code of a command and what it printed; a line at a time goes to `each`.
template <typename Each>
int run_lines(const std::string& command, Each each) {
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return -1;
  std::string line;
  for (int c; (c = std::fgetc(pipe)) != EOF;) {
    if (c != '\n') {
      line += static_cast<char>(c);
      continue;
    }
    each(line);
    line.clear();
  }
  if (!line.empty()) each(line);
  const int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

void time_peers(Machine& machine, Report& report) {
  const std::filesystem::path script = machine.options().peers / "pytorch_resnet.py";
  if (machine.options().peers.empty() || !std::filesystem::exists(script)) {
    throw Skipped("the script pytorch_resnet.py is not here (--peers names its folder)");
  }
  std::string python;
  for (const char* candidate : {"python3", "python"}) {
    const std::string probe = fmt::format("{} -c 'import torch' 2> /dev/null", candidate);
    if (python.empty() && run_lines(probe, [](const std::string&) {}) == 0) python = candidate;
  }
  if (python.empty()) throw Skipped("no Python with torch here");
  const std::string limits =
      machine.toy() ? " --batches 1 --size 32 --device cpu --steps 1 --modes eager --precisions f32" : "";
  std::string other;
  const int code =
      run_lines(fmt::format("{} {} --seconds {:.0f}{} 2>&1", python, quoted(script.string()),
                            60 * machine.options().minutes, limits),
                [&](const std::string& line) {
                  const Json row = Json::parse(line, nullptr, false);
                  if (row.is_object() && row.contains("problem")) {
                    report.say(fmt::format("{} is not measured: {}", row.value("what", ""), row.value("problem", "")));
                  } else if (row.is_object()) {
                    report.row(row);
                  } else if (!line.empty()) {
                    other = line;
                  }
                });
  if (code != 0) report.check("the script ran", fmt::format("exit code {}: {}", code, other));
}

}  // namespace fusejit::gpu_check
