// The fusion log: what stands in a line, and bytes counted by hand. The lines of whole models:
// unit/tools/dump/fusions_test.py.
#include "scheduler/report/fusions.h"

#include <gtest/gtest.h>

#include "ir/passes/grad.h"
#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

using ir::Op;
using ir::Value;

std::vector<std::string> lines_of(const ir::Graph& graph, const char* target = "x86:avx2", Rules rules = Rules::all) {
  const Fusions fusions = fusions_of(make_plan(graph, {Target::parse(target), rules, {}}), graph);
  std::vector<std::string> lines;
  for (const Fusion& fusion : fusions.list) lines.push_back(line_of(fusion));
  lines.push_back(summary_of(fusions));
  return lines;
}

using Lines = std::vector<std::string>;

Value in(const char* module, Op op, std::vector<ir::Operand> operands) {
  const ir::OriginScope scope(ir::Origin{module});
  return ir::build(op, std::move(operands));
}

TEST(Fusions, ALineSaysTheLayersAndWhatTheirOpsAre) {
  const Value x = ir::parameter({f32, {64, 32}}, "x"), w = ir::parameter({f32, {32, 32}}, "w"),
              b = ir::parameter({f32, {32}}, "b");
  const Value product = in("layer1.0.fc1", Op::linear, {x, w});
  const Value biased = in("layer1.0.fc1", Op::bias_add, {product, b});
  const Value sum = in("layer1.0", Op::add, {biased, x});
  const Value y = in("layer1.0.my relu=,", Op::relu, {sum});
  const ir::Graph graph = ir::capture("g", {x, w, b}, {y});
  const std::string saved = std::to_string(3 * 2 * 4 * 64 * 32);  // three values, neither written nor read back
  EXPECT_EQ(
      lines_of(graph),
      (Lines{"fusion contraction=layer1.0.fc1/linear bias_add=layer1.0.fc1/bias_add side_input=layer1.0/add "
             "activation=layer1.0.my_relu__/relu ops=4 kernel=layer1_0_fc1_linear_bias_add_add_relu saved_bytes=" +
                 saved,
             "fusions graph=g lines=1 fused_ops=4 recorded_ops=4 kernels=2 saved_bytes=" + saved}));
  EXPECT_EQ(lines_of(graph, "x86:avx2", Rules::none).size(), 1u);
}

// What follows an anchor through a reshape is computed over the anchor's domain, unless its lanes would be divided.
TEST(Fusions, AnEpilogueGoesThroughReshapes) {
  const auto steps = [](const std::string& text, const char* target) {  // but packing of weights
    std::string names;
    for (const PlanStep& step : make_plan(ir::parse_graph(text), {Target::parse(target), Rules::all, {}}).steps)
      if (!step.name.ends_with("_pack")) names += (names.empty() ? "" : " ") + step.name;
    return names;
  };
  for (const char* target : {"x86:v2", "x86:avx512", "cuda:sm_90"}) {
    EXPECT_EQ(steps(R"(graph @g(%x: f32[2,16,3,9], %w: f32[32,16,3,3], %b: f32[32,1]) {
  %0 = conv2d(%x, %w) : f32[2,32,1,7]
  %1 = squeeze(%0) {dim=[2]} : f32[2,32,7]
  %2 = add(%1, %b) : f32[2,32,7]
  %3 = relu(%2) : f32[2,32,7]
  return %3
})",
                    target),
              "conv2d_add_relu")
        << target;
    EXPECT_EQ(steps(R"(graph @g(%x: f32[12,16], %w: f32[16,24], %b: f32[24], %s: f32[3,4,24]) {
  %0 = matmul(%x, %w) : f32[12,24]
  %1 = reshape(%0) {shape=[3,4,24]} : f32[3,4,24]
  %2 = add(%1, %b) : f32[3,4,24]
  %3 = add(%2, %s) : f32[3,4,24]
  return %3
})",
                    target),
              "matmul_add")
        << target;
    EXPECT_EQ(steps(R"(graph @g(%x: f32[3,5], %w: f32[5,24], %s: f32[3,2,3,4]:nhwc) {
  %0 = matmul(%x, %w) : f32[3,24]
  %1 = reshape(%0) {shape=[3,2,3,4]} : f32[3,2,3,4]:nhwc
  %2 = mul(%1, %s) : f32[3,2,3,4]:nhwc
  return %2
})",
                    target),
              "matmul mul")
        << target;
  }
}

// A tile in NHWC stores what is fused to it in the layout that it is wanted in.
TEST(Fusions, AnEpilogueStoresAnyLayout) {
  for (const char* target : {"x86:v2", "x86:avx512", "cuda:sm_90"}) {
    const Plan plan = make_plan(ir::parse_graph(R"(graph @g(%x: f32[2,8,6,6], %w: f32[16,8,3,3], %b: f32[16]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f32[2,16,6,6]
  %1 = bias_add(%0, %b) : f32[2,16,6,6]
  %2 = relu(%1) : f32[2,16,6,6]
  return %2
})"),
                                {Target::parse(target), Rules::all, {}});
    ASSERT_EQ(plan.steps.size(), 2u) << target;
    EXPECT_EQ(plan.steps[1].name, "conv2d_bias_add_relu") << target;
  }
}

TEST(Fusions, SavedAreBytesThatAreNeitherWrittenNorReadBack) {
  constexpr std::int64_t kBytes = 4 * 64 * 64;
  const struct {
    const char* what;
    const char* graph;
    std::int64_t saved;
  } table[] = {
      {"alone", "  %0 = exp(%x) : f32[64,64]\n  return %0\n", 0},
      {"a chain", "  %0 = exp(%x) : f32[64,64]\n  %1 = neg(%0) : f32[64,64]\n  return %1\n", 2 * kBytes},
      {"a result is written all the same",
       "  %0 = exp(%x) : f32[64,64]\n  %1 = neg(%0) : f32[64,64]\n  return %0, %1\n", kBytes},
      {"two readers",
       "  %0 = exp(%x) : f32[64,64]\n  %1 = neg(%0) : f32[64,64]\n  %2 = sin(%0) : f32[64,64]\n"
       "  return %1, %2\n",
       3 * kBytes},
      {"another kernel reads it: it is written",
       "  %a = matmul(%x, %x) : f32[64,64]\n  %0 = exp(%a) : f32[64,64]\n  %1 = neg(%0) : f32[64,64]\n"
       "  %2 = matmul(%0, %x) : f32[64,64]\n  return %1, %2\n",
       3 * kBytes},
      {"computed while a product copies it, whose weights another kernel lays out: neither written nor read",
       "  %0 = exp(%x) : f32[64,64]\n  %1 = matmul(%0, %y) : f32[64,16]\n  return %1\n", 2 * kBytes},
      {"taken twice by one op, read once",
       "  %0 = exp(%x) : f32[64,64]\n  %1 = mul(%0, %0) : f32[64,64]\n  return %1\n", 2 * kBytes},
      {"a reshape is no copy",
       "  %0 = exp(%x) : f32[64,64]\n  %1 = reshape(%0) {shape=[4096]} : f32[4096]\n  %2 = neg(%1) : f32[4096]\n"
       "  return %2\n",
       2 * kBytes},
      {"two sums of one tensor: an argument is read once, that is not counted",
       "  %0 = sum(%x) {dim=[0]} : f32[64]\n  %1 = amax(%x) {dim=[0]} : f32[64]\n  return %0, %1\n", 0},
  };
  for (const auto& row : table) {
    const ir::Graph graph =
        ir::parse_graph("graph @g(%x: f32[64,64], %y: f32[64,16]) {\n" + std::string(row.graph) + "}\n");
    for (const char* target : {"x86:avx2", "cuda:sm_90"}) {
      const Fusions fusions = fusions_of(make_plan(graph, {Target::parse(target), Rules::all, {}}), graph);
      EXPECT_EQ(fusions.saved_bytes, row.saved) << row.what << " on " << target;
    }
  }
}

// Of element-wise ops the definition is what the ledgers are apart.
TEST(Fusions, WhatAChainSavesIsWhatTheLedgersAreApart) {
  const ir::Graph graph = ir::parse_graph(R"(graph @g(%x: f32[64,64], %y: f32[64,64]) {
  %0 = exp(%x) : f32[64,64]
  %1 = mul(%0, %y) : f32[64,64]
  %2 = sin(%1) : f32[64,64]
  %3 = add(%2, %0) : f32[64,64]
  return %3
})");
  const Target target = Target::parse("x86:avx2");
  const Plan fused = make_plan(graph, {target, Rules::all, {}}), unfused = make_plan(graph, {target, Rules::none, {}});
  EXPECT_EQ(fusions_of(fused, graph).saved_bytes, unfused.ledger_bytes() - fused.ledger_bytes());
}

// Nodes that a file speaks of need not be there.
TEST(Fusions, NodesThatTheGraphLacksAreLeftOut) {
  const ir::Graph graph = ir::parse_graph("graph @g(%x: f32[8]) {\n  %0 = neg(%x) : f32[8]\n  return %0\n}\n");
  Plan plan = make_plan(graph, {Target::parse("x86:avx2"), Rules::all, {}});
  plan.steps[0].nodes = {7, -3, 0, 1 << 30};
  EXPECT_EQ(fusions_of(plan, graph).list.size(), 0u);
}

}  // namespace
}  // namespace fusejit::scheduler
