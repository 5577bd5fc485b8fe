// Built-in models: names, shapes, initial weights and dropout are those of torchvision's. What they compute is compared
// with PyTorch in tests/networks.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "frontend/nn/shapes_only.h"
#include "fusejit/fusejit.h"

namespace fusejit {
namespace {

class Models : public ::testing::Test {
 protected:
  void SetUp() override {
    set_options({.engine = "graph_interpreter"});
    manual_seed(11);
  }
};

// Counted in torchvision 0.29: parameters, and entries of the state_dict without num_batches_tracked.
TEST_F(Models, NamesAndShapesAreThoseOfTorchvision) {
  const struct {
    const char* model;
    std::function<StateDict()> make;
    std::int64_t elements;
    std::size_t values;
    std::map<std::string, Shape> some;
  } cases[] = {
      {"resnet34",
       [] { return models::resnet34().state_dict(); },
       21797672,
       182,
       {{"layer1.2.conv2.weight", {64, 64, 3, 3}}, {"layer3.5.bn2.running_var", {256}}}},
      {"resnet50",
       [] { return models::resnet50().state_dict(); },
       25557032,
       267,
       {{"layer1.0.downsample.0.weight", {256, 64, 1, 1}}, {"layer4.2.bn3.running_var", {2048}}}},
      {"mobilenet_v2",
       [] { return models::mobilenet_v2().state_dict(); },
       3504872,
       262,
       {{"features.0.0.weight", {32, 3, 3, 3}},
        {"features.1.conv.0.0.weight", {32, 1, 3, 3}},
        {"features.1.conv.1.weight", {16, 32, 1, 1}},
        {"features.1.conv.2.running_mean", {16}},
        {"features.17.conv.1.0.weight", {960, 1, 3, 3}},
        {"features.17.conv.3.bias", {320}},
        {"features.18.1.running_var", {1280}},
        {"classifier.1.bias", {1000}}}},
      {"vgg16",
       [] { return models::vgg16().state_dict(); },
       138357544,
       32,
       {{"features.28.weight", {512, 512, 3, 3}},
        {"features.0.bias", {64}},
        {"classifier.0.weight", {4096, 25088}},
        {"classifier.6.bias", {1000}}}},
      {"vgg16_bn",
       [] { return models::vgg16_bn().state_dict(); },
       138365992,
       84,
       {{"features.40.weight", {512, 512, 3, 3}}, {"features.41.running_mean", {512}}}},
      {"densenet121",
       [] { return models::densenet121().state_dict(); },
       7978856,
       606,
       {{"features.conv0.weight", {64, 3, 7, 7}},
        {"features.denseblock1.denselayer1.norm1.weight", {64}},
        {"features.denseblock4.denselayer16.conv1.weight", {128, 992, 1, 1}},
        {"features.transition3.conv.weight", {512, 1024, 1, 1}},
        {"features.norm5.running_var", {1024}},
        {"classifier.weight", {1000, 1024}}}},
      {"squeezenet1_0",
       [] { return models::squeezenet1_0().state_dict(); },
       1248424,
       52,
       {{"features.0.weight", {96, 3, 7, 7}},
        {"features.5.squeeze.weight", {32, 128, 1, 1}},
        {"features.10.expand1x1.weight", {256, 64, 1, 1}},
        {"features.12.expand3x3.bias", {256}},
        {"classifier.1.weight", {1000, 512, 1, 1}}}},
      {"squeezenet1_1",
       [] { return models::squeezenet1_1().state_dict(); },
       1235496,
       52,
       {{"features.0.weight", {64, 3, 3, 3}},
        {"features.3.squeeze.bias", {16}},
        {"features.7.expand3x3.weight", {128, 32, 3, 3}},
        {"features.9.squeeze.weight", {48, 256, 1, 1}},
        {"features.12.expand1x1.weight", {256, 64, 1, 1}}}},
  };
  const nn::ShapesOnly only;
  for (const auto& c : cases) {
    const StateDict values = c.make();
    std::int64_t elements = 0;
    for (const auto& [name, value] : values)
      elements += name.find("running") == std::string::npos ? value.elements() : 0;
    EXPECT_EQ(elements, c.elements) << c.model;
    EXPECT_EQ(values.size(), c.values) << c.model;
    for (const auto& [name, shape] : c.some) {
      ASSERT_TRUE(values.contains(name)) << c.model << " " << name;
      EXPECT_EQ(values.at(name).shape(), shape) << c.model << " " << name;
    }
  }
}

// ---- initial weights ------------------------------------------------------------------------------------------------

// Mean, deviation and the share within one deviation, each within six of its own deviations over so many draws.
void expect_normal(const Tensor& weights, double deviation, const std::string& name) {
  const std::vector<float> values = weights.to_vector<float>();
  const auto count = static_cast<double>(values.size());
  double sum = 0, squares = 0, within = 0;
  for (const double v : values) sum += v, squares += v * v, within += std::abs(v) < deviation ? 1 : 0;
  const double share = std::erf(std::sqrt(0.5));
  EXPECT_NEAR(sum / count, 0, 6 * deviation / std::sqrt(count)) << name;
  EXPECT_NEAR(std::sqrt(squares / count), deviation, 6 * deviation / std::sqrt(2 * count)) << name;
  EXPECT_NEAR(within / count, share, 6 * std::sqrt(share * (1 - share) / count)) << name;
}

void expect_uniform(const Tensor& weights, double bound, const std::string& name) {
  double largest = 0;
  for (const double v : weights.to_vector<float>()) largest = std::max(largest, std::abs(v));
  EXPECT_LE(largest, bound * (1 + 1e-6)) << name;
  EXPECT_GT(largest, 0.98 * bound) << name;
}

void expect_zero(const Tensor& values, const std::string& name) {
  for (const float v : values.to_vector<float>()) ASSERT_EQ(v, 0) << name;
}

TEST_F(Models, InitialWeightsAreDrawnAsByTorchvision) {
  const StateDict resnet = models::resnet18().state_dict();
  expect_normal(resnet.at("conv1.weight"), std::sqrt(2. / (64 * 49)), "fan_out");
  expect_normal(resnet.at("layer2.0.conv1.weight"), std::sqrt(2. / (128 * 9)), "fan_out");
  expect_normal(resnet.at("layer2.0.downsample.0.weight"), std::sqrt(2. / 128), "fan_out");
  expect_uniform(resnet.at("fc.weight"), 1 / std::sqrt(512.), "PyTorch's own");
  expect_uniform(resnet.at("fc.bias"), 1 / std::sqrt(512.), "PyTorch's own");
  expect_zero(resnet.at("bn1.weight") - 1, "batch norm's factors are ones");

  const StateDict mobilenet = models::mobilenet_v2().state_dict();
  expect_normal(mobilenet.at("features.17.conv.1.0.weight"), std::sqrt(2. / (960 * 9)), "groups are not counted");
  expect_normal(mobilenet.at("classifier.1.weight"), 0.01, "a matrix");
  expect_zero(mobilenet.at("classifier.1.bias"), "mobilenet_v2");

  const StateDict vgg = models::VGG({2, 2}, 10, {.hidden = 64}).state_dict();
  expect_normal(vgg.at("features.5.weight"), std::sqrt(2. / (128 * 9)), "fan_out");
  expect_normal(vgg.at("classifier.0.weight"), 0.01, "a matrix");
  for (const char* bias : {"features.0.bias", "features.7.bias", "classifier.3.bias"}) expect_zero(vgg.at(bias), bias);

  const StateDict densenet = models::densenet121().state_dict();
  expect_normal(densenet.at("features.conv0.weight"), std::sqrt(2. / (3 * 49)), "fan_in");
  expect_normal(densenet.at("features.denseblock2.denselayer3.conv2.weight"), std::sqrt(2. / (128 * 9)), "fan_in");
  expect_uniform(densenet.at("classifier.weight"), 1 / std::sqrt(1024.), "PyTorch's own");
  expect_zero(densenet.at("classifier.bias"), "densenet121");

  const StateDict squeezenet = models::squeezenet1_1().state_dict();
  expect_uniform(squeezenet.at("features.3.squeeze.weight"), std::sqrt(6. / 64), "fan_in");
  expect_uniform(squeezenet.at("features.12.expand3x3.weight"), std::sqrt(6. / (64 * 9)), "fan_in");
  expect_normal(squeezenet.at("classifier.1.weight"), 0.01, "a matrix");
  for (const char* bias : {"features.0.bias", "features.3.expand1x1.bias", "classifier.1.bias"})
    expect_zero(squeezenet.at(bias), bias);
}

TEST_F(Models, TheSameSeedDrawsTheSameWeights) {
  const auto drawn = [](std::uint64_t seed) {
    manual_seed(seed);
    return models::DenseNet({1}, 3).state_dict().at("features.denseblock1.denselayer1.conv1.weight").to_vector<float>();
  };
  EXPECT_EQ(drawn(1), drawn(1));
  EXPECT_NE(drawn(1), drawn(2));
}

// ---- dropout --------------------------------------------------------------------------------------------------------

TEST_F(Models, DropOutInTrainingAlone) {
  const Tensor x = rand({2, 3, 16, 16}).eval();
  const auto differs = [&](nn::Module& net, bool training) {
    net.train(training);
    return net(x).to_vector<float>() != net(x).to_vector<float>();
  };
  // Twice in evaluation after twice in training: running statistics are others then.
  for (const bool drops : {false, true}) {
    models::VGG vgg({1, 1}, 5, {.dropout = drops ? 0.5 : 0, .hidden = 16});
    models::DenseNet densenet({1, 1}, 5, drops ? 0.5 : 0);
    EXPECT_EQ(differs(vgg, true), drops) << "VGG";
    EXPECT_EQ(differs(densenet, true), drops) << "DenseNet";
    EXPECT_FALSE(differs(vgg, false)) << "VGG";
    EXPECT_FALSE(differs(densenet, false)) << "DenseNet";
  }
  EXPECT_THROW(models::vgg16_bn(1, -1), UserError);
}

TEST_F(Models, RefuseImagesThatAreTooSmall) {
  models::VGG net({1, 1, 1}, 5, {.hidden = 4});
  try {
    net(ones({1, 3, 7, 7}));
    FAIL() << "7x7 has no third pooling";
  } catch (const UserError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("in features.8: max_pool2d: ")) << error.what();
  }
}

TEST_F(Models, UNetSaysWhatItTakes) {
  const auto refusal = [](models::UNet net, const Tensor& x) -> std::string {
    try {
      net(x);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(models::unet(2, {.width = 2, .depth = 2}), ones({1, 3, 8, 10})),
            "unet: x must be [N,C,H,W] with H and W multiples of 4 (x: f32[1,3,8,10])");
  EXPECT_EQ(refusal(models::unet(2, {.width = 2, .depth = 2}), ones({3, 8, 8})),
            "unet: x must be [N,C,H,W] with H and W multiples of 4 (x: f32[3,8,8])");
  EXPECT_TRUE(refusal(models::unet(2, {.width = 2, .depth = 1}), ones({1, 4, 8, 8})).starts_with("in down0.0: conv2d"));
  EXPECT_THROW(models::unet(2, {.depth = 0}), UserError);
  EXPECT_THROW(models::unet(2, {.depth = 60}), UserError);
  EXPECT_THROW(models::unet(2, {.width = 0}), UserError);
}

}  // namespace
}  // namespace fusejit
