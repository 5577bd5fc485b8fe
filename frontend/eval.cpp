#include "frontend/eval.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <new>
#include <unordered_set>
#include <utility>

#include "frontend/context.h"
#include "frontend/donations.h"
#include "frontend/exit_line.h"
#include "frontend/graph_cache.h"
#include "frontend/slot.h"
#include "frontend/trace.h"
#include "ir/base/check.h"
#include "runtime/backends.h"
#include "runtime/disk/settings.h"
#include "runtime/process/fork.h"
#include "runtime/profiler.h"

namespace fusejit {

// The default sessions, one for each device in use, with what belongs to them.
struct Engine {
  explicit Engine(runtime::SessionOptions given);
  // Made at first use. Throws DeviceError, UnsupportedError.
  runtime::Session& session(const Device& device);

  const runtime::SessionOptions options;
  std::mutex sessions_mutex;
  std::vector<std::pair<Device, std::unique_ptr<runtime::Session>>> sessions;  // the first is the cpu's
  std::mutex mutex;                                                            // of the rest
  GraphCache graphs;
  std::int64_t evaluations = 0, traces = 0, hits = 0;
  Device ran_last;
};

Engine::Engine(runtime::SessionOptions given) : options(std::move(given)) {
  runtime::SessionOptions here = options;
  here.backend = nullptr;
  // A target for cuda is the CUDA devices'; interpreters run its plans on the cpu too.
  if (here.target.isa == Isa::cuda && here.engine == runtime::Engine::compiled) here.target = Target::host();
  sessions.emplace_back(Device(), std::make_unique<runtime::Session>(here));
}

runtime::Session& Engine::session(const Device& device) {
  const std::lock_guard lock(sessions_mutex);
  for (const auto& [where, session] : sessions) {
    if (where == device) return *session;
  }
  sessions.emplace_back(device, std::make_unique<runtime::Session>(runtime::on_device(options, device)));
  if (const std::string why = sessions.back().second->why_no_library(); !why.empty()) {
    log_line(fmt::format("{}: convolutions are generated kernels: {}", device.str(), why));
  }
  return *sessions.back().second;
}

namespace {

constexpr std::array<std::pair<std::string_view, runtime::Engine>, 3> kEngines = {{
    {"compiled", runtime::Engine::compiled},
    {"graph_interpreter", runtime::Engine::graph_interpreter},
    {"kernel_interpreter", runtime::Engine::kernel_interpreter},
}};

// The place of `word` in the list.
int one_of(std::string_view option, const std::string& word, std::initializer_list<std::string_view> words) {
  const auto* const found = std::find(words.begin(), words.end(), word);
  FJ_CHECK(found != words.end(), "{} '{}' is not known ({})", option, word, fmt::join(words, ", "));
  return static_cast<int>(found - words.begin());
}

runtime::SessionOptions session_options(const Options& options) {
  runtime::SessionOptions result;
  const auto* engine =
      std::find_if(kEngines.begin(), kEngines.end(), [&](auto& e) { return e.first == options.engine; });
  FJ_CHECK(engine != kEngines.end(), "engine '{}' is not known (compiled, graph_interpreter, kernel_interpreter)",
           options.engine);
  FJ_CHECK(options.threads >= 0 && options.threads <= 1024, "threads is {}, it must lie between 0 and 1024",
           options.threads);
  result.engine = engine->second;
  result.target = Target::parse(options.target);
  result.rules = scheduler::parse_rules(options.rules);
  result.threads = options.threads;
  result.cudnn = static_cast<CudnnMode>(one_of("cudnn", options.cudnn, {"off", "precompiled", "compiled"}));
  result.compile_in_background = one_of("compile", options.compile, {"foreground", "background"}) == 1;
  result.fall_back = one_of("fallback", options.fallback, {"error", "allow"}) == 1;
  result.log = [](const std::string& line) { log_line(line); };
  result.log_fusions = options.log_fusions || context().logs_fusions;
  result.disk = runtime::disk::user_cache(options.cache, result.log);
  result.frozen = options.freeze || runtime::disk::is_frozen();
  result.tune = static_cast<runtime::Tune>(one_of("tune", options.tune, {"none", "any"}));
  return result;
}

std::shared_ptr<Engine> default_engine() {
  Context& c = context();
  const std::lock_guard lock(c.engine_mutex);
  if (!c.engine) c.engine = std::make_shared<Engine>(session_options(c.options));
  say_statistics_at_exit();
  return c.engine;
}

// One plan's worth of work between recording and running.
struct Work {
  Trace trace;
  std::vector<Tensor> wanted;  // not yet evaluated; wanted[i] is result i of the trace
  std::vector<runtime::Buffer> arguments;
  std::vector<Gift> gifts;  // of each argument
  std::vector<runtime::Buffer> results;
  std::vector<ir::Value> leaves;                   // what the wanted ones become
  std::vector<std::shared_ptr<Attachment>> notes;  // for those that stay nodes
  std::vector<ir::Value> garbage;                  // released after the lock
  Trace later;                                     // what is computed after this
  std::vector<Tensor> open;  // pending when this was traced; like all of this, released after the lock
};

// What is to be computed on one device.
struct Part {
  Device device;
  std::vector<Tensor> wanted;
};

// Host numbers are computed where the rest is.
std::vector<Part> parts_of(std::span<const Tensor> wanted) {
  std::vector<Part> parts;
  std::vector<Tensor> numbers;
  for (const Tensor& tensor : wanted) {
    const std::optional<Device>& device = tensor.state()->device;
    if (!device) {
      numbers.push_back(tensor);
      continue;
    }
    auto part = std::find_if(parts.begin(), parts.end(), [&](const Part& p) { return p.device == *device; });
    if (part == parts.end()) part = parts.insert(part, Part{*device, {}});
    part->wanted.push_back(tensor);
  }
  if (parts.empty()) parts.push_back({});
  for (Tensor& number : numbers) parts[0].wanted.push_back(std::move(number));
  return parts;
}

// What has to wait for `later` may be on top of what has not: that is computed for its sake, though nobody asks for it.
void collect_pending(Work& work, const Device& device) {
  auto& pending = context().pending;
  std::erase_if(pending, [](const std::weak_ptr<TensorState>& weak) {
    const std::shared_ptr<TensorState> state = weak.lock();
    return !state || evaluated(state->value.get());
  });
  std::unordered_set<const ir::Node*> wanted;
  for (const Tensor& tensor : work.wanted) wanted.insert(tensor.state()->value.get());
  std::vector<Tensor>& open = work.open;
  for (const std::weak_ptr<TensorState>& weak : pending) {
    const std::shared_ptr<TensorState> state = weak.lock();
    if (state && (!state->device || *state->device == device)) open.emplace_back(state);
  }
  for (std::size_t i = 0; i < open.size(); ++i) {
    const TensorState& state = *open[i].state();
    if (work.trace.shares(state.value, work.later)) {
      if (!wanted.insert(state.value.get()).second) continue;
      work.trace.add_result(state.value);
      work.wanted.push_back(open[i]);
    } else if (!work.later.results().empty()) {
      for (ir::Value& leaf : work.trace.open_leaves(state.value, work.later))
        open.push_back(tensor_of(std::move(leaf), false, 0, state.device));
    }
  }
}

runtime::Buffer argument_buffer(const ir::Node* node) {
  Attachment* note = attachment(node);
  FJ_CHECK(note && note->evaluated(), "a value is needed that no longer exists");
  if (!note->buffer) {
    note->buffer = runtime::Buffer::allocate(node->type);
    ir::store_element(note->buffer.data(), node->type.dtype, 0, *note->number);
  }
  if (note->borrowed && note->checksum != 0 && context().check_borrowed) {
    const auto now = ir::hash_bytes(note->buffer.data(), static_cast<std::size_t>(note->buffer.bytes())).low | 1;
    FJ_CHECK(now == note->checksum, "borrowed memory of a tensor {} was changed by its owner while it was in use",
             node->type.str());
  }
  return note->buffer;
}

// This and the next four are called under graph_mutex.
void trace(Work& work, std::span<const Tensor> wanted, const Device& device, std::span<const Tensor> later) {
  for (const Tensor& tensor : wanted) {
    const ir::Value& value = tensor.state()->value;
    if (evaluated(value.get())) continue;
    if (std::any_of(work.wanted.begin(), work.wanted.end(),
                    [&](const Tensor& t) { return t.state() == tensor.state(); }))
      continue;
    work.trace.add_result(value);
    work.wanted.push_back(tensor);
  }
  if (work.wanted.empty()) return;
  for (const Tensor& tensor : later) work.later.add_result(tensor.state()->value);
  collect_pending(work, device);
}

Attachment* argument(const Work& work, std::size_t a) {
  return attachment(work.trace.entries()[static_cast<std::size_t>(work.trace.arguments()[a])].node);
}

bool needs_given_up(const Work& work) {
  for (std::size_t a = 0; a < work.trace.arguments().size(); ++a) {
    if (const Attachment* note = argument(work, a); note && note->given_up) return true;
  }
  return false;
}

// What `work` was given is its owner's again, or nobody's.
void give_back(const Work& work) {
  for (std::size_t a = 0; a < work.gifts.size(); ++a) {
    if (work.gifts[a] == Gift::whole) argument(work, a)->given_up = false;
  }
  context().given_back.notify_all();
}

void bind_arguments(Work& work, std::span<const Donation> donations, std::vector<std::string>& lines) {
  work.arguments.resize(work.trace.arguments().size());
  for (const int number : work.trace.arguments())
    argument_buffer(work.trace.entries()[static_cast<std::size_t>(number)].node);
  work.gifts = given_arguments(work.trace, work.wanted, donations, lines);  // before buffers have a second handle
  for (std::size_t a = 0; a < work.arguments.size(); ++a) {
    work.arguments[a] = argument(work, a)->buffer;
    argument(work, a)->given_up = work.gifts[a] == Gift::whole;
  }
}

Work prepare(const Part& part, std::span<const Tensor> later, std::span<const Donation> donations,
             std::vector<std::string>& lines) {
  for (;;) {
    Work work;
    const runtime::ProfileScope scope("trace", "trace");
    std::unique_lock lock(context().graph_mutex);
    trace(work, part.wanted, part.device, later);
    if (!needs_given_up(work)) {
      if (!work.wanted.empty()) bind_arguments(work, donations, lines);
      return work;
    }
    context().given_back.wait(lock, [&] { return !needs_given_up(work); });
  }  // traced anew: what was being computed is there now
}

std::shared_ptr<const ir::Graph> graph_for(Engine& engine, const Work& work, const std::string& name) {
  const ir::Hash key = work.trace.key();
  {
    const std::lock_guard lock(engine.mutex);
    ++engine.evaluations;
    if (auto known = engine.graphs.find(key)) return ++engine.hits, known;
  }
  auto graph = std::make_shared<const ir::Graph>(work.trace.graph(name));
  const std::lock_guard lock(engine.mutex);
  ++engine.traces;
  engine.graphs.add(key, graph);
  return graph;
}

// All memory that publishing needs: when the plan has run, what was given to it is overwritten and nothing may fail.
void prepare_to_publish(Work& work) {
  work.leaves.resize(work.wanted.size());
  work.notes.resize(work.wanted.size());
  work.garbage.reserve(2 * work.wanted.size());
  for (std::size_t i = 0; i < work.wanted.size(); ++i) {
    const TensorState& state = *work.wanted[i].state();
    work.notes[i] = std::make_shared<Attachment>();
    if (state.needs_grad) continue;
    work.leaves[i] = ir::parameter(state.type);
    work.leaves[i]->attachment = std::make_shared<Attachment>();
  }
}

void publish(Work& work) noexcept {
  const std::vector<runtime::Buffer>& results = work.results;
  const std::lock_guard lock(context().graph_mutex);
  give_back(work);
  const bool overwritten = std::find(work.gifts.begin(), work.gifts.end(), Gift::whole) != work.gifts.end();
  for (std::size_t i = 0; i < work.wanted.size(); ++i) {
    TensorState& state = *work.wanted[i].state();
    state.depth = 0;
    state.joins_plans = false;
    const ir::Value value = state.value;
    if (evaluated(value.get())) continue;  // another thread was faster
    const bool replaced = work.leaves[i] && !state.needs_grad && !deferred(value.get());
    if (replaced) {
      attachment(work.leaves[i].get())->buffer = results[i];
      work.garbage.push_back(std::exchange(state.value, work.leaves[i]));
    }
    // What others have recorded on an old value cannot compute it again from what is overwritten.
    if (replaced && !overwritten) continue;
    if (!value->attachment) value->attachment = std::move(work.notes[i]);
    attachment(value.get())->buffer = results[i];
    work.garbage.push_back(std::exchange(attachment(value.get())->source, {}));
  }
}

void log_split() {
  Recording* recording = thread_state().recording;
  if (!recording || recording->frozen || std::exchange(recording->split_logged, true)) return;
  log_line(
      fmt::format("{}: a value is asked for while the step is recorded; the step is split there", recording->name));
}

void run(Work& work, const Device& device, const std::string& name) {
  const std::shared_ptr<Engine> engine = default_engine();
  const std::shared_ptr<const ir::Graph> graph = graph_for(*engine, work, name);
  const auto donated = std::make_unique<bool[]>(work.gifts.size());
  for (std::size_t a = 0; a < work.gifts.size(); ++a) {
    if (work.gifts[a] == Gift::copy) work.arguments[a] = work.arguments[a].copy();
    donated[a] = work.gifts[a] != Gift::none;
  }
  prepare_to_publish(work);
  work.results = engine->session(device).run(*graph, work.arguments, {donated.get(), work.gifts.size()});
  const std::lock_guard lock(engine->mutex);
  engine->ran_last = device;
}

void evaluate(std::span<const Tensor> wanted, std::span<const Tensor> later, std::span<const Donation> donations,
              const std::string& name) {
  for (const Tensor& tensor : wanted) FJ_CHECK(tensor.defined(), "an empty tensor has no value");
  const runtime::UnforkedRun unforked;
  const bool in_passing = donations.empty();  // not the evaluation that a step ends with
  const std::vector<Part> parts = parts_of(wanted);
  // What one device may overwrite, another may still need.
  if (parts.size() > 1) donations = {};
  std::vector<Work> done;
  done.reserve(parts.size());
  std::vector<std::string> lines;  // said at the end: who hears them may ask for what is given up until then
  try {
    for (const Part& part : parts) {
      Work& work = done.emplace_back(prepare(part, later, donations, lines));
      if (work.wanted.empty()) continue;
      if (in_passing) log_split();
      run(work, part.device, name);
      ++thread_state().moment;
    }
    for (Work& work : done) publish(work);
  } catch (...) {
    const std::lock_guard lock(context().graph_mutex);
    for (const Work& work : done) give_back(work);
    throw;
  }
  try {
    for (const std::string& line : lines) log_line(name + ": " + line);
  } catch (const std::bad_alloc&) {  // everything is done, so this is no failure
  }
}

}  // namespace

void evaluate(std::span<const Tensor> wanted, std::span<const Donation> donations, const std::string& name) {
  evaluate(wanted, {}, donations, name);
}
void evaluate_before(std::span<const Tensor> later, std::span<const Tensor> wanted) {
  evaluate(wanted, later, {}, "main");
}

std::vector<runtime::Buffer> run_graph(const ir::Graph& graph, std::span<const runtime::Buffer> arguments) {
  const runtime::UnforkedRun unforked;
  const std::shared_ptr<Engine> engine = default_engine();
  {
    const std::lock_guard lock(engine->mutex);
    ++engine->evaluations;
  }
  return engine->session(Device()).run(graph, arguments);
}

void prepare_graph(const ir::Graph& graph, const Device& device, const std::vector<bool>& donated,
                   const std::vector<bool>& fixed) {
  default_engine()->session(device).prepare(graph, donated, fixed);
}

runtime::Buffer place(const runtime::Buffer& buffer, const Device& device) {
  if (device.is_cpu()) return buffer.on_host();
  return buffer.device() == device ? buffer : default_engine()->session(device).place(buffer);
}

runtime::Buffer buffer_of(const Tensor& tensor) {
  evaluate({&tensor, 1});
  const std::lock_guard lock(context().graph_mutex);
  return argument_buffer(tensor.state()->value.get());
}

void join_plans(const Tensor& tensor) {
  const Recording* recording = thread_state().recording;
  if (recording && !recording->frozen) return;
  const std::lock_guard lock(context().graph_mutex);
  if (evaluated(tensor.state()->value.get())) return;
  auto& pending = context().pending;
  if (pending.size() == pending.capacity()) std::erase_if(pending, [](const auto& weak) { return weak.expired(); });
  pending.push_back(tensor.state());
}

namespace {

// The context outlives everything, the libraries that an engine is compiled with do not. What belongs to the thread
// that ends the process goes before what is static, in them too, however late they were loaded.
struct BackgroundEnds {
  bool is_set = false;
  ~BackgroundEnds() {
    std::shared_ptr<Engine> engine;
    {
      const std::lock_guard lock(context().engine_mutex);
      engine = context().engine;
    }
    if (!is_set || !engine) return;
    const std::lock_guard lock(engine->sessions_mutex);
    for (const auto& [device, session] : engine->sessions) session->stop_background();
  }
};

void stop_background_at_exit() {
  if (getpid() != gettid()) return;  // not the main thread, which may end without the process
  thread_local BackgroundEnds ends;
  ends.is_set = true;
}

}  // namespace

void set_options(const Options& options) {
  auto engine = std::make_shared<Engine>(session_options(options));
  const Device device(options.device);
  engine->session(device);
  Context& c = context();
  if (options.compile == "background") stop_background_at_exit();
  const std::lock_guard lock(c.engine_mutex);
  c.options = options;
  c.default_ordinal = device.is_cpu() ? -1 : device.ordinal;
  c.engine.swap(engine);
}

void set_session(const runtime::SessionOptions& options) {
  auto engine = std::make_shared<Engine>(options);
  const std::lock_guard lock(context().engine_mutex);
  context().engine.swap(engine);
}

Options options() {
  const std::lock_guard lock(context().engine_mutex);
  return context().options;
}

Statistics stats() {
  const std::shared_ptr<Engine> engine = default_engine();
  Statistics all;
  Device ran_last;
  {
    const std::lock_guard lock(engine->mutex);
    all.evaluations = engine->evaluations, all.traces = engine->traces, all.trace_cache_hits = engine->hits;
    all.evictions = engine->graphs.evictions();
    ran_last = engine->ran_last;
  }
  const std::lock_guard lock(engine->sessions_mutex);
  for (const auto& [device, session] : engine->sessions) {
    const runtime::SessionStatistics s = session->statistics();
    all.plans_made += s.plans_made, all.plans_loaded += s.plans_loaded;
    all.kernels_compiled += s.kernels_compiled, all.kernels_loaded += s.kernels_loaded;
    all.plan_cache_hits += s.plan_cache_hits;
    all.fallbacks += s.fallbacks;
    all.kernel_cache_hits += s.kernel_cache_hits;
    all.evictions += s.evictions;
    all.compile_milliseconds += s.compile_milliseconds;
    all.graph_launches += s.graph_launches;
    all.background_plans += s.background_plans, all.background_failures += s.background_failures;
    if (device != ran_last) continue;
    all.last_plan = {.kernels = s.last_run.kernels,
                     .ledger_bytes = s.last_run.ledger_bytes,
                     .bound_bytes = s.last_run.bound_bytes,
                     .arena_bytes = s.last_run.arena_bytes,
                     .end_of_forward_bytes = s.last_run.end_of_first_result_bytes,
                     .kernel_milliseconds = s.last_run.kernel_milliseconds};
  }
  return all;
}

void finish_compiling() {
  const std::shared_ptr<Engine> engine = default_engine();
  const std::lock_guard lock(engine->sessions_mutex);
  for (const auto& [device, session] : engine->sessions) session->finish_background();
}

void synchronize(const Device& device) { default_engine()->session(device).synchronize(); }

namespace memory {
std::int64_t allocated(const Device& device) { return default_engine()->session(device).memory().allocated; }
std::int64_t peak(const Device& device) { return default_engine()->session(device).memory().peak; }
std::int64_t reserved(const Device& device) { return default_engine()->session(device).memory().reserved; }
void reset_peak(const Device& device) { default_engine()->session(device).reset_peak_memory(); }
void release(const Device& device) { default_engine()->session(device).release_memory(); }
void set_limit(std::int64_t bytes, const Device& device) { default_engine()->session(device).limit_memory(bytes); }
}  // namespace memory

}  // namespace fusejit
