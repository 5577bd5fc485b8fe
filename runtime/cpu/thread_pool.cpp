#include "runtime/cpu/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/process/fork.h"

namespace fusejit::runtime {
namespace {

// Long enough to bridge the host work between the kernels of a step, short enough not to burn a core between steps.
constexpr auto kSpin = std::chrono::microseconds(300);

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

class ThreadPool::Crew {
 public:
  explicit Crew(int threads);
  ~Crew();
  int threads() const { return static_cast<int>(workers_.size()) + 1; }
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

ThreadPool::Crew::Crew(int threads)
    : spin_(threads <= static_cast<int>(std::thread::hardware_concurrency()) ? kSpin : std::chrono::microseconds(0)) {
  workers_.reserve(static_cast<std::size_t>(threads) - 1);  // nothing throws once there are threads to be joined
  try {
    for (int worker = 1; worker < threads; ++worker) workers_.emplace_back([this, worker] { work(worker); });
  } catch (const std::exception&) {
    // The system gives no more threads, or no memory for them: these are enough, results do not depend on their number.
  }
}

ThreadPool::Crew::~Crew() {
  stopping_.store(true);
  generation_.fetch_add(1);
  { std::lock_guard lock(mutex_); }
  wake_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::Crew::run_share(int worker) {
  const std::int64_t n = threads();
  const std::int64_t first = tasks_ * worker / n, last = tasks_ * (worker + 1) / n;
  if (first < last) region_(context_, worker, first, last);
}

void ThreadPool::Crew::run(std::int64_t tasks, Region region, void* context) {
  if (workers_.empty() || tasks <= 1) {
    if (tasks > 0) region(context, 0, 0, tasks);
    return;
  }
  region_ = region, context_ = context, tasks_ = tasks;
  unfinished_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1);  // seq_cst: ordered against the parked count below
  if (parked_.load() > 0) {
    std::lock_guard lock(mutex_);
    wake_.notify_all();
  }
  run_share(0);
  // A worker that was parked may take long to come: yield after a while so that fewer processors than workers also end.
  for (int spins = 0; unfinished_.load(std::memory_order_acquire) != 0; ++spins) {
    if (spins < 20000) {
      relax();
    } else {
      std::this_thread::yield();
    }
  }
}

void ThreadPool::Crew::work(int worker) {
  std::uint64_t seen = 0;
  for (;;) {
    auto deadline = std::chrono::steady_clock::now() + spin_;
    for (int spins = 0; generation_.load(std::memory_order_acquire) == seen; ++spins) {
      relax();
      if (spins % 64 != 63 || std::chrono::steady_clock::now() < deadline) continue;
      std::unique_lock lock(mutex_);
      parked_.fetch_add(1);
      wake_.wait(lock, [&] { return generation_.load() != seen; });
      parked_.fetch_sub(1);
    }
    ++seen;  // one generation a region: run() waits for every worker before it opens the next
    if (stopping_.load()) return;
    run_share(worker);
    unfinished_.fetch_sub(1, std::memory_order_release);
  }
}

ThreadPool::ThreadPool(int threads)
    : generation_(process_generation()), crew_(std::make_unique<Crew>(threads)), threads_(crew_->threads()) {}

ThreadPool::~ThreadPool() {
  if (generation_ != process_generation()) static_cast<void>(crew_.release());
}

// Its threads are not in this process, and whatever they held or waited for stays as it was: it is left behind.
void ThreadPool::abandon_parents_crew() {
  static_cast<void>(crew_.release());
  crew_ = std::make_unique<Crew>(threads_);
  generation_ = process_generation();
}

void ThreadPool::run(std::int64_t tasks, Region region, void* context) {
  if (generation_ != process_generation()) abandon_parents_crew();
  crew_->run(tasks, region, context);
}

}  // namespace fusejit::runtime
