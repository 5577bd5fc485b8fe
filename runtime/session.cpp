#include "runtime/session.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>

#include "ir/base/check.h"
#include "ir/interp.h"
#include "ir/strict.h"
#include "runtime/arrays.h"
#include "runtime/background.h"
#include "runtime/cuda_backend.h"
#include "runtime/cudnn/step.h"
#include "runtime/dump.h"
#include "runtime/fork.h"
#include "runtime/kernel_cache.h"
#include "runtime/pieces.h"
#include "runtime/plan_store.h"
#include "runtime/results.h"
#include "runtime/signature.h"
#include "scheduler/schedule.h"

namespace fusejit::runtime {
namespace {

constexpr std::size_t kMostPlans = 256, kMostKernels = 4096;

std::vector<Buffer> interpret_graph(const ir::Graph& graph, std::span<const Buffer> arguments) {
  std::vector<ir::Array> inputs;
  for (const Buffer& argument : arguments) inputs.push_back(to_array(argument.on_host()));
  std::vector<Buffer> results;
  for (const ir::Array& result : ir::interpret(graph, inputs)) results.push_back(to_buffer(result));
  return results;
}

std::shared_ptr<CudaBackend> open_backend(const SessionOptions& options, const Device& device) {
  CudaBackendOptions wanted;
  wanted.cudnn = options.cudnn > 0, wanted.timed_engines = options.timed_engines;
  wanted.disk = options.disk, wanted.frozen = options.frozen;
  return CudaBackend::open(device, wanted);
}

}  // namespace

// What a plan may do with each argument; an empty list is a no for all of them.
struct Permissions {
  std::vector<bool> donated;  // overwrite it
  std::vector<bool> fixed;    // keep what depends on it alone: nobody writes to it
};

struct Session::State {
  SessionOptions options;
  const ir::Hash options_hash;  // of what changes a plan
  const int threads;
  const int generation = process_generation();
  ThreadPool pool;
  const std::shared_ptr<KernelCache> kernels;
  const PlanStore store;
  std::mutex running;  // one step at a time: the pool runs one region at a time
  std::mutex mutex;    // of what follows
  SessionStatistics statistics;
  std::unordered_map<ir::Hash, std::shared_ptr<const Executable>, ir::HashOfHash> plans;
  std::deque<ir::Hash> oldest;

  explicit State(SessionOptions o)
      : options(std::move(o)),
        options_hash(ir::hash_text(options.target.str() + '\n' + options.rules)),
        threads(options.threads > 0 ? options.threads
                                    : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))),
        pool(on_cuda() ? 1 : threads),
        kernels(options.kernels ? options.kernels : std::make_shared<KernelCache>(kMostKernels, options.disk)),
        store(options.checks.refused_kernel.empty() ? options.disk : nullptr, options.frozen) {}

  // Graph, donation pattern and every option that changes a plan (design: the plan key).
  ir::Hash plan_key(const ir::Graph& graph, const Permissions& given) const {
    std::string key;
    key.reserve(2 * sizeof(ir::Hash) + given.donated.size() + given.fixed.size());
    for (const ir::Hash& part : {ir::hash(graph), options_hash}) {
      key.append(reinterpret_cast<const char*>(&part), sizeof part);
    }
    for (const bool d : given.donated) key += static_cast<char>(d);
    for (const bool f : given.fixed) key += static_cast<char>(2 + f);
    return ir::hash_text(key);
  }

  std::shared_ptr<const Executable> executable(const ir::Graph& graph, const Permissions& given);
  std::shared_ptr<const Executable> make_somehow(const ir::Graph& graph, const Permissions& given);
  // Null if it was stopped.
  std::shared_ptr<const Executable> make(const ir::Graph& graph, const Target& target, const Permissions& given,
                                         const std::stop_token& stop = {});
  void improve(const ir::Hash& key, const ir::Graph& graph, const Permissions& given, const std::stop_token& stop);
  // What runs first where something better is made in the background.
  Target first_target() const {
    Target target = options.target;
    if (is_improved()) target.cudnn = 1;
    return target;
  }
  bool is_improved() const { return on_cuda() && options.compile_in_background && options.target.cudnn > 1; }
  bool on_cuda() const { return options.target.isa == Isa::cuda && options.engine == Engine::compiled; }
  // Opens the device at first use. Throws DeviceError.
  CudaBackend& cuda() {
    if (generation != process_generation()) {
      throw DeviceError(
          fmt::format("{}: the child of a fork() cannot use a CUDA device of its parent; use fusejit in one of them, "
                      "or exec after fork",
                      options.device.str()));
    }
    std::lock_guard lock(mutex);
    if (!options.cuda) options.cuda = open_backend(options, options.device);
    return *options.cuda;
  }
  std::vector<Buffer> placed(std::vector<Buffer> results) {
    if (options.results_on_device) {
      for (Buffer& result : results) {
        if (result.device().is_cpu()) result = cuda().device().upload(result);
      }
    }
    return results;
  }
  std::vector<Buffer> run_on_cuda(const Executable& executable, const ir::Graph& graph,
                                  std::span<const Buffer> arguments);

  std::shared_ptr<const Executable> in_pieces(const scheduler::NoKernel& no_kernel, const Target& target,
                                              const std::stop_token& stop);
  std::vector<Buffer> run(const Executable& executable, const ir::Graph& graph, std::span<const Buffer> arguments);
  std::vector<Buffer> run_pieces(const Pieces& pieces, std::span<const Buffer> arguments);
  bool may_fall_back() const { return options.fall_back && !ir::is_strict(); }
  // Counts, and says it once: one line a reason.
  void fell_back(const std::string& name, const std::string& what, const std::string& why) {
    {
      std::lock_guard lock(mutex);
      ++statistics.fallbacks;
    }
    warn(name, what, why);
  }
  void warn(const std::string& name, const std::string& what, const std::string& why) {
    const std::string line =
        fmt::format("graph @{} {}: {}", name, what, std::string_view(why).substr(0, why.find('\n')));
    {
      std::lock_guard lock(mutex);
      if (!warned.insert(line).second) return;
    }
    if (options.log) options.log(line);
  }
  std::set<std::string> warned;
  Background background;  // last: what it runs uses the rest
};

namespace {

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

bool same_steps(const scheduler::Plan& a, const scheduler::Plan& b) {
  return std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(),
                    [](const scheduler::PlanStep& one, const scheduler::PlanStep& other) {
                      return one.values == other.values && one.library.has_value() == other.library.has_value() &&
                             ir::kernel_key_text(*one.kernel) == ir::kernel_key_text(*other.kernel);
                    });
}

// Equal kernels compute equal bytes of equal arguments, in whatever plan.
std::vector<ir::Hash> name_derivations(const scheduler::Plan& plan) {
  std::vector<ir::Hash> names(plan.values.size());
  for (std::size_t v = 0; v < names.size(); ++v) {
    const scheduler::PlanValue& value = plan.values[v];
    if (value.storage != scheduler::Storage::derived) continue;
    const ir::Kernel& kernel = *plan.steps[static_cast<std::size_t>(value.first_step)].kernel;
    names[v] = ir::hash_text(plan.target.str() + '\n' + ir::print(kernel));
  }
  return names;
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

std::shared_ptr<const Executable> Session::State::executable(const ir::Graph& graph, const Permissions& given) {
  const ir::Hash key = plan_key(graph, given);
  {
    std::lock_guard lock(mutex);
    const auto found = plans.find(key);
    if (found != plans.end()) return ++statistics.plan_cache_hits, found->second;
  }
  const auto start = std::chrono::steady_clock::now();
  auto made = make_somehow(graph, given);
  if (is_recording()) {
    record({graph, given.donated, given.fixed, options.rules, options.target,
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count()});
  }
  bool is_new = false;
  {
    std::lock_guard lock(mutex);
    ++statistics.plans_made;
    is_new = plans.emplace(key, made).second;
    if (is_new) oldest.push_back(key);
    if (oldest.size() > kMostPlans) {
      plans.erase(oldest.front());
      oldest.pop_front();
    }
  }
  if (is_new && is_improved()) {
    background.add([this, key, graph, given](const std::stop_token& stop) { improve(key, graph, given, stop); });
  }
  return made;
}

// The last rung of the ladder: slow, but right.
std::shared_ptr<const Executable> Session::State::make_somehow(const ir::Graph& graph, const Permissions& given) {
  try {
    return make(graph, first_target(), given);
  } catch (const UserError&) {
    throw;
  } catch (const Error& error) {
    const bool device_failed = on_cuda() && dynamic_cast<const DeviceError*>(&error) != nullptr;
    if (!may_fall_back() || device_failed) throw;
    fell_back(graph.name(), "runs on the graph interpreter, slowly", error.what());
    auto made = std::make_shared<Executable>();
    made->pieces = std::make_shared<const Pieces>(interpreted(graph));
    return made;
  }
}

std::shared_ptr<const Executable> Session::State::make(const ir::Graph& graph, const Target& target,
                                                       const Permissions& given, const std::stop_token& stop) {
  const auto start = std::chrono::steady_clock::now();
  auto made = std::make_shared<Executable>();
  scheduler::ScheduleOptions wanted{target, options.rules, given.donated, cudnn::supports_step, given.fixed};
  wanted.fall_back = may_fall_back();
  if (const std::string& refused = options.checks.refused_kernel; !refused.empty()) {
    wanted.inspect = [&refused](const ir::Kernel& kernel) {
      if (refused == "*" || kernel.name == refused) throw InternalError("kernel @" + kernel.name + " is refused");
    };
  }
  bool was_loaded = false;
  dump(graph);
  try {
    if (on_cuda()) {
      was_loaded = cuda().plan(*made, graph, wanted, threads, stop);
      if (!made->cuda) return nullptr;
    } else {
      PlanStore::Planned planned = store.schedule(graph, wanted);
      made->plan = std::move(planned.plan), was_loaded = planned.was_kept;
      if (!was_loaded) store.put(graph, wanted, made->plan);
    }
  } catch (const scheduler::NoKernel& no_kernel) {
    if (!no_kernel.is_empty()) {
      if (!may_fall_back()) throw;
      fell_back(graph.name(), "has an op that is interpreted", no_kernel.what());
    }
    return in_pieces(no_kernel, target, stop);
  } catch (const Error&) {
    dump_failed(graph);
    throw;
  }
  for (const scheduler::Fallback& fallback : made->plan.fallbacks)
    fell_back(graph.name(), "runs " + fallback.group + " in parts", fallback.why);
  if (options.engine == Engine::compiled && !on_cuda()) {
    std::vector<std::shared_ptr<const ir::Kernel>> kernels_wanted;
    for (const scheduler::PlanStep& step : made->plan.steps) kernels_wanted.push_back(step.kernel);
    try {
      made->kernels = kernels->get(kernels_wanted, target, pool.threads(), options.frozen);
    } catch (const UnsupportedError&) {
      if (KernelCache::can_compile()) throw;  // else the process is ending, and its last values are interpreted
    }
  }
  made->derivations = name_derivations(made->plan);
  dump(made->plan);
  std::lock_guard lock(mutex);
  statistics.plans_loaded += was_loaded;
  statistics.compile_milliseconds +=
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return made;
}

// Around the ops that have no kernel. Nothing is overwritten in place: a step fails as a whole.
std::shared_ptr<const Executable> Session::State::in_pieces(const scheduler::NoKernel& no_kernel, const Target& target,
                                                            const std::stop_token& stop) {
  Pieces pieces = cut(no_kernel.graph(), no_kernel.nodes());
  for (Piece& piece : pieces.list) {
    if (piece.interpreted) continue;
    piece.executable = make(piece.graph, target, {}, stop);
    if (!piece.executable) return nullptr;
  }
  auto made = std::make_shared<Executable>();
  made->pieces = std::make_shared<const Pieces>(std::move(pieces));
  return made;
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

// The plan with everything that may take its time, in place of the one at hand.
void Session::State::improve(const ir::Hash& key, const ir::Graph& graph, const Permissions& given,
                             const std::stop_token& stop) {
  std::string why_not;
  try {
    std::shared_ptr<const Executable> better = make(graph, options.target, given, stop);
    if (!better) return;
    std::lock_guard lock(mutex);
    const auto found = plans.find(key);
    if (found == plans.end() || found->second->pieces || better->pieces ||
        same_steps(found->second->plan, better->plan))
      return;
    statistics.graph_launches += found->second->cuda->statistics().graph_launches;
    found->second.swap(better);  // what ran so far is given back after the lock
    ++statistics.background_plans;
    return;
  } catch (const std::exception& error) {
    why_not = error.what();
  }
  {
    std::lock_guard lock(mutex);
    ++statistics.background_failures;
    statistics.why_no_background_plan = why_not;
  }
  warn(graph.name(), "keeps its first plan, the better one failed", why_not);
}

std::vector<Buffer> Session::State::run_on_cuda(const Executable& executable, const ir::Graph& graph,
                                                std::span<const Buffer> arguments) {
  std::vector<Buffer> results = cuda().run(*executable.cuda, graph, arguments);
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
  for (const auto& [key, plan] : state_->plans) {
    if (plan->cuda) all.graph_launches += plan->cuda->statistics().graph_launches;
  }
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

void Session::limit_memory(std::int64_t bytes) {
  FJ_CHECK(state_->options.results_on_device, "memory of the cpu has no limit of its own");
  FJ_CHECK(bytes >= 0, "the limit of memory is {} bytes, it must not be negative", bytes);
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

std::vector<Buffer> Session::State::run(const Executable& executable, const ir::Graph& graph,
                                        std::span<const Buffer> arguments) {
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
