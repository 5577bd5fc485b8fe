// What buffers are called in code for people: the words of the op table, by role and not by layer.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "frontend/models/named.h"
#include "ir/passes/passes.h"
#include "scheduler/make_plan.h"
#include "scheduler/names/buffers.h"

namespace fusejit::test {
namespace {

struct Named {
  scheduler::Plan plan;
  std::vector<std::vector<scheduler::BufferName>> names;
};

Named name_all(const ir::Graph& graph, const std::string& target, const std::vector<bool>& donated = {},
               scheduler::Rules rules = scheduler::Rules::all) {
  const Target t = Target::parse(target);
  Named named{scheduler::make_plan(graph, {t, rules, donated, {}}), {}};
  named.names = scheduler::buffer_names(named.plan, scheduler::optimised(graph, {t, scheduler::Rules::all, {}}));
  return named;
}

std::string words(const std::vector<scheduler::BufferName>& names) {
  std::vector<std::string> list;
  for (const scheduler::BufferName& n : names) list.push_back(n.name.empty() ? "-" : n.name);
  return fmt::format("{}", fmt::join(list, " "));
}

TEST(BufferNames, AreThoseOfTheOpTable) {
  const struct {
    const char* graph;
    std::vector<std::string> names;  // by step
  } cases[] = {
      {"graph @g(%in0: f32[2,3,8,8]:nhwc, %conv_weight: f32[4,3,3,3]:nhwc, %conv_bias: f32[4]) {\n"
       "  %0 = conv2d(%in0, %conv_weight) {padding=[1,1,1,1]} : f32[2,4,8,8]:nhwc\n"
       "  %1 = bias_add(%0, %conv_bias) : f32[2,4,8,8]:nhwc\n  %2 = relu(%1) : f32[2,4,8,8]:nhwc\n  return %2\n}\n",
       {"weight packed", "w x bias y"}},
      {"graph @g(%x: f32[2,3,8,8]:nhwc, %w: f32[4,3,3,3]:nhwc, %dy: f32[2,4,8,8]:nhwc) {\n"
       "  %0 = conv2d_weight_grad(%x, %dy) {kernel_size=[3,3], padding=[1,1,1,1]} : f32[4,3,3,3]:nhwc\n  return "
       "%0\n}\n",
       {"dy x dw"}},
      {"graph @g(%p: f32[64,32], %q: f32[32,16]) {\n  %0 = matmul(%p, %q) : f32[64,16]\n  return %0\n}\n", {"b a y"}},
      {"graph @g(%x: f32[64,32]) {\n  %0 = mean(%x) {dim=[0]} : f32[32]\n  %1 = var(%x) {dim=[0]} : f32[32]\n"
       "  return %0, %1\n}\n",
       {"x mean var"}},
      // Names of files are anyone's: words of C++, and what the text itself uses, are not taken.
      {"graph @g(%int: f32[64], %sqrt: f32[64], %threadIdx: f32[64], %v0: f32[64]) {\n  %0 = add(%int, %sqrt) : "
       "f32[64]\n"
       "  %1 = mul(%threadIdx, %v0) : f32[64]\n  %2 = add(%0, %1) : f32[64]\n  return %2\n}\n",
       {"- - - - y"}},
  };
  for (const auto& c : cases) {
    const Named named = name_all(ir::parse_graph(c.graph), "cuda:sm_90");
    ASSERT_EQ(named.names.size(), c.names.size()) << c.graph;
    for (std::size_t s = 0; s < c.names.size(); ++s) EXPECT_EQ(words(named.names[s]), c.names[s]) << c.graph;
  }
}

TEST(BufferNames, DimsHaveNamesWhereTheyAreTheKernels) {
  const Named named =
      name_all(ir::parse_graph(
                   "graph @g(%x: f32[2,3,8,8]:nhwc) {\n  %0 = max_pool2d(%x) {kernel_size=[2,2]} : f32[2,3,4,4]:nhwc\n"
                   "  return %0\n}\n"),
               "cuda:sm_90");
  ASSERT_EQ(named.names.size(), 1u);
  for (const scheduler::BufferName& n : named.names[0])
    EXPECT_EQ(n.axes, (std::vector<std::string>{"n", "row", "col", "c"})) << n.name;
}

// A training step: what is overwritten is called by what it holds then.
TEST(BufferNames, FollowWhatIsOverwritten) {
  const models::ModelGraph model = models::model_graph("convnet@4:train");
  const Named named = name_all(model.graph, "cuda:sm_90", {model.donated.begin(), model.donated.end()});
  const auto of = [&](const std::string& step) {
    for (std::size_t s = 0; s < named.names.size(); ++s)
      if (named.plan.steps[s].name == step) return words(named.names[s]);
    return "no step " + step;
  };
  EXPECT_EQ(of("layer0_conv2d_bn"), "w x y mean var inv_std");
  EXPECT_EQ(of("layer2_bn_relu_max_pool2d"), "x mean inv_std y mask");
  EXPECT_EQ(of("layer5_relu_grad"), "mask dy dx");
  // It computes the gradient that it takes back of what the step before left where the convolution's result was.
  EXPECT_EQ(of("layer2_conv2d_input_grad_relu_bn_grad").substr(0, 34), "w dy mean_dy inv_std x mean coeffi");
}

TEST(BufferNames, AreIdentifiersAndEachOneBuffers) {
  const std::regex identifier("[a-z][a-z_]*(_[0-9]+)?");
  for (const char* source : {"convnet@4:train", "resnet18@2x3x64x64:train", "mobilenet_v2@2x3x64x64"}) {
    const models::ModelGraph model = models::model_graph(source);
    const std::vector<bool> donated(model.donated.begin(), model.donated.end());
    for (const char* target : {"cuda:sm_90", "x86:avx2"}) {
      const Named named = name_all(model.graph, target, donated);
      ASSERT_EQ(named.names.size(), named.plan.steps.size());
      for (std::size_t s = 0; s < named.names.size(); ++s) {
        ASSERT_EQ(named.names[s].size(), named.plan.steps[s].values.size());
        std::set<std::string> known;
        for (const scheduler::BufferName& n : named.names[s]) {
          EXPECT_TRUE(std::regex_match(n.name, identifier))
              << source << " " << named.plan.steps[s].name << ": " << n.name;
          EXPECT_TRUE(known.insert(n.name).second) << n.name;
        }
      }
    }
    for (const auto& step : name_all(model.graph, "cuda:sm_90", donated, scheduler::Rules::none).names)
      for (const scheduler::BufferName& n : step) EXPECT_EQ(n.name, "");
  }
}

}  // namespace
}  // namespace fusejit::test
