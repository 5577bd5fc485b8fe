// A small static pool: run(tasks, f) splits 0..tasks into one contiguous range a worker; the caller is worker 0.
// Workers spin for a bounded time after each region, because a parked thread joins tens of microseconds late, then
// park.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace fusejit::runtime {

class ThreadPool {
 public:
  // threads >= 1, the caller included; there are fewer if the system gives no more.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  int threads() const { return static_cast<int>(workers_.size()) + 1; }
  // f(worker, first, last) on every worker with a non-empty range; returns when all are done. One region at a time:
  // the owner serialises calls.
  using Region = void (*)(void* context, int worker, std::int64_t first, std::int64_t last);
  void run(std::int64_t tasks, Region region, void* context);

 private:
  void work(int worker);
  void run_share(int worker);

  const std::chrono::microseconds
      spin_;  // none where threads outnumber processors: who spins keeps others from working
  std::vector<std::thread> workers_;
  Region region_ = nullptr;
  void* context_ = nullptr;
  std::int64_t tasks_ = 0;
  alignas(64) std::atomic<std::uint64_t> generation_{0};
  alignas(64) std::atomic<int> unfinished_{0};
  std::atomic<int> parked_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
};

}  // namespace fusejit::runtime
