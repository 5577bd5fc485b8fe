#include "tests/reliability/worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <sstream>
#include <thread>

#include "runtime/disk/entry.h"
#include "tests/support/nightly.h"

namespace fusejit::testing {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Worker::Worker(const std::vector<std::string>& arguments, const Surroundings& around) : start_(seconds_now()) {
  std::vector<std::string> words = {around.program.empty() ? FUSEJIT_WORKER : around.program},
                           settings = {"PATH=/usr/bin:/bin"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  if (!around.cache.empty()) settings.push_back("FUSEJIT_CACHE_DIR=" + around.cache);
  for (const auto& [name, value] : around.variables) settings.push_back(name + "=" + value);
  if (const char* mutant = std::getenv("FUSEJIT_MUTANT")) settings.push_back(fmt::format("FUSEJIT_MUTANT={}", mutant));
  const auto pointers = [](std::vector<std::string>& all) {
    std::vector<char*> result;
    for (std::string& one : all) result.push_back(one.data());
    result.push_back(nullptr);
    return result;
  };
  std::vector<char*> argv = pointers(words), environment = pointers(settings);
  const std::string out = *said_ / "out", err = *said_ / "err";
  process_ = ::fork();
  ::setpgid(process_, process_);  // both do it: whoever comes later finds it done
  if (process_ != 0) return;
  ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
  ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
  const bool ready = ::chdir(around.folder.c_str()) == 0 &&
                     (around.user == 0 || (::setgid(around.user) == 0 && ::setuid(around.user) == 0));
  if (ready) ::execve(argv[0], argv.data(), environment.data());
  ::_exit(127);
}

Worker::Worker(Worker&& other) noexcept
    : said_(std::move(other.said_)),
      process_(std::exchange(other.process_, -1)),
      status_(other.status_),
      has_ended_(other.has_ended_),
      start_(other.start_) {}

Worker::~Worker() {
  if (process_ <= 0 || has_ended_) return;
  kill_group();
  ::waitpid(process_, nullptr, 0);
}

void Worker::kill_group() const { ::kill(-process_, SIGKILL); }

bool Worker::is_running() {
  if (!has_ended_) has_ended_ = ::waitpid(process_, &status_, WNOHANG) == process_;
  return !has_ended_;
}

Outcome Worker::wait() {
  Outcome outcome;
  while (is_running() && seconds_now() - start_ < (testing::is_nightly() ? 600 : 60))
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  outcome.seconds = seconds_now() - start_;
  outcome.end = !has_ended_            ? "stopped"
                : WIFSIGNALED(status_) ? "signal " + std::to_string(WTERMSIG(status_))
                                       : "exit " + std::to_string(WEXITSTATUS(status_));
  outcome.output = bytes_of(*said_ / "out");
  std::istringstream out(outcome.output), err(bytes_of(*said_ / "err"));
  for (std::string line; std::getline(out, line);) {
    int number = 0;
    char hash[64] = "";
    if (line.starts_with("{"))
      outcome.counts = nlohmann::json::parse(line, nullptr, false);
    else if (std::sscanf(line.c_str(), "%d %40s", &number, hash) == 2)
      outcome.hashes[number] = hash;
  }
  for (std::string line; std::getline(err, line);) outcome.log.push_back(line);
  return outcome;
}

Outcome run_worker(const std::vector<std::string>& arguments, const Surroundings& surroundings) {
  return Worker(arguments, surroundings).wait();
}

const std::map<int, std::string>& right_hashes(int count) {
  static std::map<int, std::map<int, std::string>> known;
  if (!known.contains(count))
    known[count] = compute(count, {.cache = "", .variables = {{"FUSEJIT_CACHE", "off"}}}).hashes;
  EXPECT_EQ(known[count].size(), static_cast<std::size_t>(count));
  return known[count];
}

void expect_right(const Outcome& outcome, int count) {
  EXPECT_EQ(outcome.end, "exit 0");
  EXPECT_EQ(outcome.hashes, right_hashes(count));
  EXPECT_TRUE(outcome.log.empty()) << outcome.log[0];
}

int damaged_entries(const std::string& folder) {
  int damaged = 0;
  for (const std::string& file : files_below(folder, ".entry")) damaged += !runtime::disk::decode(bytes_of(file));
  return damaged;
}

}  // namespace fusejit::testing
