#include "runtime/process/fork.h"

#include <pthread.h>

#include <atomic>
#include <new>
#include <utility>

#include "ir/base/gate.h"
#include "runtime/cpu/memory.h"

namespace fusejit::runtime {
namespace {

struct Fork {
  ir::Gate gate;
  std::atomic<int> generation{0};
  struct Held {
    std::vector<std::mutex*> mutexes;
    void (*in_child)();
  };
  std::mutex mutex;
  std::vector<Held> held;  // under mutex
};

thread_local int runs_of_this_thread = 0;

Fork& the_fork() {
  // Never destroyed: threads may outlive what is static.
  static Fork& the = *new Fork;
  return the;
}

// A thread that forks inside a run of its own cannot wait for it; others are what the child would miss.
void before() {
  Fork& f = the_fork();
  if (runs_of_this_thread == 0) f.gate.close();
  f.mutex.lock();
  for (const Fork::Held& held : f.held)
    for (std::mutex* mutex : held.mutexes) mutex->lock();
  lock_memory_for_fork();
}
void give_back() {
  Fork& f = the_fork();
  unlock_memory_after_fork();
  for (const Fork::Held& held : f.held)
    for (std::mutex* mutex : held.mutexes) mutex->unlock();
  f.mutex.unlock();
}
void after_in_parent() {
  give_back();
  if (runs_of_this_thread == 0) the_fork().gate.open();
}
void after_in_child() {
  Fork& f = the_fork();
  give_back();
  new (&f.gate) ir::Gate;  // threads that waited at the old one are not here
  ++f.generation;
  // The run that this thread forked in goes on here, and leaves the gate as it came.
  if (runs_of_this_thread > 0) f.gate.enter();
  for (const Fork::Held& held : f.held) held.in_child();
}

Fork& watched_fork() {
  static const int failed = pthread_atfork(before, after_in_parent, after_in_child);
  static_cast<void>(failed);  // for want of memory: then only the generation is not counted
  return the_fork();
}

}  // namespace

int process_generation() { return watched_fork().generation.load(std::memory_order_relaxed); }

void hold_at_fork(std::vector<std::mutex*> mutexes, void (*in_child)()) {
  Fork& f = watched_fork();
  const std::lock_guard lock(f.mutex);
  f.held.push_back({std::move(mutexes), in_child});
}

UnforkedRun::UnforkedRun() {
  if (runs_of_this_thread++ == 0) watched_fork().gate.enter();
}
UnforkedRun::~UnforkedRun() {
  if (--runs_of_this_thread == 0) watched_fork().gate.leave();
}

}  // namespace fusejit::runtime
