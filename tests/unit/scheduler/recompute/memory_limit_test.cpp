// Plans that take no more memory than they may: what is computed again, what that costs, what is refused.
#include "scheduler/recompute/memory_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/models/named.h"
#include "fusejit/error.h"
#include "ir/passes/grad.h"
#include "scheduler/fuse/fuse.h"
#include "scheduler/make_plan.h"
#include "scheduler/recompute/select.h"
#include "scheduler/report/memory.h"

namespace fusejit::scheduler {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kTargets[] = {"x86:avx512", "x86:avx2", "cuda:sm_90"};

struct Step {
  ir::Graph graph;
  PlanOptions options;
};
Step step_of(const char* source, const char* target) {
  const models::ModelGraph model = models::model_graph(source);
  return {model.graph, {Target::parse(target), Rules::all, {model.donated.begin(), model.donated.end()}}};
}
Plan plan_in(const Step& step, std::int64_t limit) {
  PlanOptions options = step.options;
  options.memory_limit.bytes = limit;
  return make_plan(step.graph, options);
}
std::int64_t bytes(const Plan& plan) { return memory_use(plan).total(); }

TEST(MemoryLimit, IsReadAsPeopleWriteBytes) {
  const std::pair<const char*, std::int64_t> cases[] = {{"none", MemoryLimit::kNone},
                                                        {"least", MemoryLimit::kLeast},
                                                        {"838860800", 838860800},
                                                        {"800MiB", 838860800},
                                                        {"800 MiB", 838860800},
                                                        {"1.5GiB", std::int64_t{3} << 29},
                                                        {"64kib", 64 << 10},
                                                        {"12 b", 12},
                                                        {"2TiB", std::int64_t{2} << 40}};
  for (const auto& [text, limit] : cases) {
    EXPECT_EQ(parse_memory_limit(text).bytes, limit) << text;
    EXPECT_EQ(parse_memory_limit(parse_memory_limit(text).str()).bytes, limit) << text;
  }
  for (const char* text :
       {"", "much", "-1", "0", "1e9", "0x10", "5 MB", "5MiBs", "MiB", "nan", "inf", "99999999TiB", "0.1"})
    EXPECT_THROW(parse_memory_limit(text), UserError) << text;
}

TEST(MemoryLimit, LeavesAPlanThatMeetsItAlone) {
  const Step step = step_of("convnet@16:train", "x86:avx512");
  const Plan plan = plan_in(step, MemoryLimit::kNone);
  EXPECT_EQ(print(plan_in(step, bytes(plan))), print(plan));
}

// The further the limit, the less is computed again; every limit down to the least is met.
TEST(MemoryLimit, IsMetByComputingAgain) {
  for (const char* target : kTargets) {
    const Step step = step_of("resnet18@16x3x160x160:train", target);
    const Plan plan = plan_in(step, MemoryLimit::kNone), least = plan_in(step, MemoryLimit::kLeast);
    EXPECT_EQ(plan.recomputed, 0);
    ASSERT_GT(least.recomputed, 0) << target;
    const std::int64_t most = bytes(plan), fewest = bytes(least);
    EXPECT_LT(least.arena_bytes, plan.arena_bytes * 8 / 10) << target;
    double time_before = 0;
    for (const int percent : {90, 60, 30, 0}) {
      const std::int64_t limit = fewest + (most - fewest) * percent / 100;
      const Plan less = plan_in(step, limit);
      EXPECT_LE(bytes(less), limit) << target << " " << percent;
      EXPECT_GT(less.recomputed, 0);
      EXPECT_GE(less.extra_time, time_before) << target << " " << percent;
      EXPECT_LT(less.extra_time, 0.5) << target << " " << percent;
      EXPECT_EQ(print(parse_plan(print(less))), print(less));
      time_before = less.extra_time;
    }
    EXPECT_LE(time_before, least.extra_time + 1e-9);
  }
}

TEST(MemoryLimit, ThatCannotBeMetIsRefusedWithTheLeast) {
  const Step step = step_of("convnet@16:train", "x86:avx512");
  try {
    plan_in(step, 1000);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("a memory limit of 1000 B cannot be met"),
                                    HasSubstr(str(memory_use(plan_in(step, MemoryLimit::kLeast))))));
  }
  Step unfused = step;
  unfused.options.rules = Rules::none;
  EXPECT_THROW(plan_in(unfused, MemoryLimit::kLeast), UserError);
}

// A join that a convolution stores while it copies it (R7) is not computed again: where little memory is left it is a
// kernel of its own.
TEST(MemoryLimit, IsMetWithoutJoinsInCopies) {
  Step step = step_of("resnet50@16x3x224x224:train", "x86:avx512");
  const Plan least = plan_in(step, MemoryLimit::kLeast);
  EXPECT_LE(bytes(least), std::int64_t{645} << 20);
  EXPECT_EQ(least.rules, Rules::all);
  EXPECT_LE(bytes(plan_in(step, std::int64_t{650} << 20)), std::int64_t{650} << 20);
  step.options.rules = Rules::all.without(Rule::join);
  EXPECT_LE(bytes(least), bytes(plan_in(step, MemoryLimit::kLeast)));
}

// Of a graph so small that a hundredth of it is less than a byte.
TEST(MemoryLimit, HasALeastOfAFewBytes) {
  const ir::Graph forward = ir::parse_graph(R"(graph @small(%x: f32[1,2], %w: f32[3,2]) {
  %0 = linear(%x, %w) : f32[1,3]
  %1 = abs(%0) : f32[1,3]
  %2 = sum(%1) : f32[]
  return %2
})");
  const Step step{ir::differentiate(forward, {"w"}), {Target::parse("x86:avx512"), Rules::all, {}}};
  EXPECT_LE(bytes(plan_in(step, MemoryLimit::kLeast)), bytes(plan_in(step, MemoryLimit::kNone)));
}

// The model that chooses says what is alive within a few hundredths of what the arena takes.
TEST(MemoryLimit, IsChosenByAModelThatIsClose) {
  for (const char* source : {"resnet18@16x3x160x160:train", "mobilenet_v2@8x3x160x160:train"}) {
    const Step step = step_of(source, "x86:avx512");
    const ir::Graph graph = optimised(step.graph, step.options);
    const Activations activations(graph, step.options.target, make_groups(graph, step.options.target, {}));
    const std::vector<bool> none(activations.list().size()), least = drop_for_least(activations);
    const auto arena = static_cast<double>(plan_in(step, MemoryLimit::kNone).arena_bytes);
    EXPECT_NEAR(static_cast<double>(activations.peak(none)) / arena, 1, 0.12) << source;
    PlanOptions ready = step.options;
    ready.is_optimised = true;
    const auto less = static_cast<double>(make_plan(activations.without(least), ready).arena_bytes);
    EXPECT_NEAR(static_cast<double>(activations.peak(least)) / less, 1, 0.25) << source;
    EXPECT_LT(less, arena) << source;
  }
}

// What a value is computed from again lives until then, although nothing else reads it late.
TEST(MemoryLimit, KeepsWhatIsReadToComputeAgain) {
  const ir::Graph graph = ir::parse_graph(
      "graph @g(%x: f32[4,16,32,32], %w: f32[64,16,1,1], %v: f32[16,64,1,1]) {\n"
      "  %0 = conv2d(%x, %w) : f32[4,64,32,32]\n  %1 = conv2d(%0, %v) : f32[4,16,32,32]\n"
      "  %2 = sin(%1) : f32[4,16,32,32]\n  %3 = sum(%2) : f32[]\n"
      "  %4 = cos(%1) : f32[4,16,32,32]\n  %5 = mul(%4, %3) : f32[4,16,32,32]\n  return %3, %5\n}\n");
  const Target target = Target::parse("x86:avx512");
  const Grouping grouping = make_groups(graph, target, {});
  const Activations activations(graph, target, grouping);
  constexpr std::int64_t kFirst = 4 * 64 * 32 * 32 * 4, kSecond = kFirst / 4;
  std::vector<bool> dropped(activations.list().size());
  for (std::size_t i = 0; i < dropped.size(); ++i) dropped[i] = activations.list()[i].bytes == kSecond;
  ASSERT_EQ(std::count(dropped.begin(), dropped.end(), true), 1);
  const std::size_t last = grouping.groups.size() - 1;
  EXPECT_LT(activations.alive(std::vector<bool>(dropped.size()))[last], kFirst);
  EXPECT_GE(activations.alive(dropped)[last], kFirst + kSecond);
}

// What the model says of dropping values is what it says of the graph that does so.
TEST(MemoryLimit, IsChosenByWhatBecomesOfTheGraph) {
  for (const char* source : {"resnet18@16x3x160x160:train", "mobilenet_v2@8x3x160x160:train"}) {
    const Step step = step_of(source, "x86:avx512");
    const ir::Graph graph = optimised(step.graph, step.options);
    const auto activations_of = [&](const ir::Graph& of) {
      return Activations(of, step.options.target, make_groups(of, step.options.target, {}));
    };
    const Activations activations = activations_of(graph);
    const auto drop_and_expect = [&](const std::vector<bool>& dropped, double within) {
      const ir::Graph less = activations.without(dropped);
      const Activations after = activations_of(less);
      const std::vector<bool> none(after.list().size());
      EXPECT_NEAR(static_cast<double>(activations.peak(dropped)) / static_cast<double>(after.peak(none)), 1, within)
          << source;
      const auto early_bytes = [](const Activations& of) {
        std::int64_t bytes = 0;
        for (const Activation& one : of.list()) bytes += one.bytes;
        return bytes;
      };
      EXPECT_LE(early_bytes(after), early_bytes(activations) * 101 / 100) << source << ": the forward pass stores more";
    };
    drop_and_expect(drop_for_least(activations), 0.12);
    for (const int percent : {90, 70}) {
      const std::int64_t peak = activations.peak(std::vector<bool>(activations.list().size()));
      const auto dropped = drop_for_limit(activations, peak * percent / 100);
      ASSERT_TRUE(dropped) << source << " " << percent;
      drop_and_expect(*dropped, 0.12);
    }
  }
}

// Nothing in front of what is dropped is read late in its place unless it stays.
TEST(MemoryLimit, ReadsNothingLateThatIsDropped) {
  const Step step = step_of("resnet18@8x3x64x64:train", "x86:avx512");
  const ir::Graph graph = optimised(step.graph, step.options);
  const Activations activations(graph, step.options.target, make_groups(graph, step.options.target, {}));
  const std::vector<bool> dropped = drop_for_least(activations);
  const ir::Graph less = activations.without(dropped);
  const Activations after(less, step.options.target, make_groups(less, step.options.target, {}));
  std::int64_t late = 0, late_before = 0;
  for (const Activation& one : activations.list()) late_before += one.last_late >= 0 ? one.bytes : 0;
  for (const Activation& one : after.list()) late += one.last_late >= 0 ? one.bytes : 0;
  EXPECT_LT(late, late_before / 2);
}

}  // namespace
}  // namespace fusejit::scheduler
