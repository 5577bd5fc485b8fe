// Sixteen threads, and children of fork(), on one cache on disk.
#include <gtest/gtest.h>

#include "tests/reliability/worker.h"
#include "tests/support/nightly.h"

namespace fusejit::testing {
namespace {

constexpr int kGraphs = 20;

void expect_whole(const std::string& cache) {
  EXPECT_EQ(damaged_entries(cache), 0);
  EXPECT_EQ(files_below(cache, ".tmp"), std::vector<std::string>());
  const Outcome later = compute(kGraphs, {.cache = cache});
  expect_right(later, kGraphs);
  EXPECT_EQ(later.count("kernels_compiled"), 0);
  EXPECT_EQ(later.count("plans_loaded"), kGraphs);
}

TEST(Threads, ShareACacheOnDisk) {
  TemporaryFolder alone;
  const int kernels = compute(kGraphs, {.cache = alone.path()}).count("kernels_compiled");
  for (int round = 0; round < (testing::is_nightly() ? 20 : 2); ++round) {
    TemporaryFolder folder;
    for (const bool is_warm : {false, true}) {
      const Outcome outcome = run_worker({"threads", "16", std::to_string(kGraphs)}, {.cache = folder.path()});
      expect_right(outcome, kGraphs);
      EXPECT_EQ(outcome.count("kernels_compiled"), is_warm ? 0 : kernels) << "each kernel once";
    }
    expect_whole(folder.path());
  }
}

// Whenever it forks, parent and children compute the same, none hangs, and all of them may write.
TEST(Forks, ShareACacheOnDisk) {
  int children = 0;
  for (const char* when : {"before", "after", "busy"}) {
    for (int trial = 0; trial < (testing::is_nightly() ? 100 : 4); ++trial) {
      TemporaryFolder folder;
      const Outcome outcome = run_worker({"fork", when, "4"}, {.cache = folder.path()});
      EXPECT_EQ(outcome.end, "exit 0") << when;
      EXPECT_TRUE(outcome.log.empty()) << when << ": " << outcome.log[0];
      expect_whole(folder.path());
      children += 4;
    }
  }
  std::printf("%d children of fork()\n", children);
}

}  // namespace
}  // namespace fusejit::testing
