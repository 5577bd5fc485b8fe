// The order of sums, read off a schedule: what changes it and what does not.
#include <gtest/gtest.h>

#include "scheduler/schedule/schedule.h"

namespace fusejit::scheduler {
namespace {

// out[n, k, p, q] += a[n, c, p + r, q + s] * b[k, c, r, s]
ir::Contraction convolution() {
  ir::Contraction c;
  c.dims = {{"n", 4, false}, {"p", 6, false}, {"q", 10, false}, {"k", 32, false},
            {"r", 3, true},  {"s", 2, true},  {"c", 64, true}};
  const auto of = [](int d) { return ir::DimSum{{{d, 1}}, 0}; };
  const auto window = [](int d, int tap) { return ir::DimSum{{{d, 1}, {tap, 1}}, 0}; };
  c.a = {0, {of(0), of(6), window(1, 4), window(2, 5)}, {4, 64, 8, 11}, false};
  c.b = {1, {of(3), of(6), of(4), of(5)}, {32, 64, 3, 2}, true};
  c.result = {of(0), of(3), of(1), of(2)};
  return c;
}

struct Case {
  const char* schedule;
  const char* order;
};

TEST(SumOrder, IsTheOneOfTheLoops) {
  const Case cases[] = {
      {"vector k 16 x 2 task n, p outer k inner q, r, s, c", "terms r, s, c"},
      // Parallel loops, tiles, vectors, packing and hints change nothing; nor do blocks of a dim one after the other
      // ...
      {"vector k 8 x 1 tile q 5 task n*p, q outer k/16, k inner r, s, c pack b 32 fetch p 1", "terms r, s, c"},
      {"vector k 16 x 2 tile p 2 unroll c 4 task n outer k inner p, q, r, s, c/16, c", "terms r, s, c"},
      {"vector k 16 x 2 unroll s 2, c 4 task n, p outer k inner q, r, s*c", "terms r, c/4, s, c"},
      {"vector k 16 x 2 task n, p outer k inner q, r*s*c", "terms r, s, c"},
      {"vector k 16 x 2 unroll s 2 within task n, p outer k inner q, r, c/64, c", "terms r, c, s"},
      {"vector k 16 x 2 task n, p, c/64 outer k inner q, r, s, c combine k", "terms r, s, c"},
      // ... and what passes memory as it is.
      {"vector k 16 x 2 task n, p outer r, s, k inner q, c combine k", "terms r, s, c"},
      // Loops in another order, terms that stand inside of another loop, and parts, do.
      {"vector k 16 x 2 task n, p outer k inner q, c, r, s", "terms c, r, s"},
      {"vector k 16 x 2 unroll r 3, c 4 task n, p outer k inner q, s, c", "terms s, c/4, r, c"},
      {"vector k 16 x 2 unroll r 2 task n, p outer k inner q, r, s, c", "terms r/2, s, c, r"},
      {"vector k 16 x 2 task n, p, c/16 outer k inner q, r, s, c combine k", "terms c/16 | r, s, c"},
      {"vector k 16 x 2 task n, r, c/16 outer k inner p, q, s, c combine k", "terms r, c/16 | s, c"},
      {"vector k 16 x 2 unroll c 4 task n, s*c/6 outer k inner p, q, r, s*c combine k",
       "terms (s*c/4)/6 | r, (s*c/4), c"},
      // Where sums go to f64 nothing is taken together.
      {"vector k 16 x 2 unroll c 4 task n, p outer k inner q, r, s, c flush c 32",
       "terms | | r, s, c/4, c flush c 32, c 4"},
      {"vector k 16 x 2 task n, p outer r, k inner q, s, c combine k flush c 32", "terms | r | s, c flush c 32"},
      // Threads meet in a tree.
      {"vector k 4 x 1 task grid.z r*s/4, grid.x n, block.x k inner p, q, block.y c stride 8, c, r*s combine n*p*q*k",
       "terms r*s/4 | c stride 8, c, r*s"},
  };
  for (const Case& c : cases) {
    const Schedule schedule = parse_schedule("schedule { " + std::string(c.schedule) + " }");
    EXPECT_EQ(sum_order(convolution(), schedule, false), c.order) << c.schedule;
  }
}

TEST(SumOrder, OfResultsIsTheOneOfPartsLoopsAndTiles) {
  const Case cases[] = {
      {"vector k 16 x 2 task n outer k inner p, q, r, s, c", "terms r, s, c; results n | p, q"},
      {"vector k 16 x 2 tile q 5 task n outer p, k inner q, r, s, c", "terms r, s, c; results n, p | q"},
      {"vector k 16 x 2 tile p 2, q 5 task n outer k inner q, p, r, s, c", "terms r, s, c; results n | q/5, p, q"},
      {"vector k 16 x 1 tile p*q 7 task n outer k inner p*q, r, s, c", "terms r, s, c; results n | p, q"},
      {"vector k 4 x 1 tile q 5 task grid.x n*p*q/6, block.x k inner block.y n*p*q stride 2, n*p*q, r, s, c",
       "terms r, s, c; results (n*p*q/5)/6 | (n*p*q/5) stride 2, (n*p*q/5), q"},
  };
  for (const Case& c : cases) {
    const Schedule schedule = parse_schedule("schedule { " + std::string(c.schedule) + " }");
    EXPECT_EQ(sum_order(convolution(), schedule, true), c.order) << c.schedule;
  }
}

}  // namespace
}  // namespace fusejit::scheduler
