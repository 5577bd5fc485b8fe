// Every chain of views plans, on every target, in a bounded time and on a small stack, and means what the graph means.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>

#include "ir/kernel/interp/interp.h"
#include "scheduler/make_plan.h"
#include "tests/random/generate/graph_generator.h"
#include "tests/random/generate/view_generator.h"
#include "tests/support/nightly.h"

namespace fusejit::testing {
namespace {

const char* const kTargets[] = {"x86:avx512,tasks=5", "cuda:sm_90", "x86:avx2,tasks=3", "x86:v2"};

// Runs `body` on a thread with a stack this small; seconds of the processor that it took.
double on_small_stack(const std::function<void()>& body) {
  constexpr std::size_t kStackBytes = 256 << 10;
  struct Call {
    const std::function<void()>& body;
    double seconds = 0;
  } call{body};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_t thread;
  const auto run = [](void* given) -> void* {
    Call& c = *static_cast<Call*>(given);
    c.body();
    timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    c.seconds = static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
    return nullptr;
  };
  EXPECT_EQ(pthread_create(&thread, &attributes, run, &call), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  return call.seconds;
}

// "" or why the graph cannot be planned.
std::string refused(const ir::Graph& graph, const char* target) {
  try {
    scheduler::make_plan(graph, {Target::parse(target), scheduler::Rules::all, {}});
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

// The kernels of a plan one after the other; arguments and results are dense in logical order.
std::vector<ir::Array> run(const scheduler::Plan& plan, const ir::Graph& graph,
                           const std::vector<ir::Array>& arguments) {
  using Bytes = std::vector<std::byte>;
  Bytes arena(static_cast<std::size_t>(plan.arena_bytes));
  std::vector<Bytes> own;
  for (const scheduler::PlanValue& value : plan.values) {
    own.push_back(value.storage == scheduler::Storage::constant ? value.data
                                                                : Bytes(static_cast<std::size_t>(value.bytes)));
    if (value.storage == scheduler::Storage::argument)
      std::memcpy(own.back().data(), arguments[static_cast<std::size_t>(value.index)].bytes.data(), own.back().size());
  }
  const auto memory = [&](int v) {
    const scheduler::PlanValue& value = plan.values[static_cast<std::size_t>(v)];
    return value.storage == scheduler::Storage::arena ? arena.data() + value.offset
                                                      : own[static_cast<std::size_t>(v)].data();
  };
  for (const scheduler::PlanStep& step : plan.steps) {
    std::vector<void*> buffers;
    for (const int v : step.values) buffers.push_back(memory(v));
    ir::interpret(*step.kernel, buffers, {});
  }
  std::vector<ir::Array> results;
  for (std::size_t r = 0; r < plan.results.size(); ++r) {
    results.emplace_back(graph.results()[r].type());
    std::memcpy(results.back().bytes.data(), memory(plan.results[r]), results.back().bytes.size());
  }
  return results;
}

std::string wrong_results(const ir::Graph& graph, const char* target, std::uint64_t seed) {
  const auto arguments = graph_arguments(graph, seed);
  const auto got =
      run(scheduler::make_plan(graph, {Target::parse(target), scheduler::Rules::all, {}}), graph, arguments);
  return disagreement(got, ir::interpret(graph, arguments), 1e-5);
}

// One target a chain by day, all of them at night; results of every fifth.
TEST(RandomViews, EveryChainIsPlanned) {
  const std::uint64_t chains = testing::is_nightly() ? 20'000 : 1'000;
  for (std::uint64_t seed = 1; seed <= chains && !HasFailure(); ++seed) {
    const ir::Graph graph = random_views(seed, {.views = 2 + static_cast<int>(seed % 14), .gradient = seed % 2 == 1});
    for (std::size_t t = 0; t < std::size(kTargets); ++t) {
      if (!testing::is_nightly() && (seed / 2) % std::size(kTargets) != t) continue;
      std::string why;
      const double seconds = on_small_stack([&] { why = refused(graph, kTargets[t]); });
      if (!why.empty()) {
        const auto fails = [&](const ir::Graph& g) { return !refused(g, kTargets[t]).empty(); };
        const ir::Graph small = shrink(graph, fails);
        ADD_FAILURE() << "seed " << seed << " on " << kTargets[t] << ": " << refused(small, kTargets[t]) << "\n"
                      << ir::print(small);
      }
      EXPECT_LT(seconds, 5) << "seed " << seed << " on " << kTargets[t];
      if (seed % 5 != 0 || !why.empty()) continue;
      if (const std::string wrong = wrong_results(graph, kTargets[t], seed); !wrong.empty()) {
        const auto fails = [&](const ir::Graph& g) { return !wrong_results(g, kTargets[t], seed).empty(); };
        ADD_FAILURE() << "seed " << seed << " on " << kTargets[t] << ": " << wrong << "\n"
                      << ir::print(shrink(graph, fails));
      }
    }
  }
}

// Ten times the views are planned in ten times the work, into ten times the kernels.
TEST(RandomViews, LongChainsPlanInLinearWork) {
  const auto planned = [](int views) {
    const ir::Graph graph = alternating_views(views);
    std::size_t kernels = 0;
    const double seconds = on_small_stack([&] {
      kernels = scheduler::make_plan(graph, {Target::parse("x86:avx2"), scheduler::Rules::all, {}}).steps.size();
    });
    return std::pair(kernels, seconds);
  };
  const auto [kernels, seconds] = planned(500);
  const auto [more_kernels, more_seconds] = planned(testing::is_nightly() ? 50'000 : 5'000);
  const double times = testing::is_nightly() ? 100 : 10;
  EXPECT_GT(kernels, 500u / 20);
  EXPECT_LE(static_cast<double>(more_kernels), 1.1 * times * static_cast<double>(kernels));
  EXPECT_LT(more_seconds, 3 * times * seconds);
}

// Views alone that merge into one index are one kernel as before, however many there are of them in a row.
TEST(RandomViews, ViewsOfAFewKindsStayTogether) {
  const ir::Value x = ir::parameter({DType::f32, {2, 14, 14, 6}}, "x");
  ir::Value y = ir::build(ir::Op::reshape, {x}, {{"shape", {2, 2, 7, 2, 7, 6}}});
  y = ir::build(ir::Op::permute, {y}, {{"dims", {0, 1, 3, 2, 4, 5}}});
  y = ir::build(ir::Op::reshape, {y}, {{"shape", {8, 49, 6}}});  // windows of a shifted-window attention
  for (const char* target : kTargets)
    EXPECT_EQ(scheduler::make_plan(ir::capture("windows", {x}, {y}), {Target::parse(target), scheduler::Rules::all, {}})
                  .steps.size(),
              1u)
        << target;
}

}  // namespace
}  // namespace fusejit::testing
