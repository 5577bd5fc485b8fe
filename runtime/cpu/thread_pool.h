// A small pool: run(tasks, f) splits 0..tasks into one contiguous share a worker; the caller is worker 0. A worker
// takes its share in a few pieces, then what is left of others': one that the system has taken the processor from holds
// up the piece that it is at, not its share. Workers spin for a bounded time after each region, because a parked thread
// joins tens of microseconds late, then park, and so does the caller that waits for the last piece. In a child of
// fork() it has new workers.
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
  // f(worker, first, last) until every task is done once, each worker's calls one after another; which worker does a
  // task is not said. At most 2^31 - 1 tasks. One region at a time: the owner serialises calls.
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
