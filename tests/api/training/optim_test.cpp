// Optimisers against twenty recorded steps of PyTorch; schedules, clipping, groups, state, refusals.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

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

std::unique_ptr<optim::Optimizer> optimizer_for(const std::string& file, const Arrays& a,
                                                std::vector<nn::Parameter> p) {
  const double lr = number(a, "lr", 0), decay = number(a, "weight_decay", 0);
  if (file.starts_with("sgd")) {
    return std::make_unique<optim::SGD>(
        std::move(p), optim::SgdOptions{lr, number(a, "momentum", 0), decay, number(a, "dampening", 0),
                                        number(a, "nesterov", 0) != 0});
  }
  if (file.starts_with("adadelta")) {
    return std::make_unique<optim::Adadelta>(
        std::move(p), optim::AdadeltaOptions{lr, number(a, "rho", 0.9), number(a, "eps", 1e-6), decay});
  }
  return std::make_unique<optim::Adam>(
      std::move(p),
      optim::AdamOptions{lr, number(a, "beta1", 0.9), number(a, "beta2", 0.999), number(a, "eps", 1e-8), decay});
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
  const auto optimizer = optimizer_for(file, a, p);
  std::unique_ptr<optim::StepLR> schedule;
  if (a.contains("step_size")) {
    schedule =
        std::make_unique<optim::StepLR>(*optimizer, a.at("step_size").item<std::int64_t>(), number(a, "gamma", 1));
  }
  const std::vector<double> lrs = a.at("lr.used").to_vector<double>();
  for (int step = 0; step < 20; ++step) {
    EXPECT_NEAR(optimizer->lr(), lrs[static_cast<std::size_t>(step)], 1e-12);
    std::vector<Tensor> gradients;
    for (const char* name : {"p0", "p1"})
      gradients.push_back(squeeze(slice(a.at(std::string(name) + ".grad"), 0, step, step + 1), {0}));
    if (a.contains("max_norm")) {
      const double norm = optim::clip_grad_norm(gradients, number(a, "max_norm", 0)).item<double>();
      EXPECT_NEAR(norm, a.at("total_norm").to_vector<double>()[static_cast<std::size_t>(step)], 1e-5 * norm);
    }
    optimizer->update(gradients);
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
    if (file == "adamw.npz") continue;  // recorded ahead of the optimiser
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
  EXPECT_THROW(second.load_state_dict({}), UserError);
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
  optim::SGD opt({a}, {.lr = 0.5});
  EXPECT_THROW(opt.set_lr(nan), UserError);
  EXPECT_THROW(opt.lr(1), UserError);
  EXPECT_EQ(opt.lr(), 0.5);
  EXPECT_THROW(opt.update({}), UserError);
  EXPECT_THROW(optim::StepLR(opt, 0), UserError);
}

}  // namespace
}  // namespace fusejit
