#include "runtime/process/background.h"

#include <utility>

#include "runtime/process/fork.h"

namespace fusejit::runtime {

void Background::add(Job job) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    jobs_.push_back(std::move(job));
    if (!thread_) {
      generation_ = process_generation();
      thread_ = std::make_unique<std::thread>([this] { run(source_.get_token()); });
    }
  }
  changed_.notify_all();
}

void Background::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopped_ || !jobs_.empty(); });
    if (stopped_) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    running_ = true;
    lock.unlock();
    job(stop);
    job = nullptr;  // what it holds is given back outside the lock
    lock.lock();
    running_ = false;
    changed_.notify_all();
  }
}

void Background::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || (jobs_.empty() && !running_); });
}

void Background::stop() {
  std::deque<Job> dropped;
  std::unique_ptr<std::thread> thread;
  if (thread_ && generation_ != process_generation()) {  // the parent's: nothing of it is here
    static_cast<void>(thread_.release());
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    dropped.swap(jobs_);
    thread.swap(thread_);
  }
  source_.request_stop();
  changed_.notify_all();
  if (thread) thread->join();
}

}  // namespace fusejit::runtime
