// Scaled losses: the same updates where nothing overflows, none at all where something does, and the scale's way.
#include "fusejit/optim/grad_scaler.h"

#include <gtest/gtest.h>

#include "fusejit/fusejit.h"

namespace fusejit {
namespace {

std::vector<std::vector<float>> values_of(const StateDict& state) {
  std::vector<std::vector<float>> values;
  for (const auto& [name, value] : state) values.push_back(value.to_vector<float>());
  return values;
}

// A power of two changes no bit of an f32 gradient, nor does leaving nothing out.
TEST(GradScaler, AStepIsTheOneWithoutIt) {
  const Tensor x = rand({8, 4}).eval(), y = rand({8, 2}).eval();
  std::vector<std::vector<std::vector<float>>> ends;
  for (const bool scaled : {false, true}) {
    manual_seed(2);
    nn::Linear net(4, 2);
    optim::Adam opt(net.parameters(), {.lr = 0.1});
    TrainStepOptions options{.max_grad_norm = 0.05};
    if (scaled) options.scaler = GradScaler({.init_scale = 1024, .growth_interval = 2});
    auto step = train_step(
        net, opt, [&](const Tensor& in, const Tensor& target) { return mse_loss(net(in), target); }, options);
    for (int i = 0; i < 5; ++i) step(x, y);
    EXPECT_EQ(opt.steps(), 5);
    if (scaled) {
      EXPECT_EQ(options.scaler->scale(), 4096);  // twice as much after the second and the fourth
    }
    ends.push_back(values_of(net.state_dict()));
    ends.push_back(values_of(opt.state_dict()));
  }
  EXPECT_EQ(ends[0], ends[2]);
  EXPECT_EQ(ends[1], ends[3]);
}

TEST(GradScaler, AnUpdateThatOverflowsIsLeftOutAndTheScaleGoesDown) {
  manual_seed(3);
  nn::Linear net(4, 2);
  optim::Adam opt(net.parameters(), {.lr = 0.1});
  GradScaler scaler({.init_scale = 8});
  auto step =
      train_step(net, opt, [&](const Tensor& in, const Tensor& y) { return mse_loss(net(in), y); }, {.scaler = scaler});
  const Tensor y = zeros({3, 2}).eval(), good = ones({3, 4}).eval(), bad = full({3, 4}, 1e30).eval();
  step(good, y);
  const std::int64_t plans = stats().plans_made;
  const auto net_before = values_of(net.state_dict()), opt_before = values_of(opt.state_dict());
  for (const double scale : {4, 2}) {
    step(bad, y);
    EXPECT_EQ(scaler.scale(), scale);
    EXPECT_EQ(opt.steps(), 1);
    EXPECT_EQ(values_of(net.state_dict()), net_before);
    EXPECT_EQ(values_of(opt.state_dict()), opt_before);
  }
  EXPECT_EQ(step.count(), 3);
  step(good, y);
  EXPECT_EQ(opt.steps(), 2);
  EXPECT_NE(values_of(net.state_dict()), net_before);
  EXPECT_EQ(stats().plans_made, plans) << "another scale makes no plan";
}

// f16 holds nothing above 65,504: with a scale far too large the first steps are left out, then training goes on.
TEST(GradScaler, TrainsInF16) {
  manual_seed(4);
  nn::Sequential net(nn::Conv2d(1, 4, 3), nn::ReLU(), nn::Flatten(), nn::Linear(4 * 6 * 6, 3));
  optim::SGD opt(net.parameters(), {.lr = 0.1});
  GradScaler scaler({.init_scale = 0x1p30});
  auto step = train_step(net, opt, [&](const Tensor& x, const Tensor& y) { return cross_entropy(net(x), y); },
                         {.autocast = f16, .scaler = scaler});
  const Tensor x = rand({6, 1, 8, 8}).eval(), y = from_host(std::vector<std::int64_t>{0, 1, 2, 0, 1, 2}, {6}).eval();
  const float first = step(x, y).item<float>();
  float last = first;
  for (int i = 0; i < 60; ++i) last = step(x, y).item<float>();
  EXPECT_LT(last, 0.5F * first);
  EXPECT_LT(scaler.scale(), 0x1p25);
  EXPECT_LT(opt.steps(), 61);
  EXPECT_GT(opt.steps(), 40);
}

TEST(GradScaler, ALoopOfOnesOwnAndItsState) {
  manual_seed(5);
  nn::Linear net(4, 2);
  optim::SGD opt(net.parameters(), {.lr = 0.1});
  GradScaler scaler({.init_scale = 4, .growth_interval = 3});
  const auto round = [&](const Tensor& x) {
    const Tensor loss = mse_loss(net(x), zeros({3, 2}));
    std::vector<Tensor> values;
    for (const nn::Parameter& p : net.parameters()) values.push_back(p.value());
    std::vector<Tensor> gradients = grad(scaler.scale(loss), values);
    scaler.unscale(gradients);
    const Tensor overflow = scaler.step(opt, gradients);
    scaler.update();
    return overflow.item<bool>();
  };
  EXPECT_FALSE(round(ones({3, 4})));
  EXPECT_TRUE(round(full({3, 4}, 1e30)));
  EXPECT_EQ(scaler.scale(), 2);
  EXPECT_FALSE(round(ones({3, 4})));
  EXPECT_FALSE(round(ones({3, 4})));
  GradScaler other({.growth_interval = 3});
  other.load_state_dict(scaler.state_dict());
  EXPECT_EQ(other.scale(), 2);
  EXPECT_FALSE(round(ones({3, 4})));
  EXPECT_EQ(scaler.scale(), 4);  // the third in a row
  EXPECT_EQ(opt.steps(), 4);
}

TEST(GradScaler, WhatCannotBeMeantIsRefused) {
  EXPECT_THROW(GradScaler({.init_scale = 0}), UserError);
  EXPECT_THROW(GradScaler({.growth_factor = 1}), UserError);
  EXPECT_THROW(GradScaler({.backoff_factor = 1}), UserError);
  EXPECT_THROW(GradScaler({.growth_interval = 0}), UserError);
  GradScaler scaler;
  EXPECT_THROW(scaler.scale(zeros({}, i64)), UserError);
  EXPECT_THROW(scaler.load_state_dict({{"scale", scalar(1.0, f64)}}), UserError);
  nn::Linear net(2, 2);
  optim::SGD opt(net.parameters());
  std::vector<Tensor> none{Tensor(), Tensor()};
  EXPECT_THROW(scaler.unscale(none), UserError);
  try {
    scaler.step(opt, none);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "GradScaler: step needs gradients that unscale() has had");
  }
}

}  // namespace
}  // namespace fusejit
