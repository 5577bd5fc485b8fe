// Two kernels as one: the texts of both before, of one after; and what stays two.
#include "ir/kernel/join/join.h"

#include <gtest/gtest.h>

namespace fusejit::ir {
namespace {

Kernel kernel_of(const std::string& params, const std::string& body, const std::string& isa = "x86:avx2") {
  return parse_kernel("kernel @k(" + params + ") on " + isa + " { phase { " + body + " } }");
}

const char* const kSums =
    "for %t in 0..4 threads { for %r in 0..8 { %s = for %l in 0..8 vector reduce add : f32 { %a = load %x[%t*8 + %r, "
    "%l] "
    ": f32 yield %a } store %m[%t*8 + %r], %s } }";
const char* const kSumsOf = "%x: f32[32,8] read, %m: f32[32] write";
const char* const kApply =
    "for %t in 0..4 threads { for %r in 0..8 { for %l in 0..8 vector { %a = load %x[%t*8 + %r, %l] : f32 %b = load "
    "%m[%t*8 + %r] : f32 %c = sub(%a, %b) : f32 store %y[%t*8 + %r, %l], %c } } }";
const char* const kApplyOf = "%x: f32[32,8] read, %m: f32[32] read, %y: f32[32,8] write";

TEST(Join, HandsOverWhatARoundStores) {
  const auto joined = join(kernel_of(kSumsOf, kSums), kernel_of(kApplyOf, kApply), {{0, 1, -1}, {false, true}});
  ASSERT_TRUE(joined);
  EXPECT_EQ(
      print(joined->kernel),
      print(kernel_of("%x: f32[32,8] read, %y: f32[32,8] write",
                      "for %t in 0..4 threads { for %r in 0..8 { %s = for %l in 0..8 vector reduce add : f32 { %a "
                      "= load %x[%t*8 + %r, %l] : f32 yield %a } for %l in 0..8 vector { %a = load %x[%t*8 + %r, "
                      "%l] : f32 %c = sub(%a, %s) : f32 store %y[%t*8 + %r, %l], %c } } }")));
  EXPECT_EQ(joined->first, (std::vector{0, -1}));
  EXPECT_EQ(joined->second, (std::vector{0, -1, 1}));
  EXPECT_EQ(joined->rounds, 32);
}

TEST(Join, StoresWhatOthersRead) {
  const auto joined = join(kernel_of(kSumsOf, kSums), kernel_of(kApplyOf, kApply), {{0, 1, -1}, {false, false}});
  ASSERT_TRUE(joined);
  EXPECT_EQ(
      print(joined->kernel),
      print(kernel_of("%x: f32[32,8] read, %m: f32[32] write, %y: f32[32,8] write",
                      "for %t in 0..4 threads { for %r in 0..8 { %s = for %l in 0..8 vector reduce add : f32 { %a "
                      "= load %x[%t*8 + %r, %l] : f32 yield %a } store %m[%t*8 + %r], %s for %l in 0..8 vector { "
                      "%a = load %x[%t*8 + %r, %l] : f32 %c = sub(%a, %s) : f32 store %y[%t*8 + %r, %l], %c } } "
                      "}")));
  EXPECT_EQ(joined->first, (std::vector{0, 1}));
  EXPECT_EQ(joined->second, (std::vector{0, 1, 2}));
}

// The second declares 32 elements as 4 of 8, the first as one dim; and updates what the first reads.
TEST(Join, SeesThroughDeclarationsAndUpdates) {
  const std::string apply =
      "for %t in 0..4 threads { for %r in 0..8 { for %l in 0..8 vector { %a = load %x[%t, %r, %l] : f32 %b = load "
      "%m[%t, 0, %r] : f32 %c = sub(%a, %b) : f32 store %x[%t, %r, %l], %c } } }";
  const auto joined = join(kernel_of(kSumsOf, kSums), kernel_of("%x: f32[4,8,8] update, %m: f32[4,1,8] read", apply),
                           {{0, 1}, {false, true}});
  ASSERT_TRUE(joined);
  EXPECT_EQ(
      print(joined->kernel),
      print(kernel_of("%x: f32[32,8] update",
                      "for %t in 0..4 threads { for %r in 0..8 { %s = for %l in 0..8 vector reduce add : f32 { %a "
                      "= load %x[%t*8 + %r, %l] : f32 yield %a } for %l in 0..8 vector { %a = load %x[%t*8 + %r, "
                      "%l] : f32 %c = sub(%a, %s) : f32 store %x[%t*8 + %r, %l], %c } } }")));
}

// What lanes store, lanes load: a round's part of it is scratch.
TEST(Join, KeepsARoundsPartAsScratch) {
  const Kernel twice =
      kernel_of("%x: f32[32,8] read, %e: f32[32,8] write",
                "for %t in 0..4 threads { for %r in 0..8 { for %l in 0..8 vector { %a = load %x[%t*8 + "
                "%r, %l] : f32 %b = add(%a, %a) : f32 store %e[%t*8 + %r, %l], %b } } }");
  const Kernel sums = kernel_of("%e: f32[32,8] read, %m: f32[32] write",
                                "for %t in 0..4 threads { for %r in 0..8 { %s = for %l in 0..8 reduce add : f32 { %a = "
                                "load %e[%t*8 + %r, -%l + 7] : f32 yield %a } store %m[%t*8 + %r], %s } }");
  const auto joined = join(twice, sums, {{1, -1}, {false, true}});
  ASSERT_TRUE(joined);
  EXPECT_EQ(print(joined->kernel),
            print(kernel_of("%x: f32[32,8] read, %m: f32[32] write",
                            "for %t in 0..4 threads { for %r in 0..8 { local %e: f32[8] scratch for %l in 0..8 vector "
                            "{ %a = load %x[%t*8 + %r, %l] : f32 %b = add(%a, %a) : f32 store %e[%l], %b } %s = for "
                            "%l in 0..8 reduce add : f32 { %a = load %e[-%l + 7] : f32 yield %a } store %m[%t*8 + "
                            "%r], %s } }")));
}

TEST(Join, RefusesRoundsThatMeetAndLoopsThatDiffer) {
  const Kernel sums = kernel_of(kSumsOf, kSums);
  const auto stay_two = [&](const std::string& params, const std::string& body, const std::string& isa = "x86:avx2") {
    EXPECT_FALSE(join(sums, kernel_of(params, body, isa), {{0, 1, -1}, {false, true}})) << body;
  };
  std::string other_row = kApply;  // the sum of the row before, which another task may have
  other_row.replace(other_row.find("%m[%t*8 + %r]"), 13, "%m[-%t*8 - %r + 31]");
  stay_two(kApplyOf, other_row);
  // The same task, but a round that is still to come.
  stay_two(kApplyOf,
           "for %t in 0..4 threads { for %r in 0..8 { for %l in 0..8 vector { %a = load %x[%t*8 + %r, %l] : f32 %b = "
           "load %m[%t*8 - %r + 7] : f32 %c = sub(%a, %b) : f32 store %y[%t*8 + %r, %l], %c } } }");
  std::string other_tasks = kApply;
  other_tasks.replace(other_tasks.find("0..4 threads"), 12, "0..2 threads");
  stay_two(kApplyOf, other_tasks);
  stay_two(kApplyOf, kApply, "x86:avx512");
  stay_two(kApplyOf, std::string("for %i in 0..32 { store %y[%i, 0], 0 } } phase { ") + kApply);
}

// 32 rows in 4 tasks of 8, and 2 images of 16 rows each in 2 tasks: 2 by 2 tasks of 8 rows.
TEST(Join, SplitsLoopsThatGoOverAsMuch) {
  const std::string apply =
      "for %n in 0..2 threads { for %t in 0..2 threads { for %r in 0..8 { for %l in 0..8 vector { %a = load %x[%n, "
      "%t*8 + "
      "%r, %l] : f32 %b = load %m[%n, %t*8 + %r] : f32 %c = sub(%a, %b) : f32 store %y[%n, %t*8 + %r, %l], %c } } } }";
  const Kernel second = kernel_of("%x: f32[2,16,8] read, %m: f32[2,16] read, %y: f32[2,16,8] write", apply);
  const auto joined = join(kernel_of(kSumsOf, kSums), second, {{0, 1, -1}, {false, true}});
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->rounds, 32);
  EXPECT_EQ(
      print(joined->kernel),
      print(kernel_of("%x: f32[32,8] read, %y: f32[2,16,8] write",
                      "for %n in 0..2 threads { for %t in 0..2 threads { for %r in 0..8 { %s = for %l in 0..8 "
                      "vector reduce add : f32 { %a = load %x[%n*16 + %t*8 + %r, %l] : f32 yield %a } for %l in "
                      "0..8 vector { %a = load %x[%n*16 + %t*8 + %r, %l] : f32 %c = sub(%a, %s) : f32 store %y[%n, "
                      "%t*8 + %r, %l], %c } } } }")));
}

// All of the tasks' loops are shared, not all of the rows': rounds are tasks then.
TEST(Join, JoinsTasksWhereRowsDiffer) {
  const auto joined =
      join(kernel_of(kSumsOf, kSums),
           kernel_of(kApplyOf,
                     "for %t in 0..4 threads { for %l in 0..8 vector { for %r in 0..8 { %a = load %x[%t*8 + %r, %l] : "
                     "f32 %b = load %m[%t*8 + %r] : f32 %c = sub(%a, %b) : f32 store %y[%t*8 + %r, %l], %c } } }"),
           {{0, 1, -1}, {false, true}});
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->rounds, 4);
  EXPECT_NE(print(joined->kernel).find("local %l0: f32[8] scratch"), std::string::npos) << print(joined->kernel);
}

}  // namespace
}  // namespace fusejit::ir
