// Kernels that need nothing of each other as one: the texts of both before, of one after; and what stays two.
#include "ir/kernel/join/beside.h"

#include <gtest/gtest.h>

#include "ir/kernel/join/phases.h"

namespace fusejit::ir {
namespace {

Kernel kernel_of_phases(const std::string& params, const std::string& body, const std::string& isa = "x86:avx2") {
  return parse_kernel("kernel @k(" + params + ") on " + isa + " { " + body + " }");
}
Kernel one_phase(const std::string& params, const std::string& body, const std::string& isa = "x86:avx2") {
  return kernel_of_phases(params, "phase { " + body + " }", isa);
}

// Rows, each a task: 4 images of 6.
const std::string kRowsOf = "%x: f32[24,8] read, %y: f32[24,8] write";
std::string rows(const std::string& rest = "") {
  return "for %n in 0..4 threads { for %p in 0..6 threads { prefetch %x[%n*6 + %p + 1, 0] l2 for %l in 0..8 vector { "
         "%a = load %x[%n*6 + %p, %l] : f32 %b = mul(%a, 2) : f32 store %y[%n*6 + %p, %l], %b } " +
         rest + "} }";
}
// Sums of an image's rows, in a task each, which are handed on.
const std::string kSumsParams = "%x: f32[24,8] read, %s: f32[4,8] write";
std::string sums(const std::string& loop = "%p in 0..6", const std::string& row = "%n*6 + %p") {
  return "for %n in 0..4 threads { local %t: f32[8] scratch for %l in 0..8 vector { store %t[%l], 0 } for " + loop +
         " { prefetch %x[" + row + " + 1, 0] l1 for %l in 0..8 vector { %a = load %x[" + row +
         ", %l] : f32 %o = load %t[%l] : f32 %b = add(%a, %o) : f32 store %t[%l], %b } } for %l in 0..8 vector { %o = "
         "load "
         "%t[%l] : f32 store %s[%n, %l], %o } }";
}

// Rows are rounds of the task then. What both read is fetched once.
TEST(Beside, RoundsOfBothAreOneLoop) {
  const auto joined = beside(one_phase(kRowsOf, rows()), one_phase(kSumsParams, sums()), {{0, -1}, {}});
  ASSERT_TRUE(joined);
  EXPECT_EQ(
      print(joined->kernel),
      print(one_phase(
          "%x: f32[24,8] read, %y: f32[24,8] write, %s: f32[4,8] write",
          "for %n in 0..4 threads { local %t: f32[8] scratch for %l in 0..8 vector { store %t[%l], 0 } for %p in 0..6 "
          "{ "
          "prefetch %x[%n*6 + %p + 1, 0] l2 for %l in 0..8 vector { %a = load %x[%n*6 + %p, %l] : f32 %b = mul(%a, 2) "
          ": f32 "
          "store %y[%n*6 + %p, %l], %b } for %l in 0..8 vector { %a = load %x[%n*6 + %p, %l] : f32 %o = load %t[%l] : "
          "f32 %b = add(%a, %o) : f32 store %t[%l], %b } } for %l in 0..8 vector { %o = load %t[%l] : f32 store %s[%n, "
          "%l], "
          "%o } }")));
  EXPECT_EQ(joined->first, (std::vector{0, 1}));
  EXPECT_EQ(joined->second, (std::vector{0, 2}));
  EXPECT_EQ(joined->rounds, 24);
}

// The other way round, and where one has two rows a round.
TEST(Beside, TheFirstMayBeTheOneThatAddsUp) {
  const auto joined =
      beside(one_phase(kSumsParams, sums("%p in 0..3", "%n*6 + %p*2")), one_phase(kRowsOf, rows()), {{0, -1}, {}});
  ASSERT_TRUE(joined);
  EXPECT_EQ(
      print(joined->kernel),
      print(one_phase(
          "%x: f32[24,8] read, %s: f32[4,8] write, %y: f32[24,8] write",
          "for %n in 0..4 threads { local %t: f32[8] scratch for %l in 0..8 vector { store %t[%l], 0 } for %p in 0..3 "
          "{ "
          "prefetch %x[%n*6 + %p*2 + 1, 0] l1 for %l in 0..8 vector { %a = load %x[%n*6 + %p*2, %l] : f32 %o = load "
          "%t[%l] : f32 %b = add(%a, %o) : f32 store %t[%l], %b } for %q in 0..2 { for %l in 0..8 vector { %a = load "
          "%x[%n*6 "
          "+ %p*2 + %q, %l] : f32 %b = mul(%a, 2) : f32 store %y[%n*6 + %p*2 + %q, %l], %b } } } for %l in 0..8 vector "
          "{ %o "
          "= load %t[%l] : f32 store %s[%n, %l], %o } }")));
  EXPECT_EQ(joined->rounds, 12);
}

// Loops that only one kernel shares out are serial, and tasks inside of rounds too.
TEST(Beside, TasksInsideOfRoundsAreLoops) {
  const auto joined =
      beside(one_phase(kRowsOf,
                       "for %n in 0..4 threads { for %p in 0..6 threads { for %h in 0..2 threads { for %l in "
                       "0..4 vector { %a = load %x[%n*6 + %p, %h*4 + %l] : f32 store %y[%n*6 + %p, %h*4 + "
                       "%l], %a } } } }"),
             one_phase(kSumsParams, sums()), {{0, -1}, {}});
  ASSERT_TRUE(joined);
  EXPECT_EQ(print(joined->kernel).find("threads"), print(joined->kernel).rfind("threads"));
}

// Each finishes in phases of its own, the first's before the second's; each keeps its work.
TEST(Beside, WhatFollowsFollows) {
  const auto finished = [](const std::string& result) {
    return "work %w: f32[4,8] phase { for %n in 0..4 threads { for %l in 0..8 vector { %a = load %x[%n*6, %l] : f32 "
           "store %w[%n, %l], %a } } } phase { for %n in 0..4 threads { for %l in 0..8 vector { %a = load %w[%n, %l] : "
           "f32 store %" +
           result + "[%n, %l], %a } } }";
  };
  const auto joined = beside(kernel_of_phases("%x: f32[24,8] read, %y: f32[4,8] write", finished("y")),
                             kernel_of_phases("%x: f32[24,8] read, %z: f32[4,8] write", finished("z")), {{0, -1}, {}});
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->kernel.works.size(), 2u);
  ASSERT_EQ(joined->kernel.phases.size(), 3u);
  const std::string text = print(joined->kernel);
  EXPECT_LT(text.find("store %p1["), text.find("store %p2["));
}

TEST(Beside, KernelsThatNeedEachOtherStayTwo) {
  EXPECT_FALSE(beside(one_phase(kRowsOf, rows()),
                      one_phase("%y: f32[24,8] read, %s: f32[4,8] write",
                                "for %n in 0..4 threads { for %l in 0..8 vector { %a = load "
                                "%y[%n*6, %l] : f32 store %s[%n, %l], %a } }"),
                      {{1, -1}, {}}));
  EXPECT_FALSE(beside(one_phase(kRowsOf, rows()),
                      one_phase("%x: f32[24,8] update",
                                "for %n in 0..4 threads { for %p in 0..6 { for %l in 0..8 vector { "
                                "%a = load %x[%n*6 + %p, %l] : f32 store %x[%n*6 + %p, %l], %a } } }"),
                      {{0}, {}}));
}

TEST(Beside, OtherLoopsStayTwo) {
  const Kernel first = one_phase(kRowsOf, rows());
  const auto with = [&](const std::string& body) { return beside(first, one_phase(kSumsParams, body), {{0, -1}, {}}); };
  EXPECT_FALSE(with("for %n in 0..5 threads { for %l in 0..8 vector { store %s[%n % 4, %l], 0 } }"));  // 4 of 5
  std::string no_tasks = sums();
  no_tasks.erase(no_tasks.find(" threads"), 8);
  EXPECT_FALSE(with(no_tasks));
  EXPECT_FALSE(beside(first, one_phase(kSumsParams, sums(), "x86:avx512"), {{0, -1}, {}}));
  EXPECT_TRUE(with(sums()));
}

// Two loops over what both read: a round of which would be another's?
TEST(Beside, OneLoopGoesOverWhatIsShared) {
  const auto loop = [](const std::string& to) {
    return "for %p in 0..6 { for %l in 0..8 vector { %a = load %x[%n*6 + %p, %l] : f32 store %" + to +
           "[%n*6 + %p, %l], %a } } ";
  };
  const Kernel twice = one_phase("%x: f32[24,8] read, %s: f32[24,8] write, %u: f32[24,8] write",
                                 "for %n in 0..4 threads { " + loop("s") + loop("u") + "}");
  const auto joined = beside(one_phase(kRowsOf, rows()), twice, {{0, -1, -1}, {}});
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->rounds, 4);  // an image after the other
}

// Inside of a task each keeps the order of its own loops: registers of the one hold nothing while the other runs.
TEST(Beside, SerialLoopsOfATaskStayApart) {
  const std::string tasks = "for %n in 0..4 threads { ";
  const auto joined = beside(one_phase(kRowsOf, tasks + "for %p in 0..6 { for %l in 0..8 vector { %a = load %x[%n*6 + "
                                                        "%p, %l] : f32 store %y[%n*6 + %p, %l], %a } } }"),
                             one_phase(kSumsParams, sums()), {{0, -1}, {}});
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->rounds, 4);
}

// Every second element of the result, and the others.
std::string halves(const std::string& half, const std::string& from) {
  return "phase { for %n in 0..4 threads { for %l in 0..8 vector { %a = load %x[%n, %l] : f32 store %y[%n*2 + " + half +
         ", %l], %a } } } " + from;
}

TEST(JoinPhases, OfTheSameTasksAreOne) {
  const std::string params = "%x: f32[4,8] read, %y: f32[8,8] write, %z: f32[4,8] write",
                    last =
                        "phase { for %n in 0..2 threads { for %l in 0..8 vector { %a = load %x[%n, %l] : f32 store "
                        "%z[%n, %l], %a } } }";
  const Kernel kernel = kernel_of_phases(params, halves("0", halves("1", last)));
  const Kernel joined = join_phases(kernel);
  EXPECT_EQ(print(joined),
            print(kernel_of_phases(
                params,
                "phase { for %n in 0..4 threads { for %l in 0..8 vector { %a = load %x[%n, %l] : f32 store "
                "%y[%n*2, %l], %a } for %l in 0..8 vector { %a = load %x[%n, %l] : f32 store %y[%n*2 + 1, "
                "%l], %a } } } " +
                    last)));
  verify(joined);
}

TEST(JoinPhases, ThatNeedEachOtherStayTwo) {
  const auto phases = [](const std::string& from, const std::string& to) {
    return kernel_of_phases(
        "%x: f32[4,8] read, %y: f32[4,8] write, %z: f32[4,8] update",
        "phase { for %n in 0..4 threads { for %l in 0..8 vector { %a = load %x[%n, %l] : f32 store %z[%n, "
        "%l], %a } } } phase { for %n in 0..4 threads { for %l in 0..8 vector { %a = load %" +
            from + "[3 - %n, %l] : f32 store %" + to + "[%n, %l], %a } } }");
  };
  EXPECT_EQ(join_phases(phases("z", "y")).phases.size(), 2u);
  EXPECT_EQ(join_phases(phases("x", "y")).phases.size(), 1u);
}

}  // namespace
}  // namespace fusejit::ir
