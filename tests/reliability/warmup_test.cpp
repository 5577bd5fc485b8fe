// A warm-up that is killed as a whole, or loses workers: what is done stays, whole; the next one makes the rest alone;
// and a program finds everything afterwards.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>
#include <set>
#include <thread>

#include "runtime/disk/entry.h"
#include "tests/reliability/worker.h"
#include "tests/support/nightly.h"

namespace fusejit::testing {
namespace {

const std::string kProgram = std::string(FUSEJIT_BINARY_DIR) + "/bin/fusejit";

Surroundings on(const std::string& cache, const Variables& variables = {}) {
  return {.cache = cache, .variables = variables, .program = kProgram};
}

struct Made {
  int plans = -1, kernels = -1;
};
Made made_by(const Outcome& outcome) {
  Made made;
  int all = 0;
  std::sscanf(outcome.output.c_str(), "%d plans (%d made), %d kernels (%d made)", &all, &made.plans, &all,
              &made.kernels);
  return made;
}

// The entries of a cache by name, with what tells a file from one that took its place.
std::map<std::string, ino_t> entries(const std::string& folder) {
  std::map<std::string, ino_t> found;
  for (const std::string& file : files_below(folder, ".entry")) {
    struct stat status = {};
    if (::stat(file.c_str(), &status) == 0) found[file.substr(folder.size())] = status.st_ino;
  }
  return found;
}

int kernels_among(const std::string& folder) {
  int kernels = 0;
  for (const std::string& file : files_below(folder, ".entry"))
    kernels += runtime::disk::decode(bytes_of(file)).value().key.kind() == "kernel";
  return kernels;
}

void expect_nothing_left_to_make(const std::string& cache) {
  const Outcome run = run_worker({"bench", "convnet@4:train", "--steps", "1", "--json"},
                                 on(cache, {{"FUSEJIT_FREEZE", "1"}, {"FUSEJIT_STRICT", "1"}}));
  ASSERT_EQ(run.end, "exit 0") << (run.log.empty() ? run.output : run.log[0]);
  const auto counts = nlohmann::json::parse(run.output);
  EXPECT_EQ(counts["kernels_compiled"], 0);
  EXPECT_EQ(counts["plans"], counts["plans_loaded"]);
}

class KilledWarmup : public ::testing::Test {
 protected:
  // What is recorded of a training step and an inference, as a user's own run records it.
  void SetUp() override {
    const Variables recording = {{"FUSEJIT_RECORD", signatures_}, {"FUSEJIT_CACHE", "off"}};
    for (const char* model : {"convnet@4:train", "convnet@4"})
      ASSERT_EQ(run_worker({"bench", model, "--steps", "1"}, on("", recording)).end, "exit 0");
    const Outcome outcome = run_worker(warmup(), on(folder_ / "whole"));
    ASSERT_EQ(outcome.end, "exit 0") << outcome.output;
    whole_ = outcome.seconds;
    for (const auto& [name, inode] : entries(folder_ / "whole")) names_.insert(name);
    kernels_ = kernels_among(folder_ / "whole");
    ASSERT_EQ(made_by(outcome).kernels, kernels_);
  }
  std::vector<std::string> warmup(std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {"warmup", "-j", "2", signatures_};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // Runs it again: makes what is not there, and that alone.
  void expect_the_rest_is_made(const std::string& cache) {
    ASSERT_EQ(damaged_entries(cache), 0);
    const std::map<std::string, ino_t> before = entries(cache);
    const int there = kernels_among(cache);
    const Outcome again = run_worker(warmup(), on(cache));
    ASSERT_EQ(again.end, "exit 0") << again.output;
    EXPECT_EQ(made_by(again).kernels, kernels_ - there) << again.output;
    std::map<std::string, ino_t> after = entries(cache);
    EXPECT_EQ(after.size(), names_.size());
    for (const std::string& name : names_) EXPECT_TRUE(after.contains(name)) << name;
    for (const auto& [name, inode] : before) EXPECT_EQ(after[name], inode) << name << " was made again";
    EXPECT_EQ(damaged_entries(cache), 0);
    expect_nothing_left_to_make(cache);
  }
  static void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

  TemporaryFolder folder_;
  const std::string signatures_ = folder_ / "run.fjs";
  double whole_ = 0;
  int kernels_ = 0;
  std::set<std::string> names_;
};

TEST_F(KilledWarmup, IsGoneOnWith) {
  const int deaths = testing::is_nightly() ? 100 : 6;
  int killed = 0, between = 0;
  for (int i = 0; i < deaths; ++i) {
    const std::string cache = folder_ / fmt::format("killed{}", i);
    Worker run(warmup(), on(cache));
    sleep_for(whole_ * (i + 0.5) / deaths);
    run.kill_group();
    killed += run.wait().end == "signal 9";
    const std::size_t there = entries(cache).size();
    between += there > 0 && there < names_.size();
    expect_the_rest_is_made(cache);
  }
  EXPECT_GT(killed, deaths / 2);
  EXPECT_GT(between, 0) << "none was killed in the middle";
  std::printf("%d of %d warm-ups killed in time, %d between their first and their last entry\n", killed, deaths,
              between);
}

std::vector<pid_t> children_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{0}/task/{0}/children", process));
  std::vector<pid_t> children;
  for (pid_t child; file >> child;) children.push_back(child);
  return children;
}

// One worker of two, from outside, at any time: killed, crashed or stopped.
TEST_F(KilledWarmup, LosesNoMoreThanTheItemOfAWorkerThatDies) {
  const int deaths = testing::is_nightly() ? 60 : 4;
  int hit = 0, lost = 0;
  for (int i = 0; i < deaths; ++i) {
    const int signal = i % 3 == 0 ? SIGKILL : i % 3 == 1 ? SIGSEGV : SIGSTOP;
    const std::string cache = folder_ / fmt::format("worker{}", i), report = folder_ / "report.json";
    Worker run(warmup({"--timeout", "2", "--report", report}), on(cache));
    sleep_for(whole_ * (i + 1) / (deaths + 1));
    const std::vector<pid_t> workers = children_of(run.process());
    if (workers.empty()) continue;
    ::kill(workers[static_cast<std::size_t>(i) % workers.size()], signal);
    const Outcome outcome = run.wait();
    ASSERT_LT(outcome.seconds, whole_ + 10);
    const auto said = nlohmann::json::parse(bytes_of(report));
    const int failed = said["failed"];
    EXPECT_LE(failed, 1) << outcome.output;
    EXPECT_EQ(outcome.end, failed == 0 ? "exit 0" : "exit 7") << outcome.output;
    ++hit, lost += failed;
    if (failed == 1) {
      const bool named = outcome.output.find("its worker was ended by ") != std::string::npos ||
                         outcome.output.find("it took longer than 2 s") != std::string::npos;
      EXPECT_TRUE(named) << outcome.output;
    }
    expect_the_rest_is_made(cache);
  }
  EXPECT_GT(lost, 0) << "none had anything to do";
  std::printf("%d workers lost, %d items with them\n", hit, lost);
}

}  // namespace
}  // namespace fusejit::testing
