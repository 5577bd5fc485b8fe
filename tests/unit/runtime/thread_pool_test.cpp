#include "runtime/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <functional>
#include <thread>
#include <vector>

namespace fusejit::runtime {
namespace {

using Body = std::function<void(int worker, std::int64_t first, std::int64_t last)>;

void run(ThreadPool& pool, std::int64_t tasks, Body body) {
  pool.run(
      tasks,
      [](void* context, int worker, std::int64_t first, std::int64_t last) {
        (*static_cast<Body*>(context))(worker, first, last);
      },
      &body);
}

// False when that takes longer than any machine would.
bool comes_true(const std::function<bool()>& what) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!what()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(ThreadPool, EveryTaskIsDoneOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 200; ++round) {
      for (const std::int64_t tasks : {0, 1, 2, 7, 64, 1000}) {
        std::vector<std::atomic<int>> done(static_cast<std::size_t>(tasks));
        run(pool, tasks, [&](int worker, std::int64_t first, std::int64_t last) {
          ASSERT_TRUE(worker >= 0 && worker < threads);
          for (std::int64_t t = first; t < last; ++t) ++done[static_cast<std::size_t>(t)];
        });
        for (std::int64_t t = 0; t < tasks; ++t)
          ASSERT_EQ(done[static_cast<std::size_t>(t)], 1) << t << " of " << tasks << " on " << threads;
      }
    }
  }
}

// What others have not begun is done by who is there.
TEST(ThreadPool, ALateWorkerHoldsUpItsPieceAlone) {
  constexpr std::int64_t kTasks = 64;
  ThreadPool pool(2);
  if (pool.threads() < 2) GTEST_SKIP() << "no second thread";
  std::atomic<std::int64_t> done{0}, held{0};
  std::atomic<bool> came{false}, right{true};
  run(pool, kTasks, [&](int worker, std::int64_t first, std::int64_t last) {
    if (worker == 1 && !came) {
      held = last - first;
      came = true;
      if (!comes_true([&] { return done == kTasks - held; })) right = false;
    } else if (!comes_true([&] { return came.load(); })) {
      right = false;
    }
    done += last - first;
  });
  EXPECT_TRUE(right);
  EXPECT_EQ(done, kTasks);
  EXPECT_LE(held, kTasks / 8);
}

// The processor of who waits is free, for example for the one that is waited for.
TEST(ThreadPool, WhoWaitsForTheLastPieceSleeps) {
  ThreadPool pool(2);
  if (pool.threads() < 2) GTEST_SKIP() << "no second thread";
  const auto processor_seconds = [] {
    timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
  };
  std::atomic<bool> came{false};
  const double before = processor_seconds();
  run(pool, 2, [&](int worker, std::int64_t, std::int64_t) {
    if (worker == 1) {
      came = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    } else {
      while (!came) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  EXPECT_LT(processor_seconds() - before, 0.2);
}

}  // namespace
}  // namespace fusejit::runtime
