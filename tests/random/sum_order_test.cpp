// Schedules that share the order of their sums give the same bits, whatever else differs between them, and on any
// number of threads: random anchors on numbers that every addition rounds, in several schedules each.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "codegen/x86/compile.h"
#include "tests/random/generate/schedule_trial.h"
#include "tests/support/nightly.h"

namespace fusejit::testing {
namespace {

using ir::Contraction;
using ir::Graph;
using runtime::Buffer;
using scheduler::Schedule;
using scheduler::ScheduledLoop;

using Draw = Schedule (*)(Random&, const Contraction&, const Schedule&);

// The loops of `like` over what is summed up, inside of parallel loops, tiles and vectors drawn anew.
Schedule drawn_around(Random& random, const Contraction& c, const Schedule& like, const Schedule& chosen, Draw draw) {
  const auto is_sum = [&](const ScheduledLoop& loop) { return c.dim(loop.dims[0]).reduced; };
  Schedule s = draw(random, c, chosen);
  s.unroll = like.unroll, s.unroll_within = like.unroll_within && random.chance(80);
  if (s.combine.empty() != like.combine.empty()) s.fetch = {};  // along other dims
  s.combine = like.combine, s.flush = like.flush;
  const auto take = [&](std::vector<ScheduledLoop>& to, const std::vector<ScheduledLoop>& from) {
    std::erase_if(to, is_sum);
    for (const ScheduledLoop& loop : from)
      if (is_sum(loop)) to.push_back(loop);
  };
  take(s.tasks, like.tasks), take(s.outer, like.outer), take(s.inner, like.inner);
  return s;
}

struct Found {
  int pairs = 0;                              // with one order
  int other_orders = 0, with_other_bits = 0;  // with two orders; of them: whose bits differ
};

bool same_bits(const std::vector<Buffer>& a, const std::vector<Buffer>& b) {
  for (std::size_t r = 0; r < a.size(); ++r)
    if (std::memcmp(a[r].data(), b[r].data(), static_cast<std::size_t>(a[r].bytes())) != 0) return false;
  return true;
}

// The same but for one thing.
Schedule changed(Random& random, const Contraction& c, const Schedule& like) {
  Schedule s = like;
  const auto first_sum = std::find_if(s.inner.begin(), s.inner.end(),
                                      [&](const ScheduledLoop& loop) { return c.dim(loop.dims[0]).reduced; });
  const auto recount = [&](std::vector<scheduler::Extent>& list) {
    if (!list.empty())
      list[static_cast<std::size_t>(random.from(0, static_cast<std::int64_t>(list.size()) - 1))].count =
          random.from(1, 4);
  };
  switch (random.from(0, 4)) {
    case 0:
      std::reverse(s.inner.begin(), first_sum);
      break;
    case 1:
      if (s.inner.end() - first_sum > 1) std::rotate(first_sum, first_sum + 1, s.inner.end());
      break;
    case 2:
      recount(s.tile);
      break;
    case 3:
      recount(s.unroll);
      break;
    default:
      s.pack_b = random.chance(50) ? s.pack_b : 0;
      if (!s.flush.dims.empty()) s.flush.count *= 2;
      s.finish_late = !s.finish_late;
  }
  return s;
}

// Some schedules for one anchor: the first of an order is what the others are compared with.
std::string anchor_of_any_dtype(Random& random) {
  return random_anchor(random, random.of<std::string>({"f32", "f32", "f64", "bf16", "f16"}));
}
void compare(std::uint64_t seed, const std::vector<Target>& targets, Draw draw, bool compiled, Found& found,
             std::string (*anchor)(Random&) = anchor_of_any_dtype) {
  Random random(seed);
  const std::string text = anchor(random);
  SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
  const Graph graph = ir::parse_graph(text);
  const Target target = random.of(targets);
  const std::vector<Buffer> arguments = arguments_of(graph, random, false);
  std::map<std::string, Schedule> first;  // of each contraction
  std::map<std::string, std::pair<std::string, std::vector<Buffer>>> by_order;
  for (int i = 0; i < 12; ++i) {
    const bool anew = first.empty() || i % 3 == 2;
    const Trial trial = planned(graph, target, [&](const std::string&, const Contraction& c, const Schedule& chosen) {
      if (anew) return draw(random, c, chosen);
      const Schedule& like = first.at(str(c));
      return i % 3 == 1 && like.lanes == chosen.lanes ? changed(random, c, like)
                                                      : drawn_around(random, c, like, chosen, draw);
    });
    if (!trial.legal) continue;
    if (first.empty()) {
      for (const auto& [c, schedule] : trial.drawn) first[str(c)] = schedule;
    }
    const std::vector<Buffer> got = interpreted(graph, trial.plan, arguments);
    if (compiled) {
      for (const int threads : {1, 2, 3, 8})
        ASSERT_TRUE(same_bits(as_machine_code(graph, trial.plan, arguments, threads), got)) << threads << " threads\n"
                                                                                            << trial.tried;
    }
    for (const auto& [order, other] : by_order) {
      if (order == trial.order) continue;
      ++found.other_orders;
      found.with_other_bits += same_bits(other.second, got) ? 0 : 1;
    }
    const auto [place, fresh] = by_order.try_emplace(trial.order, trial.tried, got);
    if (fresh) continue;
    ++found.pairs;
    ASSERT_TRUE(same_bits(place->second.second, got)) << trial.order << "is the order of\n"
                                                      << place->second.first << "and of\n"
                                                      << trial.tried;
  }
}

void report(const Found& found) {
  std::printf("%d pairs of one order; %d of %d pairs of two orders differ\n", found.pairs, found.with_other_bits,
              found.other_orders);
}

TEST(RandomSumOrders, DecideEveryBit) {
  const int anchors = is_nightly() ? 3000 : 200;
  const std::vector<Target> targets{Target::parse("x86:avx512,tasks=7"), Target::parse("x86:avx2,tasks=5"),
                                    Target::parse("x86:v2"), Target::parse("x86:avx512bf16,tasks=5,dot2=1")};
  Found found;
  for (int i = 1; i <= anchors && !::testing::Test::HasFatalFailure(); ++i)
    compare(static_cast<std::uint64_t>(i), targets, random_schedule, false, found);
  report(found);
  EXPECT_GT(found.pairs, 2 * anchors);
  EXPECT_GT(found.with_other_bits, anchors) << "numbers that do not tell one order from another";
}

// Of pixels and of weights. Results of bf16 hide most other orders: what is left to see are pairs of one order that
// differ by more than a sum's rounding.
TEST(RandomSumOrders, DecideEveryBitInAMatrixUnit) {
  const int anchors = is_nightly() ? 1000 : 40;
  const std::vector<Target> targets{Target::parse("x86:amx,tasks=5"), Target::parse("x86:amx,tasks=3,l2=16k")};
  const auto of_pixels = [](Random& random, const Contraction& c, const Schedule& chosen) {
    return in_matrix_unit(random, c, random_schedule(random, c, chosen));
  };
  Found pixels, weights;
  for (int i = 1; i <= 4 * anchors && !::testing::Test::HasFatalFailure(); ++i)
    compare(static_cast<std::uint64_t>(i), targets, of_pixels, false, pixels,
            [](Random& random) { return random_anchor(random, "bf16"); });
  for (int i = 1; i <= anchors && !::testing::Test::HasFatalFailure(); ++i)
    compare(static_cast<std::uint64_t>(i), targets, shared_out_otherwise, false, weights,
            random_weight_gradient_of_tiles);
  report(pixels), report(weights);
  EXPECT_GT(pixels.pairs, anchors / 2);
  EXPECT_GT(weights.pairs, anchors);
}

TEST(RandomSumOrders, DecideEveryBitOnDevices) {
  const int anchors = is_nightly() ? 2000 : 50;
  Found found;
  for (int i = 1; i <= anchors && !::testing::Test::HasFatalFailure(); ++i)
    compare(static_cast<std::uint64_t>(i), {Target::parse("cuda:sm_90")}, random_cuda_schedule, false, found);
  report(found);
  EXPECT_GT(found.pairs, anchors);
  EXPECT_GT(found.with_other_bits, anchors / 2);
  // Panels that threads share, among themselves and beside the others.
  const auto either = [](Random& random, const Contraction& c, const Schedule& chosen) {
    return random.chance(60) ? random_shared_panels(random, c, chosen) : random_cuda_schedule(random, c, chosen);
  };
  Found shared;
  for (int i = 1; i <= 2 * anchors && !::testing::Test::HasFatalFailure(); ++i)
    compare(static_cast<std::uint64_t>(i), {Target::parse("cuda:sm_90")}, either, false, shared);
  report(shared);
  EXPECT_GT(shared.pairs, anchors);
  EXPECT_GT(shared.with_other_bits, anchors);
}

// Threads that stride over rows of shared panels add up what those that stride over pixels do.
TEST(SumOrders, OfSharedPanelsAreThoseOfOtherNests) {
  const Graph graph = ir::parse_graph(R"(graph @g(%a: f32[2,24,4,4]:nhwc, %b: f32[8,24,1,1]) {
  %0 = conv2d(%a, %b) : f32[2,8,4,4]:nhwc
  %1 = mean(%0) {dim=[0,2,3]} : f32[8]
  %2 = var(%0) {dim=[0,2,3]} : f32[8]
  return %0, %1, %2
})");
  Random random(7);
  const std::vector<Buffer> arguments = arguments_of(graph, random, false);
  const auto run = [&](const std::string& loops) {
    Trial trial = planned(graph, Target::parse("cuda:sm_90"), [&](const auto&, const auto&, const auto&) {
      return scheduler::parse_schedule("schedule { vector k 4 x 1 " + loops + " }");
    });
    EXPECT_TRUE(trial.legal) << trial.tried;
    return std::pair(trial.order, interpreted(graph, trial.plan, arguments));
  };
  const auto [order, expected] = run("task grid.x n*p*q/16, block.x k inner block.y n*p*q stride 4, n*p*q, c");
  const auto [same, got] = run(
      "tile n*p*q 4 unroll c 6 task grid.x n*p*q/16, block.x k inner block.y n*p*q stride 4, n*p*q, c panel a c, b c");
  EXPECT_EQ(same, order);
  EXPECT_TRUE(same_bits(expected, got));
}

// 1, 2, 3 and 8, of each instruction set that this processor has.
TEST(RandomSumOrders, DecideEveryBitOfMachineCodeOnAnyThreads) {
  const int anchors = is_nightly() ? 300 : 9;
  std::vector<Target> targets;
  for (const std::string& text : {Target::host().str(), std::string("x86:avx2"), std::string("x86:v2")}) {
    targets.push_back(Target::parse(text));
    targets.back().tasks = 7;
    if (!codegen::x86::host_supports(targets.back().isa)) targets.pop_back();
  }
  Found found;
  for (int i = 1; i <= anchors && !::testing::Test::HasFatalFailure(); ++i)
    compare(static_cast<std::uint64_t>(10000 + i), {targets[static_cast<std::size_t>(i) % targets.size()]},
            random_schedule, true, found);
  report(found);
  EXPECT_GT(found.pairs, anchors);
}

}  // namespace
}  // namespace fusejit::testing
