// A process that trains on many shapes for long: after the first round nothing grows, and what it found in memory is
// what should be there.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/reliability/worker.h"
#include "tests/support/nightly.h"

namespace fusejit::testing {
namespace {

using List = std::vector<std::int64_t>;
constexpr std::int64_t kMebibyte = 1 << 20;

// By day the plans of all shapes fit into memory (256 of them), by night they do not: asked for in turn, none is there.
TEST(Soak, ManyShapesOverAndOverHoldWhatTheFirstRoundHeld) {
  const int shapes = testing::is_nightly() ? 500 : 200, cycles = testing::is_nightly() ? 200 : 10;
  const int plans = shapes + shapes / 4;
  const Outcome ran = run_worker({"soak", std::to_string(shapes), std::to_string(cycles)},
                                 {.cache = "", .variables = {{"FUSEJIT_CACHE", "off"}, {"WORKER_THREADS", "2"}}});
  ASSERT_EQ(ran.end, "exit 0") << (ran.log.empty() ? "" : ran.log[0]);
  EXPECT_TRUE(ran.log.empty()) << ran.log[0];
  const auto list = [&](const char* name) { return ran.counts.at(name).get<List>(); };
  const auto number = [&](const char* name) { return ran.counts.at(name).get<std::int64_t>(); };
  const auto constant = [&](const char* name) { return List(list(name).size(), list(name)[0]); };
  for (const char* name : {"files", "threads", "compiled"}) EXPECT_EQ(list(name), constant(name)) << name;

  const List resident = list("resident");
  const std::int64_t after_first_rounds = std::max(resident[0], resident[1]);
  EXPECT_LE(resident.back(), after_first_rounds + after_first_rounds / 100);

  const List hits = list("hits"), made = list("plans");
  for (std::size_t c = 1; c < hits.size(); ++c) {
    EXPECT_EQ(hits[c] - hits[c - 1], testing::is_nightly() ? 0 : plans) << c;
    EXPECT_EQ(made[c] - made[c - 1], testing::is_nightly() ? plans : 0) << c;
  }
  const List reserved = list("reserved"), peak = list("peak");
  for (std::size_t c = 0; c < reserved.size(); ++c) EXPECT_LE(reserved[c], peak[c] + peak[c] / 5 + kMebibyte) << c;

  // Without the network nothing is in use; without plans and kernels the process is what it was.
  EXPECT_EQ(number("allocated_then"), 0);
  EXPECT_EQ(number("reserved_then"), 0);
  EXPECT_LE(number("forgotten"), number("before") * 6 / 5);
  const auto mebibytes = [](std::int64_t bytes) { return static_cast<double>(bytes) / kMebibyte; };
  std::printf(
      "%d steps on %d shapes: %.1f MiB before, %.1f after the first round, %.1f after the last, %.1f released, %.1f "
      "without plans and kernels\n",
      shapes * cycles, shapes, mebibytes(number("before")), mebibytes(resident[0]), mebibytes(resident.back()),
      mebibytes(number("released")), mebibytes(number("forgotten")));
}

}  // namespace
}  // namespace fusejit::testing
