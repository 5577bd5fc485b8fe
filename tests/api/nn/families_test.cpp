// A layer that was made and never added is an error at the first step that needs it; what is not trained on purpose is
// none.
#include <gtest/gtest.h>

#include "fusejit/fusejit.h"
#include "tests/support/error_of.h"

namespace fusejit {
namespace {

using testing::error_of;

class Families : public ::testing::Test {
 protected:
  void SetUp() override {
    set_options({.engine = "graph_interpreter"});
    manual_seed(4);
  }
  void TearDown() override { set_options({}); }
};

// Its convolution is a member and nothing else.
struct Forgetful : nn::ModuleOf<Forgetful> {
  nn::Conv2d conv{1, 8, 3};
  nn::Linear head = add("head", nn::Linear(8 * 4, 2));
  bool calls = true;  // conv(x), or conv.forward(x)
  Tensor forward(const Tensor& x) const override { return head(flatten(relu(calls ? conv(x) : conv.forward(x)), 1)); }
};

Tensor images() { return ones({2, 1, 4, 4}); }

const char* const kWeight = "'weight' (f32[8,1,3,3], read by conv2d)";

TEST_F(Families, ALayerThatWasNeverAddedIsNamed) {
  for (const bool calls : {true, false}) {
    for (const bool direct : {true, false}) {
      Forgetful net;
      net.calls = calls;
      optim::SGD opt(net.parameters(), {.lr = 0.1});
      const std::vector<float> before = net.head.weight().value().to_vector<float>();
      auto step = train_step(net, opt, [&](const Tensor& x) { return sum(square(direct ? net.forward(x) : net(x))); });
      for (int again = 0; again < 2; ++again) {
        const std::string error = error_of([&] { step(images()); });
        EXPECT_TRUE(error.starts_with("train_step: the loss depends on parameters ")) << error;
        EXPECT_NE(error.find(kWeight), std::string::npos) << error;
        EXPECT_NE(error.find("'bias' (f32[8], read by bias_add)"), std::string::npos) << error;
        EXPECT_EQ(error.find("head"), std::string::npos) << error;
      }
      EXPECT_EQ(step.count(), 0);
      EXPECT_EQ(opt.steps(), 0);
      EXPECT_EQ(net.head.weight().value().to_vector<float>(), before);

      const std::string error = error_of([&] { opt.step(sum(square(net(images())))); });
      EXPECT_TRUE(error.starts_with("SGD: step: the loss depends on parameters ")) << error;
      EXPECT_NE(error.find(kWeight), std::string::npos) << error;
      EXPECT_EQ(net.head.weight().value().to_vector<float>(), before);
    }
  }
}

TEST_F(Families, AParameterOfNobodyIsNamed) {
  struct Net : nn::ModuleOf<Net> {
    nn::Linear layer = add("layer", nn::Linear(3, 3));
    nn::Parameter scale{"scale", ones({3})};
    Tensor forward(const Tensor& x) const override { return layer(x) * scale; }
  } net;
  optim::SGD opt(net.parameters(), {.lr = 0.1});
  auto step = train_step(net, opt, [&](const Tensor& x) { return sum(net(x)); });
  EXPECT_NE(error_of([&] {
              step(ones({1, 3}));
            }).find("depends on parameter 'scale' (f32[3], read by mul) that nothing"),
            std::string::npos);
  std::vector<nn::Parameter> both = net.parameters();
  both.push_back(net.scale);
  optim::SGD with_scale(both, {.lr = 0.1});
  train_step(net, with_scale, [&](const Tensor& x) { return sum(net(x)); })(ones({1, 3}));
  EXPECT_NE(net.scale.value().to_vector<float>(), std::vector<float>(3, 1));
}

// Whatever becomes of the values: another dtype, loaded ones, drawn ones.
TEST_F(Families, NewValuesOfALayerAreStillItsOwn) {
  const auto loaded = [](Forgetful& net) { net.conv.load_state_dict(nn::Conv2d(1, 8, 3).state_dict()); };
  const auto drawn = [](Forgetful& net) { nn::init::normal_(net.conv.weight()); };
  const auto converted = [](Forgetful& net) { net.conv.to(bf16), net.conv.to(f32); };
  for (const std::function<void(Forgetful&)>& change :
       {std::function<void(Forgetful&)>(loaded), std::function<void(Forgetful&)>(drawn),
        std::function<void(Forgetful&)>(converted)}) {
    Forgetful net;
    change(net);
    optim::SGD opt(net.parameters(), {.lr = 0.1});
    auto step = train_step(net, opt, [&](const Tensor& x) { return sum(net(x)); });
    EXPECT_NE(error_of([&] { step(images()); }).find(kWeight), std::string::npos);
  }
}

TEST_F(Families, ALambdaHoldsNoModules) {
  const nn::Linear inner(3, 3);
  nn::Sequential net(nn::Linear(3, 3), [inner](const Tensor& x) { return inner(x); });
  optim::SGD opt(net.parameters(), {.lr = 0.1});
  auto step = train_step(net, opt, [&](const Tensor& x) { return sum(net(x)); });
  EXPECT_NE(error_of([&] { step(ones({1, 3})); }).find("'weight' (f32[3,3], read by linear)"), std::string::npos);
}

// Through the rule of a custom gradient as well.
TEST_F(Families, ACustomGradientHidesNothing) {
  nn::ConvBatchNorm2d loose(1, 4, 3);
  nn::Linear head(16, 2);
  optim::SGD opt(head.parameters(), {.lr = 0.1});
  auto step = train_step(head, opt, [&](const Tensor& x) { return sum(head(flatten(loose(x), 1))); });
  const std::string error = error_of([&] { step(images()); });
  for (const char* name : {"'weight' (f32[4,1,3,3]", "'gamma' (f32[4]", "'beta' (f32[4]"})
    EXPECT_NE(error.find(name), std::string::npos) << error;
}

// ---- what is not trained on purpose ---------------------------------------------------------------------------------

void expect_trains(nn::Module& net, optim::Optimizer& opt, const std::function<Tensor(const Tensor&)>& loss,
                   const Tensor& x) {
  train_step(net, opt, loss)(x);
  opt.step(loss(x));
  EXPECT_EQ(opt.steps(), 2);
}

TEST_F(Families, FixedNetworks) {
  nn::Linear net(3, 3), fixed(3, 3);
  const Frozen frozen = fixed.freeze();
  const auto target = [&](const Tensor& x) {
    const NoGrad off;
    return fixed(x);
  };
  const std::function<Tensor(const Tensor&)> losses[] = {
      [&](const Tensor& x) { return mse_loss(net(x), target(x)); },          // a teacher
      [&](const Tensor& x) { return mse_loss(net(x), fixed(x).detach()); },  // likewise
      [&](const Tensor& x) {
        return mse_loss(frozen(net(x)), frozen(x));
      },  // a loss network: gradients flow through it
      [&](const Tensor& x) { return mse_loss(net(x), (fixed(x) > 0).to(f32)); },
  };
  for (const auto& loss : losses) {
    optim::SGD opt(net.parameters(), {.lr = 0.01});
    const std::vector<float> before = net.weight().value().to_vector<float>();
    expect_trains(net, opt, loss, ones({2, 3}));
    EXPECT_NE(net.weight().value().to_vector<float>(), before);
  }
  optim::SGD opt(net.parameters(), {.lr = 0.01});
  const std::string error = error_of([&] { opt.step(mse_loss(fixed(net(ones({2, 3}))), zeros({2, 3}))); });
  EXPECT_NE(error.find("NoGrad"), std::string::npos) << error;
  EXPECT_NE(error.find("freeze()"), std::string::npos) << error;
}

TEST_F(Families, APartOfANetwork) {
  nn::Sequential net(nn::Linear(3, 3), nn::ReLU(), nn::Linear(3, 2));
  optim::SGD opt(net[2].parameters(), {.lr = 0.01});
  const std::vector<float> before = net.at<nn::Linear>(0).weight().value().to_vector<float>();
  expect_trains(
      net, opt, [&](const Tensor& x) { return sum(net(x)); }, ones({2, 3}));
  EXPECT_EQ(net.at<nn::Linear>(0).weight().value().to_vector<float>(), before);
}

// Two networks that train in turn, each through the other one.
TEST_F(Families, TwoOptimisers) {
  nn::Linear generator(3, 3), critic(3, 1);
  optim::SGD of_generator(generator.parameters(), {.lr = 0.01}), of_critic(critic.parameters(), {.lr = 0.01});
  expect_trains(
      generator, of_generator, [&](const Tensor& x) { return -mean(critic(generator(x))); }, ones({2, 3}));
  expect_trains(
      critic, of_critic, [&](const Tensor& x) { return mean(critic(generator(x))); }, ones({2, 3}));
}

// What train_step is given as its net is known: here an image is trained, and the network judges it.
TEST_F(Families, TheNetOfTrainStep) {
  nn::Linear judge(3, 1);
  const nn::Parameter image("image", zeros({1, 3}));
  optim::SGD opt({image}, optim::SgdOptions{.lr = 0.01});
  train_step(judge, opt, [&](const Tensor& x) { return sum(judge(image + x)); })(ones({1, 3}));
  EXPECT_EQ(opt.steps(), 1);
  const nn::Linear other(3, 1);
  EXPECT_THROW(optim::SGD({image}, optim::SgdOptions{}).step(sum(other(image))), UserError);
}

// A moving average shares its first value with the parameter that it follows, and is used nowhere; whichever is first.
TEST_F(Families, CopiesOfAValue) {
  nn::Linear net(3, 2);
  const nn::Parameter average("average", net.weight());
  for (int i = 0; i < 2; ++i) {
    optim::SGD opt(net.parameters(), {.lr = 0.01});
    expect_trains(
        net, opt, [&](const Tensor& x) { return sum(net(x)); }, ones({2, 3}));
    average.set(net.weight());
  }
  nn::Sequential two(nn::Linear(3, 3), nn::Linear(3, 2));
  const nn::Parameter of_fixed_part("average", two.at<nn::Linear>(0).weight());
  optim::SGD of_head(two[1].parameters(), {.lr = 0.01});
  expect_trains(
      two, of_head, [&](const Tensor& x) { return sum(two(x)); }, ones({2, 3}));

  const Tensor values = ones({3}).eval();
  const nn::Parameter first("average", values), trained("trained", values);
  optim::SGD opt({trained}, optim::SgdOptions{.lr = 0.01});
  opt.step(sum(trained * 2));
  EXPECT_EQ(opt.steps(), 1);
}

// A module that is made of trained ones and others, after its optimiser.
TEST_F(Families, JoinedLater) {
  const nn::Linear body(3, 3), fixed(3, 2);
  optim::SGD opt(body.parameters(), {.lr = 0.01});
  const auto loss = [&] { return sum(fixed(body(ones({2, 3})))); };
  EXPECT_THROW(opt.step(loss()), UserError);
  const nn::ModuleList both(body, fixed);
  opt.step(loss());
  EXPECT_EQ(opt.steps(), 1);
}

// Adding later is adding.
TEST_F(Families, AddedLater) {
  struct Net : nn::ModuleOf<Net> {
    nn::Linear first = add("first", nn::Linear(3, 3)), second{3, 2};
    Tensor forward(const Tensor& x) const override { return second(first(x)); }
    void complete() { add("second", second); }
  } net;
  optim::SGD opt(net.parameters(), {.lr = 0.01});
  auto step = train_step(net, opt, [&](const Tensor& x) { return sum(net(x)); });
  EXPECT_THROW(step(ones({1, 3})), UserError);
  net.complete();
  step(ones({1, 3}));
  EXPECT_EQ(step.count(), 1);
}

}  // namespace
}  // namespace fusejit
