// Optimisers against twenty recorded steps of PyTorch, of Lion and LAMB as in their papers; with clipping and a
// schedule.
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

}  // namespace
}  // namespace fusejit
