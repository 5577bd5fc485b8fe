// Graph -> Executable: from memory, from disk, or made; in the foreground and in the background.
#include <algorithm>
#include <chrono>
#include <list>

#include "ir/kernel/walk.h"
#include "runtime/dump.h"
#include "runtime/session_state.h"
#include "runtime/warmup/signature.h"
#include "scheduler/make_plan.h"
#include "scheduler/report/fusions.h"
#include "scheduler/report/memory.h"

namespace fusejit::runtime {
namespace {

bool same_steps(const scheduler::Plan& a, const scheduler::Plan& b) {
  return std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(),
                    [](const scheduler::PlanStep& one, const scheduler::PlanStep& other) {
                      return one.values == other.values && one.library.has_value() == other.library.has_value() &&
                             ir::kernel_key_text(*one.kernel) == ir::kernel_key_text(*other.kernel);
                    });
}

// Bytes that a plan takes on the host, about: its text, its loops, its constants. Arenas are taken for each run,
// machine code is counted where kernels are kept.
std::int64_t host_bytes(const Executable& executable) {
  constexpr std::int64_t kStatement = 400, kNode = 512, kText = 64;
  if (executable.pieces) {
    auto bytes = static_cast<std::int64_t>(executable.pieces->graph.nodes().size()) * kNode;
    for (const Piece& piece : executable.pieces->list) {
      bytes += static_cast<std::int64_t>(piece.graph.nodes().size()) * kNode;
      if (piece.executable) bytes += host_bytes(*piece.executable);
    }
    return bytes;
  }
  const scheduler::Plan& plan = *executable.plan;
  std::size_t statements = 0, texts = 0, constants = 0, nodes = 0;
  for (const scheduler::PlanValue& value : plan.values) constants += sizeof value + value.data.size(), ++texts;
  texts += 3 * plan.refusals.size();
  for (const scheduler::PlanStep& step : plan.steps) {
    constants += sizeof step + sizeof *step.kernel + step.kernel->memories.size() * sizeof(ir::Memory);
    texts += step.ops.size() + 1, constants += step.nodes.size() * sizeof(int);
    if (step.library) nodes += step.library->graph.nodes().size();
    for (const ir::Phase& phase : step.kernel->phases) ir::for_each_stmt(phase.body, [&](auto&) { ++statements; });
  }
  return static_cast<std::int64_t>(constants) + static_cast<std::int64_t>(statements) * kStatement +
         static_cast<std::int64_t>(texts) * kText + static_cast<std::int64_t>(nodes) * kNode;
}

}  // namespace

std::shared_ptr<const Executable> Session::State::executable(const ir::Graph& graph, const Permissions& given) {
  const ir::Hash key = plan_key(graph, given);
  {
    std::lock_guard lock(mutex);
    if (const auto* found = plans.find(key)) return ++statistics.plan_cache_hits, *found;
  }
  const auto start = std::chrono::steady_clock::now();
  auto made = make_somehow(graph, given);
  if (is_recording()) {
    record({graph, given.donated, given.fixed, options.rules, options.memory_limit, options.target,
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count()});
  }
  bool is_new = false;
  std::list<std::shared_ptr<const Executable>> gone;  // released after the lock
  {
    std::lock_guard lock(mutex);
    ++statistics.plans_made;
    is_new = plans.add(key, made, host_bytes(*made), gone);
    for (const auto& plan : gone) {
      if (plan->executor) statistics.graph_launches += plan->executor->graph_launches();
    }
  }
  if (is_new && first_target() != options.target) {
    background.add([this, key, graph, given](const std::stop_token& stop) { improve(key, graph, given, stop); });
  }
  if (is_new && made->executor && made->executor->is_quick()) {
    background.add([this, key, name = graph.name()](const std::stop_token& stop) { improve_code(key, name, stop); });
  }
  return made;
}

// The last rung of the ladder: slow, but right.
std::shared_ptr<const Executable> Session::State::make_somehow(const ir::Graph& graph, const Permissions& given) {
  try {
    return make(graph, first_target(), given, /*quick=*/options.compile_in_background);
  } catch (const UserError&) {
    throw;
  } catch (const Error& error) {
    if (!may_fall_back() || backends.of_plans().is_failure(error)) throw;
    fell_back(graph.name(), "runs on the graph interpreter, slowly", error.what());
    auto made = std::make_shared<Executable>();
    made->pieces = std::make_shared<const Pieces>(interpreted(graph));
    return made;
  }
}

std::shared_ptr<const Executable> Session::State::make(const ir::Graph& graph, const Target& target,
                                                       const Permissions& given, bool quick,
                                                       const std::stop_token& stop) {
  const auto start = std::chrono::steady_clock::now();
  auto made = std::make_shared<Executable>();
  scheduler::PlanOptions wanted{target, options.rules, given.donated, {}, given.fixed};
  wanted.memory_limit = options.memory_limit;
  wanted.fall_back = may_fall_back();
  wanted.reschedule = options.reschedule;
  if (const std::string& refused = options.checks.refused_kernel; !refused.empty()) {
    wanted.inspect = [&refused](const ir::Kernel& kernel) {
      if (refused == "*" || kernel.name == refused) throw InternalError("kernel @" + kernel.name + " is refused");
    };
  }
  std::optional<Planned> planned;
  dump(graph);
  try {
    planned = backends.of_plans().plan(graph, std::move(wanted), stop);
    if (!planned) return nullptr;
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
  const scheduler::Plan& plan = *planned->plan;
  for (const scheduler::Fallback& fallback : plan.fallbacks)
    fell_back(graph.name(), fmt::format("runs {} ({}) in parts", fallback.layer, fallback.group), fallback.why);
  if (options.log && !options.memory_limit.is_none())
    options.log(fmt::format("graph @{} takes {}; {}", graph.name(), str(memory_use(plan)), recomputation_text(plan)));
  if (options.log && options.log_fusions) {
    const scheduler::Fusions fusions = scheduler::fusions_of(plan, graph);
    for (const scheduler::Fusion& fusion : fusions.list) options.log(line_of(fusion));
    if (!fusions.list.empty()) options.log(summary_of(fusions));
  }
  made->plan = planned->plan;
  const auto say = [&](const std::string& sentence) { warn(graph.name(), "takes long to be ready", sentence); };
  made->executor = backends.of_plans().prepare(*planned, {backends.threads(), quick, say});
  dump(plan);
  std::lock_guard lock(mutex);
  statistics.plans_loaded += planned->was_kept;
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
    piece.executable = make(piece.graph, target, {}, /*quick=*/false, stop);
    if (!piece.executable) return nullptr;
  }
  auto made = std::make_shared<Executable>();
  made->pieces = std::make_shared<const Pieces>(std::move(pieces));
  return made;
}

// The plan with everything that may take its time, in place of the one at hand.
void Session::State::improve(const ir::Hash& key, const ir::Graph& graph, const Permissions& given,
                             const std::stop_token& stop) {
  std::string why_not;
  try {
    std::shared_ptr<const Executable> better = make(graph, options.target, given, /*quick=*/false, stop);
    if (!better) return;
    std::lock_guard lock(mutex);
    auto* const found = plans.find(key);
    if (!found || (*found)->pieces || better->pieces || same_steps(*(*found)->plan, *better->plan)) return;
    statistics.graph_launches += (*found)->executor->graph_launches();
    found->swap(better);  // what ran so far is given back after the lock
    ++statistics.background_plans;
    return;
  } catch (const std::exception& error) {
    why_not = error.what();
  }
  failed_in_background(graph.name(), why_not);
}

void Session::State::failed_in_background(const std::string& name, const std::string& why_not) {
  {
    std::lock_guard lock(mutex);
    ++statistics.background_failures;
    statistics.why_no_background_plan = why_not;
  }
  warn(name, "keeps its first plan, the better one failed", why_not);
}

// The same plan with full code, one kernel after the other on this thread: the steps that run meanwhile have the rest
// of the machine.
void Session::State::improve_code(const ir::Hash& key, const std::string& name, const std::stop_token& stop) {
  const auto find = [&]() -> std::shared_ptr<const Executable> {
    std::lock_guard lock(mutex);
    const auto* const found = plans.find(key);
    return found ? *found : nullptr;
  };
  std::string why_not;
  try {
    const std::shared_ptr<const Executable> now = find();
    if (!now) return;
    auto better = std::make_shared<Executable>(*now);
    better->executor = now->executor->with_full_code(stop);
    if (!better->executor) return;
    std::lock_guard lock(mutex);
    auto* const found = plans.find(key);
    if (!found || *found != now) return;
    *found = std::move(better);
    ++statistics.background_plans;
    return;
  } catch (const std::exception& error) {
    why_not = error.what();
  }
  failed_in_background(name, why_not);
}

}  // namespace fusejit::runtime
