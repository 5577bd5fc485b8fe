// FakeDriver: streams, events, copies, modules and launches.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "tests/support/fake_device/fake_driver_state.h"

namespace fusejit::test {
namespace {

constexpr CuResult kInvalidImage = 200, kNoBinaryForGpu = 209, kNotFound = 500;
constexpr CuResult kCaptureIsolation = 905, kCapturedEvent = 907;
constexpr CuResult kIllegalAddress = 700;
constexpr std::int64_t kMostThreads = 1024;
constexpr unsigned kMostBlocks = 0x7fffffff;       // along x
constexpr std::size_t kMostParameterBytes = 4096;  // before CUDA 12.1, for every driver that is served
constexpr std::string_view kImageMark =
    "\x7f"
    "ELF";

}  // namespace

// ---- streams

FakeDriver::StreamState* FakeDriver::stream(CuStream handle, const char* who) {
  StreamState* found = find(streams_, handle);
  if (!found) return problem(fmt::format("{} on a stream that is not alive", who)), nullptr;
  if (found->ordinal == here()) return found;
  return problem(fmt::format("{} on a stream of cuda:{} with cuda:{} current", who, found->ordinal, here())), nullptr;
}

void FakeDriver::enqueue(StreamState& stream, Work work) {
  if (!stream.capturing) return stream.queue.push_back(std::move(work));
  stream.captured->nodes.push_back(std::make_unique<GraphState::Node>(GraphState::Node{std::move(work), {}, false}));
}

void FakeDriver::drain(StreamState& stream, std::size_t until) {
  if (stream.draining) return problem("streams wait for each other");
  stream.draining = true;
  while (stream.done < until && sticky_ == kSuccess) {
    const std::function<void()> run = std::move(stream.queue[stream.done++].run);
    run();
  }
  stream.draining = false;
}

void FakeDriver::drain_all() {
  for (auto& [raw, state] : streams_) drain(*raw, raw->queue.size());
  for (auto& state : ended_) drain(*state, state->queue.size());
}

// True, and the capture is broken, if this thread is capturing a stream: the call cannot be made then.
bool FakeDriver::capture_forbids(const char* who) {
  bool any = false;
  for (auto& [raw, state] : streams_) {
    if (!raw->capturing || raw->captured_by != std::this_thread::get_id()) continue;
    raw->capture_broken = any = true;
    problem(fmt::format("{} while a stream is captured", who));
  }
  return any;
}

CuResult FakeDriver::stream_create(CuStream* stream, unsigned flags) {
  if (flags != kStreamNonBlocking) problem("cuStreamCreate of a stream that waits for the default stream");
  auto state = std::make_unique<StreamState>();
  state->ordinal = here();
  return *stream = add<CuStream>(streams_, std::move(state)), kSuccess;
}

CuResult FakeDriver::stream_destroy(CuStream handle) {
  StreamState* found = stream(handle, "cuStreamDestroy");
  if (!found) return kInvalidHandle;
  if (found->capturing) problem("cuStreamDestroy of a stream that is captured");
  ended_.push_back(std::move(streams_.extract(found).mapped()));
  return kSuccess;
}

CuResult FakeDriver::stream_synchronize(CuStream handle) {
  StreamState* found = stream(handle, "cuStreamSynchronize");
  if (!found) return kInvalidHandle;
  if (capture_forbids("cuStreamSynchronize")) return kCaptureUnsupported;
  return drain(*found, found->queue.size()), kSuccess;
}

CuResult FakeDriver::stream_wait_event(CuStream handle, CuEvent event, unsigned) {
  StreamState* found = stream(handle, "cuStreamWaitEvent");
  EventState* waited = find(events_, event);
  if (!found || !waited) return kInvalidHandle;
  if (!waited->stream) return kSuccess;
  if (found->capturing != waited->captured) {
    return problem("cuStreamWaitEvent across the bounds of a capture"), kCaptureIsolation;
  }
  enqueue(*found, {"wait", [this, other = waited->stream, position = waited->position] { drain(*other, position); }});
  return kSuccess;
}

CuResult FakeDriver::event_create(CuEvent* event, unsigned flags) {
  auto state = std::make_unique<EventState>();
  state->timing = (flags & kEventDisableTiming) == 0;
  return *event = add<CuEvent>(events_, std::move(state)), kSuccess;
}
CuResult FakeDriver::event_destroy(CuEvent event) {
  EventState* found = find(events_, event);
  if (!found) return problem("cuEventDestroy of an event that is not alive"), kInvalidHandle;
  return events_.erase(found), kSuccess;
}
CuResult FakeDriver::event_record(CuEvent event, CuStream handle) {
  StreamState* at = stream(handle, "cuEventRecord");
  EventState* found = find(events_, event);
  if (!found || !at) return kInvalidHandle;
  found->stream = at;
  found->position = at->queue.size();
  found->captured = at->capturing;
  return kSuccess;
}
CuResult FakeDriver::event_query(CuEvent event) {
  const EventState* found = find(events_, event);
  if (!found) return kInvalidHandle;
  if (capture_forbids("cuEventQuery")) return kCaptureUnsupported;
  if (found->captured) return problem("cuEventQuery of an event of a capture"), kCapturedEvent;
  return !found->stream || found->stream->done >= found->position ? kSuccess : kNotReady;
}
CuResult FakeDriver::event_synchronize(CuEvent event) {
  const EventState* found = find(events_, event);
  if (!found) return kInvalidHandle;
  if (capture_forbids("cuEventSynchronize")) return kCaptureUnsupported;
  if (found->captured) return problem("cuEventSynchronize of an event of a capture"), kCapturedEvent;
  if (found->stream) drain(*found->stream, found->position);
  return kSuccess;
}
CuResult FakeDriver::event_elapsed_time(float* milliseconds, CuEvent start, CuEvent end) {
  const EventState *from = find(events_, start), *to = find(events_, end);
  if (!from || !to) return kInvalidHandle;
  for (const EventState* event : {from, to}) {
    if (!event->timing || !event->stream)
      return problem("cuEventElapsedTime of an event without a time"), kInvalidHandle;
    if (event->stream->done < event->position) return kNotReady;
  }
  float taken = 0;
  for (std::size_t i = from->position; from->stream == to->stream && i < to->position; ++i) {
    taken += from->stream->queue[i].milliseconds;
  }
  return *milliseconds = taken > 0 ? taken : 1, kSuccess;
}

// ---- copies

// What a copy needs must be there when it is called and when it is done.
CuResult FakeDriver::copy(CuStream handle, std::byte* to, const std::byte* from, std::size_t bytes, const char* who,
                          const std::function<bool(int ordinal)>& is_good) {
  StreamState* found = stream(handle, who);
  if (!found) return kInvalidHandle;
  if (!is_good(found->ordinal)) return kInvalidValue;
  enqueue(*found, {who, [=, ordinal = found->ordinal] {
                     if (is_good(ordinal)) std::memmove(to, from, bytes);
                   }});
  return kSuccess;
}
CuResult FakeDriver::copy_to_device(CuPointer to, const void* from, std::size_t bytes, CuStream stream) {
  const char* who = "cuMemcpyHtoDAsync";
  return copy(stream, host_address(to), static_cast<const std::byte*>(from), bytes, who,
              [=, this](int ordinal) { return on_device(to, bytes, who, ordinal) && pinned(from, bytes, who); });
}
CuResult FakeDriver::copy_to_host(void* to, CuPointer from, std::size_t bytes, CuStream stream) {
  const char* who = "cuMemcpyDtoHAsync";
  return copy(stream, static_cast<std::byte*>(to), host_address(from), bytes, who,
              [=, this](int ordinal) { return on_device(from, bytes, who, ordinal) && pinned(to, bytes, who); });
}
CuResult FakeDriver::copy_on_device(CuPointer to, CuPointer from, std::size_t bytes, CuStream stream) {
  const char* who = "cuMemcpyDtoDAsync";
  return copy(stream, host_address(to), host_address(from), bytes, who, [=, this](int ordinal) {
    return on_device(to, bytes, who, ordinal) && on_device(from, bytes, who, ordinal);
  });
}
CuResult FakeDriver::fill_bytes(CuPointer to, unsigned char value, std::size_t bytes, CuStream handle) {
  const char* who = "cuMemsetD8Async";
  StreamState* found = stream(handle, who);
  if (!found || !on_device(to, bytes, who, found->ordinal)) return kInvalidValue;
  enqueue(*found, {who, [=, this, ordinal = found->ordinal] {
                     if (on_device(to, bytes, who, ordinal)) std::memset(host_address(to), value, bytes);
                   }});
  return kSuccess;
}

// ---- modules and launches

CuResult FakeDriver::module_load_data(CuModule* module, const void* image) {
  if (capture_forbids("cuModuleLoadData")) return kCaptureUnsupported;
  const char* text = static_cast<const char*>(image);
  if (std::strncmp(text, kImageMark.data(), kImageMark.size()) != 0) return kInvalidImage;
  constexpr std::string_view kFor = " for sm_";
  const std::string_view rest = text + kImageMark.size();
  if (rest.starts_with(kFor) && rest != fmt::format("{}{}", kFor, device_.compute_capability)) return kNoBinaryForGpu;
  if (device_.module_bytes > device_.memory_bytes - in_use_) return kOutOfMemory;
  in_use_ += device_.module_bytes;
  auto state = std::make_unique<ModuleState>();
  state->ordinal = here();
  return *module = add<CuModule>(modules_, std::move(state)), kSuccess;
}

CuResult FakeDriver::module_unload(CuModule module) {
  ModuleState* found = find(modules_, module);
  if (!found) return problem("cuModuleUnload of a module that is not alive"), kInvalidHandle;
  if (capture_forbids("cuModuleUnload")) return kCaptureUnsupported;
  in_use_ -= device_.module_bytes;
  return modules_.erase(found), kSuccess;
}

CuResult FakeDriver::module_get_function(CuFunction* function, CuModule module, const char* name) {
  ModuleState* found = find(modules_, module);
  if (!found) return kInvalidHandle;
  const auto kernel = kernels_.find(name);
  if (kernel == kernels_.end()) return kNotFound;
  std::unique_ptr<FunctionState>& state = found->functions[name];
  if (!state) state.reset(new FunctionState{.entry = name, .kernel = &kernel->second, .ordinal = found->ordinal});
  return *function = reinterpret_cast<CuFunction>(state.get()), kSuccess;
}

// The entry of a module that is loaded, or null.
FakeDriver::FunctionState* FakeDriver::function(CuFunction handle) {
  for (auto& [raw, module] : modules_) {
    for (auto& [name, state] : module->functions) {
      if (state.get() == reinterpret_cast<FunctionState*>(handle)) return state.get();
    }
  }
  return nullptr;
}

CuResult FakeDriver::function_get_attribute(int* value, int attribute, CuFunction) {
  switch (attribute) {
    case kFunctionMaxThreadsPerBlock:
      return *value = kMostThreads, kSuccess;
    case kFunctionSharedBytes:
    case kFunctionLocalBytes:
      return *value = 0, kSuccess;
    case kFunctionRegisters:
      return *value = 32, kSuccess;
    default:
      return kInvalidValue;
  }
}

CuResult FakeDriver::function_set_attribute(CuFunction handle, int attribute, int value) {
  FunctionState* state = function(handle);
  if (!state) return problem("cuFuncSetAttribute of a function whose module is not loaded"), kInvalidHandle;
  if (attribute != kFunctionMaxDynamicSharedBytes || value > (227 << 10)) return kInvalidValue;
  return state->dynamic_shared_bytes = value, kSuccess;
}

// Kernels are compiled for pointers of which a written one shares no byte with another. "" or what is wrong.
static std::string overlap(std::span<const FakePointer> pointers, std::span<const std::uint64_t> addresses) {
  for (std::size_t i = 0; i < pointers.size(); ++i) {
    for (std::size_t j = 0; pointers[i].written && j < pointers.size(); ++j) {
      const bool apart = i == j || addresses[i] + static_cast<std::uint64_t>(pointers[i].bytes) <= addresses[j] ||
                         addresses[j] + static_cast<std::uint64_t>(pointers[j].bytes) <= addresses[i];
      if (!apart) return fmt::format("pointer {} is written and overlaps pointer {}", i, j);
    }
  }
  return "";
}

// Copies the arguments, as the driver does at the call, and looks at every pointer.
bool FakeDriver::read_arguments(const FunctionState& function, void** arguments, KernelWork& work) {
  const FakeKernel& kernel = *function.kernel;
  const std::size_t pointers = kernel.pointers.size(), scalars = kernel.scalar_bytes.size();
  const std::size_t before = pointers - static_cast<std::size_t>(kernel.pointers_after_scalars);
  std::vector<std::uint64_t> addresses;
  if (8 * (pointers + scalars) > kMostParameterBytes) {
    return problem(fmt::format("{}: {} parameters", function.entry, pointers + scalars)), false;
  }
  for (std::size_t i = 0; i < pointers + scalars; ++i) {
    const bool scalar = i >= before && i < before + scalars;
    const int bytes = scalar ? kernel.scalar_bytes[i - before] : 8;
    std::uint64_t value = 0;
    std::memcpy(&value, arguments[i], static_cast<std::size_t>(bytes));
    work.arguments.push_back(value);
    if (scalar) continue;
    addresses.push_back(value);
    const FakePointer& wanted = kernel.pointers[i < before ? i : i - scalars];
    const std::string who = fmt::format("{}, argument {}", function.entry, i);
    if (device_.faults) continue;
    if (!on_device(value, static_cast<std::size_t>(wanted.bytes), who.c_str(), work.ordinal)) return false;
    if (value % static_cast<std::uint64_t>(wanted.align) != 0) {
      problem(fmt::format("{}: {:#x} is not aligned to {}", who, value, wanted.align));
      return false;
    }
  }
  const std::string wrong = device_.faults ? "" : overlap(kernel.pointers, addresses);
  if (!wrong.empty()) problem(fmt::format("{}: {}", function.entry, wrong));
  return wrong.empty();
}

FakeDriver::Work FakeDriver::KernelWork::work(FakeDriver& fake, bool from_graph) const {
  return {"kernel",
          [&fake, from_graph, copy = *this] {
            const FunctionState* alive = fake.function(copy.function);
            if (!alive) return fake.problem("a kernel is to run whose module is not loaded any more");
            const FunctionState& state = *alive;
            const FakeKernel& kernel = *state.kernel;
            fake.launches_.push_back({state.entry, copy.grid, copy.block, from_graph});
            if (fake.break_kernel_ != kSuccess) {
              fake.sticky_ = std::exchange(fake.break_kernel_, kSuccess);
              return;
            }
            const std::size_t scalars = kernel.scalar_bytes.size();
            const std::size_t before = kernel.pointers.size() - static_cast<std::size_t>(kernel.pointers_after_scalars);
            std::vector<void*> pointers;
            std::vector<std::uint64_t> values;
            for (std::size_t i = 0; i < copy.arguments.size(); ++i) {
              if (i >= before && i < before + scalars) {
                values.push_back(copy.arguments[i]);
                continue;
              }
              const FakePointer& wanted = kernel.pointers[i < before ? i : i - scalars];
              if (fake.device_.faults && (copy.arguments[i] & kDeviceBit) == 0) {
                fake.sticky_ = kIllegalAddress;
                return;
              }
              // Alive when it was launched; still alive now that it runs?
              if (!fake.on_device(copy.arguments[i], static_cast<std::size_t>(wanted.bytes), state.entry.c_str(),
                                  copy.ordinal)) {
                return;
              }
              pointers.push_back(host_address(copy.arguments[i]));
            }
            if (kernel.run) kernel.run(pointers, values);
          },
          reinterpret_cast<const FunctionState*>(function)->kernel->milliseconds};
}

// What every launch must keep to, directly or as a node of a graph.
bool FakeDriver::can_launch(CuFunction handle, const Extents& grid, const Extents& block, unsigned shared,
                            void** arguments, KernelWork& work) {
  const FunctionState* state = function(handle);
  if (!state) return problem("a launch of a function whose module is not loaded"), false;
  if (state->ordinal != work.ordinal) {
    return problem(
               fmt::format("{}: a function of cuda:{} in work of cuda:{}", state->entry, state->ordinal, work.ordinal)),
           false;
  }
  const FakeKernel& kernel = *state->kernel;
  const auto wrong = [&](const Extents& given, const Extents& wanted) { return wanted[0] != 0 && given != wanted; };
  if (wrong(grid, kernel.grid) || wrong(block, kernel.block)) {
    return problem(fmt::format("{}: launched with other extents than it was compiled for", state->entry)), false;
  }
  const std::int64_t threads = std::int64_t{block[0]} * block[1] * block[2];
  const auto& [gx, gy, gz] = grid;
  if (gx == 0 || gy == 0 || gz == 0 || threads == 0 || threads > kMostThreads || gx > kMostBlocks || gy > 65535 ||
      gz > 65535 || block[2] > 64) {
    problem(
        fmt::format("{}: no device has a grid of {}x{}x{} blocks of {} threads", state->entry, gx, gy, gz, threads));
    return false;
  }
  if (shared != kernel.shared_bytes || static_cast<int>(shared) > state->dynamic_shared_bytes) {
    problem(fmt::format("{}: {} bytes of shared memory, {} wanted, {} allowed", state->entry, shared,
                        kernel.shared_bytes, state->dynamic_shared_bytes));
    return false;
  }
  return read_arguments(*state, arguments, work);
}

CuResult FakeDriver::launch_kernel(CuFunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                   unsigned bz, unsigned shared, CuStream handle, void** arguments, void** extra) {
  StreamState* found = stream(handle, "cuLaunchKernel");
  if (!found || extra) return kInvalidHandle;
  KernelWork work{function, {gx, gy, gz}, {bx, by, bz}, {}, found->ordinal};
  if (!can_launch(function, work.grid, work.block, shared, arguments, work)) return kInvalidValue;
  if (!found->capturing) return found->queue.push_back(work.work(*this, false)), kSuccess;
  found->captured->nodes.push_back(std::make_unique<GraphState::Node>(GraphState::Node{{}, std::move(work), true}));
  return kSuccess;
}

}  // namespace fusejit::test
