#include "runtime/session.h"

#include <unordered_map>

#include "ir/interp.h"
#include "runtime/arrays.h"
#include "runtime/process/fork.h"
#include "runtime/profiler.h"
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

Permissions permissions(std::span<const Buffer> arguments, std::span<const bool> donated, const Backend& backend) {
  Permissions given{{donated.begin(), donated.end()}, {}};
  for (std::size_t i = 0; i < arguments.size() && backend.keeps_derived(); ++i) {
    if (!arguments[i].is_fixed()) continue;
    given.fixed.resize(arguments.size());
    given.fixed[i] = true;
  }
  return given;
}

}  // namespace

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

Session::Session(SessionOptions options) : state_(std::make_unique<State>(std::move(options))) {}
Session::~Session() = default;
const SessionOptions& Session::options() const { return state_->options; }

SessionStatistics Session::statistics() const {
  std::lock_guard lock(state_->mutex);
  SessionStatistics all = state_->statistics;
  const KernelCounts kernels = state_->backends.kernels();
  all.kernels_compiled = kernels.compiled, all.kernel_cache_hits = kernels.hits, all.kernels_loaded = kernels.loaded;
  all.evictions = state_->plans.evictions() + kernels.evictions;
  state_->plans.for_each([&](const std::shared_ptr<const Executable>& plan) {
    if (plan->executor) all.graph_launches += plan->executor->graph_launches();
  });
  return all;
}

std::string Session::why_no_library() const { return state_->backends.why_no_library(); }

void Session::finish_background() { state_->background.wait(); }
void Session::stop_background() { state_->background.stop(); }

Buffer Session::place(const Buffer& buffer) { return state_->backends.of_results().place(buffer); }
Buffer Session::borrow(std::uint64_t address, const Type& type, std::function<void()> deleter) {
  return state_->backends.of_results().borrow(address, type, std::move(deleter));
}
void Session::synchronize() { state_->backends.of_results().synchronize(); }
MemoryStatistics Session::memory() const { return state_->backends.of_results().memory(); }
void Session::reset_peak_memory() { state_->backends.of_results().reset_peak_memory(); }
void Session::release_memory() { state_->backends.of_results().release_memory(); }

void Session::limit_memory(std::int64_t bytes) {
  FJ_CHECK(bytes >= 0, "the limit of memory is {} bytes, it must not be negative", bytes);
  state_->backends.of_results().limit_memory(bytes);
}

std::shared_ptr<const scheduler::Plan> Session::plan(const ir::Graph& graph, std::span<const bool> donated) {
  const UnforkedRun unforked;
  const auto executable = state_->executable(graph, {{donated.begin(), donated.end()}, {}});
  if (executable->pieces) throw UnsupportedError(fmt::format("graph @{} has no plan as a whole", graph.name()));
  return executable->plan;
}

void Session::prepare(const ir::Graph& graph, const std::vector<bool>& donated, const std::vector<bool>& fixed) {
  if (state_->options.engine == Engine::graph_interpreter) return;
  const UnforkedRun unforked;
  const Backend& backend = state_->backends.of_plans();
  state_->executable(graph, {donated, backend.keeps_derived() ? fixed : std::vector<bool>()});
}

std::vector<Buffer> Session::State::run(const Executable& executable, const ir::Graph& graph,
                                        std::span<const Buffer> arguments) {
  const ProfileScope scope("run", graph.name());
  if (executable.pieces) return run_pieces(*executable.pieces, arguments);
  Ran ran = executable.executor->run(graph, arguments);
  std::vector<Buffer> results = placed(std::move(ran.results));
  std::lock_guard lock(mutex);
  statistics.last_run = ran.report;
  return results;
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
  const Backend& backend = state_->backends.of_plans();  // where there is no device, no other way to run is meant
  const auto executable = state_->executable(graph, permissions(arguments, donated, backend));
  return state_->run(*executable, graph, arguments);
}

}  // namespace fusejit::runtime
