// Tiles that are finished late: what is legal, what the loops are, and where they are chosen.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/kernel/kernel.h"
#include "ir/node.h"
#include "scheduler/choose/choose.h"
#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

constexpr const char* kDotProducts = "x86:avx512bf16,l1=48k,l2=1m,l3=32m,fma=2,tasks=64,dot2=1";

ir::Contraction of_kernel(std::int64_t kernel, std::int64_t size = 56, DType dtype = DType::f32) {
  const std::vector<std::int64_t> padding(4, kernel / 2);
  const ir::Value y = ir::build(
      ir::Op::conv2d, {ir::parameter({dtype, {16, 64, size, size}}), ir::parameter({dtype, {256, 64, kernel, kernel}})},
      {{"padding", padding}});
  return ir::contractions_of(*y).at(0);
}

TEST(LateTiles, AreRefusedWithTheRuleThatTheyBreak) {
  struct Case {
    const char* schedule;
    const char* message;
    ir::Contraction of = of_kernel(1);
    const char* target = "x86:avx512";
  };
  const Case cases[] = {
      {"vector k 16 x 2 tile q 8 unroll c 4 task n, p outer k inner q, c pack b 32 finish late", ""},
      {"vector k 16 x 2 tile q 8 unroll c 4 task n, p outer k inner q, c/8, c pack b 32 finish late fetch p 1", ""},
      {"vector k 16 x 2 tile q 14 unroll c 4 task n, p/2 outer k inner p, q, r, s, c pack b 32 finish late", ""},
      {"vector k 16 x 2 tile q 8 unroll r 3, s 3 task n, p outer k inner q, r, s, c pack b 32 finish late",
       "nothing beyond their operand", of_kernel(3)},
      {"vector k 16 x 2 tile p 2, q 4 task n outer k inner p, q, c pack b 32 finish late", "are of one dim"},
      {"vector k 16 x 2 task n, p outer k inner q, c pack b 32 finish late", "are of one dim"},
      {"vector k 16 x 2 tile p 8 task n outer k inner p, q, c pack b 32 finish late", "a loop over p around one over"},
      {"vector k 16 x 2 tile q 8 unroll c 64 task n, p outer k inner q, c pack b 32 finish late",
       "around one over terms"},
      {"vector k 16 x 2 tile q 8 unroll c 4 task n, p outer k inner q, c pack b 32 finish late flush c 32",
       "combined or flushed"},
      {"algorithm winograd 4 vector k 16 x 2 pack b 32 finish late", "no within, dot, inner, panel, flush or finish",
       of_kernel(3)},
      {"vector k 16 x 3 tile q 8 task n, p outer k inner q, c pack b 48 finish late", "no idle lanes"},
  };
  for (const Case& c : cases) {
    const std::string text = std::string("schedule { ") + c.schedule + " }";
    const Schedule schedule = parse_schedule(text);
    EXPECT_EQ(print(schedule), text);
    const std::string broken = check(c.of, schedule, Target::parse(c.target), false);
    if (*c.message == 0) {
      EXPECT_EQ(broken, "") << c.schedule;
    } else {
      EXPECT_NE(broken.find(c.message), std::string::npos) << c.schedule << ": " << broken;
    }
  }
}

// What the convolution is, and the text of its kernel.
struct Lowered {
  Schedule schedule;
  std::string kernel;
};
Lowered late_or_not(const std::string& after, int channels = 64, const char* target = kDotProducts) {
  const Plan plan = make_plan(
      ir::parse_graph(fmt::format("graph @c(%x: bf16[4,{0},56,56]:nhwc, %w: bf16[256,{0},1,1], %side: "
                                  "bf16[4,256,56,56]:nhwc) {{\n  %0 = conv2d(%x, %w) : bf16[4,256,56,56]:nhwc\n{1}}}",
                                  channels, after)),
      {Target::parse(target), Rules::all, {}});
  for (const PlanStep& step : plan.steps)
    if (!step.schedules.empty() && step.schedules[0].kind == Work::contraction)
      return {step.schedules[0].schedule, ir::print(*step.kernel)};
  return {};
}
constexpr const char* kResidual = "  %1 = add(%0, %side) : bf16[4,256,56,56]:nhwc\n  return %1\n";

// Each of eight turns over channels finishes a pixel of the tile before, in scratch; the first has none before it, and
// the last of a row is finished behind the loop.
TEST(LateTiles, AreFinishedByTheTurnsOfTheNextOne) {
  const Lowered found = late_or_not(kResidual);
  EXPECT_NE(print(found.schedule).find("tile q 8 unroll c 4 dot c task n, p/4 outer k inner p, q, c/8, c"),
            std::string::npos)
      << print(found.schedule);
  for (const char* line : {"local %l0: f32[8,32] scratch", "for %i6 in 0..8 {\n                  if %i5 >= 1 {",
                           "store %p2[%i0, %i1*4 + %i4, %i5*8 + %i6 - 8, %i2*32 + %i3 + %i7*16]",
                           "store %p2[%i0, %i1*4 + %i4, %i15 + 48, %i2*32 + %i3 + %i16*16]"})
    EXPECT_NE(found.kernel.find(line), std::string::npos) << line << "\n" << found.kernel;
}

TEST(LateTiles, AreChosenForFewDotProductsAndAnEpilogueThatReads) {
  const auto late = [](const std::string& after, int channels = 64, const char* target = kDotProducts) {
    return late_or_not(after, channels, target).schedule.finish_late;
  };
  const char* relu = "  %1 = relu(%0) : bf16[4,256,56,56]:nhwc\n  return %1\n";
  EXPECT_TRUE(late(kResidual));
  EXPECT_TRUE(late(kResidual, 512));
  EXPECT_FALSE(late(kResidual, 1024));
  EXPECT_FALSE(late(relu));
  EXPECT_FALSE(late(kResidual, 64, "x86:avx512,l1=48k,l2=1m,l3=32m,tasks=64"));  // products of f32, twice as long
}

}  // namespace
}  // namespace fusejit::scheduler
