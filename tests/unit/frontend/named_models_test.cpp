// Built-in models as graphs: they parse, verify and say what a step gives up; bad names are refused.
#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/models/named.h"
#include "fusejit/error.h"
#include "fusejit/fusejit.h"

namespace fusejit::models {
namespace {

TEST(NamedModels, AreGraphs) {
  for (const char* source :
       {"convnet@4:train", "convnet_save_input@4:train", "convnet@2x1x28x28", "resnet18@2x3x40x33:train",
        "resnet50@1x3x32x32", "mobilenet_v2@1x3x32x32", "mobilenet_v2@2x3x33x40:train", "resnet34@1x3x32x32",
        "vgg16@2x3x40x33:train", "vgg16_bn@1x3x32x32", "densenet121@2x3x40x33:train", "squeezenet1_0@2x3x40x33:train",
        "squeezenet1_0@1x3x21x21", "squeezenet1_1@1x3x17x17", "unet@2x3x16x32:train"}) {
    const ModelGraph model = model_graph(source);
    ir::verify(model.graph);
    EXPECT_TRUE(ir::parse_graph(ir::print(model.graph)) == model.graph) << source;
    EXPECT_EQ(model.donated.size(), model.graph.parameters().size());
    EXPECT_TRUE(is_model_source(source));
  }
}

TEST(NamedModels, AStepReplacesParametersAndState) {
  const ModelGraph model = model_graph("convnet@4:train");
  // Six parameters, two states each; the loss in front of them.
  EXPECT_EQ(std::count(model.donated.begin(), model.donated.end(), 1), 18);
  EXPECT_EQ(model.graph.results().size(), 19u);
  const auto named = [&](const std::string& name) {
    return std::any_of(model.graph.parameters().begin(), model.graph.parameters().end(),
                       [&](const ir::Value& p) { return p->name == name; });
  };
  EXPECT_TRUE(named("layer0_weight"));
  EXPECT_TRUE(named("layer7_bias_acc_delta"));
  EXPECT_TRUE(named("x"));
  EXPECT_TRUE(named("target"));
}

TEST(NamedModels, ARecomputationIsARegionOfItsOwn) {
  const auto convolutions = [](const char* source) {
    int count = 0;
    const ModelGraph model = model_graph(source);
    for (const ir::Value& node : model.graph.nodes()) count += node->op == ir::Op::conv2d;
    return count;
  };
  EXPECT_EQ(convolutions("convnet@4:train"), 2);
  EXPECT_EQ(convolutions("convnet_save_input@4:train"), 4) << "each layer's convolution once more in the backward pass";
}

TEST(NamedModels, ComputeNothing) {
  const std::int64_t before = stats().evaluations;
  for (const DType dtype : {f32, bf16, f64}) {
    model_graph("convnet@4:train", dtype);
    model_graph("mobilenet_v2@2x3x33x40", dtype);
  }
  EXPECT_EQ(stats().evaluations, before);
}

TEST(NamedModels, RefusesWithOneSentence) {
  for (const char* source :
       {"alexnet@1", "convnet", "convnet@", "convnet@0", "convnet@axb", "convnet@4x", "convnet@2x3", "resnet50@16",
        "resnet50@1x4x32x32", "mobilenet_v2@1", "vgg16@2x1x32x32", "densenet121@16", "squeezenet1_0@1x3x20x20",
        "squeezenet1_1@1x3x16x16", "unet@1x3x24x32", "convnet@99999999999999999999"}) {
    EXPECT_THROW(model_graph(source), UserError) << source;
  }
  EXPECT_FALSE(is_model_source("file.fj"));
  EXPECT_FALSE(is_model_source("convnet"));
}

}  // namespace
}  // namespace fusejit::models
