// The same sources make the same keys and the same bytes, wherever, whenever and however often they run; and what a
// process must never do to get there.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>

#include "tests/reliability/worker.h"
#include "tests/support/nightly.h"

namespace fusejit::testing {
namespace {

int graphs() { return testing::is_nightly() ? 1000 : 50; }

std::map<std::string, std::string> entries_of(const std::string& folder) {
  std::map<std::string, std::string> entries;
  for (const std::string& file : files_below(folder, ".entry"))
    entries[std::filesystem::path(file).filename()] = bytes_of(file);
  return entries;
}

// What others have of their own: a current folder, a locale, a time zone, an environment, a number of threads.
std::vector<Surroundings> others(const std::string& folder) {
  Variables many;
  std::mt19937 random(1);
  for (int i = 0; i < 40; ++i) many["V" + std::to_string(random())] = std::string(random() % 200, 'x');
  std::vector<Surroundings> all = {
      {.cache = folder, .folder = "/usr"},
      {.cache = folder, .variables = {{"LC_ALL", "de_DE.UTF-8"}, {"LANG", "tr_TR.UTF-8"}, {"TZ", "Asia/Kathmandu"}}},
      {.cache = folder, .variables = many},
      {.cache = folder, .variables = {{"WORKER_THREADS", "1"}}},
      {.cache = folder, .variables = {{"WORKER_THREADS", "5"}}},
      {.cache = folder, .variables = {{"FUSEJIT_STRICT", "1"}}},
      {.cache = folder, .variables = {{"HOME", "/elsewhere"}, {"USER", "other"}, {"HOSTNAME", "other"}}}};
  return all;
}

TEST(Stability, EveryProcessFindsWhatAnotherMade) {
  TemporaryFolder folder;
  expect_right(compute(graphs(), {.cache = folder.path()}), graphs());
  for (const Surroundings& other : others(folder.path())) {
    const Outcome outcome = compute(graphs(), other);
    expect_right(outcome, graphs());
    EXPECT_EQ(outcome.count("plans_loaded"), outcome.count("plans_made"));
    EXPECT_EQ(outcome.count("kernels_compiled"), 0);
  }
}

TEST(Stability, EveryProcessMakesTheSameBytes) {
  TemporaryFolder folder;
  compute(graphs(), {.cache = folder / "first"});
  const auto first = entries_of(folder / "first");
  EXPECT_GT(first.size(), 2u * static_cast<std::size_t>(graphs()) - 1);
  int number = 0;
  for (Surroundings& other : std::vector<Surroundings>(others(""))) {
    other.cache = folder / std::to_string(number++);
    compute(graphs(), other);
    EXPECT_TRUE(entries_of(other.cache) == first) << number;
  }
  if (::geteuid() != 0) return;
  ::chmod(folder.path().c_str(), 0755);
  std::filesystem::create_directory(folder / "user");
  ASSERT_EQ(::chown((folder / "user").c_str(), 54321, 54321), 0);
  compute(graphs(), {.cache = folder / "user", .user = 54321});
  EXPECT_TRUE(entries_of(folder / "user") == first) << "another user";
}

// Making and loading kernels under a filter of system calls that kills for execve, sockets and pages both writable and
// executable. The worker's exit code counts such pages at its end.
TEST(Sealed, NoProgramIsStartedNoSocketOpenedAndNoPageIsWritableAndExecutable) {
  TemporaryFolder folder;
  const Surroundings surroundings{.cache = folder.path()};
  for (const bool is_warm : {false, true}) {
    const Outcome outcome = run_worker({"compute", "0", "20", "sealed"}, surroundings);
    if (outcome.end == "exit 77") GTEST_SKIP() << "this kernel has no seccomp";
    expect_right(outcome, 20);
    EXPECT_EQ(outcome.count("kernels_compiled") == 0, is_warm);
  }
  for (const char* crime : {"execve", "socket", "mmap", "mprotect"})
    EXPECT_EQ(run_worker({"crime", crime, "0", "sealed"}, surroundings).end, "signal 31") << crime;
}

}  // namespace
}  // namespace fusejit::testing
