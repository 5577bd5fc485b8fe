// Background: a thread for work that nobody waits for, started by the first job. Jobs run one after the other.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

namespace fusejit::runtime {

class Background {
 public:
  // Throws nothing; looks at the token now and then.
  using Job = std::function<void(const std::stop_token& stop)>;

  Background() = default;
  ~Background() { stop(); }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  void add(Job job);
  // Until no job waits or runs.
  void wait();
  // Drops what waits, asks what runs to stop, and waits for it. Later jobs are dropped.
  void stop();

 private:
  void run(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool running_ = false, stopped_ = false;
  std::stop_source source_;
  std::unique_ptr<std::thread> thread_;
  int generation_ = 0;  // of the process that the thread is in
};

}  // namespace fusejit::runtime
