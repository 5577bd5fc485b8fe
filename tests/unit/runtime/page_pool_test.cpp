// The pool of pages: blocks are cut, joined and reused, and pages that nothing uses go back.
#include "runtime/cpu/page_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>
#include <random>

namespace fusejit::runtime {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMebibyte = 1 << 20;

TEST(PagePool, JoinsWhatIsGivenBack) {
  PagePool pool;
  void* const a = pool.take(kMebibyte, kNoLimit);
  void* const b = pool.take(2 * kMebibyte, kNoLimit);
  void* const c = pool.take(kMebibyte, kNoLimit);
  EXPECT_EQ(pool.held(), 4 * kMebibyte);
  pool.give(a, kMebibyte);
  pool.give(b, 2 * kMebibyte);
  EXPECT_EQ(pool.take(3 * kMebibyte, kNoLimit), a) << "one block of two";
  pool.give(a, 3 * kMebibyte);
  pool.give(c, kMebibyte);
  EXPECT_EQ(pool.take(4 * kMebibyte, kNoLimit), a);
  EXPECT_EQ(pool.held(), 4 * kMebibyte);
  pool.release();
  EXPECT_EQ(pool.held(), 4 * kMebibyte) << "it is in use";
  pool.give(a, 4 * kMebibyte);
  pool.release();
  EXPECT_EQ(pool.held(), 0);
}

TEST(PagePool, FreshPagesAreZeroAgainAndUsedOnesAreNot) {
  PagePool pool;
  auto* const a = static_cast<char*>(pool.take(kMebibyte, kNoLimit));
  std::memset(a, 1, kMebibyte);
  pool.give(a, kMebibyte);
  ASSERT_EQ(pool.take(kMebibyte, kNoLimit), a);
  EXPECT_EQ(a[kMebibyte - 1], 1) << "the same pages";
  pool.give(a, kMebibyte);
  pool.release();
  ASSERT_EQ(pool.take(kMebibyte, kNoLimit), a);
  EXPECT_EQ(a[kMebibyte - 1], 0) << "the system's";
  pool.give(a, kMebibyte);
}

TEST(PagePool, KeepsToWhatItMayHold) {
  PagePool pool;
  void* const a = pool.take(3 * kMebibyte, 4 * kMebibyte);
  void* const b = pool.take(kMebibyte, 4 * kMebibyte);
  EXPECT_EQ(pool.take(kMebibyte, 4 * kMebibyte), nullptr);
  pool.give(a, 3 * kMebibyte);
  void* const c = pool.take(kMebibyte, 4 * kMebibyte);
  EXPECT_EQ(c, a);
  EXPECT_EQ(pool.take(3 * kMebibyte, 4 * kMebibyte), nullptr) << "no place for it without new pages";
  EXPECT_EQ(pool.held(), 2 * kMebibyte) << "what was free went back first";
  EXPECT_EQ(pool.take(std::int64_t{1} << 50, kNoLimit), nullptr) << "the system has no more";
  pool.give(pool.take(2 * kMebibyte, 4 * kMebibyte), 2 * kMebibyte);
  pool.give(b, kMebibyte);
  pool.give(c, kMebibyte);
}

TEST(PagePool, GivesOldPagesBack) {
  PagePool pool;
  pool.give(pool.take(64 * kMebibyte, kNoLimit), 64 * kMebibyte);
  std::int64_t rounds = 0;
  for (; pool.held() > 4 * kMebibyte && rounds < 10000; ++rounds)
    pool.give(pool.take(4 * kMebibyte, kNoLimit), 4 * kMebibyte);
  EXPECT_GT(rounds, 4 * 64 / 4) << "not at once";
  EXPECT_LT(rounds, 20 * 64 / 4);
}

// A loop of two phases that share nothing in time, and that asks for a third one every tenth round.
TEST(PagePool, ASteadyLoopKeepsItsPages) {
  PagePool pool;
  const auto phase = [&pool](std::int64_t count, std::int64_t bytes) {
    std::vector<void*> blocks;
    for (std::int64_t i = 0; i < count; ++i) blocks.push_back(pool.take(bytes, kNoLimit));
    const std::int64_t held = pool.held();
    for (void* block : blocks) pool.give(block, bytes);
    return held;
  };
  std::int64_t held = 0;
  for (int round = 0; round < 1000; ++round) {
    std::int64_t most = phase(1, 100 * kMebibyte);
    most = std::max(most, phase(11, 10 * kMebibyte));
    if (round % 10 == 0) most = std::max(most, phase(3, 50 * kMebibyte));
    if (round == 0) held = most;
    ASSERT_EQ(most, held) << round;
    ASSERT_EQ(pool.held(), held) << "nothing went back in round " << round;
  }
  EXPECT_EQ(held, 150 * kMebibyte);
}

// Blocks do not overlap, whatever the order; everything comes back.
TEST(PagePool, RandomBlocks) {
  PagePool pool;
  std::mt19937_64 random(3);
  std::map<char*, std::int64_t> live;
  std::int64_t in_use = 0, peak = 0;
  for (int i = 0; i < 20000; ++i) {
    if (random() % 100 < (i % 4000 < 2000 ? 60 : 40)) {
      const std::int64_t bytes = PagePool::kPage * static_cast<std::int64_t>(1 + random() % 300);
      auto* const block = static_cast<char*>(pool.take(bytes, kNoLimit));
      ASSERT_NE(block, nullptr);
      const auto after = live.lower_bound(block);
      ASSERT_TRUE(after == live.end() || block + bytes <= after->first);
      ASSERT_TRUE(after == live.begin() || std::prev(after)->first + std::prev(after)->second <= block);
      live.emplace(block, bytes);
      block[0] = block[bytes - 1] = 1;
      peak = std::max(peak, in_use += bytes);
    } else if (!live.empty()) {
      const auto which = std::next(live.begin(), static_cast<std::int64_t>(random() % live.size()));
      pool.give(which->first, which->second);
      in_use -= which->second;
      live.erase(which);
    }
    ASSERT_GE(pool.held(), in_use);
    ASSERT_LE(pool.held(), peak + peak / 5 + kMebibyte) << "what is cut does not crumble";
  }
  for (const auto& [block, bytes] : live) pool.give(block, bytes);
  pool.release();
  EXPECT_EQ(pool.held(), 0);
}

}  // namespace
}  // namespace fusejit::runtime
