// A small static pool: run(tasks, f) splits 0..tasks into one contiguous range a worker; the caller is worker 0.
// Workers spin for a bounded time after each region, because a parked thread joins tens of microseconds late, then
// park. In a child of fork() it has new workers.
#pragma once

#include <cstdint>
#include <memory>

namespace fusejit::runtime {

class ThreadPool {
 public:
  // threads >= 1, the caller included; there are fewer if the system gives no more.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  int threads() const { return threads_; }
  // f(worker, first, last) on every worker with a non-empty range; returns when all are done. One region at a time:
  // the owner serialises calls.
  using Region = void (*)(void* context, int worker, std::int64_t first, std::int64_t last);
  void run(std::int64_t tasks, Region region, void* context);

 private:
  class Crew;
  void abandon_parents_crew();

  int generation_;  // of the process that the crew is in
  std::unique_ptr<Crew> crew_;
  const int threads_;  // at most
};

}  // namespace fusejit::runtime
