#include "frontend/data/loader/prefetch.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "ir/base/check.h"
#include "runtime/process/fork.h"

namespace fusejit::data {

struct Prefetch::State {
  struct Made {
    bool is_there = false;
    HostBatch batch;
    std::exception_ptr error;
  };
  std::int64_t batches;
  Make make;
  int generation = runtime::process_generation();
  std::atomic<bool> stop = false;
  std::mutex mutex;
  std::condition_variable changed;
  std::int64_t begun = 0, taken = 0;  // batches
  std::vector<Made> made;             // of batch n at n % size
  std::vector<std::thread> threads;

  void work() {
    std::unique_lock lock(mutex);
    const auto room = [&] { return begun < taken + static_cast<std::int64_t>(made.size()); };
    while (true) {
      changed.wait(lock, [&] { return stop || begun == batches || room(); });
      if (stop || begun == batches) return;
      const std::int64_t number = begun++;
      lock.unlock();
      Made now{.is_there = true, .batch = {}, .error = {}};
      try {
        now.batch = make(number, stop);
      } catch (...) {
        now.error = std::current_exception();
      }
      lock.lock();
      made[static_cast<std::size_t>(number) % made.size()] = std::move(now);
      changed.notify_all();
    }
  }

  void end() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    changed.notify_all();
    for (std::thread& thread : threads) thread.join();
  }
};

Prefetch::Prefetch(std::int64_t batches, int workers, std::int64_t ahead, Make make) : state_(new State) {
  state_->batches = batches;
  state_->make = std::move(make);
  state_->made.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(ahead, 1, std::max<std::int64_t>(batches, 1))));
  try {
    for (int i = 0; i < workers; ++i) state_->threads.emplace_back([state = state_.get()] { state->work(); });
  } catch (const std::system_error& error) {
    state_->end();
    throw DeviceError(fmt::format("cpu: there are no {} threads for a loader: {}", workers, error.what()));
  }
}

// The child of a fork() has none of the threads, and what they waited at or held cannot be taken apart.
Prefetch::~Prefetch() {
  if (state_->generation == runtime::process_generation()) {
    state_->end();
  } else {
    static_cast<void>(state_.release());
  }
}

HostBatch Prefetch::take() {
  FJ_CHECK(state_->generation == runtime::process_generation(),
           "data loader: the workers of this epoch are in the process that fork() was called in: begin another one");
  State::Made made;
  {
    std::unique_lock lock(state_->mutex);
    FJ_ASSERT(state_->taken < state_->batches, "batch {} of {} is taken", state_->taken, state_->batches);
    State::Made& next = state_->made[static_cast<std::size_t>(state_->taken) % state_->made.size()];
    state_->changed.wait(lock, [&] { return next.is_there; });
    made = std::exchange(next, {});
    ++state_->taken;
  }
  state_->changed.notify_all();
  if (made.error) std::rethrow_exception(made.error);
  return std::move(made.batch);
}

}  // namespace fusejit::data
