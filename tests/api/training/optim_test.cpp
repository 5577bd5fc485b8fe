// Optimisers against twenty recorded steps of PyTorch; schedules, clipping, groups, state, refusals.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include "frontend/io/npz.h"
#include "tests/api/engines.h"

namespace fusejit {
namespace {

using Arrays = std::map<std::string, Tensor>;

Arrays recorded(const std::string& file) {
  Arrays arrays;
  const std::string path = std::string(FUSEJIT_SOURCE_DIR) + "/tests/reference/optim/" + file;
  for (const io::NamedArray& a : io::read_npz(path, [](std::string_view name) { return name != "torch_version"; })) {
    arrays[a.name] = from_host(a.bytes.data(), a.shape, a.dtype);
  }
  return arrays;
}

double number(const Arrays& arrays, const std::string& name, double otherwise) {
  const auto found = arrays.find(name);
  return found == arrays.end() ? otherwise : found->second.item<double>();
}

// A recorded number, or the option's default.
template <class T>
void take(const Arrays& a, const std::string& name, T& option) {
  if (const auto found = a.find(name); found != a.end()) option = found->second.item<T>();
}

template <class Kind, class Options>
optim::Optimizer with_moments(const Arrays& a, std::vector<nn::Parameter> p, Options o) {
  take(a, "lr", o.lr), take(a, "weight_decay", o.weight_decay), take(a, "beta1", o.beta1), take(a, "beta2", o.beta2);
  if constexpr (requires { o.eps; }) take(a, "eps", o.eps);
  if constexpr (requires { o.amsgrad; }) take(a, "amsgrad", o.amsgrad);
  return Kind(std::move(p), o);
}

optim::Optimizer optimizer_for(const std::string& file, const Arrays& a, std::vector<nn::Parameter> p) {
  const std::string kind = file.substr(0, file.find_first_of("_."));
  if (kind == "sgd") {
    optim::SgdOptions o;
    take(a, "lr", o.lr), take(a, "weight_decay", o.weight_decay), take(a, "momentum", o.momentum);
    take(a, "dampening", o.dampening), take(a, "nesterov", o.nesterov);
    return optim::SGD(std::move(p), o);
  }
  if (kind == "adadelta") {
    optim::AdadeltaOptions o;
    take(a, "lr", o.lr), take(a, "weight_decay", o.weight_decay), take(a, "rho", o.rho), take(a, "eps", o.eps);
    return optim::Adadelta(std::move(p), o);
  }
  if (kind == "rmsprop") {
    optim::RmspropOptions o;
    take(a, "lr", o.lr), take(a, "weight_decay", o.weight_decay), take(a, "alpha", o.alpha), take(a, "eps", o.eps);
    take(a, "momentum", o.momentum), take(a, "centered", o.centered);
    return optim::RMSprop(std::move(p), o);
  }
  if (kind == "adamw") return with_moments<optim::AdamW>(a, std::move(p), optim::AdamWOptions());
  if (kind == "lion") return with_moments<optim::Lion>(a, std::move(p), optim::LionOptions());
  if (kind == "lamb") return with_moments<optim::LAMB>(a, std::move(p), optim::LambOptions());
  EXPECT_EQ(kind, "adam");
  return with_moments<optim::Adam>(a, std::move(p), optim::AdamOptions());
}

using OptimCase = std::tuple<testing::EngineCase, std::string>;

class OptimReference : public ::testing::TestWithParam<OptimCase> {
 protected:
  void SetUp() override {
    const std::string why = testing::select_engine(std::get<0>(GetParam()));
    if (!why.empty()) GTEST_SKIP() << why;
  }
  void TearDown() override { set_options({}); }

 private:
  testing::Strictly strictly_;
};

TEST_P(OptimReference, TwentySteps) {
  const std::string& file = std::get<1>(GetParam());
  const Arrays a = recorded(file);
  std::vector<nn::Parameter> p{{"p0", a.at("p0.init")}, {"p1", a.at("p1.init")}};
  optim::Optimizer optimizer = optimizer_for(file, a, p);
  std::optional<optim::StepLR> schedule;
  if (a.contains("step_size"))
    schedule.emplace(optimizer, a.at("step_size").item<std::int64_t>(), number(a, "gamma", 1));
  const std::vector<double> lrs = a.at("lr.used").to_vector<double>();
  for (int step = 0; step < 20; ++step) {
    EXPECT_NEAR(optimizer.lr(), lrs[static_cast<std::size_t>(step)], 1e-12);
    std::vector<Tensor> gradients;
    for (const char* name : {"p0", "p1"})
      gradients.push_back(squeeze(slice(a.at(std::string(name) + ".grad"), 0, step, step + 1), {0}));
    if (a.contains("max_norm")) {
      const double norm = optim::clip_grad_norm(gradients, number(a, "max_norm", 0)).item<double>();
      EXPECT_NEAR(norm, a.at("total_norm").to_vector<double>()[static_cast<std::size_t>(step)], 1e-5 * norm);
    }
    optimizer.update(gradients);
    if (schedule) schedule->step();
    for (const std::size_t i : {0u, 1u}) {
      const std::vector<double> got = p[i].value().to_vector<double>();
      const std::vector<double> want =
          slice(a.at("p" + std::to_string(i) + ".after"), 0, step, step + 1).to_vector<double>();
      for (std::size_t e = 0; e < got.size(); ++e)
        ASSERT_NEAR(got[e], want[e], 2e-6 + 2e-5 * std::abs(want[e])) << "step " << step;
    }
  }
  if (std::string(std::get<0>(GetParam()).engine) == "compiled") {
    EXPECT_GT(stats().kernels_compiled, 0);
  }
}

const std::string kRecorded[] = {"sgd.npz",
                                 "sgd_momentum.npz",
                                 "sgd_nesterov.npz",
                                 "sgd_weight_decay.npz",
                                 "sgd_dampening.npz",
                                 "sgd_momentum_weight_decay.npz",
                                 "sgd_clip_norm.npz",
                                 "sgd_momentum_clip_norm.npz",
                                 "sgd_step_lr.npz",
                                 "adam.npz",
                                 "adam_weight_decay.npz",
                                 "adam_amsgrad.npz",
                                 "adamw.npz",
                                 "adamw_amsgrad.npz",
                                 "rmsprop.npz",
                                 "rmsprop_weight_decay.npz",
                                 "rmsprop_momentum.npz",
                                 "rmsprop_centered.npz",
                                 "rmsprop_centered_momentum.npz",
                                 "lion.npz",
                                 "lion_weight_decay.npz",
                                 "lamb.npz",
                                 "lamb_weight_decay.npz",
                                 "adadelta.npz",
                                 "adadelta_weight_decay.npz",
                                 "adadelta_step_lr.npz"};

INSTANTIATE_TEST_SUITE_P(Recorded, OptimReference,
                         ::testing::Combine(::testing::ValuesIn(testing::kEachKindOfEngine),
                                            ::testing::ValuesIn(kRecorded)),
                         [](const auto& info) {
                           const std::string& file = std::get<1>(info.param);
                           return std::get<0>(info.param).name + ("_" + file.substr(0, file.find('.')));
                         });

// No recorded file is left out.
TEST(OptimFiles, AreAllInTheTable) {
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(FUSEJIT_SOURCE_DIR) + "/tests/reference/optim")) {
    const std::string file = entry.path().filename().string();
    EXPECT_NE(std::find(std::begin(kRecorded), std::end(kRecorded), file), std::end(kRecorded)) << file;
  }
}

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
