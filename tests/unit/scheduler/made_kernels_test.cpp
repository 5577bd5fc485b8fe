// Graphs whose kernels were once not to be made: each is planned and verified, on every target. Their results:
// tests/random.
#include <gtest/gtest.h>

#include "ir/passes/grad.h"
#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

struct Case {
  const char* name;
  const char* graph;
  std::vector<std::string> gradients = {};
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Case kCases[] = {
    // The shift of the second variance is the first element of a row, of which the first norm is stored over its input.
    {"norm_of_a_norm", R"(graph @g(%x: f32[4,44,40], %w: f32[40,40], %a: f32[40], %b: f32[40]) {
  %0 = linear(%x, %w) : f32[4,44,40]
  %1 = add(%x, %0) : f32[4,44,40]
  %2 = layer_norm(%1, 1, 0) {normalized_shape=[40]} : f32[4,44,40]
  %3 = layer_norm(%2, %a, %b) {normalized_shape=[40]} : f32[4,44,40]
  return %3
})"},
    {"transformer_rows",
     R"(graph @g(%x: f32[30,72], %w: f32[72,72]) {
  %0 = linear(%x, %w) : f32[30,72]
  %1 = add(%x, %0) : f32[30,72]
  %2 = layer_norm(%1, 1, 0) {normalized_shape=[72]} : f32[30,72]
  return %2
})",
     {"x", "w"}},
    // One sum is added to the transpose of another: not its own element, square or not.
    {"tied_embedding",
     R"(graph @g(%t: i64[2,5], %e: f32[8,8]) {
  %0 = one_hot(%t) {num_classes=8, dtype=f32} : f32[2,5,8]
  %1 = permute(%e) {dims=[1,0]} : f32[8,8]
  %2 = linear(%0, %1) : f32[2,5,8]
  %3 = matmul(%2, %1) : f32[2,5,8]
  return %3
})",
     {"e"}},
    {"variance_over_dims_of_one_element", R"(graph @g(%x: f32[2,3,1,1]) {
  %0 = var(%x) {dim=[2,3], correction=0} : f32[2,3]
  return %0
})"},
    {"rows_of_images_that_tasks_cut",
     R"(graph @g(%x: f32[1,34,34,16], %m: f32[16]) {
  %0 = permute(%x) {dims=[0,3,1,2]} : f32[1,16,34,34]
  %1 = batch_norm_train(%0, %m, 0) : f32[1,16,34,34]
  %2 = relu(%1) : f32[1,16,34,34]
  %3 = max_pool2d(%2) {kernel_size=[2,2]} : f32[1,16,17,17]
  return %3
})",
     {"x", "m"}},
    {"flip_over_pad",
     R"(graph @g(%x: f32[3,4]) {
  %0 = pad(%x) {low=[1,2], high=[2,1]} : f32[6,7]
  %1 = flip(%0) {dims=[0,1]} : f32[6,7]
  return %1
})",
     {"x"}},
    {"gradient_of_every_second_from_behind",
     R"(graph @g(%x: f32[2,3,4,9]) {
  %0 = flip(%x) {dims=[3]} : f32[2,3,4,9]
  %1 = slice(%0) {starts=[0,0,0,0], stops=[2,3,4,9], steps=[1,1,1,2]} : f32[2,3,4,5]
  return %1
})",
     {"x"}},
    {"flip_over_concat_and_unslice",
     R"(graph @g(%x: f32[3,4]) {
  %0 = unslice(%x) {shape=[7,9], starts=[1,0], steps=[2,2]} : f32[7,9]
  %1 = concat(%0, %0) {dim=1} : f32[7,18]
  %2 = flip(%1) {dims=[0,1]} : f32[7,18]
  return %2
})",
     {"x"}},
};

class MadeKernels : public ::testing::TestWithParam<Case> {};

TEST_P(MadeKernels, OnEveryTarget) {
  ir::Graph graph = ir::parse_graph(GetParam().graph);
  if (!GetParam().gradients.empty()) graph = ir::differentiate(graph, GetParam().gradients);
  for (const char* target : {"x86:avx512", "x86:avx2", "x86:v2", "cuda:sm_90"}) {
    for (const Rules rules : {Rules::all, Rules::none})
      EXPECT_NO_THROW(make_plan(graph, {Target::parse(target), rules, {}})) << target << " rules=" << name(rules);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, MadeKernels, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fusejit::scheduler
