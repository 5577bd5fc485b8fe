#include "frontend/context.h"

#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>

#include "fusejit/autocast.h"
#include "ir/base/check.h"
#include "ir/kept_names.h"
#include "runtime/process/fork.h"

namespace fusejit {
namespace {

// Who waited there is not in the child.
void renew_waiting_place() { new (&context().given_back) std::condition_variable; }

}  // namespace

Context::Context() {
#ifdef NDEBUG
  check_borrowed = false;
#else
  check_borrowed = true;
#endif
  if (const char* wish = std::getenv("FUSEJIT_LOG"); wish && *wish && *wish != '0') {
    log = [](std::string_view line) {
      std::fprintf(stderr, "fusejit: %.*s\n", static_cast<int>(line.size()), line.data());
    };
    logs_fusions = std::string_view(wish) == "fusions";
  }
}

Context& context() {
  // Never destroyed: tensors with static lifetime may outlive every other static object.
  static Context& the = *[] {
    Context* made = new Context;
    runtime::hold_at_fork(
        {&made->engine_mutex, &made->graph_mutex, &made->generator_mutex, &made->log_mutex, &ir::kept_names_mutex()},
        renew_waiting_place);
    return made;
  }();
  return the;
}

Device default_device() {
  Device device;
  const int ordinal = context().default_ordinal.load(std::memory_order_relaxed);
  if (ordinal >= 0) device.kind = Device::Kind::cuda, device.ordinal = ordinal;
  return device;
}

ThreadState::ThreadState() {
  static std::atomic<std::int64_t> threads{0};
  moment = ++threads << 40;
}

ThreadState& thread_state() {
  thread_local ThreadState state;
  return state;
}

void log_line(std::string_view line) {
  std::function<void(std::string_view)> log;
  {
    const std::lock_guard lock(context().log_mutex);
    log = context().log;
  }
  if (log) log(line);
}

void set_log(std::function<void(std::string_view line)> log) {
  const std::lock_guard lock(context().log_mutex);
  context().log = std::move(log);
}

void set_trace_limit(int operations) { context().trace_limit = operations < 1 ? 1 : operations; }
void check_borrowed(bool on) { context().check_borrowed = on; }

Autocast::Autocast(DType dtype) : before_(thread_state().autocast) {
  FJ_CHECK(dtype == bf16 || dtype == f16 || dtype == f32,
           "Autocast: {} is no type to compute in (bf16, f16, or f32: off)", name(dtype));
  thread_state().autocast = dtype == f32 ? std::nullopt : std::optional(dtype);
}
Autocast::~Autocast() { thread_state().autocast = before_; }

NoGrad::NoGrad() : before_(std::exchange(thread_state().gradients, false)) {}
NoGrad::~NoGrad() { thread_state().gradients = before_; }

}  // namespace fusejit
