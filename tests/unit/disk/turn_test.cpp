// Turns: one at a time for a key, given back by the dead, and never waited for longer than it takes to lose patience.
#include "runtime/disk/turn.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "tests/unit/disk/entries.h"

namespace fusejit::runtime::disk {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

const ir::Hash kKey = test_key(1).hash(), kOther = test_key(2).hash();

TEST(Turn, OfOneKeyIsTakenOneAfterTheOther) {
  TemporaryFolder folder;
  Turns one(10s), another(10s);
  std::atomic<int> inside{0}, most{0}, entered{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        const Handle turn = (t % 2 ? one : another).take(folder.path(), kKey);
        EXPECT_TRUE(turn);
        most = std::max(most.load(), ++inside);
        std::this_thread::sleep_for(1ms);
        --inside, ++entered;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
  EXPECT_EQ(entered, 40);
}

TEST(Turn, OfAnotherKeyWaitsForNobody) {
  TemporaryFolder folder;
  Turns turns(10s);
  const Handle turn = turns.take(folder.path(), kKey);
  const auto start = Clock::now();
  EXPECT_TRUE(turns.take(folder.path(), kOther));
  EXPECT_LT(Clock::now() - start, 1s);
}

TEST(Turn, OfSomebodyWhoDoesNotMoveIsWaitedForOnce) {
  TemporaryFolder folder;
  Turns stopped, turns(200ms);
  const Handle one = stopped.take(folder.path(), kKey), two = stopped.take(folder.path(), kOther);
  const auto start = Clock::now();
  EXPECT_FALSE(turns.take(folder.path(), kKey));
  EXPECT_GE(Clock::now() - start, 200ms);
  const auto again = Clock::now();
  EXPECT_FALSE(turns.take(folder.path(), kOther));
  EXPECT_LT(Clock::now() - again, 100ms);
}

TEST(Turn, OfTheDeadIsFree) {
  TemporaryFolder folder;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    Turns turns;
    const Handle turn = turns.take(folder.path(), kKey);
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_FALSE(Turns(50ms).take(folder.path(), kKey));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(Turns(50ms).take(folder.path(), kKey));
}

TEST(Turn, IsNobodysWhereThereIsNoFolder) {
  const auto start = Clock::now();
  EXPECT_FALSE(Turns(10s).take("/proc/none", kKey));
  EXPECT_LT(Clock::now() - start, 1s);
}

// A cache that is only read has nothing to share.
TEST(Turn, IsNotTakenToRead) {
  TemporaryFolder folder;
  DiskCache({.folder = folder.path()});
  DiskCache cache({.folder = folder.path(), .read_only = true});
  EXPECT_FALSE(cache.take_turn(test_key(1)));
  EXPECT_FALSE(std::filesystem::exists(cache.folder() + "/turns"));
}

}  // namespace
}  // namespace fusejit::runtime::disk
