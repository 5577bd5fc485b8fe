// Gate: who works behind it can be waited for and kept out, for the moments when nobody may be at work there: a fork()
// and the end of the process.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>

namespace fusejit::ir {

class Gate {
 public:
  // Waits while it is closed. False, and not inside, once it is shut.
  bool enter() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !closed_ || shut_; });
    if (shut_) return false;
    ++inside_;
    return true;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    if (--inside_ == 0) changed_.notify_all();
  }
  // Lets nobody in and returns when nobody is inside, or after so long.
  void close(std::optional<std::chrono::milliseconds> most = {}) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !closed_; });
    closed_ = true;
    const auto is_empty = [&] { return inside_ == 0; };
    most ? void(changed_.wait_for(lock, *most, is_empty)) : changed_.wait(lock, is_empty);
  }
  void open() {
    const std::lock_guard lock(mutex_);
    closed_ = false;
    changed_.notify_all();
  }
  // Lets nobody in any more; waits at most so long for those inside.
  void shut(std::chrono::milliseconds most) {
    std::unique_lock lock(mutex_);
    shut_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, most, [&] { return inside_ == 0; });
  }
  bool is_shut() {
    const std::lock_guard lock(mutex_);
    return shut_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool closed_ = false, shut_ = false;
};

}  // namespace fusejit::ir
