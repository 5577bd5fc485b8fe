// FakeDriver: streams, events, copies, modules, launches and graphs.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/support/fake_driver_state.h"

namespace fusejit::test {
namespace {

constexpr CuResult kInvalidValue = 1, kInvalidImage = 200, kInvalidHandle = 400, kNotFound = 500;
constexpr CuResult kCaptureUnsupported = 900, kCaptureInvalidated = 901;
constexpr std::int64_t kMostThreads = 1024;
constexpr std::string_view kImageMark =
    "\x7f"
    "ELF";

// The handle of a live object, or null.
template <typename State, typename Handle>
State* find(const std::map<State*, std::unique_ptr<State>>& alive, Handle handle) {
  const auto found = alive.find(reinterpret_cast<State*>(handle));
  return found == alive.end() ? nullptr : found->first;
}

template <typename Handle, typename State>
Handle add(std::map<State*, std::unique_ptr<State>>& alive, std::unique_ptr<State> state) {
  State* raw = state.get();
  alive.emplace(raw, std::move(state));
  return reinterpret_cast<Handle>(raw);
}

}  // namespace

// ---- streams

FakeDriver::StreamState* FakeDriver::stream(CuStream handle, const char* who) {
  StreamState* found = find(streams_, handle);
  if (!found) problem(fmt::format("{} on a stream that is not alive", who));
  return found;
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

CuResult FakeDriver::stream_create(CuStream* stream, unsigned) {
  return *stream = add<CuStream>(streams_, std::make_unique<StreamState>()), kSuccess;
}

CuResult FakeDriver::stream_destroy(CuStream handle) {
  StreamState* found = stream(handle, "cuStreamDestroy");
  if (!found) return kInvalidHandle;
  if (found->capturing) problem("cuStreamDestroy of a stream that is captured");
  drain(*found, found->queue.size());
  for (auto& [raw, event] : events_) {
    if (raw->stream == found) raw->stream = nullptr;
  }
  streams_.erase(found);
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
  enqueue(*found, {"wait", [this, other = waited->stream, position = waited->position] { drain(*other, position); }});
  return kSuccess;
}

CuResult FakeDriver::event_create(CuEvent* event, unsigned) {
  return *event = add<CuEvent>(events_, std::make_unique<EventState>()), kSuccess;
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
  return kSuccess;
}
CuResult FakeDriver::event_query(CuEvent event) {
  const EventState* found = find(events_, event);
  if (!found) return kInvalidHandle;
  return !found->stream || found->stream->done >= found->position ? kSuccess : kNotReady;
}
CuResult FakeDriver::event_synchronize(CuEvent event) {
  const EventState* found = find(events_, event);
  if (!found) return kInvalidHandle;
  if (capture_forbids("cuEventSynchronize")) return kCaptureUnsupported;
  if (found->stream) drain(*found->stream, found->position);
  return kSuccess;
}
CuResult FakeDriver::event_elapsed_time(float* milliseconds, CuEvent start, CuEvent end) {
  const EventState *from = find(events_, start), *to = find(events_, end);
  if (!from || !to) return kInvalidHandle;
  float taken = 0;
  for (std::size_t i = from->position; from->stream && from->stream == to->stream && i < to->position; ++i) {
    taken += from->stream->queue[i].milliseconds;
  }
  return *milliseconds = taken > 0 ? taken : 1, kSuccess;
}

// ---- copies

CuResult FakeDriver::copy(CuStream handle, std::byte* to, const std::byte* from, std::size_t bytes, const char* who) {
  StreamState* found = stream(handle, who);
  if (!found) return kInvalidHandle;
  enqueue(*found, {who, [=] { std::memmove(to, from, bytes); }});
  return kSuccess;
}
CuResult FakeDriver::copy_to_device(CuPointer to, const void* from, std::size_t bytes, CuStream stream) {
  if (!on_device(to, bytes, "cuMemcpyHtoDAsync") || !pinned(from, bytes, "cuMemcpyHtoDAsync")) return kInvalidValue;
  return copy(stream, host_address(to), static_cast<const std::byte*>(from), bytes, "cuMemcpyHtoDAsync");
}
CuResult FakeDriver::copy_to_host(void* to, CuPointer from, std::size_t bytes, CuStream stream) {
  if (!on_device(from, bytes, "cuMemcpyDtoHAsync") || !pinned(to, bytes, "cuMemcpyDtoHAsync")) return kInvalidValue;
  return copy(stream, static_cast<std::byte*>(to), host_address(from), bytes, "cuMemcpyDtoHAsync");
}
CuResult FakeDriver::copy_on_device(CuPointer to, CuPointer from, std::size_t bytes, CuStream stream) {
  if (!on_device(to, bytes, "cuMemcpyDtoDAsync") || !on_device(from, bytes, "cuMemcpyDtoDAsync")) return kInvalidValue;
  return copy(stream, host_address(to), host_address(from), bytes, "cuMemcpyDtoDAsync");
}
CuResult FakeDriver::fill_bytes(CuPointer to, unsigned char value, std::size_t bytes, CuStream handle) {
  StreamState* found = stream(handle, "cuMemsetD8Async");
  if (!found || !on_device(to, bytes, "cuMemsetD8Async")) return kInvalidValue;
  enqueue(*found, {"cuMemsetD8Async", [at = host_address(to), value, bytes] { std::memset(at, value, bytes); }});
  return kSuccess;
}

// ---- modules and launches

CuResult FakeDriver::module_load_data(CuModule* module, const void* image) {
  if (capture_forbids("cuModuleLoadData")) return kCaptureUnsupported;
  const char* text = static_cast<const char*>(image);
  if (std::strncmp(text, kImageMark.data(), kImageMark.size()) != 0) return kInvalidImage;
  auto state = std::make_unique<ModuleState>();
  return *module = add<CuModule>(modules_, std::move(state)), kSuccess;
}

CuResult FakeDriver::module_unload(CuModule module) {
  ModuleState* found = find(modules_, module);
  if (!found) return problem("cuModuleUnload of a module that is not alive"), kInvalidHandle;
  if (sticky_ == kSuccess) drain_all();
  return modules_.erase(found), kSuccess;
}

CuResult FakeDriver::module_get_function(CuFunction* function, CuModule module, const char* name) {
  ModuleState* found = find(modules_, module);
  if (!found) return kInvalidHandle;
  const auto kernel = kernels_.find(name);
  if (kernel == kernels_.end()) return kNotFound;
  std::unique_ptr<FunctionState>& state = found->functions[name];
  if (!state) state.reset(new FunctionState{name, &kernel->second});
  return *function = reinterpret_cast<CuFunction>(state.get()), kSuccess;
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

CuResult FakeDriver::function_set_attribute(CuFunction function, int attribute, int value) {
  if (attribute != kFunctionMaxDynamicSharedBytes || value > (227 << 10)) return kInvalidValue;
  return reinterpret_cast<FunctionState*>(function)->dynamic_shared_bytes = value, kSuccess;
}

// Copies the arguments, as the driver does at the call, and looks at every pointer.
bool FakeDriver::read_arguments(const FunctionState& function, void** arguments, KernelWork& work) {
  const FakeKernel& kernel = *function.kernel;
  const std::size_t pointers = kernel.pointers.size(), scalars = kernel.scalar_bytes.size();
  const std::size_t before = pointers - static_cast<std::size_t>(kernel.pointers_after_scalars);
  for (std::size_t i = 0; i < pointers + scalars; ++i) {
    const bool scalar = i >= before && i < before + scalars;
    const int bytes = scalar ? kernel.scalar_bytes[i - before] : 8;
    std::uint64_t value = 0;
    std::memcpy(&value, arguments[i], static_cast<std::size_t>(bytes));
    work.arguments.push_back(value);
    if (scalar) continue;
    const FakePointer& wanted = kernel.pointers[i < before ? i : i - scalars];
    const std::string who = fmt::format("{}, argument {}", function.entry, i);
    if (!on_device(value, static_cast<std::size_t>(wanted.bytes), who.c_str())) return false;
    if (value % static_cast<std::uint64_t>(wanted.align) != 0) {
      problem(fmt::format("{}: {:#x} is not aligned to {}", who, value, wanted.align));
      return false;
    }
  }
  return true;
}

FakeDriver::Work FakeDriver::KernelWork::work(FakeDriver& fake, bool from_graph) const {
  return {"kernel",
          [&fake, from_graph, copy = *this] {
            const auto& state = *reinterpret_cast<const FunctionState*>(copy.function);
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
              // Alive when it was launched; still alive now that it runs?
              if (!fake.on_device(copy.arguments[i], static_cast<std::size_t>(wanted.bytes), state.entry.c_str()))
                return;
              pointers.push_back(host_address(copy.arguments[i]));
            }
            if (kernel.run) kernel.run(pointers, values);
          },
          reinterpret_cast<const FunctionState*>(function)->kernel->milliseconds};
}

CuResult FakeDriver::launch_kernel(CuFunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                   unsigned bz, unsigned shared, CuStream handle, void** arguments, void** extra) {
  StreamState* found = stream(handle, "cuLaunchKernel");
  bool alive = false;
  for (auto& [raw, module] : modules_) {
    for (auto& [name, state] : module->functions) alive |= state.get() == reinterpret_cast<FunctionState*>(function);
  }
  if (!alive) problem("cuLaunchKernel of a function whose module is not loaded");
  if (!alive || !found || extra) return kInvalidHandle;
  const auto& state = *reinterpret_cast<FunctionState*>(function);
  const FakeKernel& kernel = *state.kernel;
  KernelWork work{function, {gx, gy, gz}, {bx, by, bz}, {}};
  const auto wrong = [&](const Extents& given, const Extents& wanted) { return wanted[0] != 0 && given != wanted; };
  if (wrong(work.grid, kernel.grid) || wrong(work.block, kernel.block)) {
    problem(fmt::format("{}: launched with other extents than it was compiled for", state.entry));
    return kInvalidValue;
  }
  const std::int64_t threads = std::int64_t{bx} * by * bz;
  if (gx == 0 || gy == 0 || gz == 0 || threads == 0 || threads > kMostThreads || gy > 65535 || gz > 65535 || bz > 64) {
    problem(fmt::format("{}: no device has a grid of {}x{}x{} blocks of {} threads", state.entry, gx, gy, gz, threads));
    return kInvalidValue;
  }
  if (shared != kernel.shared_bytes || static_cast<int>(shared) > state.dynamic_shared_bytes) {
    problem(fmt::format("{}: {} bytes of shared memory, {} wanted, {} allowed", state.entry, shared,
                        kernel.shared_bytes, state.dynamic_shared_bytes));
    return kInvalidValue;
  }
  if (!read_arguments(state, arguments, work)) return kInvalidValue;
  if (!found->capturing) return found->queue.push_back(work.work(*this, false)), kSuccess;
  found->captured->nodes.push_back(std::make_unique<GraphState::Node>(GraphState::Node{{}, std::move(work), true}));
  return kSuccess;
}

// ---- graphs

CuResult FakeDriver::stream_begin_capture(CuStream handle, int mode) {
  StreamState* found = stream(handle, "cuStreamBeginCapture");
  if (!found || mode != kCaptureThreadLocal || found->capturing) return kInvalidValue;
  found->capturing = true;
  found->captured_by = std::this_thread::get_id();
  found->capture_broken = false;
  found->captured = std::make_unique<GraphState>();
  return kSuccess;
}

CuResult FakeDriver::stream_end_capture(CuStream handle, CuGraph* graph) {
  StreamState* found = stream(handle, "cuStreamEndCapture");
  if (!found || !found->capturing) return kInvalidValue;
  found->capturing = false;
  *graph = nullptr;
  // A call that fails gives no graph out.
  if (found->capture_broken || sticky_ != kSuccess || (failed_ && calls_ == fail_at_)) {
    found->captured.reset();
    return kCaptureInvalidated;
  }
  return *graph = add<CuGraph>(graphs_, std::move(found->captured)), kSuccess;
}

CuResult FakeDriver::stream_get_capture_info(CuStream handle, int* status, std::uint64_t* id, CuGraph* graph,
                                             const CuGraphNode** nodes, std::size_t* count) {
  StreamState* found = stream(handle, "cuStreamGetCaptureInfo");
  if (!found) return kInvalidHandle;
  *status = found->capturing ? kCaptureStatusActive : kCaptureStatusNone;
  if (!found->capturing) return kSuccess;
  if (id) *id = 1;
  if (graph) *graph = reinterpret_cast<CuGraph>(found->captured.get());
  static thread_local CuGraphNode last;
  last = found->captured->nodes.empty() ? nullptr : reinterpret_cast<CuGraphNode>(found->captured->nodes.back().get());
  if (nodes) *nodes = &last;
  if (count) *count = last ? 1 : 0;
  return kSuccess;
}

CuResult FakeDriver::graph_instantiate(CuGraphExec* exec, CuGraph graph, unsigned long long) {
  const GraphState* found = find(graphs_, graph);
  if (!found) return kInvalidHandle;
  auto state = std::make_unique<ExecState>();
  for (const auto& node : found->nodes) state->steps.push_back({node.get(), *node});
  return *exec = add<CuGraphExec>(execs_, std::move(state)), kSuccess;
}

CuResult FakeDriver::graph_set_kernel_node(CuGraphExec exec, CuGraphNode node, const CuKernelNodeParams* parameters) {
  ExecState* found = find(execs_, exec);
  if (!found) return kInvalidHandle;
  const bool graph_alive = std::any_of(graphs_.begin(), graphs_.end(), [&](auto& graph) {
    return std::any_of(graph.first->nodes.begin(), graph.first->nodes.end(),
                       [&](auto& n) { return n.get() == reinterpret_cast<const GraphState::Node*>(node); });
  });
  if (!graph_alive) return problem("a node is set whose graph is not alive"), kInvalidHandle;
  for (ExecState::Step& step : found->steps) {
    if (step.node != node || !step.what.is_kernel) continue;
    KernelWork& kernel = step.what.kernel;
    if (parameters->function != kernel.function) return kInvalidValue;
    KernelWork changed{kernel.function, kernel.grid, kernel.block, {}};
    const auto& function = *reinterpret_cast<const FunctionState*>(kernel.function);
    if (!read_arguments(function, parameters->arguments, changed)) return kInvalidValue;
    kernel = std::move(changed);
    return ++graph_updates_, kSuccess;
  }
  return problem("a node is set that the executable graph does not have"), kInvalidHandle;
}

CuResult FakeDriver::graph_launch(CuGraphExec exec, CuStream handle) {
  StreamState* found = stream(handle, "cuGraphLaunch");
  const ExecState* launched = find(execs_, exec);
  if (!found || !launched) return kInvalidHandle;
  for (const ExecState::Step& step : launched->steps) {
    found->queue.push_back(step.what.is_kernel ? step.what.kernel.work(*this, true) : step.what.work);
  }
  return kSuccess;
}

CuResult FakeDriver::graph_exec_destroy(CuGraphExec exec) {
  ExecState* found = find(execs_, exec);
  if (!found) return problem("cuGraphExecDestroy of a graph that is not alive"), kInvalidHandle;
  return execs_.erase(found), kSuccess;
}

CuResult FakeDriver::graph_destroy(CuGraph graph) {
  GraphState* found = find(graphs_, graph);
  if (!found) return problem("cuGraphDestroy of a graph that is not alive"), kInvalidHandle;
  return graphs_.erase(found), kSuccess;
}

}  // namespace fusejit::test
