// What optimisers make of groups, options left out, state, dtypes, zeros, and nonsense.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fusejit/fusejit.h"

namespace fusejit {
namespace {

class Optim : public ::testing::Test {
 protected:
  void SetUp() override { set_options({.engine = "graph_interpreter"}); }
};

TEST_F(Optim, GroupsHaveTheirOwnSettings) {
  const nn::Parameter a("a", tensor<float>({1})), b("b", tensor<float>({1}));
  optim::SGD opt(
      {{.parameters = {a}, .lr = {}, .weight_decay = {}}, {.parameters = {b}, .lr = 0.5, .weight_decay = 1.0}},
      {.lr = 0.25});
  opt.update({tensor<float>({1}), tensor<float>({1})});
  EXPECT_EQ(a.value().item<float>(), 0.75f);
  EXPECT_EQ(b.value().item<float>(), 0);
  opt.update({Tensor(), tensor<float>({1})});
  EXPECT_EQ(a.value().item<float>(), 0.75f) << "no gradient, no change";
}

TEST_F(Optim, StateRoundTrips) {
  const nn::Parameter a("a", tensor<float>({1})), b("b", tensor<float>({1}));
  optim::Adam first({a}), second({b});
  const Tensor g = tensor<float>({0.3f});
  first.update({g});
  second.load_state_dict(first.state_dict());
  b.set(a.value());
  first.update({g}), second.update({g});
  EXPECT_EQ(a.value().item<float>(), b.value().item<float>());
  EXPECT_EQ(second.steps(), 2);
}

TEST_F(Optim, DecoupledDecayIsAGroups) {
  const nn::Parameter a("a", tensor<float>({1})), b("b", tensor<float>({1}));
  optim::Lion opt({{.parameters = {a}}, {.parameters = {b}, .lr = 0.5, .weight_decay = 1.0}}, {.lr = 0.25});
  opt.update({tensor<float>({3}), tensor<float>({-3})});
  EXPECT_EQ(a.value().item<float>(), 0.75f);
  EXPECT_EQ(b.value().item<float>(), 1.0f) << "halved, and a half added";
}

// Parameters and state keep their dtype; what is computed in between is f32, or f64.
TEST_F(Optim, EveryFloatDtype) {
  const auto made = [](const nn::Parameter& p) {
    return std::vector<optim::Optimizer>{
        optim::SGD({p}, {.lr = 0.05, .momentum = 0.9, .weight_decay = 0.1}),
        optim::Adam({p}, {.lr = 0.05, .amsgrad = true}),
        optim::AdamW({p}, {.lr = 0.05}),
        optim::Adadelta({p}),
        optim::RMSprop({p}, {.lr = 0.05, .momentum = 0.5, .centered = true}),
        optim::Lion({p}, {.lr = 0.05, .weight_decay = 0.1}),
        optim::LAMB({p}, {.lr = 0.05, .weight_decay = 0.1}),
    };
  };
  const auto trained = [&](std::size_t which, DType dtype) {
    const nn::Parameter p("p", tensor<float>({1, -2, 0.5f}).to(dtype).eval());
    optim::Optimizer opt = made(p)[which];
    for (int i = 0; i < 3; ++i) opt.update({tensor<float>({0.5f, 1, -2}).to(dtype)});
    EXPECT_EQ(p.value().dtype(), dtype);
    for (const auto& [name, value] : opt.state_dict()) {
      if (name.starts_with("0.")) {
        EXPECT_EQ(value.dtype(), dtype) << name;
      }
    }
    return p.value().to_vector<double>();
  };
  for (const char* engine : {"graph_interpreter", "compiled"}) {
    set_options({.engine = engine});
    for (std::size_t which = 0; which < 7; ++which) {
      const std::vector<double> want = trained(which, f32);
      const std::pair<DType, double> steps[] = {{f64, 1e-5}, {f16, 0x1p-9}, {bf16, 0x1p-6}};  // a few roundings of 2
      for (const auto& [dtype, tolerance] : steps) {
        const std::vector<double> got = trained(which, dtype);
        for (std::size_t e = 0; e < want.size(); ++e)
          EXPECT_NEAR(got[e], want[e], 4 * tolerance) << "optimiser " << which << ", " << name(dtype) << ", " << engine;
      }
    }
  }
  set_options({});
}

// What the run set by hand is part of it.
TEST_F(Optim, StateHasRatesAndMomenta) {
  const nn::Parameter a("a", tensor<float>({1})), b("b", tensor<float>({1}));
  const auto make = [&] {
    return optim::SGD({{.parameters = {a}}, {.parameters = {b}, .lr = 0.5}}, {.lr = 0.25, .momentum = 0.5});
  };
  optim::SGD first = make(), second = make();
  first.set_lr(1, 0.125), first.set_momentum(0, 0.75);
  second.load_state_dict(first.state_dict());
  EXPECT_EQ(second.lr(0), 0.25);
  EXPECT_EQ(second.lr(1), 0.125);
  EXPECT_EQ(second.momentum(0), 0.75);
  EXPECT_EQ(second.momentum(1), 0.5);
}

// All of it or nothing, with names.
TEST_F(Optim, RefusesAStateThatDoesNotFit) {
  std::vector<nn::Parameter> many;
  for (int i = 0; i < 7; ++i) many.emplace_back("p" + std::to_string(i), tensor<float>({1, 2}));
  optim::Adam adam(many, {.lr = 0.5});
  const optim::SGD sgd(many, {.lr = 0.25, .momentum = 0.9});
  const StateDict before = adam.state_dict();
  const auto complaint = [&](const StateDict& state) -> std::string {
    try {
      adam.load_state_dict(state);
    } catch (const UserError& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(complaint(sgd.state_dict()),
            "Adam: of the optimiser's 17 values 14 are missing ('0.exp_avg', '0.exp_avg_sq', "
            "'1.exp_avg', '1.exp_avg_sq', '2.exp_avg' and 9 more), 7 are unknown ('0.momentum', '1.momentum', "
            "'2.momentum', '3.momentum', '4.momentum' and 2 more)");
  StateDict misshapen = before;
  misshapen["3.exp_avg"] = ones({3});
  EXPECT_EQ(complaint(misshapen),
            "Adam: of the optimiser's 17 values 1 is misshapen ('3.exp_avg' is f32[3] and should be "
            "f32[2])");
  StateDict negative = before;
  negative["lr"] = tensor<double>({-1});
  negative["0.exp_avg"] = ones({2});
  EXPECT_NE(complaint(negative).find("the state's learning rate is -1"), std::string::npos);
  negative["lr"] = before.at("lr"), negative["momentum"] = tensor<double>({1.5});
  EXPECT_NE(complaint(negative).find("the state's momentum is 1.5"), std::string::npos) << complaint(negative);
  EXPECT_EQ(adam.lr(), 0.5);
  EXPECT_EQ(adam.state_dict().at("0.exp_avg").to_vector<float>(), (std::vector<float>{0, 0}));
}

// What every optimiser does without any options is PyTorch's, or its paper's.
TEST_F(Optim, Defaults) {
  const nn::Parameter a("a", tensor<float>({1}));
  const struct {
    const char* name;
    optim::Optimizer optimizer;
    double lr, moved;  // by a first gradient of 2
  } cases[] = {
      {"SGD", optim::SGD({a}), 1e-3, 2e-3},
      {"Adam", optim::Adam({a}), 1e-3, 1e-3},
      {"AdamW", optim::AdamW({a}), 1e-3, 1e-3 + 1e-5},
      {"Adadelta", optim::Adadelta({a}), 1, std::sqrt(1e-6 / (0.4 + 1e-6)) * 2},
      {"RMSprop", optim::RMSprop({a}), 1e-2, 1e-2 * 2 / std::sqrt(0.04)},
      {"Lion", optim::Lion({a}), 1e-4, 1e-4},
      {"LAMB", optim::LAMB({a}), 1e-3, 1e-3},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(c.optimizer.lr(), c.lr) << c.name;
    a.set(tensor<float>({1}));
    optim::Optimizer(c.optimizer).update({tensor<float>({2})});
    EXPECT_NEAR(a.value().item<double>(), 1 - c.moved, 2e-7) << c.name;
  }
}

// The mean square of a constant gradient less its mean is 0, or just below where it is rounded.
TEST_F(Optim, CenteredRmspropStaysFinite) {
  const nn::Parameter a("a", tensor<float>({1, 1, 1}));
  optim::RMSprop opt({a}, {.lr = 1e-6, .alpha = 0.5, .centered = true});
  for (int i = 0; i < 60; ++i) opt.update({tensor<float>({0.1f, 0.3f, 0.7f})});
  for (const float value : a.value().to_vector<float>()) EXPECT_TRUE(std::isfinite(value)) << value;
}

TEST_F(Optim, LambLeavesZerosTheirStep) {
  const nn::Parameter zero("zero", zeros({2})), still("still", ones({2}));
  optim::LAMB opt({zero, still}, {.lr = 0.5});
  opt.update({tensor<float>({1, -1}), zeros({2})});
  const std::vector<float> moved = zero.value().to_vector<float>();
  EXPECT_NEAR(moved[0], -0.5, 1e-5);
  EXPECT_NEAR(moved[1], 0.5, 1e-5);
  EXPECT_EQ(still.value().to_vector<float>(), (std::vector<float>{1, 1}));
}

TEST_F(Optim, RefusesNonsense) {
  const nn::Parameter a("a", tensor<float>({1}));
  const double nan = std::nan("");
  EXPECT_THROW(optim::SGD({a}, {.lr = nan}), UserError);
  EXPECT_THROW(optim::SGD({a}, {.lr = -1}), UserError);
  EXPECT_THROW(optim::SGD({a, a}, {.lr = 1}), UserError);
  EXPECT_THROW(optim::SGD(std::vector<nn::Parameter>{}, {.lr = 1}), UserError);
  EXPECT_THROW(optim::SGD({a}, {.lr = 1, .nesterov = true}), UserError);
  EXPECT_THROW(optim::Adam({a}, {.beta1 = 1.5}), UserError);
  EXPECT_THROW(optim::Adadelta({a}, {.rho = -0.1}), UserError);
  EXPECT_THROW(optim::AdamW({a}, {.beta2 = 1}), UserError);
  EXPECT_THROW(optim::RMSprop({a}, {.alpha = 1.5}), UserError);
  EXPECT_THROW(optim::RMSprop({a}, {.momentum = nan}), UserError);
  EXPECT_THROW(optim::Lion({a}, {.beta1 = -1}), UserError);
  EXPECT_THROW(optim::LAMB({a}, {.eps = -1}), UserError);
  EXPECT_THROW(optim::Optimizer(nullptr, {{.parameters = {a}}}, {.lr = 1}), UserError);
  optim::SGD opt({a}, {.lr = 0.5});
  EXPECT_THROW(opt.set_lr(nan), UserError);
  EXPECT_THROW(opt.lr(1), UserError);
  EXPECT_THROW(opt.momentum(), UserError) << "there is none";
  EXPECT_THROW(opt.set_momentum(0, 0.5), UserError);
  optim::Adam adam({a});
  EXPECT_THROW(adam.set_momentum(0, 1), UserError);
  EXPECT_THROW(adam.set_momentum(1, 0.5), UserError);
  EXPECT_EQ(adam.momentum(), 0.9);
  EXPECT_EQ(opt.lr(), 0.5);
  EXPECT_THROW(opt.update({}), UserError);
  EXPECT_THROW(optim::StepLR(opt, 0), UserError);
}

}  // namespace
}  // namespace fusejit
