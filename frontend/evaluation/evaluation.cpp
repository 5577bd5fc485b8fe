#include "frontend/evaluation/evaluation.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "frontend/context.h"
#include "frontend/evaluation/engine.h"
#include "frontend/evaluation/frozen_call.h"
#include "frontend/evaluation/work.h"
#include "fusejit/runtime.h"
#include "ir/base/check.h"
#include "runtime/process/fork.h"

namespace fusejit {
namespace {

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
    if (work.notes[i]) work.notes[i]->call = std::move(attachment(value.get())->call);
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
  if (wanted.size() == 1 && donations.empty() && wanted[0].defined() && evaluate_call(wanted[0])) return;
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

runtime::Buffer borrow_on(const Device& device, std::uint64_t address, const Type& type,
                          std::function<void()> deleter) {
  return default_engine()->session(device).borrow(address, type, std::move(deleter));
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

}  // namespace fusejit
