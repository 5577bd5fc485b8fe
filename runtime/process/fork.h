// fork(): the child has one thread and a copy of the memory as it was at that moment. So fork() waits until no thread
// of the library is in the middle of a run, and who owns threads compares process generations and makes new ones.
#pragma once

#include <mutex>
#include <vector>

namespace fusejit::runtime {

// Forks that lie between the first process that asked and this one.
int process_generation();

// fork() takes these in order, after the last run has left, and gives them back on both sides; `in_child` after that.
void hold_at_fork(std::vector<std::mutex*> mutexes, void (*in_child)());

// While one lives, fork() in another thread waits; may be nested.
class UnforkedRun {
 public:
  UnforkedRun();
  ~UnforkedRun();
  UnforkedRun(const UnforkedRun&) = delete;
  UnforkedRun& operator=(const UnforkedRun&) = delete;
};

}  // namespace fusejit::runtime
