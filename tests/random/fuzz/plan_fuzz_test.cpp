// The plan parser on damaged plans: it ends with a plan whose text is stable, or with a UserError. What it accepts is
// verified too: verify must answer, whatever it is given.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "scheduler/make_plan.h"
#include "tests/support/mutate.h"

namespace fusejit::scheduler {
namespace {

// Every storage, work areas, constants, several kernels and refusals.
constexpr std::string_view kGraphs[] = {
    R"(graph @step(%x: f32[2,3,6,6], %w: f32[4,3,3,3], %b: f32[4], %g: f32[2,4,6,6], %lr: f32[]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f32[2,4,6,6]
  %1 = bias_add(%0, %b) : f32[2,4,6,6]
  %2 = relu(%1) : f32[2,4,6,6]
  %3 = le(%1, 0) : bool[2,4,6,6]
  %4 = where(%3, 0, %g) : f32[2,4,6,6]
  %5 = conv2d_weight_grad(%x, %4) {kernel_size=[3,3], padding=[1,1,1,1]} : f32[4,3,3,3]
  %6 = mul(%lr, %5) : f32[4,3,3,3]
  %7 = sub(%w, %6) : f32[4,3,3,3]
  return %2, %7, %x
})",
    R"(graph @small(%x: f32[4,8], %i: i64[4,1]) {
  %k = constant() {shape=[8], dtype=f32, data=[1,-2.5,3e-08,inf,nan,0,-0.0,7]} : f32[8]
  %0 = mul(%x, %k) : f32[4,8]
  %1 = softmax(%0) {dim=1} : f32[4,8]
  %2 = gather(%1, %i) {dim=1} : f32[4,1]
  return %2, %k
})",
};

std::vector<std::string> plan_texts() {
  std::vector<std::string> texts;
  for (const std::string_view graph : kGraphs) {
    for (const Rules rules : {Rules::all, Rules::none}) {
      const Target target = Target::parse("x86:avx2,l1=1k,l2=4k,l3=16k,tasks=3");
      texts.push_back(print(make_plan(ir::parse_graph(graph), {target, rules, {false, true}})));
    }
  }
  return texts;
}

// True if the text was accepted.
bool check(const std::string& text) {
  try {
    const Plan plan = parse_plan(text);
    const std::string printed = print(plan);
    EXPECT_EQ(print(parse_plan(printed)), printed);
    try {
      verify(plan);
    } catch (const InternalError&) {
      return false;  // how verify says no
    }
    return true;
  } catch (const UserError&) {
    return false;
  }
}

TEST(PlanFuzz, SeedsAreAccepted) {
  for (const std::string& text : plan_texts()) EXPECT_TRUE(check(text)) << text;
}

// Half of the damage is done to the plan itself, which is short beside its kernels.
TEST(PlanFuzz, DamagedPlans) {
  std::mt19937 random(51);
  const std::vector<std::string> texts = plan_texts();
  int accepted = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string& text = texts[static_cast<std::size_t>(i) % texts.size()];
    const std::size_t head = i % 8 < 4 ? text.find("\nkernel @") : text.size();
    const std::string damaged = mutated(text.substr(0, head), random) + text.substr(head);
    SCOPED_TRACE(damaged);
    accepted += check(damaged) ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(accepted, 10);
}

TEST(PlanFuzz, EveryPrefixOfAPlanWithoutKernels) {
  for (const std::string& text : plan_texts()) {
    const std::size_t head = text.find("\nkernel @");
    for (std::size_t length = 0; length < head; ++length) EXPECT_FALSE(check(text.substr(0, length)));
  }
}

TEST(PlanFuzz, LongTexts) {
  std::string text = "plan @p on \"" + Target{}.str() + "\" rules=all { arena 0 bound 0\n";
  constexpr int kValues = 100000;
  for (int v = 0; v < kValues; ++v) text += "value " + std::to_string(v) + " \"\": f32, 4 bytes, arena 0, unused\n";
  EXPECT_TRUE(check(text + "parameters return }"));
  EXPECT_FALSE(check(text + "parameters return 100000 }"));
  EXPECT_FALSE(check(text + "value 1"));
  EXPECT_FALSE(check(text + std::string(1 << 20, '(')));
}

}  // namespace
}  // namespace fusejit::scheduler
