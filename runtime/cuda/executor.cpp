#include "runtime/cuda/executor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ir/base/check.h"
#include "ir/kernel/walk.h"
#include "runtime/cuda/step_times.h"
#include "runtime/profiler.h"

namespace fusejit::runtime::cuda {

using scheduler::PlanStep;
using scheduler::PlanValue;
using scheduler::Storage;

namespace {

constexpr std::size_t kMostGraphs = 4;
constexpr std::size_t kMostSeen = 8;
constexpr std::int64_t kAlignment = 256;

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

// Everything a run gives to launches and library calls, as flat tables.
struct CudaExecutor::Table {
  // Where an argument word comes from.
  struct Source {
    enum class Kind : std::uint8_t { value, scalar, arena, resident } kind;
    std::int64_t index;  // of the value or scalar; offset in arena or resident block
  };
  // One launch or one library call.
  struct Action {
    const Launch* launch = nullptr;
    const LibraryCall* library = nullptr;
    std::size_t first = 0, count = 0;  // its words; a library call's last one is the workspace
    const PlanStep* step = nullptr;
  };
  std::vector<Action> actions;
  std::vector<Source> sources;
  std::vector<std::uint64_t> words;  // by source
  std::vector<void*> pointers;       // to the words, as cuLaunchKernel takes them
  std::vector<CuPointer> addresses;  // by plan value
  int scalars = 0;

  void add(Source::Kind kind, std::int64_t index) { sources.push_back({kind, index}); }
  void add_kernel(const LoadedKernel& kernel, const PlanStep& step, std::int64_t counters_at);
  void add_library(const LibraryCall& call, const PlanStep& step, std::int64_t workspace_at);
  void finish();
  std::vector<CuPointer> library_words() const;
};

// A run as a graph, and the words that its nodes have now.
struct CudaExecutor::CapturedRun {
  std::vector<CuPointer> library_words;
  std::vector<std::uint64_t> words;
  std::vector<CuGraphNode> nodes;  // of the launches, in order
  std::unique_ptr<ExecutableGraph> graph;
};

void CudaExecutor::Table::add_kernel(const LoadedKernel& kernel, const PlanStep& step, std::int64_t counters_at) {
  FJ_ASSERT(kernel.buffers == static_cast<int>(step.values.size()), "a kernel has {} buffers, its step {} values",
            kernel.buffers, step.values.size());
  FJ_ASSERT(kernel.work_bytes <= step.work_bytes, "a kernel wants {} bytes of work, the plan has {}", kernel.work_bytes,
            step.work_bytes);
  for (const Launch& launch : kernel.launches) {
    const std::size_t first = sources.size();
    for (const int value : step.values) add(Source::Kind::value, value);
    for (int i = 0; i < kernel.scalars; ++i) add(Source::Kind::scalar, scalars + i);
    if (kernel.work_bytes > 0) add(Source::Kind::arena, step.work_offset);
    if (kernel.counter_bytes > 0) add(Source::Kind::resident, counters_at);
    actions.push_back({&launch, nullptr, first, sources.size() - first, &step});
  }
  scalars += kernel.scalars;
}

void CudaExecutor::Table::add_library(const LibraryCall& call, const PlanStep& step, std::int64_t workspace_at) {
  const std::size_t first = sources.size();
  for (const int value : step.values) add(Source::Kind::value, value);
  add(Source::Kind::arena, workspace_at);
  actions.push_back({nullptr, &call, first, sources.size() - first, &step});
}

void CudaExecutor::Table::finish() {
  words.resize(sources.size());
  for (std::uint64_t& word : words) pointers.push_back(&word);
}

std::vector<CuPointer> CudaExecutor::Table::library_words() const {
  std::vector<CuPointer> result;
  for (const Action& action : actions) {
    if (!action.library) continue;
    const auto begin = words.begin() + static_cast<std::ptrdiff_t>(action.first);
    result.insert(result.end(), begin, begin + static_cast<std::ptrdiff_t>(action.count));
  }
  return result;
}

CudaExecutor::CudaExecutor(std::shared_ptr<CudaDevice> device, std::shared_ptr<const scheduler::Plan> plan,
                           std::vector<CudaStep> steps)
    : device_(std::move(device)), plan_(std::move(plan)), steps_(std::move(steps)), table_(std::make_unique<Table>()) {
  FJ_ASSERT(steps_.size() == plan_->steps.size(), "{} steps for a plan of {}", steps_.size(), plan_->steps.size());
  std::vector<std::pair<const PlanValue*, std::int64_t>> constants;
  std::int64_t resident = 0;
  for (const PlanValue& value : plan_->values) {
    if (value.storage != Storage::constant) continue;
    constants.emplace_back(&value, resident);
    resident += aligned(static_cast<std::int64_t>(value.data.size()));
  }
  counters_at_ = resident;
  const std::int64_t workspace_at = aligned(plan_->arena_bytes);
  std::int64_t workspace = 0;
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    std::visit(ir::Overloaded{[&](const std::shared_ptr<const LoadedKernel>& kernel) {
                                table_->add_kernel(*kernel, plan_->steps[s], resident);
                                resident += aligned(kernel->counter_bytes);
                                statistics_.kernel_launches += static_cast<std::int64_t>(kernel->launches.size());
                              },
                              [&](const std::shared_ptr<const LibraryCall>& call) {
                                table_->add_library(*call, plan_->steps[s], workspace_at);
                                workspace = std::max({workspace, call->workspace_bytes(), kAlignment});
                                ++statistics_.library_calls;
                              }},
               steps_[s]);
  }
  table_->finish();
  overwrites_ = std::any_of(plan_->values.begin(), plan_->values.end(),
                            [](const PlanValue& value) { return value.storage == Storage::donated; });
  at_once_ = overwrites_ && statistics_.library_calls == 0;
  table_->addresses.resize(plan_->values.size());
  counter_bytes_ = resident - counters_at_;
  arena_bytes_ = workspace > 0 ? workspace_at + workspace : plan_->arena_bytes;
  resident_ = DeviceBlock(device_->memory(), resident);
  for (const auto& [value, at] : constants) {
    device_->staging().upload(resident_.get() + static_cast<CuPointer>(at), value->data.data(),
                              static_cast<std::int64_t>(value->data.size()));
  }
}

CudaExecutor::~CudaExecutor() {
  // What is at work needs the graphs, and the modules that go with `steps_`.
  device_->context().release(device_->context().driver().stream_synchronize, device_->stream());
}

void CudaExecutor::upload_small(std::span<const Buffer> arguments) {
  std::vector<std::byte> bytes;
  for (const Buffer& argument : arguments) {
    if (!argument.device().is_cpu()) continue;
    FJ_ASSERT(argument.bytes() <= kSmallArgument, "a plan on {} is given a value {} of the host",
              device_->device().str(), argument.type().str());
    bytes.resize(bytes.size() + kSmallArgument);
    std::memcpy(bytes.data() + bytes.size() - kSmallArgument, argument.data(),
                static_cast<std::size_t>(argument.bytes()));
  }
  if (bytes.empty()) return;
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (small_bytes_ < size) {
    small_ = DeviceBlock(device_->memory(), size);
    small_bytes_ = size;
  }
  device_->staging().upload(small_.get(), bytes.data(), size);
}

void CudaExecutor::bind(std::span<const Buffer> arguments, std::span<const Buffer> results,
                        std::span<const std::uint64_t> scalars, CuPointer arena) {
  Table& table = *table_;
  FJ_ASSERT(static_cast<int>(scalars.size()) == table.scalars, "a plan takes {} scalars, {} were given", table.scalars,
            scalars.size());
  const auto address_of = [&](const Buffer& buffer) {
    FJ_ASSERT(buffer.device() == device_->device(), "a plan on {} is given a value on {}", device_->device().str(),
              buffer.device().str());
    return buffer.address();
  };
  std::vector<CuPointer> given;
  CuPointer small = small_.get();
  for (const Buffer& argument : arguments) {
    const bool here = !argument.device().is_cpu();
    given.push_back(here ? address_of(argument) : std::exchange(small, small + kSmallArgument));
  }
  CuPointer constant = resident_.get();
  for (std::size_t v = 0; v < plan_->values.size(); ++v) {
    const PlanValue& value = plan_->values[v];
    CuPointer& address = table.addresses[v];
    switch (value.storage) {
      case Storage::argument:
      case Storage::donated:
        address = given[static_cast<std::size_t>(value.index)];
        break;
      case Storage::result:
        address = address_of(results[static_cast<std::size_t>(value.index)]);
        break;
      case Storage::derived:
        FJ_ASSERT(false, "{} of @{} is derived, which plans for a device have none of", value.label, plan_->name);
      case Storage::constant:
        address = constant;
        constant += static_cast<CuPointer>(aligned(static_cast<std::int64_t>(value.data.size())));
        break;
      case Storage::arena:
        address = arena + static_cast<CuPointer>(value.offset);
        break;
    }
  }
  for (std::size_t i = 0; i < table.sources.size(); ++i) {
    const auto [kind, index] = table.sources[i];
    switch (kind) {
      case Table::Source::Kind::value:
        table.words[i] = table.addresses[static_cast<std::size_t>(index)];
        break;
      case Table::Source::Kind::scalar:
        table.words[i] = scalars[static_cast<std::size_t>(index)];
        break;
      case Table::Source::Kind::arena:
        table.words[i] = arena + static_cast<CuPointer>(index);
        break;
      case Table::Source::Kind::resident:
        table.words[i] = resident_.get() + static_cast<CuPointer>(index);
        break;
    }
  }
}

// Kernels leave their counters zero; before the first run, and after a run that broke off, they are not.
void CudaExecutor::clear_counters() {
  if (counters_clear_ || counter_bytes_ == 0) return;
  DeviceContext& context = device_->context();
  context.call(context.driver().fill_bytes, resident_.get() + static_cast<CuPointer>(counters_at_), 0u, counter_bytes_,
               device_->stream());
}

// Puts everything on the stream, or on that of `capture`, and then the graph nodes of the launches into `nodes`.
void CudaExecutor::launch_all(Capture* capture, std::vector<CuGraphNode>* nodes, StepTimes* times) {
  DeviceContext& context = device_->context();
  const auto& entry = context.driver().launch_kernel;
  const CuStream stream = capture ? capture->stream() : device_->stream();
  context.enter();
  for (const Table::Action& action : table_->actions) {
    if (times) times->begin(*action.step);
    if (action.library) {
      const std::span<const CuPointer> words(table_->words.data() + action.first, action.count);
      action.library->execute(stream, words.first(action.count - 1), words.back());
      ++launched_;
      context.enter();
      continue;
    }
    const Launch& launch = *action.launch;
    const CuResult code =
        entry.function(launch.function, launch.grid_x, launch.grid_y, launch.grid_z, launch.block_x, launch.block_y,
                       launch.block_z, launch.shared_bytes, stream, table_->pointers.data() + action.first, nullptr);
    if (code != kSuccess)
      context.check(fmt::format("{} of {} for {}", entry.symbol, launch.entry, action.step->name), code);
    ++launched_;
    if (capture) nodes->push_back(capture->last_node());
  }
}

void CudaExecutor::launch_one_by_one(bool is_profiled) {
  const std::int64_t before = launched_;
  StepTimes times(*device_, *plan_);
  try {
    launch_all(nullptr, nullptr, is_profiled ? &times : nullptr);
    times.note();
  } catch (const DeviceError& error) {
    if (!overwrites_ || launched_ == before || device_->context().lost()) throw;
    throw DeviceError(fmt::format("{}; the step had begun: load the values again that it replaces", error.what()));
  }
}

// Runs as a graph, if there is one for these addresses or it is time to capture one.
bool CudaExecutor::run_as_graph() {
  std::vector<CuPointer> addresses = table_->library_words();
  const auto found = std::find_if(captured_.begin(), captured_.end(),
                                  [&](const auto& captured) { return captured->library_words == addresses; });
  if (found != captured_.end()) {
    std::rotate(found, found + 1, captured_.end());
  } else {
    const auto seen = std::find(seen_.begin(), seen_.end(), addresses);
    if (seen != seen_.end()) {
      seen_.erase(seen);
    } else if (!at_once_) {
      if (seen_.size() == kMostSeen) seen_.erase(seen_.begin());
      seen_.push_back(std::move(addresses));
      return false;
    }
    captured_.push_back(device_->memory().with_room([&] { return capture(addresses); }));
    keep_graphs(kMostGraphs);
  }
  replay(*captured_.back());
  return true;
}

// So many that were used last. Those that go may still be under way.
void CudaExecutor::keep_graphs(std::size_t count) {
  if (captured_.size() <= count) return;
  device_->context().release(device_->context().driver().stream_synchronize, device_->stream());
  captured_.erase(captured_.begin(), captured_.end() - static_cast<std::ptrdiff_t>(count));
}

std::unique_ptr<CudaExecutor::CapturedRun> CudaExecutor::capture(const std::vector<CuPointer>& library_words) {
  auto captured = std::make_unique<CapturedRun>();
  Capture recording(device_->context());
  launch_all(&recording, &captured->nodes);
  captured->graph = std::make_unique<ExecutableGraph>(device_->context(), recording.finish());
  captured->library_words = library_words;
  captured->words = table_->words;
  ++statistics_.captures;
  return captured;
}

void CudaExecutor::replay(CapturedRun& captured) {
  std::size_t node = 0;
  for (const Table::Action& action : table_->actions) {
    if (action.library) continue;
    const CuGraphNode at = captured.nodes[node++];
    const auto now = table_->words.begin() + static_cast<std::ptrdiff_t>(action.first);
    const auto then = captured.words.begin() + static_cast<std::ptrdiff_t>(action.first);
    if (std::equal(now, now + static_cast<std::ptrdiff_t>(action.count), then)) continue;
    const Launch& launch = *action.launch;
    CuKernelNodeParams changed;
    changed.function = launch.function;
    changed.grid_x = launch.grid_x, changed.grid_y = launch.grid_y, changed.grid_z = launch.grid_z;
    changed.block_x = launch.block_x, changed.block_y = launch.block_y, changed.block_z = launch.block_z;
    changed.shared_bytes = launch.shared_bytes;
    changed.arguments = table_->pointers.data() + action.first;
    captured.graph->set_kernel(at, changed);
    std::copy_n(now, action.count, then);
    ++statistics_.nodes_updated;
  }
  device_->memory().with_room([&] { captured.graph->launch(device_->stream()); });
  ++statistics_.graph_launches;
}

void CudaExecutor::run(std::span<const Buffer> arguments, std::span<const Buffer> results,
                       std::span<const std::uint64_t> scalars) {
  const std::lock_guard lock(mutex_);
  const DeviceBlock arena(device_->memory(), arena_bytes_);
  upload_small(arguments);
  bind(arguments, results, scalars, arena.get());
  clear_counters();
  ++statistics_.runs;
  counters_clear_ = false;
  bool done = false;
  const bool is_profiled = Profiler::the().is_on();
  if (graphs_wanted_ && !is_profiled && statistics_.why_no_graph.empty()) {
    try {
      done = run_as_graph();
    } catch (const DeviceError& error) {
      if (device_->context().lost()) throw;
      // Nothing was put on the stream. A library that cannot be captured is no reason to fail; launches can be, and the
      // next run tries again.
      if (statistics_.library_calls > 0) statistics_.why_no_graph = error.what();
      keep_graphs(0);
    }
  }
  if (!done) launch_one_by_one(is_profiled);
  counters_clear_ = true;
}

ExecutorStatistics CudaExecutor::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

}  // namespace fusejit::runtime::cuda
