// Where a thread's tile of a convolution asks for the border of the image: graphs in, the copies of the tile's loops
// out.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "ir/kernel/walk.h"
#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

using CopiesOfTile = std::vector<std::string>;

// Loops over copies of the tile whose body loads, with "?" where a condition comes first; copies alone are such.
CopiesOfTile copies_of_tile(int in, const std::string& attrs, int out) {
  const Plan plan = make_plan(
      ir::parse_graph(fmt::format("graph @g(%x: f32[2,64,{2},{2}]:nhwc, %w: f32[64,1,3,3]) {{ "
                                  "%0 = conv2d(%x, %w) {{groups=64, {0}}} : f32[2,64,{1},{1}]:nhwc return %0 }}",
                                  attrs, out, in)),
      {Target::parse("cuda:sm_90"), Rules::all, {}});
  CopiesOfTile copies;
  for (const PlanStep& step : plan.steps) {
    for (const ir::Phase& phase : step.kernel->phases) {
      ir::for_each_stmt(phase.body, [&](const ir::Stmt& s) {
        const auto* loop = std::get_if<ir::ForStmt>(&s.node);
        if (loop == nullptr || loop->binding != ir::Binding::unroll || loop->body.statements.empty()) return;
        const auto& first = loop->body.statements[0].node;
        const bool asks = std::holds_alternative<ir::IfStmt>(first);
        if (!asks && !std::holds_alternative<ir::LoadStmt>(first)) return;
        copies.push_back(fmt::format("{}..{}{}", loop->low[0].constant(), loop->high[0].constant(), asks ? "?" : ""));
      });
    }
  }
  return copies;
}

// Of the copies in the middle all taps are inside, wherever the tile is; the others are no loop.
TEST(Border, IsAskedForByTheFirstAndTheLastOfATileAlone) {
  const CopiesOfTile copies = copies_of_tile(16, "padding=[1,1,1,1]", 16);
  EXPECT_EQ(std::count(copies.begin(), copies.end(), "1..7"), 1) << fmt::format("{}", fmt::join(copies, " "));
  for (const std::string& c : copies) EXPECT_NE(c.back(), '?') << c;
}

// A tile that ends beyond the image asks for each.
TEST(Border, IsAskedForByAllOfARaggedTile) {
  const CopiesOfTile copies = copies_of_tile(17, "padding=[1,1,1,1]", 17);
  EXPECT_EQ(std::count(copies.begin(), copies.end(), "0..6?"), 1) << fmt::format("{}", fmt::join(copies, " "));
}

TEST(Border, IsNotAskedForWithoutPadding) {
  for (const std::string& c : copies_of_tile(17, "stride=[2,2]", 8)) EXPECT_NE(c.back(), '?') << c;
}

}  // namespace
}  // namespace fusejit::scheduler
