#include "runtime/session.h"

#include <algorithm>
#include <cstring>

#include "ir/interp.h"
#include "runtime/cpu/arrays.h"
#include "runtime/profiler.h"
#include "runtime/results.h"
#include "runtime/session_state.h"

namespace fusejit::runtime {
namespace {

std::vector<Buffer> interpret_graph(const ir::Graph& graph, std::span<const Buffer> arguments) {
  std::vector<ir::Array> inputs;
  for (const Buffer& argument : arguments) inputs.push_back(to_array(argument.on_host()));
  std::vector<Buffer> results;
  for (const ir::Array& result : ir::interpret(graph, inputs)) results.push_back(to_buffer(result));
  return results;
}

// What is alive after the step that writes result 0, the loss of a training step.
std::int64_t end_of_first_result_bytes(const scheduler::Plan& plan) {
  if (plan.results.empty()) return 0;
  const scheduler::PlanValue& loss = plan.values[static_cast<std::size_t>(plan.results[0])];
  std::int64_t bytes = scheduler::live_arena_bytes_after(plan, loss.first_step);
  for (const scheduler::PlanValue& value : plan.values) {
    if (value.storage != scheduler::Storage::arena) bytes += value.bytes;
  }
  return bytes;
}

// On a CUDA device nothing is kept: what libraries want packed, they pack.
Permissions permissions(std::span<const Buffer> arguments, std::span<const bool> donated, bool on_cuda) {
  Permissions given{{donated.begin(), donated.end()}, {}};
  for (std::size_t i = 0; i < arguments.size() && !on_cuda; ++i) {
    if (!arguments[i].is_fixed()) continue;
    given.fixed.resize(arguments.size());
    given.fixed[i] = true;
  }
  return given;
}

}  // namespace

std::shared_ptr<CudaBackend> open_backend(const SessionOptions& options, const Device& device) {
  CudaBackendOptions wanted;
  wanted.cudnn = options.cudnn > 0, wanted.timed_engines = options.timed_engines;
  wanted.disk = options.disk, wanted.frozen = options.frozen;
  return CudaBackend::open(device, wanted);
}

std::vector<Buffer> Session::State::run_pieces(const Pieces& pieces, std::span<const Buffer> arguments) {
  std::unordered_map<int, Buffer> values;
  for (std::size_t i = 0; i < arguments.size(); ++i) values.emplace(static_cast<int>(i), arguments[i]);
  for (const Piece& piece : pieces.list) {
    std::vector<Buffer> given;
    for (const int v : piece.reads) given.push_back(values.at(v));
    const std::vector<Buffer> computed =
        piece.interpreted ? placed(interpret_graph(piece.graph, given)) : run(*piece.executable, piece.graph, given);
    for (std::size_t i = 0; i < computed.size(); ++i) values.emplace(piece.writes[i], computed[i]);
  }
  std::vector<Buffer> results;
  for (const ir::Value& result : pieces.graph.results())
    results.push_back(values.at(pieces.graph.index_of(result.get())));
  return placed(std::move(results));
}

std::vector<Buffer> Session::State::run_on_cuda(const Executable& executable, const ir::Graph& graph,
                                                std::span<const Buffer> arguments) {
  std::vector<Buffer> results = cuda().run(*executable.cuda, graph, arguments);
  if (Profiler::the().is_on()) cuda().device().synchronize();  // else the time would be that of asking for it
  if (!options.results_on_device) {
    for (Buffer& result : results) result = result.on_host();
  }
  const cuda::ExecutorStatistics ran = executable.cuda->statistics();
  const scheduler::Plan& plan = executable.plan;
  std::lock_guard lock(mutex);
  statistics.last_run = {ran.kernel_launches + ran.library_calls,
                         plan.ledger_bytes(),
                         plan.bound_bytes,
                         plan.arena_bytes,
                         end_of_first_result_bytes(plan),
                         0};
  return results;
}

Session::Session(SessionOptions options) : state_(std::make_unique<State>(std::move(options))) {}
Session::~Session() = default;
const SessionOptions& Session::options() const { return state_->options; }

SessionStatistics Session::statistics() const {
  std::lock_guard lock(state_->mutex);
  SessionStatistics all = state_->statistics;
  const KernelCacheStatistics kernels = state_->kernels->statistics();
  all.kernels_compiled = kernels.compiled, all.kernel_cache_hits = kernels.hits, all.kernels_loaded = kernels.loaded;
  if (state_->options.cuda) {
    const cuda::CudaKernelsStatistics there = state_->options.cuda->kernels().statistics();
    all.kernels_compiled += there.compiled, all.kernel_cache_hits += there.hits;
    all.kernels_loaded += there.loaded;
  }
  all.evictions = state_->plans.evictions() + kernels.evictions;
  state_->plans.for_each([&](const std::shared_ptr<const Executable>& plan) {
    if (plan->cuda) all.graph_launches += plan->cuda->statistics().graph_launches;
  });
  return all;
}

Buffer Session::place(const Buffer& buffer) {
  if (!state_->options.results_on_device) return buffer.on_host();
  cuda::CudaDevice& device = state_->cuda().device();
  return buffer.device() == device.device() ? buffer : device.upload(buffer.on_host());
}

std::string Session::why_no_library() const { return state_->options.cuda ? state_->options.cuda->why_no_cudnn() : ""; }

void Session::finish_background() { state_->background.wait(); }
void Session::stop_background() { state_->background.stop(); }

void Session::synchronize() {
  if (state_->options.results_on_device) state_->cuda().device().synchronize();
}

MemoryStatistics Session::memory() const {
  if (!state_->options.results_on_device) return memory_statistics();
  const cuda::DeviceMemoryStatistics s = state_->cuda().device().memory().statistics();
  return {s.allocated, s.peak, s.reserved};
}

void Session::reset_peak_memory() {
  if (!state_->options.results_on_device) return reset_peak();
  state_->cuda().device().memory().reset_peak();
}

void Session::release_memory() {
  if (!state_->options.results_on_device) return release_cached_memory();
  state_->cuda().device().memory().release_cached();
}

void Session::limit_memory(std::int64_t bytes) {
  FJ_CHECK(bytes >= 0, "the limit of memory is {} bytes, it must not be negative", bytes);
  if (!state_->options.results_on_device) return set_memory_limit(bytes);
  state_->cuda().device().memory().set_limit(bytes);
}

SessionOptions on_device(SessionOptions options, const Device& device) {
  FJ_ASSERT(!device.is_cpu(), "the cpu needs no options");
  if (!options.cuda || options.device != device) options.cuda = open_backend(options, device);
  options.device = device;
  options.results_on_device = true;
  if (options.target.isa != Isa::cuda) {
    options.target = options.cuda->target();
    if (options.target.cudnn > 0) options.target.cudnn = options.cudnn;
  }
  return options;
}

std::shared_ptr<const scheduler::Plan> Session::plan(const ir::Graph& graph, std::span<const bool> donated) {
  const UnforkedRun unforked;
  const auto executable = state_->executable(graph, {{donated.begin(), donated.end()}, {}});
  if (executable->pieces) throw UnsupportedError(fmt::format("graph @{} has no plan as a whole", graph.name()));
  return {executable, &executable->plan};
}

void Session::prepare(const ir::Graph& graph, const std::vector<bool>& donated, const std::vector<bool>& fixed) {
  if (state_->options.engine == Engine::graph_interpreter) return;
  const UnforkedRun unforked;
  if (state_->on_cuda()) state_->cuda();
  state_->executable(graph, {donated, state_->on_cuda() ? std::vector<bool>() : fixed});
}

std::vector<Buffer> Session::State::run(const Executable& executable, const ir::Graph& graph,
                                        std::span<const Buffer> arguments) {
  const ProfileScope scope("run", graph.name());
  if (executable.pieces) return run_pieces(*executable.pieces, arguments);
  if (executable.cuda) return run_on_cuda(executable, graph, arguments);
  std::vector<Buffer> here;
  if (std::any_of(arguments.begin(), arguments.end(), [](const Buffer& a) { return !a.device().is_cpu(); })) {
    for (const Buffer& argument : arguments) here.push_back(argument.on_host());
    arguments = here;
  }
  std::vector<Buffer> results = bind_results(
      executable.plan, graph, arguments, [](const Type& type) { return Buffer::allocate(type); },
      [](const Buffer& to, const std::vector<std::byte>& data) { std::memcpy(to.data(), data.data(), data.size()); });
  Checks checks = options.checks;
  checks.kernel_interpreter |= options.engine == Engine::kernel_interpreter || executable.kernels.empty();
  std::lock_guard one_at_a_time(running);
  const RunReport report = execute(executable, arguments, results, pool, checks);
  {
    std::lock_guard lock(mutex);
    statistics.last_run = report;
  }
  return placed(std::move(results));
}

std::vector<Buffer> Session::run(const ir::Graph& graph, std::span<const Buffer> arguments,
                                 std::span<const bool> donated) {
  FJ_CHECK(arguments.size() == graph.parameters().size(), "graph @{} takes {} arguments, {} were given", graph.name(),
           graph.parameters().size(), arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    FJ_CHECK(arguments[i].type() == graph.parameters()[i].type(), "argument {} of graph @{} is {}, the parameter is {}",
             i, graph.name(), arguments[i].type().str(), graph.parameters()[i].type().str());
  }
  for (std::size_t i = 0; i < donated.size(); ++i) {
    if (donated[i]) arguments[i].unfix();
  }
  {
    std::lock_guard lock(state_->mutex);
    ++state_->statistics.runs;
  }
  if (state_->options.engine == Engine::graph_interpreter) return state_->placed(interpret_graph(graph, arguments));
  const UnforkedRun unforked;
  if (state_->on_cuda()) state_->cuda();  // where there is no device, no other way to run is meant
  const auto executable = state_->executable(graph, permissions(arguments, donated, state_->on_cuda()));
  return state_->run(*executable, graph, arguments);
}

}  // namespace fusejit::runtime
