// What lowering says of the registers of a thread on CUDA (docs/kernel-ir.md §4).
#include <gtest/gtest.h>

#include "ir/graph.h"
#include "ir/kernel/kernel.h"
#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

// Of the first phase of the last step.
int registers_of(const char* graph, const char* target = "cuda:sm_90") {
  const Plan plan = make_plan(ir::parse_graph(graph), {Target::parse(target), Rules::all, {}});
  return plan.steps.back().kernel->phases[0].registers;
}

constexpr const char* kStrided = R"(graph @g(%x: f32[8,64,28,28], %w: f32[64,64,3,3]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f32[8,64,28,28]
  return %0
})";

TEST(Registers, AreSaidForTiles) {
  EXPECT_EQ(registers_of(kStrided), 128);
  EXPECT_EQ(registers_of(kStrided, "x86:avx2"), 0);
}

// A contraction's tile has what its schedule says, also where that is nothing; the phase that combines parts has its
// own.
TEST(Registers, OfATileAreItsSchedules) {
  const char* const parts = R"(graph @g(%x: f32[2,64,14,14], %dy: f32[2,64,14,14]) {
  %0 = conv2d_weight_grad(%x, %dy) {kernel_size=[3,3], padding=[1,1,1,1]} : f32[64,64,3,3]
  return %0
})";
  PlanOptions options;
  options.target = Target::parse("cuda:sm_90");
  const auto phases = [&](std::int64_t registers) {
    options.reschedule.anchor = [=](const auto&, const auto& choice) {
      Schedule chosen = choice.chosen();
      if (registers >= 0) chosen.registers = registers;
      return chosen;
    };
    std::vector<int> said;
    const Plan plan = make_plan(ir::parse_graph(parts), options);
    for (const ir::Phase& phase : plan.steps.back().kernel->phases) said.push_back(phase.registers);
    return said;
  };
  const std::vector<int> chosen = phases(-1);
  ASSERT_EQ(chosen.size(), 2u);
  EXPECT_EQ(chosen[0], 128);
  EXPECT_EQ(phases(200), (std::vector<int>{200, chosen[1]}));
  EXPECT_EQ(phases(0), (std::vector<int>{0, chosen[1]}));
}

TEST(Registers, AreLeftToTheCompilerForShortElementWiseKernels) {
  EXPECT_EQ(registers_of("graph @g(%x: f32[64,1024]) { %0 = relu(%x) : f32[64,1024] return %0 }"), 0);
  // Two registers each: ptxas has spilled to save some.
  EXPECT_EQ(registers_of("graph @g(%x: f64[64,1024]) { %0 = relu(%x) : f64[64,1024] return %0 }"), 128);
}

// A multiprocessor has places for so few blocks that saving registers brings no more of them.
TEST(Registers, AreNotSavedInSmallBlocks) {
  EXPECT_EQ(registers_of("graph @g(%x: f32[64]) { %0 = relu(%x) : f32[64] return %0 }"), 96);
}

TEST(Registers, ArePartOfThePlansText) {
  const Plan plan = make_plan(ir::parse_graph(kStrided), {Target::parse("cuda:sm_90"), Rules::all, {}});
  const ir::Kernel& kernel = *plan.steps.back().kernel;
  const std::string text = ir::print(kernel);
  EXPECT_NE(text.find("phase registers 128 {"), std::string::npos) << text;
  EXPECT_EQ(ir::parse_kernel(text).phases[0].registers, 128);
}

}  // namespace
}  // namespace fusejit::scheduler
