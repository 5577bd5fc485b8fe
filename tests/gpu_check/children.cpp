#include "tests/gpu_check/children.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

namespace fusejit::gpu_check {
namespace {

// Waits for the child; "" if it ended well, else a sentence.
std::string wait_for(pid_t child, double seconds) {
  const auto start = std::chrono::steady_clock::now();
  int status = 0;
  for (;;) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (ended < 0) return fmt::format("waiting for it failed: {}", std::strerror(errno));
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > seconds) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return fmt::format("stopped after {:.0f} s", seconds);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  if (WIFSIGNALED(status)) return fmt::format("ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return WEXITSTATUS(status) == 0 ? "" : fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

std::string last_line(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string last;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

}  // namespace

Json run_section_in_child(const Section& section, const std::vector<std::string>& arguments, double seconds) {
  return run_section_in_child("/proc/self/exe", section, arguments, seconds);
}

Json run_section_in_child(const std::string& program, const Section& section, const std::vector<std::string>& arguments,
                          double seconds) {
  static int number = 0;
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / fmt::format("fusejit-gpu-check-{}-{}.json", getpid(), number++);
  const std::filesystem::path said = file.string() + ".said";
  std::vector<std::string> words = {program, "--child", std::string(section.name), "--child-file", file.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const auto start = std::chrono::steady_clock::now();
  const int output = open(said.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const pid_t child = fork();
  if (child == 0) {
    dup2(output, STDERR_FILENO);
    dup2(output, STDOUT_FILENO);
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  if (output >= 0) close(output);
  std::string wrong = child < 0 ? fmt::format("no process for it: {}", std::strerror(errno)) : wait_for(child, seconds);
  std::ifstream in(file);
  Json result = Json::parse(in, nullptr, false);
  const Report empty{std::string(section.name)};
  for (const auto& [key, value] : empty.json().items()) {
    if (result.is_object() && result.contains(key) && result[key].type() == value.type()) continue;
    result = empty.json();
    if (wrong.empty()) wrong = "it wrote no report";
    break;
  }
  if (wrong.empty() && result.value("state", "") == "running") wrong = "its report is not complete";
  if (!wrong.empty()) {
    const std::string line = last_line(said);
    result["state"] = "failed";
    result["sentence"] = line.empty() ? wrong : wrong + "; the last it said: " + line;
    result["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  std::filesystem::remove(said, ignored);
  return result;
}

}  // namespace fusejit::gpu_check
