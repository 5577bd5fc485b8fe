// What holds modules, functions among them, and that const modules are called.
#include <gtest/gtest.h>

#include "fusejit/fusejit.h"
#include "tests/support/error_of.h"

namespace fusejit {
namespace {

using testing::error_of;

class Containers : public ::testing::Test {
 protected:
  void SetUp() override { set_options({.engine = "graph_interpreter"}); }
  void TearDown() override { set_options({}); }
};

std::vector<std::string> names_of(const nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& [name, value] : module.named_values()) names.push_back(name);
  return names;
}

// ---- Sequential -----------------------------------------------------------------------------------------------------

TEST_F(Containers, FunctionsStandBetweenModules) {
  const Tensor x = rand({2, 1, 4, 4}).eval();
  const nn::Conv2d conv(1, 3, 3);
  const nn::Linear head(3, 2);
  nn::Sequential net(conv, relu, [](const Tensor& t) { return mean(t, {2, 3}); });
  net.push_back("head", head).push_back("scale", [scale = 2.0](const Tensor& t) { return t * scale; });
  EXPECT_EQ(names_of(net), (std::vector<std::string>{"0.weight", "0.bias", "head.weight", "head.bias"}));
  EXPECT_EQ(net.size(), 5u);
  EXPECT_EQ(net(x).to_vector<float>(), (head(mean(relu(conv(x)), {2, 3})) * 2).to_vector<float>());
  EXPECT_EQ(net.freeze()(x).shape(), (Shape{2, 2}));
  EXPECT_EQ(nn::Sequential(relu)(tensor<float>({-1, 2})).to_vector<float>(), (std::vector<float>{0, 2}));
  EXPECT_TRUE(error_of([&] {
                nn::Sequential(relu, [](const Tensor& t) { return matmul(t, ones({9, 9})); })(x);
              }).starts_with("in 1: matmul: "));
  EXPECT_THROW(nn::Functional(std::function<Tensor(const Tensor&)>()), UserError);
}

// A network that does not change is a function as well.
TEST_F(Containers, AFrozenNetworkIsAFunction) {
  const nn::Linear body(3, 4);
  const nn::Sequential net(body.freeze(), nn::Linear(4, 1));
  EXPECT_EQ(names_of(net), (std::vector<std::string>{"1.weight", "1.bias"}));
  EXPECT_EQ(net(ones({2, 3})).shape(), (Shape{2, 1}));
}

TEST_F(Containers, AreIndexed) {
  nn::Sequential net(nn::Linear(2, 3), nn::ReLU(), nn::Linear(3, 1));
  EXPECT_EQ(net[-1](ones({4, 3})).shape(), (Shape{4, 1}));
  EXPECT_EQ(net.at<nn::Linear>(0).weight().storage(), net.parameters()[0].storage());
  EXPECT_NE(error_of([&] { net[3]; }).find("there is no module 3 among 3"), std::string::npos);
  EXPECT_THROW(net[-4], UserError);
  EXPECT_NE(error_of([&] { net.at<nn::Conv2d>(0); }).find("module 0 is of another type"), std::string::npos);
  std::size_t count = 0;
  for (nn::Module& module : net) count += module.parameters().size();
  EXPECT_EQ(count, 4u);
}

// ---- lists and dictionaries -----------------------------------------------------------------------------------------

struct Tower : nn::ModuleOf<Tower> {
  nn::ModuleList layers;
  nn::ModuleDict heads;
  Tower() {
    for (int i = 0; i < 3; ++i) layers.push_back(nn::Linear(4, 4, i > 0));
    heads.insert("boxes", nn::Linear(4, 2)).insert("classes", nn::Linear(4, 5));
    add("layers", layers), add("heads", heads);
  }
  Tensor forward(const Tensor& x) const override {
    Tensor y = x;
    for (nn::Module& layer : layers) y = relu(layer(y));
    return concat({heads["boxes"](y), heads["classes"](y)}, 1);
  }
};

TEST_F(Containers, ListsAndDictionariesNameTheirModules) {
  Tower net;
  EXPECT_EQ(names_of(net),
            (std::vector<std::string>{"layers.0.weight", "layers.1.weight", "layers.1.bias", "layers.2.weight",
                                      "layers.2.bias", "heads.boxes.weight", "heads.boxes.bias", "heads.classes.weight",
                                      "heads.classes.bias"}));
  EXPECT_EQ(net(ones({2, 4})).shape(), (Shape{2, 7}));
  EXPECT_EQ(net.layers.size(), 3u);
  EXPECT_EQ(net.heads.size(), 2u);
  EXPECT_TRUE(net.heads.contains("boxes"));
  EXPECT_FALSE(net.heads.contains("masks"));
  net.eval();
  EXPECT_FALSE(net.layers[0].is_training());
  EXPECT_FALSE(net.heads["classes"].is_training());
  optim::SGD opt(net.parameters(), {.lr = 0.1});
  auto step = train_step(net, opt, [&](const Tensor& x) { return mean(square(net(x) - 1)); });
  const float first = step(ones({2, 4})).item<float>();
  EXPECT_LT(step(ones({2, 4})).item<float>(), first);
}

TEST_F(Containers, ListsAndDictionariesRefuse) {
  const Tower net;
  EXPECT_TRUE(error_of([&] { net.layers(ones({2, 4})); }).starts_with("a ModuleList cannot be called"));
  EXPECT_TRUE(error_of([&] { net.heads(ones({2, 4})); }).starts_with("a ModuleDict cannot be called"));
  EXPECT_EQ(error_of([&] { net.heads["masks"]; }), "there is no module 'masks' (boxes, classes)");
  EXPECT_NE(error_of([&] { nn::ModuleDict(net.heads).insert("boxes", nn::ReLU()); }).find("called 'boxes' already"),
            std::string::npos);
  EXPECT_THROW(net.layers[3], UserError);
}

// ---- const ----------------------------------------------------------------------------------------------------------

// The form of before, which may change members of its own.
struct Counting : nn::ModuleOf<Counting> {
  nn::Linear layer = add("layer", nn::Linear(2, 2));
  int calls = 0;
  Tensor forward(const Tensor& x) override {
    ++calls;
    return layer(x);
  }
};
// Derived from a layer, in either form.
struct Twice : nn::Sequential {
  Tensor forward(const Tensor& x) override { return x * 2; }
};
struct ConstTwice : nn::Sequential {
  Tensor forward(const Tensor& x) const override { return x * 2; }
};
struct Constant : nn::ModuleOf<Constant> {
  nn::Linear layer = add("layer", nn::Linear(2, 2));
  Tensor forward(const Tensor& x) const override { return layer(x); }
};

TEST_F(Containers, ConstModulesAreCalled) {
  const Tensor x = ones({1, 2});
  const nn::Linear linear(2, 2);
  EXPECT_EQ(linear(x).to_vector<float>(), linear.forward(x).to_vector<float>());
  const nn::Sequential net(linear, nn::ReLU(), linear);
  EXPECT_EQ(net(x).to_vector<float>(), linear(relu(linear(x))).to_vector<float>());

  Counting counting;
  EXPECT_EQ(std::as_const(counting)(x).to_vector<float>(), counting.layer(x).to_vector<float>());
  counting(x), counting.forward(x);
  nn::Module& base = counting;
  base(x), base.forward(x);
  std::as_const(base)(x), std::as_const(base).forward(x);
  EXPECT_EQ(counting.calls, 7);

  const Twice twice;  // its form, not Sequential's
  EXPECT_EQ(twice(x).to_vector<float>(), (std::vector<float>{2, 2}));
  EXPECT_EQ(static_cast<const nn::Module&>(twice)(x).to_vector<float>(), (std::vector<float>{2, 2}));
  EXPECT_EQ(ConstTwice()(x).to_vector<float>(), (std::vector<float>{2, 2}));

  Constant constant;
  const nn::Module& handle = constant;
  EXPECT_EQ(handle(x).to_vector<float>(), constant.layer(x).to_vector<float>());
  EXPECT_EQ(handle.forward(x).to_vector<float>(), static_cast<nn::Module&>(constant).forward(x).to_vector<float>());
  const auto captured = [constant](const Tensor& t) { return constant(t); };
  EXPECT_EQ(captured(x).shape(), (Shape{1, 2}));
  EXPECT_TRUE(error_of([&] { std::as_const(counting)(ones({1, 3})); }).starts_with("in layer: linear: "));
}

TEST_F(Containers, ConstModulesTrain) {
  const Constant net;
  optim::SGD opt(net.parameters(), {.lr = 0.1});
  Constant handle = net;
  auto step = train_step(handle, opt, [net](const Tensor& x) { return mean(square(net(x) - 1)); });
  const float first = step(ones({1, 2})).item<float>();
  EXPECT_LT(step(ones({1, 2})).item<float>(), first);
}

}  // namespace
}  // namespace fusejit
