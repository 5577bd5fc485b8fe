#include "runtime/cpu/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "ir/base/check.h"
#include "runtime/process/fork.h"

namespace fusejit::runtime {
namespace {

// Long enough to bridge the host work between the kernels of a step, short enough not to burn a core between steps.
constexpr auto kSpin = std::chrono::microseconds(300);
// How long the caller spins for the last pieces of a region: beyond what a piece differs from another by, and below the
// milliseconds that the system lets another program have a processor.
constexpr auto kPatience = std::chrono::microseconds(100);
// Both, for so long after somebody has had to wait longer: another program wants the processors, and who spins keeps
// it from them, and is later kept from them in turn.
constexpr auto kContended = std::chrono::milliseconds(50);
constexpr auto kSpinContended = std::chrono::microseconds(5);
constexpr std::int64_t kPieces = 8;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

class ThreadPool::Crew {
  using Clock = std::chrono::steady_clock;

 public:
  explicit Crew(int threads);
  ~Crew();
  int threads() const { return static_cast<int>(workers_.size()) + 1; }
  void run(std::int64_t tasks, Region region, void* context);

 private:
  // Tasks of a share that nobody has taken, and the region that they are of: who comes too late for that finds another
  // number and takes nothing, so nobody waits for those who have not come.
  struct alignas(64) Share {
    std::atomic<std::uint64_t> state{0};
  };
  static constexpr std::uint64_t state_of(std::uint32_t generation, std::int64_t left) {
    return std::uint64_t{generation} << 32 | static_cast<std::uint32_t>(left);
  }

  // The task behind the last of a share; of share -1 the first of all.
  std::int64_t end_of(int share) const { return tasks_ * (share + 1) / threads(); }
  void work(int worker);
  void take_part(int worker, std::uint32_t generation);
  bool do_piece(int worker, int share, std::uint32_t generation);
  void wait_for_others();
  bool is_contended(Clock::time_point now) const {
    return now.time_since_epoch().count() < contended_until_.load(std::memory_order_relaxed);
  }

  const std::chrono::microseconds
      spin_;  // none where threads outnumber processors: who spins keeps others from working
  std::vector<std::thread> workers_;
  std::vector<Share> shares_;
  // Of the region that runs. Written while no task of another one is left, read by who has taken a task of it.
  Region region_ = nullptr;
  void* context_ = nullptr;
  std::int64_t tasks_ = 0;
  alignas(64) std::atomic<std::uint32_t> generation_{0};
  alignas(64) std::atomic<int> unfinished_{0};  // tasks
  std::atomic<int> parked_{0};
  std::atomic<Clock::rep> contended_until_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
};

ThreadPool::Crew::Crew(int threads)
    : spin_(threads <= static_cast<int>(std::thread::hardware_concurrency()) ? kSpin : std::chrono::microseconds(0)),
      shares_(static_cast<std::size_t>(threads)) {
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

// A piece of the share, if any is left: an eighth, so that who is late has few tasks, and few pieces make a share.
bool ThreadPool::Crew::do_piece(int worker, int share, std::uint32_t generation) {
  std::atomic<std::uint64_t>& state = shares_[static_cast<std::size_t>(share)].state;
  std::uint64_t found = state.load(std::memory_order_acquire);
  std::int64_t left = 0, piece = 0;
  do {
    left = static_cast<std::uint32_t>(found);
    if (found >> 32 != generation || left == 0) return false;
    piece = (left + kPieces - 1) / kPieces;
  } while (!state.compare_exchange_weak(found, state_of(generation, left - piece), std::memory_order_acquire));
  // From here the region cannot end before this piece.
  const std::int64_t first = end_of(share) - left;
  region_(context_, worker, first, first + piece);
  if (unfinished_.fetch_sub(static_cast<int>(piece), std::memory_order_acq_rel) == piece) unfinished_.notify_one();
  return true;
}

void ThreadPool::Crew::take_part(int worker, std::uint32_t generation) {
  const int n = threads();
  for (int k = 0; k < n; ++k) {
    const int share = (worker + k) % n;
    while (do_piece(worker, share, generation)) {
    }
  }
}

// Spinning, a while: the others are at their last pieces. Then asleep, so that the processor is free for one of them
// that has none.
void ThreadPool::Crew::wait_for_others() {
  int left = unfinished_.load(std::memory_order_acquire);
  if (left == 0) return;
  const Clock::time_point began = Clock::now(), deadline = began + (is_contended(began) ? kSpinContended : kPatience);
  for (int spins = 0; left != 0; ++spins, left = unfinished_.load(std::memory_order_acquire)) {
    relax();
    if (spins % 64 != 63 || Clock::now() < deadline) continue;
    unfinished_.wait(left, std::memory_order_acquire);
    if (const auto now = Clock::now(); now - began > kPatience)
      contended_until_.store((now + kContended).time_since_epoch().count(), std::memory_order_relaxed);
  }
}

void ThreadPool::Crew::run(std::int64_t tasks, Region region, void* context) {
  if (workers_.empty() || tasks <= 1) {
    if (tasks > 0) region(context, 0, 0, tasks);
    return;
  }
  FJ_ASSERT(tasks <= std::numeric_limits<int>::max(), "a region of {} tasks", tasks);
  region_ = region, context_ = context, tasks_ = tasks;
  unfinished_.store(static_cast<int>(tasks), std::memory_order_relaxed);
  const std::uint32_t generation = generation_.load(std::memory_order_relaxed) + 1;
  for (int i = 0; i < threads(); ++i) {
    shares_[static_cast<std::size_t>(i)].state.store(state_of(generation, end_of(i) - end_of(i - 1)),
                                                     std::memory_order_release);
  }
  generation_.store(generation);  // seq_cst: ordered against the parked count below
  if (parked_.load() > 0) {
    std::lock_guard lock(mutex_);
    wake_.notify_all();
  }
  take_part(0, generation);
  wait_for_others();
}

void ThreadPool::Crew::work(int worker) {
  std::uint32_t seen = 0;
  for (;;) {
    const Clock::time_point began = Clock::now(),
                            deadline = began + (is_contended(began) ? std::min(spin_, kSpinContended) : spin_);
    std::uint32_t generation = generation_.load(std::memory_order_acquire);
    for (int spins = 0; generation == seen; ++spins, generation = generation_.load(std::memory_order_acquire)) {
      relax();
      if (spins % 64 != 63 || Clock::now() < deadline) continue;
      std::unique_lock lock(mutex_);
      parked_.fetch_add(1);
      wake_.wait(lock, [&] { return generation_.load() != seen; });
      parked_.fetch_sub(1);
    }
    if (stopping_.load()) return;
    seen = generation;  // regions that went by without this worker are over
    take_part(worker, generation);
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
