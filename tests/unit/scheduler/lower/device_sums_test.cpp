// How sums are shared out to the blocks and threads of a device, and the loops of parts that are not equal.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/kernel/walk.h"
#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

std::vector<PlanStep> steps_of(const std::string& graph) {
  return make_plan(ir::parse_graph(graph), {Target::parse("cuda:sm_90"), Rules::all, {}}).steps;
}
std::string first_schedule(const std::string& graph) { return print(steps_of(graph)[0].schedules[0].schedule); }

std::string column_sums(int rows, int columns, const char* type) {
  return fmt::format("graph @g(%x: {2}[{0},{1}]) {{ %0 = sum(%x) {{dim=[0]}} : {2}[{1}] return %0 }}", rows, columns,
                     type);
}

TEST(DeviceSums, OfColumnsFillMultiprocessorsEvenly) {
  EXPECT_EQ(first_schedule(column_sums(200704, 256, "bf16")),
            "schedule { vector j 8 x 1 task grid.y i/392, grid.x j/256, block.x j inner block.y i stride 8, i }")
      << "512 equal blocks are nearly 528";
  EXPECT_EQ(first_schedule(column_sums(12544, 1024, "bf16")),
            "schedule { vector j 8 x 1 task grid.y i/96, grid.x j/256, block.x j inner block.y i stride 8, i }")
      << "524 blocks, the equal ones were 448";
}

TEST(DeviceSums, OfShortColumnsHaveEightStepsAThread) {
  EXPECT_NE(first_schedule(column_sums(3136, 512, "f32")).find("/64,"), std::string::npos);
}

// Four blocks would not fit beside each other, and half as many lanes leave more threads.
TEST(DeviceSums, OfMomentsHaveFewerBlocksAndFourLanes) {
  const std::string text = first_schedule(
      "graph @g(%x: bf16[64,256,56,56]:nhwc, %w: bf16[256], %b: bf16[256]) { %0 = batch_norm_train(%x, %w, %b) : "
      "bf16[64,256,56,56]:nhwc return %0 }");
  EXPECT_EQ(
      text,
      "schedule { vector c 4 x 1 task grid.y nhw/1024, grid.x c/128, block.x c inner block.y nhw stride 8, nhw }");
}

TEST(DeviceSums, OfManyRowsWithoutVectorsKeepLoadsInFlight) {
  const auto rows = [](int count, int length) {
    return first_schedule(
        fmt::format("graph @g(%x: f16[{0},{1}]) {{ %0 = sum(%x) {{dim=[1]}} : f16[{0}] return %0 }}", count, length));
  };
  EXPECT_EQ(rows(4096, 1003), "schedule { vector j 1 x 1 task grid.x i inner block.x j stride 64, j }");
  EXPECT_EQ(rows(100, 1003), "schedule { vector j 1 x 1 task grid.x i inner block.x j stride 256, j }");
}

TEST(DeviceSums, OfEverythingHaveMoreBlocksWhereThreadsStillHaveSteps) {
  const auto parts = [](std::int64_t elements) {
    const std::string graph =
        fmt::format("graph @g(%x: f16[{0}]) {{ %0 = sum(%x) {{dim=[0]}} : f16[] return %0 }}", elements);
    return steps_of(graph)[0].kernel->memories[static_cast<std::size_t>(steps_of(graph)[0].kernel->works[0])].dims[0];
  };
  EXPECT_EQ(parts(std::int64_t{1} << 25), 512);
  EXPECT_EQ(parts(std::int64_t{1} << 27), 2048);
}

// 65464 turns of 32 rows are no multiple of what fits: all blocks but the last one have whole rounds, and that one has
// a test in its last round alone.
TEST(DeviceSums, OfUnequalPartsTestTheirLastRoundAlone) {
  const PlanStep step = steps_of(column_sums(2094848 + 5, 64, "f32"))[0];
  ir::verify(*step.kernel);
  int tests = 0, loops = 0;
  const auto count = [&](const ir::Block& body) {
    ir::for_each_stmt(body, [&](const ir::Stmt& s) {
      tests += std::holds_alternative<ir::IfStmt>(s.node) ? 1 : 0;
      const auto* loop = std::get_if<ir::ForStmt>(&s.node);
      if (loop == nullptr || loop->binding != ir::Binding::none) return;
      ++loops;
      ir::for_each_stmt(loop->body, [](const ir::Stmt& inner) {
        EXPECT_FALSE(std::holds_alternative<ir::IfStmt>(inner.node)) << "a test in every round";
      });
    });
  };
  count(step.kernel->phases[0].body);
  EXPECT_EQ(tests, 3) << "all parts but the last, the last, its last round";
  EXPECT_EQ(loops, 2);
}

}  // namespace
}  // namespace fusejit::scheduler
