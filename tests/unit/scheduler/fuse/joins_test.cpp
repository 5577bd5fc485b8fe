// R7: what an anchor behind it and others read is stored by the copy that the anchor reads.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "ir/kernel/kernel.h"
#include "ir/passes/grad.h"
#include "scheduler/make_plan.h"
#include "scheduler/report/explained.h"

namespace fusejit::scheduler {
namespace {

constexpr const char* kTarget = "x86:avx512,l2=1m,fma=2";

// What two convolutions gave, normalised and added: read by `behind`, and a result.
std::string text(const std::string& behind, const std::string& results = "%x, %y", const std::string& join = R"(
  %n = batch_norm_train(%0, %a, %b) : f32[16,32,12,12]:nhwc
  %j = add(%n, %side) : f32[16,32,12,12]:nhwc
  %x = relu(%j) : f32[16,32,12,12]:nhwc
)") {
  return R"(graph @joined(%image: f32[16,32,12,12]:nhwc, %w: f32[32,32,1,1], %v: f32[48,32,1,1], %t: f32[48,32,3,3], %z: f32[32,48,1,1],
    %a: f32[32], %b: f32[32], %side: f32[16,32,12,12]:nhwc, %u: f32[16,48,12,12]:nhwc) {
  %0 = conv2d(%image, %w) : f32[16,32,12,12]:nhwc
)" + join +
         behind + "  return " + results + "\n}";
}

constexpr const char* kBehind = "  %y = conv2d(%x, %v) : f32[16,48,12,12]:nhwc\n";

Plan plan_of(const std::string& graph, const char* target = kTarget, Rules rules = Rules::all) {
  return make_plan(ir::parse_graph(graph), {Target::parse(target), rules, {}});
}

// Of the steps of anchors, how many store what relu gives in a copy of it; -1: a step of its own stores it.
int copies_in(const Plan& plan) {
  int copies = 0;
  for (const PlanStep& step : plan.steps) {
    const auto has = [&](const char* op) {
      return std::any_of(step.ops.begin(), step.ops.end(), [&](const std::string& one) { return one.ends_with(op); });
    };
    if (!has(" maximum")) continue;
    if (!has(" conv2d")) return -1;
    ++copies;
  }
  return copies;
}

std::string loops_of(const Plan& plan) {
  std::istringstream lines(ir::print(*plan.steps.back().kernel));
  std::string line, loops;
  int phase = 0;
  while (std::getline(lines, line)) {
    phase += line.find("phase {") != std::string::npos;
    if (phase == 1) loops += line + '\n';
  }
  return loops;
}

TEST(Joins, AreStoredByTheCopyThatTheConvolutionReads) {
  for (const char* target : {"x86:v2", "x86:avx2", kTarget, "x86:avx512,l2=2m,fma=2", "x86:avx512bf16,dot2=1"}) {
    const Plan plan = plan_of(text(kBehind), target), apart = plan_of(text(kBehind), target, parse_rules("-R7"));
    EXPECT_EQ(copies_in(plan), 1) << target;
    EXPECT_EQ(copies_in(apart), -1) << target;
    EXPECT_EQ(plan.steps.size() + 1, apart.steps.size()) << target;
    // It is not read back.
    EXPECT_EQ(apart.ledger_bytes() - plan.ledger_bytes(), std::int64_t{4} * 16 * 32 * 12 * 12) << target;
  }
  EXPECT_EQ(copies_in(plan_of(text(kBehind), "cuda:sm_90")), -1);
}

// Each element once, to the panel and to memory; what is stored is fetched ahead, as what it is computed from.
TEST(Joins, InTheLoopsOfAPanel) {
  const std::string loops = loops_of(plan_of(text(kBehind)));
  EXPECT_TRUE(loops.starts_with(R"(  phase {
    for %i0 in 0..16 threads {
      local %l0: f32[1,12,12,32] scratch
      for %i1 in 0..12 {
        for %i2 in 0..12 {
          for %i3 in 0..2 unroll {
            for %i4 in 0..16 vector {
              %0 = load %p1[%i0, %i1, %i2, %i3*16 + %i4] : f32
              %1 = load %p2[%i3*16 + %i4] : f32
              %2 = sub(%0, %1) : f32
              %3 = load %p3[%i3*16 + %i4] : f32
              %4 = mul(%2, %3) : f32
              %5 = load %p4[%i3*16 + %i4] : f32
              %6 = add(%4, %5) : f32
              %7 = load %p5[%i0, %i1, %i2, %i3*16 + %i4] : f32
              %8 = add(%6, %7) : f32
              %9 = maximum(%8, 0) : f32
              store %l0[0, %i1, %i2, %i3*16 + %i4], %9
              store %p6[%i0, %i1, %i2, %i3*16 + %i4], %9
            }
          }
        }
      }
)")) << loops;
  for (const char* fetched : {"prefetch %p1[", "prefetch %p5[", "prefetch %p6["}) {
    std::size_t times = 0;
    for (std::size_t at = 0; (at = loops.find(fetched, at)) != std::string::npos; ++at) ++times;
    EXPECT_EQ(times, 1) << fetched << '\n' << loops;
  }
}

// The bits that the gradient of relu reads later are of the same elements.
TEST(Joins, KeepTheirMasksThere) {
  const std::string block = std::string(kBehind) + R"(  %1 = conv2d(%y, %z) : f32[16,32,12,12]:nhwc
  %2 = add(%1, %x) : f32[16,32,12,12]:nhwc
)";
  const ir::Graph step = ir::differentiate(ir::parse_graph(text(block, "%2")), {"w", "v", "z", "a", "b", "side"});
  const Plan plan = make_plan(step, {Target::parse(kTarget), Rules::all, {}});
  EXPECT_EQ(copies_in(plan), 1);
  const auto keeps_both = [](const PlanStep& one) {
    const auto has = [&](const char* op) {
      return std::any_of(one.ops.begin(), one.ops.end(), [&](const std::string& each) { return each.ends_with(op); });
    };
    return has(" conv2d") && has(" maximum") && has(" le");
  };
  EXPECT_EQ(std::count_if(plan.steps.begin(), plan.steps.end(), keeps_both), 1);
}

TEST(Joins, StandAloneWhereTheCopyDoesNotMeetEachElementOnce) {
  const struct {
    const char* why;
    std::string graph;
    const char* target = kTarget;
  } cases[] = {
      {"windows share elements", text("  %y = conv2d(%x, %t) {padding=[1,1,1,1]} : f32[16,48,12,12]:nhwc\n")},
      {"steps leave elements out", text("  %y = conv2d(%x, %v) {stride=[2,2]} : f32[16,48,6,6]:nhwc\n")},
      {"padding is none of it", text("  %y = conv2d(%x, %v) {padding=[1,1,1,1]} : f32[16,48,14,14]:nhwc\n")},
      {"weights would pass for each task", text(kBehind), "x86:avx512,l2=4k"},
      {"one task would have all",
       "graph @small(%image: f32[1,512,7,7]:nhwc, %v: f32[512,512,1,1]) {\n  %x = relu(%image) : f32[1,512,7,7]:nhwc\n"
       "  %y = conv2d(%x, %v) : f32[1,512,7,7]:nhwc\n  return %x, %y\n}",
       "x86:avx512,l2=1m,tasks=64"}};
  for (const auto& one : cases) EXPECT_EQ(copies_in(plan_of(one.graph, one.target)), -1) << one.why;
}

TEST(Joins, StandAloneWhereOthersNeedThemBefore) {
  // The epilogue adds what the copy would store, or what is computed from it by another kernel: neither is there when
  // the first tile is finished.
  EXPECT_EQ(copies_in(plan_of(text(R"(  %1 = conv2d(%x, %w) : f32[16,32,12,12]:nhwc
  %y = add(%1, %x) : f32[16,32,12,12]:nhwc
)"))),
            -1);
  EXPECT_EQ(copies_in(plan_of(text(R"(  %1 = conv2d(%x, %t) {padding=[1,1,1,1]} : f32[16,48,12,12]:nhwc
  %2 = conv2d(%x, %v) : f32[16,48,12,12]:nhwc
  %y = add(%2, %1) : f32[16,48,12,12]:nhwc
)"))),
            -1);
  // Its statistics are finished by its own kernel.
  EXPECT_EQ(copies_in(plan_of(text(R"(  %1 = sum(%x) {dim=[0,2,3], keepdim=true} : f32[1,32,1,1]
  %y = conv2d(%x, %v) : f32[16,48,12,12]:nhwc
)",
                                   "%x, %y, %1"))),
            -1);
}

// Pairs of bf16 are made of rounded values, two a word.
TEST(Joins, OfPairsAreKernelsOfTheirOwn) {
  std::string narrow = text(kBehind);
  for (std::size_t at = 0; (at = narrow.find("f32", at)) != std::string::npos;) narrow.replace(at, 3, "bf16");
  EXPECT_EQ(copies_in(plan_of(narrow, "x86:avx512bf16,dot2=1")), -1);
  EXPECT_EQ(copies_in(plan_of(narrow, "x86:amx,fma=2")), -1);
  EXPECT_EQ(copies_in(plan_of(narrow, "x86:avx2")), 1);
}

// Nothing that is stored is read by the convolution alone: that is a prologue, and no join.
TEST(Joins, ThatNobodyElseReadsAreNotStored) {
  const Plan plan = plan_of(text(kBehind, "%y"));
  EXPECT_EQ(copies_in(plan), 0);
  for (const PlanStep& step : plan.steps)
    for (const std::string& op : step.ops) EXPECT_FALSE(op.ends_with(" maximum")) << op;
}

// Of what the convolution gives, a slice of its padding has nothing.
// Of a long expression a part is kept too, and read by nobody else in the end: its sentences are the join's.
TEST(Joins, ExplainWhatIsComputedOnTheWay) {
  const Plan plan = plan_of(R"(graph @long(%x: f64[1,1,8,1], %a: f64[1,8,1], %b: f64[1,8,1], %w: f64[2,1,1,1]) {
  %0 = layer_norm(%x, %a, %b) {normalized_shape=[1,8,1], eps=1e-05} : f64[1,1,8,1]
  %1 = mish(%0) : f64[1,1,8,1]
  %2 = conv2d(%1, %w) : f64[1,2,8,1]
  %3 = conv2d_weight_grad(%1, %2) {kernel_size=[1,1]} : f64[2,1,1,1]
  return %3
})",
                            "x86:avx2");
  EXPECT_EQ(plan.steps.size(), 4u);  // sums, packing, the convolution with the rest of mish, its weights' gradient
  EXPECT_TRUE(unexplained_edges(plan).empty());
}

TEST(Joins, AreStoredByAConvolutionThatNobodyReads) {
  const Plan plan = plan_of(text(R"(  %1 = conv2d(%x, %v) : f32[16,48,12,12]:nhwc
  %2 = pad(%1) {low=[0,48,0,0], high=[0,0,0,0], value=1} : f32[16,96,12,12]:nhwc
  %y = slice(%2) {starts=[0,0,0,0], stops=[16,48,12,12], steps=[1,1,1,1]} : f32[16,48,12,12]:nhwc
)"));
  EXPECT_EQ(copies_in(plan), 1);
  EXPECT_EQ(plan.steps.back().read_bytes, 0);
}

// A schedule under which tasks have elements in common, or that copies none, is refused.
TEST(Joins, HoldSchedulesOfOthersToThat) {
  const ir::Graph graph = ir::parse_graph(text(kBehind));
  const auto tried = [&](const std::function<void(Schedule&)>& change) -> std::string {
    PlanOptions options{Target::parse(kTarget), Rules::all, {}};
    options.reschedule.anchor = [&](const std::string& op, const AnchorChoice& choice) {
      Schedule schedule = choice.chosen();
      if (!schedule.panel_a.empty() && op.ends_with("conv2d")) change(schedule);
      return schedule;
    };
    try {
      make_plan(graph, options);
    } catch (const UserError& error) {
      const std::string said = error.what();
      return said.substr(said.rfind(": ") + 2);
    }
    return "";
  };
  EXPECT_EQ(tried([](Schedule&) {}), "");
  EXPECT_EQ(tried([](Schedule& s) { s.panel_a.clear(); }),
            "the first operand is to be stored while it is copied, which takes 'panel a'");
  EXPECT_EQ(tried([](Schedule& s) {
              s.tasks.push_back({{s.vector}});
              std::erase_if(s.outer, [&](const ScheduledLoop& loop) { return loop.dims[0] == s.vector; });
              s.fetch = {};
            }),
            "the first operand is to be stored while it is copied, but tasks of k all copy it");
}

}  // namespace
}  // namespace fusejit::scheduler
