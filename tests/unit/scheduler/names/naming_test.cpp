// What steps and kernels are called: by what the user wrote, whatever passes and the scheduler make of it.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "frontend/models/named.h"
#include "ir/passes/grad.h"
#include "runtime/cudnn/step.h"
#include "scheduler/make_plan.h"
#include "scheduler/names/steps.h"

namespace fusejit::scheduler {
namespace {

using ir::Op;
using ir::Role;
using ir::Value;

const Type kImage{DType::f32, {2, 8, 6, 6}, Layout::standard};

// A node that was recorded in `module`, called `op` (null: by its own name).
Value recorded(const char* module, const char* op, Role role, const std::function<Value()>& build) {
  const ir::OriginScope scope(ir::Origin{module, op, role});
  return build();
}

class Names : public ::testing::Test {
 protected:
  Value x_ = ir::parameter(kImage, "x"), w_ = ir::parameter({DType::f32, {8, 8, 3, 3}, Layout::standard}, "w");

  Value pointwise(const char* module, const char* op, Role role = Role::forward) {
    return recorded(module, op, role, [&] { return ir::build(Op::neg, {x_}); });
  }
  Value cast(const char* module) {
    return recorded(module, nullptr, Role::forward, [&] { return ir::build(Op::cast, {x_}, {{"dtype", f64}}); });
  }
  Value conv(const char* module, const char* op = nullptr, Role role = Role::forward) {
    return recorded(module, op, role, [&] { return ir::build(Op::conv2d, {x_, w_}, {{"padding", {1, 1, 1, 1}}}); });
  }
  // Names of nodes as if they were one group.
  static std::string by_layer(const std::vector<Value>& nodes) { return named(nodes, name_by_layer); }
  static std::string by_ops(const std::vector<Value>& nodes) { return named(nodes, name_by_ops); }

 private:
  static std::string named(const std::vector<Value>& nodes, decltype(name_by_ops) name) {
    std::vector<Value> parameters, results;
    for (const Value& node : nodes) {
      std::vector<ir::Operand> operands;  // of its own: equal nodes merge
      for (const ir::Operand& operand : node->operands)
        operands.emplace_back(parameters.emplace_back(ir::parameter(operand.value.type())));
      const ir::OriginScope scope(node->origin);
      results.push_back(ir::build(node->op, operands, node->attrs));
    }
    const ir::Graph graph = ir::capture("g", parameters, results);
    std::vector<int> values;
    for (const Value& result : results) values.push_back(graph.index_of(result.get()));
    return name(graph, values);
  }
};

TEST_F(Names, BeginWithTheLayerAndSayWhatItsNameDoesNot) {
  EXPECT_EQ(
      by_layer({conv("layer1.0.conv2"), pointwise("layer1.0.bn2", "batch_norm_train"), pointwise("layer1.0", "relu")}),
      "layer1_0_conv2_bn_relu");
  EXPECT_EQ(by_layer({conv("layer1.0.downsample.0"), pointwise("layer1.0.downsample.1", "batch_norm")}),
            "layer1_0_downsample_0_conv2d_bn");
  EXPECT_EQ(by_layer({pointwise("layer1.0.bn1", "batch_norm_train"), pointwise("layer1.0", "relu")}),
            "layer1_0_bn1_relu");
  EXPECT_EQ(by_layer({pointwise("layer1.0", "add"), pointwise("layer1.0", "relu")}), "layer1_0_add_relu");
  EXPECT_EQ(by_layer({pointwise("fc", "linear")}), "fc_linear");
  EXPECT_EQ(by_layer({conv("0")}), "layer0_conv2d") << "names begin with a letter";
}

TEST_F(Names, WithoutLayersAreTheOps) {
  EXPECT_EQ(by_layer({conv(nullptr), pointwise(nullptr, "bias_add"), pointwise(nullptr, "relu")}),
            "conv2d_bias_add_relu");
  EXPECT_EQ(
      by_ops({conv("layer1.0.conv2"), pointwise("layer1.0.bn2", "batch_norm_train"), pointwise("layer1.0", "relu")}),
      "conv2d_bn_relu");
}

TEST_F(Names, OfLayersSideBySideAreWhatTheyHaveInCommon) {
  EXPECT_EQ(by_layer({pointwise("layer1.0.bn3", "batch_norm"), pointwise("layer1.0.downsample.1", "batch_norm"),
                      pointwise("layer1.0", "relu")}),
            "layer1_0_bn_relu");
  EXPECT_EQ(by_layer({pointwise("layer1", "sgd", Role::update), pointwise("layer10", "sgd", Role::update)}), "sgd");
}

TEST_F(Names, SayGradientsOnceAndWhichOfThem) {
  const Role gradient = Role::gradient, weights = Role::weight_gradient;
  EXPECT_EQ(by_layer({conv("a.conv1", "conv2d", gradient), pointwise("a", "relu", gradient),
                      pointwise("a.bn1", "batch_norm_train", gradient)}),
            "a_conv1_input_grad_relu_bn_grad");
  EXPECT_EQ(by_layer({conv("a.conv1", "conv2d", weights), pointwise("a.conv1", "sgd", Role::update)}),
            "a_conv1_weight_grad_sgd");
  EXPECT_EQ(by_layer({conv("fc", "linear", weights)}), "fc_linear_weight_grad");
  EXPECT_EQ(by_layer({conv("fc", "linear", gradient)}), "fc_linear_input_grad");
  EXPECT_EQ(by_layer({pointwise("a.bn1", "sgd", Role::update), pointwise("a.bn1", "batch_norm", gradient)}),
            "a_bn1_grad_sgd");
  // The forward pass, computed again.
  EXPECT_EQ(by_layer({pointwise("b.bn2", "batch_norm"), pointwise("a.bn1", "batch_norm", gradient)}), "a_bn1_grad");
}

TEST_F(Names, LeaveOutConversionsUnlessThereIsNothingElse) {
  EXPECT_EQ(by_layer({cast("a"), pointwise("a", "relu")}), "a_relu");
  EXPECT_EQ(by_layer({cast("a")}), "a_cast");
}

TEST_F(Names, AreShortIdentifiers) {
  std::string path = "backbone";
  for (int i = 0; i < 30; ++i) path += ".Stage-" + std::to_string(i);
  std::vector<Value> nodes{conv(path.c_str())};
  std::vector<std::string> ops;
  for (int i = 0; i < 40; ++i) ops.push_back("some_op" + std::to_string(i));
  for (const std::string& op : ops) nodes.push_back(pointwise("a", op.c_str(), Role::gradient));
  nodes[0] = conv(path.c_str(), "conv2d", Role::gradient);
  const std::string name = by_layer(nodes);
  EXPECT_LE(name.size(), kLongestName);
  EXPECT_TRUE(name.starts_with("stage_27_stage_28_stage_29_conv2d_input_grad_some_op0")) << name;
  EXPECT_EQ(by_layer({pointwise("", std::string(300, 'A').c_str(), Role::update)}), std::string(40, 'a'));
  EXPECT_EQ(by_layer({pointwise("", "8-bit Adam", Role::update)}), "_8_bit_adam");
  EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string::npos) << name;
}

Plan plan_of(const char* model, const char* target, Rules rules = Rules::all) {
  const models::ModelGraph source = models::model_graph(model);
  return make_plan(
      source.graph,
      {Target::parse(target), rules, {source.donated.begin(), source.donated.end()}, runtime::cudnn::supports_step});
}

// Names are for people: a kernel that they cannot tell from another is named for nothing.
TEST(NamesOfPlans, TellTheKernelsOfATrainingStepApart) {
  for (const char* target : {"x86:avx2", "cuda:sm_90", "cuda:sm_90,cudnn=2"}) {
    const Plan plan = plan_of("resnet50@1x3x64x64:train", target);
    std::map<std::string, int> times;
    for (const PlanStep& step : plan.steps) {
      EXPECT_LE(step.name.size(), kLongestName + std::string_view("_pack").size());
      EXPECT_FALSE(step.nodes.empty()) << step.name;
      if (!step.name.ends_with("_pack")) ++times[step.name];
    }
    for (const char* op : {"maximum", "add", "mul", "where", "sum"}) EXPECT_FALSE(times.contains(op)) << op;
    int without_layer = 0, several = 0;
    for (const auto& [name, count] : times) {
      // What the network's own forward() and the loss do has no layer.
      const bool has_layer =
          name.starts_with("layer") || name.starts_with("conv1") || name.starts_with("bn1") || name.starts_with("fc");
      without_layer += !has_layer;
      several += count > 1;
    }
    EXPECT_LE(without_layer, 8) << target;
    EXPECT_LE(several, 3) << target;
    for (const char* name : {"layer1_0_conv2_bn", "layer3_5_conv1_weight_grad_sgd", "layer4_0_bn_add_relu"})
      EXPECT_TRUE(target[0] == 'c' || times.contains(name)) << target << " " << name;
  }
}

TEST(NamesOfPlans, NameWhatIsFused) {
  std::set<std::string> names, kernels;
  for (const PlanStep& step : plan_of("resnet50@1x3x64x64", "x86:avx2").steps) {
    names.insert(step.name), kernels.insert(step.kernel->name);
  }
  for (const char* name : {"layer1_0_conv2_bn_relu", "layer1_1_conv3_bn_add_relu"})
    EXPECT_TRUE(names.contains(name)) << name;
  EXPECT_TRUE(kernels.contains("conv2d_bn_relu"));
  for (const std::string& kernel : kernels) EXPECT_EQ(kernel.find("layer"), std::string::npos) << kernel;
}

// One that several have a part in is the convolution's, else the innermost's. A path may hold what a text may not.
TEST(NamesOfPlans, EachStepBelongsToOneLayer) {
  std::map<std::string, std::string> layers;
  for (const PlanStep& step : plan_of("resnet50@1x3x64x64", "x86:avx2").steps) layers[step.name] = step.layer;
  EXPECT_EQ(layers["layer1_0_conv2_bn_relu"], "layer1.0.conv2");
  EXPECT_EQ(layers["layer1_1_conv3_bn_add_relu"], "layer1.1.conv3");
  EXPECT_EQ(layers["layer1_0_conv2_pack"], "layer1.0.conv2");
  const Value x = ir::parameter(kImage, "x");
  const Value y = recorded("net.a\"\n\xc3", nullptr, Role::forward, [&] { return ir::build(Op::relu, {x}); });
  const Plan plan = make_plan(ir::capture("g", {x}, {y}), {Target::parse("x86:avx2"), Rules::all, {}});
  EXPECT_EQ(plan.steps[0].layer, "net.a???");
}

TEST(NamesOfPlans, OfUnfusedPlansAreTheRecordedOps) {
  std::set<std::string> names;
  for (const PlanStep& step : plan_of("resnet50@1x3x64x64", "x86:avx2", Rules::none).steps) names.insert(step.name);
  for (const char* name : {"layer1_0_conv2", "layer1_0_bn2", "layer1_0_relu", "layer1_0_add"})
    EXPECT_TRUE(names.contains(name)) << name;
}

// The same graph with other layers: everything that keys are made of is equal, and names follow the graph at hand.
TEST(NamesOfPlans, FollowTheGraphAtHand) {
  const auto graph = [](const char* module) {
    const Value x = ir::parameter(kImage, "x");
    const Value y = recorded(module, nullptr, Role::forward, [&] { return ir::build(Op::relu, {x}); });
    return ir::capture("g", {x}, {y});
  };
  const ir::Graph a = graph("a.act"), b = graph("b.act");
  EXPECT_EQ(ir::hash(a), ir::hash(b));
  EXPECT_EQ(ir::print(a), ir::print(b));
  Plan plan = make_plan(a, {Target::parse("x86:avx2"), Rules::all, {}});
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.steps[0].name, "a_act_relu");
  EXPECT_EQ(plan.steps[0].kernel->name, "relu");
  plan = parse_plan(print(plan));
  EXPECT_EQ(plan.steps[0].name, "a_act_relu");
  EXPECT_EQ(plan.steps[0].layer, "a.act");
  name_steps(plan, b);
  EXPECT_EQ(plan.steps[0].name, "b_act_relu");
  EXPECT_EQ(plan.steps[0].layer, "b.act");
  EXPECT_EQ(written_ops(plan.steps[0], b), std::vector<std::string>{"b.act relu"});
}

// A file may say anything.
TEST(NamesOfPlans, TakeNodesThatAreNotThereForNone) {
  const ir::Graph graph = ir::parse_graph("graph @g(%x: f32[4]) {\n  %0 = relu(%x) : f32[4]\n  return %0\n}");
  Plan plan = make_plan(graph, {Target::parse("x86:avx2"), Rules::all, {}});
  plan.steps[0].nodes = {7, 0, 2147483647};
  name_steps(plan, graph);
  EXPECT_EQ(plan.steps[0].name, "relu");
}

}  // namespace
}  // namespace fusejit::scheduler
