// Many processes on one folder: beginning together, killed, stopped, and writing more than there may be.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <random>
#include <thread>

#include "tests/reliability/worker.h"
#include "tests/support/nightly.h"

namespace fusejit::testing {
namespace {

constexpr int kGraphsOfProcesses = 20;

void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

std::vector<Worker> start(int count, const Surroundings& surroundings, int graphs = kGraphsOfProcesses) {
  std::vector<Worker> workers;
  for (int i = 0; i < count; ++i)
    workers.emplace_back(std::vector<std::string>{"compute", "0", std::to_string(graphs)}, surroundings);
  return workers;
}

TEST(Processes, ThatBeginTogetherOnAnEmptyCacheAgree) {
  const int processes = testing::is_nightly() ? 32 : 8, rounds = testing::is_nightly() ? 20 : 3;
  right_hashes(kGraphsOfProcesses);
  int compiled = 0, unique = 0;
  for (int round = 0; round < rounds; ++round) {
    TemporaryFolder folder;
    const Surroundings surroundings{.cache = folder.path()};
    for (Worker& worker : start(processes, surroundings)) {
      const Outcome outcome = worker.wait();
      expect_right(outcome, kGraphsOfProcesses);
      compiled += outcome.count("kernels_compiled");
    }
    const std::vector<std::string> entries = files_below(folder.path(), ".entry");
    EXPECT_EQ(damaged_entries(folder.path()), 0);
    EXPECT_EQ(files_below(folder.path(), ".tmp"), std::vector<std::string>());
    // Whoever comes later makes nothing.
    const Outcome later = compute(kGraphsOfProcesses, surroundings);
    expect_right(later, kGraphsOfProcesses);
    EXPECT_EQ(later.count("kernels_compiled"), 0);
    EXPECT_EQ(later.count("plans_loaded"), kGraphsOfProcesses);
    EXPECT_EQ(static_cast<int>(entries.size()), kGraphsOfProcesses + later.count("kernels_loaded")) << "one file a key";
    unique += later.count("kernels_loaded");
    EXPECT_EQ(files_below(folder.path(), ".entry"), entries);
  }
  EXPECT_LE(compiled, unique * 1.2);
  std::printf("%d processes: %.2f kernels compiled for each that is needed\n", processes,
              static_cast<double>(compiled) / unique);
}

TEST(Processes, KilledAtAnyTimeLeaveNothingThatHarms) {
  TemporaryFolder folder;
  const Surroundings surroundings{.cache = folder.path()};
  std::mt19937 random(4);
  const int deaths = testing::is_nightly() ? 1000 : 30;
  // Most find what others made, and would end before they are killed if only the time of the first were known.
  const Surroundings other{.cache = folder / "other"};
  const double cold = compute(kGraphsOfProcesses, other).seconds, warm = compute(kGraphsOfProcesses, other).seconds;
  int killed = 0, found = 0;
  for (int i = 0; i < deaths; ++i) {
    if (i % 8 == 0) std::filesystem::remove_all(folder / "v1");
    Worker worker({"compute", "0", std::to_string(kGraphsOfProcesses)}, surroundings);
    sleep_for((i % 2 == 0 ? cold : warm) * std::uniform_real_distribution<>(0.05, 1)(random));
    ::kill(worker.process(), SIGKILL);
    const Outcome outcome = worker.wait();
    killed += outcome.end == "signal 9";
    for (const auto& [number, hash] : outcome.hashes) EXPECT_EQ(hash, right_hashes(kGraphsOfProcesses).at(number));
    EXPECT_TRUE(outcome.log.empty()) << outcome.log[0];
    found += !files_below(folder.path(), ".entry").empty();
    ASSERT_EQ(damaged_entries(folder.path()), 0) << i;
  }
  EXPECT_GT(killed, deaths / 3);
  EXPECT_GT(found, deaths / 2);
  expect_right(compute(kGraphsOfProcesses, surroundings), kGraphsOfProcesses);
  expect_right(compute(kGraphsOfProcesses, surroundings), kGraphsOfProcesses);
  std::printf("%d processes killed\n", killed);
}

TEST(Processes, ThatAreStoppedHoldNobodyUp) {
  TemporaryFolder folder;
  right_hashes(kGraphsOfProcesses);
  const int trials = testing::is_nightly() ? 100 : 6;
  const double alone = compute(kGraphsOfProcesses, {.cache = folder / "alone"}).seconds;
  double longest = 0;
  for (int i = 0; i < trials; ++i) {
    const Surroundings surroundings{.cache = folder / std::to_string(i)};
    std::vector<Worker> stopped = start(2, surroundings);
    sleep_for(alone * (i + 1) / (trials + 1));
    for (Worker& worker : stopped) ::kill(worker.process(), i % 2 ? SIGKILL : SIGSTOP);
    const Outcome outcome = compute(kGraphsOfProcesses, surroundings);
    expect_right(outcome, kGraphsOfProcesses);
    longest = std::max(longest, outcome.seconds);
  }
  EXPECT_LT(longest, alone + 2);
  std::printf("%.2f s alone, at most %.2f s beside processes that were stopped or killed\n", alone, longest);
}

// What lies in the cache now: bytes on the disk, and files.
std::pair<std::int64_t, std::int64_t> size_of(const std::string& folder) {
  std::int64_t bytes = 0, files = 0;
  for (const std::string& file : files_below(folder + "/v1")) {
    struct stat status = {};
    if (::lstat(file.c_str(), &status) == 0) bytes += std::int64_t{status.st_blocks} * 512, ++files;
  }
  return {bytes, files};
}

// 500 files (the worker's own bound) or 50 MB, whichever is reached first.
TEST(Processes, ThatWriteTooMuchKeepTheFolderWithinItsBound) {
  const std::int64_t most = 50 << 20, most_files = 500;
  for (const int bytes : {32'000, 250'000}) {
    TemporaryFolder folder;
    const int writers = 8, count = (testing::is_nightly() ? 500'000'000 : 80'000'000) / writers / bytes;
    const Surroundings surroundings{.cache = folder.path(), .variables = {{"FUSEJIT_CACHE_MAX_SIZE", "50M"}}};
    std::vector<Worker> workers;
    for (int i = 0; i < writers; ++i)
      workers.emplace_back(
          std::vector<std::string>{"write", std::to_string(i), std::to_string(count), std::to_string(bytes)},
          surroundings);
    std::int64_t largest = 0, files = 0;
    for (bool running = true; running; sleep_for(0.01)) {
      running = false;
      for (Worker& worker : workers) running |= worker.is_running();
      const auto [bytes_now, files_now] = size_of(folder.path());
      largest = std::max(largest, bytes_now), files = std::max(files, files_now);
    }
    int hot = 0, rounds = 0, stored = 0;
    for (Worker& worker : workers) {
      const Outcome outcome = worker.wait();
      EXPECT_EQ(outcome.end, "exit 0");
      EXPECT_TRUE(outcome.log.empty()) << outcome.log[0];
      hot += outcome.count("hot"), rounds += outcome.count("rounds"), stored += outcome.count("stored");
    }
    EXPECT_EQ(stored, writers * count + rounds - hot);
    EXPECT_LE(largest, most * 110 / 100);
    EXPECT_LE(files, most_files * 110 / 100);
    EXPECT_TRUE(files >= most_files * 7 / 10 || largest >= most * 7 / 10) << "as much as there may be is there";
    EXPECT_GE(hot, rounds * 95 / 100) << "what is in use stays";
    std::printf("%d writers, %d MB: at most %.1f MB and %lld files, %d of %d uses found what is hot\n", writers,
                writers * count * (bytes / 1000) / 1000, static_cast<double>(largest) / (1 << 20),
                static_cast<long long>(files), hot, rounds);
  }
}

}  // namespace
}  // namespace fusejit::testing
