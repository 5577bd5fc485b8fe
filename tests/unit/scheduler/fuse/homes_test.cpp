// Concatenations in place: where parts are stored in their memory, and where they cannot be.
#include "scheduler/fuse/homes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fusejit/error.h"
#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Plan plan_of(const std::string& lines, const std::string& result, PlanOptions options = {}) {
  options.target = Target::parse("x86:avx512,l2=1m,fma=2");
  return make_plan(
      ir::parse_graph(R"(graph @g(%x: f32[2,16,6,6]:nhwc, %w: f32[16,16,3,3], %v: f32[32,16,1,1], %t: f32[8,48,1,1],
    %r: f32[8,56,1,1], %s: f32[8,64,1,1]) {
)" + lines + "  return " +
                      result + "\n}"),
      options);
}

constexpr const char* kParts = R"(
  %p = conv2d(%x, %w) {padding=[1,1,1,1]} : f32[2,16,6,6]:nhwc
  %c = conv2d(%x, %v) : f32[2,32,6,6]:nhwc
  %q = relu(%c) : f32[2,32,6,6]:nhwc
)";
constexpr const char* kRead = R"(
  %d = concat(%p, %q) {dim=1} : f32[2,48,6,6]:nhwc
  %y = conv2d(%d, %t) : f32[2,8,6,6]:nhwc
)";

// "%q conv2d in %d concat from channel 16", of what lies in the memory of another value.
std::vector<std::string> inside(const Plan& plan) {
  std::vector<std::string> all;
  for (const PlanValue& value : plan.values) {
    if (value.inside < 0) continue;
    const PlanValue& around = plan.values[static_cast<std::size_t>(value.inside)];
    all.push_back(fmt::format("{} in {} from {}", value.label, around.label, (value.offset - around.offset) / 4));
  }
  return all;
}

bool copies(const Plan& plan) {
  return std::any_of(plan.steps.begin(), plan.steps.end(), [](const PlanStep& step) {
    return std::any_of(step.ops.begin(), step.ops.end(), [](const auto& op) { return op.ends_with(" concat"); });
  });
}

TEST(Homes, PartsAreStoredWhereTheWholeIs) {
  const Plan plan = plan_of(std::string(kParts) + kRead, "%y");
  EXPECT_THAT(inside(plan), ElementsAre("%0 conv2d in %3 concat from 0", "%2 maximum in %3 concat from 16"));
  EXPECT_FALSE(copies(plan)) << print_outline(plan);
  std::int64_t written = 0;  // packed weights, the parts, and the result: nothing twice
  for (const PlanStep& step : plan.steps) written += step.written_bytes;
  const std::int64_t pixels = 2 * 6 * 6, packed = 16 * 16 * 9 + 32 * 16 + 16 * 48;
  EXPECT_EQ(written, 4 * (packed + pixels * (16 + 32 + 8)));
}

TEST(Homes, AWholeIsAPartOfAnother) {
  const Plan plan = plan_of(std::string(kParts) + R"(
  %d = concat(%p, %q) {dim=1} : f32[2,48,6,6]:nhwc
  %i = relu(%d) : f32[2,48,6,6]:nhwc
  %e = conv2d(%i, %t) : f32[2,8,6,6]:nhwc
  %g = conv2d(%d, %t) : f32[2,8,6,6]:nhwc
  %f = concat(%e, %d, %g) {dim=1} : f32[2,64,6,6]:nhwc
  %y = conv2d(%f, %s) : f32[2,8,6,6]:nhwc
)",
                            "%y");
  EXPECT_THAT(inside(plan), ElementsAre("%0 conv2d in %7 concat from 8", "%2 maximum in %7 concat from 24",
                                        "%3 concat in %7 concat from 8", "%5 conv2d in %7 concat from 0",
                                        "%6 conv2d in %7 concat from 56"));
  EXPECT_FALSE(copies(plan)) << print_outline(plan);
}

// As lists of features are written: each layer's has one more.
TEST(Homes, AListThatBeginsWithAnotherIsItsWhole) {
  const Plan plan = plan_of(std::string(kParts) + R"(
  %d = concat(%p, %q) {dim=1} : f32[2,48,6,6]:nhwc
  %e = conv2d(%d, %t) : f32[2,8,6,6]:nhwc
  %h = concat(%p, %q, %e) {dim=1} : f32[2,56,6,6]:nhwc
  %g = conv2d(%h, %r) : f32[2,8,6,6]:nhwc
  %f = concat(%p, %q, %e, %g) {dim=1} : f32[2,64,6,6]:nhwc
  %y = conv2d(%f, %s) : f32[2,8,6,6]:nhwc
)",
                            "%y");
  EXPECT_THAT(inside(plan), ElementsAre("%0 conv2d in %7 concat from 0", "%2 maximum in %7 concat from 16",
                                        "%3 concat in %7 concat from 0", "%4 conv2d in %7 concat from 48",
                                        "%5 concat in %7 concat from 0", "%6 conv2d in %7 concat from 56"));
  EXPECT_FALSE(copies(plan)) << print_outline(plan);
}

// What reads the whole cannot run where a part of it is stored: the other parts are not there yet.
TEST(Homes, AKernelThatStoresAPartReadsNoWhole) {
  const Plan plan = plan_of(std::string(kParts) + kRead + R"(
  %l = slice(%d) {starts=[0,20,0,0], stops=[2,36,6,6], steps=[1,1,1,1]} : f32[2,16,6,6]:nhwc
  %m = mul(%p, %l) : f32[2,16,6,6]:nhwc
)",
                            "%y, %m");
  ASSERT_EQ(inside(plan).size(), 2u);
  int stores_first = -1, stores_second = -1, multiplies = -1;
  for (int s = 0; s < static_cast<int>(plan.steps.size()); ++s) {
    for (const std::string& op : plan.steps[static_cast<std::size_t>(s)].ops) {
      if (op == "%0 conv2d") stores_first = s;
      if (op == "%2 maximum") stores_second = s;
      if (op.ends_with(" mul")) multiplies = s;
    }
  }
  EXPECT_GT(multiplies, std::max(stores_first, stores_second)) << print_outline(plan);
}

// Arguments and results have memory of their own, and so does a part of two wholes, or one that is there twice.
TEST(Homes, WhatHasMemoryOfItsOwnIsCopied) {
  EXPECT_THAT(inside(plan_of(std::string(kParts) + kRead, "%y, %d")), IsEmpty()) << "a result";
  EXPECT_THAT(inside(plan_of(std::string(kParts) + kRead, "%y, %q")), IsEmpty()) << "a part is a result";
  const std::string argument = R"(
  %c = conv2d(%x, %v) : f32[2,32,6,6]:nhwc
  %d = concat(%x, %c) {dim=1} : f32[2,48,6,6]:nhwc
  %y = conv2d(%d, %t) : f32[2,8,6,6]:nhwc
)";
  EXPECT_THAT(inside(plan_of(argument, "%y")), IsEmpty()) << "a part is an argument";
  const std::string twice = R"(
  %c = conv2d(%x, %v) : f32[2,32,6,6]:nhwc
  %d = concat(%c, %c) {dim=1} : f32[2,64,6,6]:nhwc
  %y = conv2d(%d, %s) : f32[2,8,6,6]:nhwc
)";
  EXPECT_THAT(inside(plan_of(twice, "%y")), IsEmpty()) << "twice";
  const Plan two = plan_of(std::string(kParts) + kRead + R"(
  %e = concat(%q, %p) {dim=1} : f32[2,48,6,6]:nhwc
  %z = conv2d(%e, %t) : f32[2,8,6,6]:nhwc
)",
                           "%y, %z");
  EXPECT_THAT(inside(two), ElementsAre("%0 conv2d in %3 concat from 0", "%2 maximum in %3 concat from 16"));
  PlanOptions without;
  without.rules = Rules::all.without(Rule::epilogue);
  EXPECT_THAT(inside(plan_of(std::string(kParts) + kRead, "%y", without)), IsEmpty()) << "a rule of its own";
}

// What is only read where it is computed stays there: what is made of arguments, and read once.
TEST(Homes, NothingIsStoredForThem) {
  const Plan plan = plan_of(R"(
  %a = relu(%x) : f32[2,16,6,6]:nhwc
  %b = square(%x) : f32[2,16,6,6]:nhwc
  %d = concat(%a, %b) {dim=1} : f32[2,32,6,6]:nhwc
  %y = exp(%d) : f32[2,32,6,6]:nhwc
)",
                            "%y");
  EXPECT_THAT(inside(plan), IsEmpty());
  EXPECT_EQ(plan.steps.size(), 1u);
}

TEST(Homes, APlanThatReadsThemTooEarlyIsRefused) {
  Plan plan = plan_of(std::string(kParts) + kRead, "%y");
  verify(plan);
  EXPECT_EQ(print(parse_plan(print(plan))), print(plan));
  for (PlanValue& value : plan.values)
    if (value.inside >= 0) value.offset += plan.arena_bytes;
  EXPECT_THROW(verify(plan), InternalError);
}

}  // namespace
}  // namespace fusejit::scheduler
