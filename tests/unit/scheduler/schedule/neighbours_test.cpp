// What tuning tries around a schedule.
#include "scheduler/choose/neighbours.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/node.h"
#include "scheduler/choose/choose.h"

namespace fusejit::scheduler {
namespace {

const Target kNeighboursTarget = Target::parse("x86:avx512,l1=48k,l2=1m,l3=32m,fma=2,tasks=64");

ir::Contraction contraction(ir::Op op, const Shape& a, const Shape& b, std::vector<ir::AttrInit> attrs) {
  return ir::contractions_of(
             *ir::build(op, {ir::parameter({DType::f32, a}), ir::parameter({DType::f32, b})}, std::move(attrs)))
      .at(0);
}
const std::vector<std::int64_t> kOne{1, 1, 1, 1}, kThree{3, 3};
const ir::Contraction kConvolution =
    contraction(ir::Op::conv2d, {16, 64, 28, 28}, {128, 64, 3, 3}, {{"padding", kOne}});
const ir::Contraction kWeightGrad = contraction(ir::Op::conv2d_weight_grad, {16, 64, 28, 28}, {16, 128, 28, 28},
                                                {{"kernel_size", kThree}, {"padding", kOne}});

bool has(const std::vector<Schedule>& list, const std::string& schedule) {
  return std::find(list.begin(), list.end(), parse_schedule(schedule)) != list.end();
}
std::string all(const std::vector<Schedule>& list) {
  std::string text;
  for (const Schedule& one : list) text += print(one) + "\n";
  return text;
}

TEST(Neighbours, DifferInOneThing) {
  const Schedule of = parse_schedule(
      "schedule { vector k 16 x 2 tile q 14 unroll c 4 task n, p/4 outer k inner p, q, r, s, c pack b 32 }");
  const std::vector<Schedule> list = neighbours(kConvolution, of, kNeighboursTarget, false);
  for (const char* one : {
           "schedule { vector k 16 x 2 tile q 10 unroll c 4 task n, p/4 outer k inner p, q, r, s, c pack b 32 }",
           "schedule { vector k 16 x 2 tile q 7 unroll c 4 task n, p/4 outer k inner p, q, r, s, c pack b 32 }",
           "schedule { vector k 16 x 2 tile q 14 unroll c 4 task n, p/8 outer k inner p, q, r, s, c pack b 32 }",
           "schedule { vector k 16 x 2 tile q 14 unroll c 4 task n, p/2 outer k inner p, q, r, s, c pack b 32 }",
           "schedule { vector k 16 x 4 tile q 6 unroll c 4 task n, p/4 outer k inner p, q, r, s, c pack b 64 }",
           "schedule { vector k 16 x 2 tile q 14 unroll c 8 task n, p/4 outer k inner p, q, r, s, c pack b 32 }",
           "schedule { vector k 16 x 2 tile q 14 unroll c 4 task n, p/4 outer k inner p, q, r, s, c pack b 32 "
           "fetch p 1 }",
           "schedule { vector k 16 x 2 tile q 14 unroll c 4 task n, p/4 outer k inner p, q, r, s, c panel a task "
           "pack b 32 }",
           "schedule { vector k 16 x 2 tile q 14 unroll c 4 task n, p/4, k inner p, q, r, s, c pack b 32 }",
           "schedule { vector k 16 x 2 tile q 14 unroll c 4 task p/4, n outer k inner p, q, r, s, c pack b 32 }",
           "schedule { vector k 16 x 2 tile q 14 unroll c 4 task n, p/4 outer k inner p, q, r, s, c pack b 32 "
           "store stream }",
       })
    EXPECT_TRUE(has(list, one)) << one << " is not among\n" << all(list);
}

TEST(Neighbours, AreLegalAndNeverTheSame) {
  for (const ir::Contraction& c : {kConvolution, kWeightGrad}) {
    for (const bool sums : {false, true}) {
      if (sums && !c.b.weights) continue;
      FusedWork fused;
      fused.sums = sums;
      const Schedule chosen = candidates(c, kNeighboursTarget, fused).front();
      const std::vector<Schedule> list = neighbours(c, chosen, kNeighboursTarget, sums);
      EXPECT_GE(list.size(), 8u) << all(list);
      for (const Schedule& one : list) {
        EXPECT_EQ(check(c, one, kNeighboursTarget, sums), "") << print(one);
        EXPECT_NE(one, chosen);
        EXPECT_EQ(std::count(list.begin(), list.end(), one), 1) << print(one);
      }
    }
  }
}

// What a panel computes would be computed again for every block of outputs.
TEST(Neighbours, LeavePanelsWhereTheyAre) {
  FusedWork fused;
  fused.computes_a = true;
  const Schedule chosen = candidates(kConvolution, kNeighboursTarget, fused).front();
  ASSERT_EQ(chosen.panel_a, Schedule::kTask);
  for (const Schedule& one : neighbours(kConvolution, chosen, kNeighboursTarget, false))
    EXPECT_EQ(one.panel_a, Schedule::kTask) << print(one);
}

// What a task's rows are decides in what order an epilogue's sums are added up, and how far a sum is unrolled decides
// nothing.
TEST(Neighbours, OfTheSameOrderHaveTheSameBits) {
  const Schedule of = parse_schedule(
      "schedule { vector k 16 x 2 tile q 14 unroll c 4 task n, p/4 outer k inner p, q, r, s, c pack b 32 }");
  const std::vector<Schedule> list = neighbours(kConvolution, of, kNeighboursTarget, true),
                              same = of_same_order(list, kConvolution, of, true);
  const char *const
      rows = "schedule { vector k 16 x 2 tile q 14 unroll c 4 task n, p/2 outer k inner p, q, r, s, c pack b 32 }",
      *const terms =
          "schedule { vector k 16 x 2 tile q 14 unroll c 8 task n, p/4 outer k inner p, q, r, s, c pack b 32 }";
  EXPECT_TRUE(has(list, rows) && has(list, terms)) << all(list);
  EXPECT_FALSE(has(same, rows)) << all(same);
  EXPECT_TRUE(has(same, terms)) << all(same);
  EXPECT_TRUE(has(of_same_order(list, kConvolution, of, false), rows)) << "without sums in the epilogue";
}

// The distance of a fetch is the block that it runs ahead by.
TEST(Neighbours, MoveAFetchWithItsBlock) {
  const Schedule of = parse_schedule(
      "schedule { vector k 16 x 2 tile c 13 task n/2, k outer n, p/4, r, s, c inner p, q panel b p combine c*r*s "
      "fetch p 4 }");
  EXPECT_TRUE(has(neighbours(kWeightGrad, of, kNeighboursTarget, false),
                  "schedule { vector k 16 x 2 tile c 13 task n/2, k outer n, p/2, r, s, c inner p, q panel b p combine "
                  "c*r*s fetch p 2 }"));
}

TEST(Neighbours, OfADomainAreLegal) {
  Domain domain;
  domain.axes = {{"nhw", 50176, false}, {"c", 64, false}};
  const Schedule chosen = candidates(domain, kNeighboursTarget, {16, 0}).front();
  const std::vector<Schedule> list = neighbours(domain, chosen, kNeighboursTarget);
  EXPECT_GE(list.size(), 3u);
  for (const Schedule& one : list) EXPECT_EQ(check(domain, one, kNeighboursTarget), "") << print(one);
}

}  // namespace
}  // namespace fusejit::scheduler
