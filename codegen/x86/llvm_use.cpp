#include "codegen/x86/llvm_use.h"

#include <execinfo.h>
#include <llvm/Support/ErrorHandling.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <new>

#include "ir/base/check.h"
#include "ir/base/gate.h"

namespace fusejit::codegen::x86 {
namespace {

constexpr std::chrono::seconds kLongestWait(10);  // a kernel compiles in milliseconds

// Never destroyed: threads may ask until the process is gone.
ir::Gate& gate() {
  static ir::Gate& the = *new ir::Gate;
  return the;
}

void shut_at_exit() {
  std::atexit([] { gate().shut(kLongestWait); });
}

// exit() destroys the thread-local objects of its thread before all else: before what LLVM has made in kernels that
// other threads are still compiling. The main thread has one of these from the start; once those threads are out of
// LLVM, the gate's handler is the newest again. Where the main thread alone ends, nothing changes.
struct EndOfMainThread {
  bool is_watched = true;
  ~EndOfMainThread() {
    if (::getpid() != static_cast<pid_t>(::syscall(SYS_gettid))) return;
    gate().close(kLongestWait);
    shut_at_exit();
    gate().open();
  }
};

bool watch_this_thread() {
  thread_local EndOfMainThread end;
  return end.is_watched;
}
const bool main_thread_is_watched = watch_this_thread();

bool& gave_up() {
  thread_local bool value = false;
  return value;
}

// LLVM is built without exceptions, so nothing of it is cleaned up on the way out: LlvmOwner leaves it behind.
[[noreturn]] void out_of_memory(void*, const char*, bool) {
  gave_up() = true;
  throw std::bad_alloc();
}

[[noreturn]] void fatal(void*, const char* reason, bool) {
  gave_up() = true;
  throw InternalError(fmt::format("LLVM: {}", reason));
}

void install_handlers() {
  static std::once_flag once;
  std::call_once(once, [] {
    // Exceptions pass through pthread_once, for which the C library would load its unwinder when there is no memory
    // left.
    void* frame = nullptr;
    ::backtrace(&frame, 1);
    llvm::install_bad_alloc_error_handler(out_of_memory);
    llvm::install_fatal_error_handler(fatal);
  });
}

}  // namespace

LlvmUse::LlvmUse() : inside_(gate().enter()) {
  if (inside_) install_handlers();
}

LlvmUse::~LlvmUse() {
  gave_up() = false;
  if (inside_) gate().leave();
}

// For an exit() in another thread than the main one. What was registered last goes first, and LLVM makes its objects
// when they are first needed, in the first hundreds of kernels and then rarely: after each of those it is registered
// again, and later after 512, 1024, … uses.
void end_with_process() {
  constexpr unsigned kEach = 256;
  static std::atomic<unsigned> uses{0};
  const unsigned now = ++uses;
  if (now <= kEach || std::has_single_bit(now)) shut_at_exit();
}

bool llvm_gave_up() { return gave_up(); }
void note_llvm_gave_up() { gave_up() = true; }

}  // namespace fusejit::codegen::x86
