// Panels that the threads of a block share: which schedules are legal, and which one is chosen.
#include "scheduler/schedule/shared_panels.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/graph.h"
#include "ir/node.h"
#include "scheduler/choose/choose.h"

namespace fusejit::scheduler {
namespace {

const Target kDevice = Target::parse("cuda:sm_90");

ir::Contraction contraction_of(const char* op) {
  const ir::Graph graph = ir::parse_graph(std::string("graph @g(%x: f32[2,64,14,14]:nhwc, %w: f32[96,64,3,3]:nhwc, "
                                                      "%dy: f32[2,96,14,14]:nhwc, %v: f32[96,32,3,3]) {\n  %0 = ") +
                                          op + "\n  return %0\n}");
  return ir::contractions_of(*graph.results()[0]).at(0);
}

const ir::Contraction kForward = contraction_of("conv2d(%x, %w) {padding=[1,1,1,1]} : f32[2,96,14,14]:nhwc"),
                      kWeights = contraction_of(
                          "conv2d_weight_grad(%x, %dy) {kernel_size=[3,3], padding=[1,1,1,1]} : f32[96,64,3,3]:nhwc"),
                      kGroups = contraction_of("conv2d(%x, %v) {padding=[1,1,1,1], groups=2} : f32[2,96,14,14]:nhwc");

std::string said(const ir::Contraction& of, const std::string& text, bool sums = false) {
  return check(of, parse_schedule("schedule { " + text + " }"), kDevice, sums);
}

constexpr const char* kRows = "vector k 4 x 1 tile n*p*q 8 unroll c 16 ";
constexpr const char* kTasks = "task grid.y k/64, grid.x n*p*q/64, block.x k ";
constexpr const char* kInner = "inner block.y n*p*q stride 8, n*p*q, r, s, c ";
constexpr const char* kPanels = "panel a c, b c";

std::string with(const std::string& rows, const std::string& tasks, const std::string& inner, const std::string& rest) {
  return rows + tasks + inner + rest;
}

TEST(SharedPanels, AreLegalInTheirForms) {
  EXPECT_EQ(said(kForward, with(kRows, kTasks, kInner, kPanels), true), "");
  EXPECT_EQ(said(kForward, with(kRows, kTasks, kInner, "panel a c, b c pack b 64"), true), "");
  EXPECT_EQ(said(kForward, with(kRows, "task grid.y k/64, grid.x n*p*q/64, block.y n*p*q/8, block.x k ",
                                "inner s, r, c ", kPanels)),
            "")
      << "threads with neighbouring rows";
  EXPECT_EQ(said(kForward, with("vector k 4 x 1 tile n*p*q 8 unroll s*c 16 ", kTasks,
                                "inner block.y n*p*q stride 8, n*p*q, r, s*c ", kPanels)),
            "")
      << "terms of two dims";
  EXPECT_EQ(said(kWeights,
                 "vector k 4 x 1 tile r*s*c 8 unroll n*p*q 16 task grid.z n*p*q/112, grid.y k/64, grid.x "
                 "r*s*c/64, block.y r*s*c/8, block.x k inner n*p*q panel a q, b q combine r*s*c*k"),
            "")
      << "a sum that is cut";
  EXPECT_EQ(said(kGroups,
                 "vector k 4 x 1 tile n*p*q 8 unroll c 16 task grid.z g, grid.y k/48, grid.x n*p*q/64, "
                 "block.x k inner block.y n*p*q stride 8, n*p*q, r, s, c panel a c, b c",
                 true),
            "")
      << "groups";
}

TEST(SharedPanels, SayWhichRuleIsBroken) {
  const auto broken = [](const std::string& rows, const std::string& tasks, const std::string& inner,
                         const std::string& rest,
                         bool sums = false) { return said(kForward, with(rows, tasks, inner, rest), sums); };
  const std::string rows = kRows, tasks = kTasks, inner = kInner, panels = kPanels;
  EXPECT_EQ(broken(rows, tasks, inner, "panel a c"),
            "threads share panels of both operands, inside of the loop over c");
  EXPECT_EQ(broken(rows, tasks, inner, "panel a s, b s"),
            "threads share panels of both operands, inside of the loop over c");
  EXPECT_EQ(broken("vector k 4 x 1 tile p*q 8 unroll c 16 ", tasks, inner, panels),
            "rows are combinations of n*p*q, not of p*q");
  EXPECT_EQ(broken("vector k 4 x 1 tile n*p*q 8 ", tasks, inner, panels),
            "panels that threads share have one tile of rows, and one run of terms without a loop");
  EXPECT_EQ(broken(rows, "task grid.x n*p*q/64, grid.y k/64, block.x k ", inner, panels),
            "tasks are bound to z, y, x of the grid, y and x of the block");
  EXPECT_EQ(broken(rows, "task grid.y k/64, grid.x n*p*q/64 ", inner, panels),
            "grid.x has the rows and block.x the outputs, where threads share panels");
  EXPECT_EQ(broken(rows, "task grid.z s, grid.y k/64, grid.x n*p*q/64, block.x k ", inner, panels),
            "there is no place for the loop s of tasks");
  EXPECT_EQ(broken(rows, "task grid.y k/62, grid.x n*p*q/64, block.x k ", inner, panels),
            "blocks of k/62 are no whole vectors");
  EXPECT_EQ(broken(rows, "task grid.y k/128, grid.x n*p*q/64, block.x k ", inner, panels),
            "32 threads side by side, of which 24 would do for k");
  EXPECT_EQ(broken(rows, "task grid.y k/64, grid.x n*p*q/56, block.x k ", inner, panels),
            "8 threads of 8 rows each are not the 56 of a block");
  EXPECT_EQ(broken(rows, tasks, "inner block.y n*p*q stride 8, n*p*q, r, c ", panels), "no loop is over s");
  EXPECT_EQ(broken(rows, tasks, "inner block.y n*p*q stride 8, n*p*q, r, c, s ", panels),
            "the innermost loop is that over c");
  EXPECT_EQ(broken(rows, tasks, "inner block.y n*p*q stride 8, r, s, c ", panels),
            "threads that stride over rows hold what is left of them");
  EXPECT_EQ(
      broken(rows, "task grid.y k/64, grid.x n*p*q/64, block.y n*p*q/8, block.x k ", "inner r, s, c ", panels, true),
      "threads that add up results stride over rows");
  EXPECT_EQ(broken(rows, "task grid.y k/64, grid.x n*p*q/48, block.x k ",
                   "inner block.y n*p*q stride 6, n*p*q, r, s, c ", panels, true),
            "6 threads do not meet in a tree: only a power of two of them do");
  EXPECT_EQ(broken(rows, tasks, inner, "panel a c, b c pack b 48"), "blocks of 48 packed k are no whole blocks of 64");
  EXPECT_EQ(broken(rows, tasks, inner, "panel a c, b c fetch p 1"),
            "panels that threads share have neither 'flush', 'fetch', 'store stream', 'within', 'tiles' nor 'finish'");
  EXPECT_EQ(broken(rows, "task grid.z c/24, grid.y k/64, grid.x n*p*q/64, block.x k ", inner, panels),
            "parts of 24 are no whole panels of 16");
  EXPECT_EQ(broken(rows, "task grid.z c/32, grid.y k/64, grid.x n*p*q/64, block.x k ", inner, panels),
            "sums that are cut are combined");
  EXPECT_EQ(broken(rows, "task grid.z c/32, grid.y k/64, grid.x n*p*q/64, block.x k ", inner,
                   "panel a c, b c combine n*p*q*k", true),
            "an epilogue that sums up results needs whole ones");
  EXPECT_EQ(broken(rows, tasks, inner, "panel a c, b c combine n*p*q*k"), "no sum is cut, and none is combined");
  EXPECT_EQ(broken("vector k 4 x 1 tile n*p*q 8 unroll c 64 ", "task grid.y k/64, grid.x n*p*q/256, block.x k ",
                   "inner block.y n*p*q stride 32, n*p*q, r, s, c ", panels),
            "panels of 256 rows and 64 outputs, 64 terms each, are more than 49152 bytes");
  EXPECT_EQ(said(kGroups,
                 "vector k 4 x 1 tile n*p*q 8 unroll c 16 task grid.z g, grid.y k/32, grid.x n*p*q/64, block.x "
                 "k inner block.y n*p*q stride 8, n*p*q, r, s, c panel a c, b c"),
            "blocks of 32 k reach beyond the 48 of a group");
  EXPECT_EQ(said(kGroups,
                 "vector k 4 x 1 tile n*p*q 8 unroll c 16 task grid.y k/48, grid.x n*p*q/64, block.x k inner "
                 "block.y n*p*q stride 8, n*p*q, r, s, c panel a c, b c"),
            "grid.z has the g");
}

// Threads that share out rows otherwise, or cut a sum, add up in another order; packing changes none.
TEST(SharedPanels, SayInWhichOrderTheyAddUp) {
  const auto order = [](const std::string& text, bool sums) {
    return sum_order(kForward, parse_schedule("schedule { " + text + " }"), sums);
  };
  const std::string plain = with(kRows, kTasks, kInner, kPanels);
  EXPECT_EQ(order(plain, false), "terms r, s, c");
  EXPECT_EQ(order(plain, true), "terms r, s, c; results n*p*q/64 | n*p*q stride 8, n*p*q");
  EXPECT_EQ(order(plain + " pack b 64", true), order(plain, true));
  EXPECT_EQ(order(with("vector k 4 x 1 tile n*p*q 8 unroll c 8 ", kTasks, kInner, kPanels), false), "terms r, s, c");
}

std::string chosen(const ir::Contraction& of, const FusedWork& fused) {
  return print(candidates(of, kDevice, fused).front());
}

TEST(SharedPanels, AreChosenForWhatIsComputedAndForWhatKeepsADeviceBusy) {
  FusedWork fused{.computes_a = true, .lanes = 4};
  EXPECT_EQ(chosen(kForward, fused),
            "schedule { vector k 4 x 1 tile n*p*q 8 unroll c 16 registers 128 task grid.y k/64, grid.x n*p*q/16, "
            "block.x k inner block.y n*p*q stride 2, n*p*q, r, s, c panel a c, b c pack b 64 }");
  EXPECT_EQ(chosen(kWeights, fused),
            "schedule { vector k 4 x 1 tile r*s*c 8 unroll n*p*q 16 registers 128 task grid.z n*p*q/80, grid.y k/64, "
            "grid.x r*s*c/64, block.y r*s*c/8, block.x k inner n*p*q panel a q, b q combine r*s*c*k }");
  EXPECT_NE(chosen(kGroups, fused).find("task grid.z g, grid.x n*p*q/"), std::string::npos) << chosen(kGroups, fused);
  // Beside sums of an epilogue that reads four arrays a thread holds fewer rows: ptxas spilled.
  fused.sums = true, fused.elements_read = 4;
  EXPECT_NE(chosen(kForward, fused).find("tile n*p*q 5 "), std::string::npos) << chosen(kForward, fused);
  const ir::Contraction large = ir::contractions_of(
      *ir::parse_graph("graph @g(%x: f32[16,64,56,56]:nhwc, %w: f32[256,64,1,1]:nhwc) {\n  %0 = conv2d(%x, %w) : "
                       "f32[16,256,56,56]:nhwc\n  return %0\n}")
           .results()[0])[0];
  // Nor are there two vectors of eight lanes beside sums.
  EXPECT_NE(print(candidates(large, kDevice, {.sums = true, .lanes = 4}).front()).find("vector k 4 x 2"),
            std::string::npos);
  EXPECT_NE(print(candidates(large, kDevice, {.sums = true, .lanes = 8}).front()).find("vector k 8 x 1"),
            std::string::npos);
  // Few outputs are not worth a copy; where rows are few, threads hold fewer; where outputs are, a block has not all
  // rows.
  const auto of = [](int images, int channels, int outputs, int side) {
    const ir::Graph graph = ir::parse_graph(
        fmt::format("graph @g(%x: f32[{0},{1},{3},{3}]:nhwc, %w: f32[{2},{1},1,1]:nhwc) {{\n  %0 = conv2d(%x, %w) : "
                    "f32[{0},{2},{3},{3}]:nhwc\n  return %0\n}}",
                    images, channels, outputs, side));
    return ir::contractions_of(*graph.results()[0])[0];
  };
  const FusedWork computed{.computes_a = true, .lanes = 4};
  EXPECT_EQ(chosen(of(16, 64, 8, 56), computed).find("panel"), std::string::npos);
  EXPECT_NE(chosen(of(16, 64, 16, 112), computed).find("grid.x n*p*q/256, block.x k"), std::string::npos)
      << chosen(of(16, 64, 16, 112), computed);
  EXPECT_NE(chosen(of(1, 64, 64, 7), computed).find("tile p*q 8 "), std::string::npos)
      << chosen(of(1, 64, 64, 7), computed);
  // Weights that are computed are packed, and no reason for small blocks; a long chain goes to f64 elsewhere.
  EXPECT_EQ(chosen(of(1, 512, 512, 7), {.computes_b = true, .lanes = 4}).find("panel"), std::string::npos);
  EXPECT_EQ(chosen(of(16, 65536, 256, 7), {.lanes = 4}).find("panel"), std::string::npos);
  // Operands in memory are copied where that keeps a device busy; a library's call reads its own.
  EXPECT_EQ(chosen(kForward, {.lanes = 4}).find("panel"), std::string::npos);
  EXPECT_EQ(chosen(large, {.lanes = 4}),
            "schedule { vector k 4 x 2 tile n*p*q 8 unroll c 16 registers 128 task grid.y k/128, grid.x n*p*q/128, "
            "block.x k inner block.y n*p*q stride 16, n*p*q, c panel a c, b c pack b 128 }");
  EXPECT_EQ(chosen(kForward, {.computes_a = true, .lanes = 4, .library = true}).find("panel"), std::string::npos);
}

}  // namespace
}  // namespace fusejit::scheduler
