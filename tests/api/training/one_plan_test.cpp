// A training loop is one trace and one plan from its first step: optimisers' state is there before it, and what changes
// from step to step is an argument.
#include <optional>

#include "tests/api/training/loops.h"

namespace fusejit::testing {
namespace {

using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(const nn::Module&)>;
template <class Kind, class Settings>
MakeOptimizer with(Settings settings) {
  return [settings](const nn::Module& net) { return std::make_unique<Kind>(net.parameters(), settings); };
}

const std::pair<const char*, MakeOptimizer> kOptimizers[] = {
    {"sgd", with<optim::SGD>(optim::SgdOptions{.lr = 0.1})},
    {"sgd with decay", with<optim::SGD>(optim::SgdOptions{.lr = 0.1, .weight_decay = 1e-3})},
    {"momentum", with<optim::SGD>(optim::SgdOptions{.lr = 0.1, .momentum = 0.9})},
    {"momentum and decay", with<optim::SGD>(optim::SgdOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-3})},
    {"nesterov", with<optim::SGD>(optim::SgdOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true})},
    {"dampening", with<optim::SGD>(optim::SgdOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.5})},
    {"adam", with<optim::Adam>(optim::AdamOptions{})},
    {"adam with decay", with<optim::Adam>(optim::AdamOptions{.weight_decay = 1e-2})},
    {"amsgrad", with<optim::Adam>(optim::AdamOptions{.amsgrad = true})},
    {"adamw", with<optim::AdamW>(optim::AdamWOptions{})},
    {"rmsprop", with<optim::RMSprop>(optim::RmspropOptions{})},
    {"rmsprop, centered, with momentum",
     with<optim::RMSprop>(optim::RmspropOptions{.momentum = 0.9, .centered = true})},
    {"lion", with<optim::Lion>(optim::LionOptions{})},
    {"lion with decay", with<optim::Lion>(optim::LionOptions{.weight_decay = 1e-2})},
    {"lamb", with<optim::LAMB>(optim::LambOptions{})},
    {"lamb with decay", with<optim::LAMB>(optim::LambOptions{.weight_decay = 1e-2})},
    {"adadelta", with<optim::Adadelta>(optim::AdadeltaOptions{})},
    {"adadelta with decay", with<optim::Adadelta>(optim::AdadeltaOptions{.weight_decay = 1e-2})},
};

using Step = std::function<void(int step)>;
using MakeStep = std::function<Step(Net&, optim::Optimizer&)>;
const std::pair<const char*, MakeStep> kLoops[] = {
    {"train_step",
     [](Net& net, optim::Optimizer& opt) -> Step {
       auto i = std::make_shared<int>();
       auto step = train_step(net, opt, [&net, i] { return loss_of(net, *i); });
       return [i, step](int now) mutable { *i = now, step(); };
     }},
    {"train_step, clipped",
     [](Net& net, optim::Optimizer& opt) -> Step {
       auto i = std::make_shared<int>();
       auto step = train_step(net, opt, [&net, i] { return loss_of(net, *i); }, {.max_grad_norm = 1});
       return [i, step](int now) mutable { *i = now, step(); };
     }},
    {"step",
     [](Net& net, optim::Optimizer& opt) -> Step {
       return [&](int i) {
         const Tensor loss = loss_of(net, i);
         opt.step(loss);
         static_cast<void>(loss.item<float>());
       };
     }},
    {"update, then the loss",
     [](Net& net, optim::Optimizer& opt) -> Step {
       return [&](int i) {
         const Tensor loss = loss_of(net, i);
         opt.update(grad(loss, values_of(opt)));
         static_cast<void>(loss.item<float>());
       };
     }},
    {"everything evaluated",
     [](Net& net, optim::Optimizer& opt) -> Step {
       return [&](int i) {
         std::vector<Tensor> wanted{loss_of(net, i)};
         opt.update(grad(wanted[0], values_of(opt)));
         for (const auto& [name, value] : net.state_dict()) wanted.push_back(value);
         for (const auto& [name, value] : opt.state_dict()) wanted.push_back(value);
         eval(wanted);
       };
     }},
};

// Runs six steps, the last two at another learning rate, and expects no plan after those of the first `first` steps.
void expect_one_plan(const std::string& what, optim::Optimizer& opt, const Step& step, int first = 1) {
  for (int i = 0; i < 6; ++i) {
    if (i == 4) opt.set_lr(0.01);
    step(i);
    if (i + 1 < first) continue;
    EXPECT_EQ(stats().traces, 1) << what << ", step " << i + 1;
    EXPECT_EQ(stats().plans_made, 1) << what << ", step " << i + 1;
  }
}

class OnePlan : public Loop {};

TEST_F(OnePlan, FromTheFirstStep) {
  for (const auto& [optimizer, make] : kOptimizers) {
    for (const auto& [loop, make_step] : kLoops) {
      restart();
      Net net;
      const auto opt = make(net);
      expect_one_plan(std::string(optimizer) + ", " + loop, *opt, make_step(net, *opt));
    }
  }
}

// A schedule changes rates and momenta from step to step, and nothing else.
TEST_F(OnePlan, WithASchedule) {
  for (const auto& [optimizer, make] : kOptimizers) {
    restart();
    Net net;
    const auto opt = make(net);
    const bool has_momentum = opt->state_dict().contains("momentum");
    optim::OneCycleLR schedule(*opt, 0.01, 6, {.cycle_momentum = has_momentum});
    expect_one_plan(optimizer, *opt, [&](int i) {
      const Tensor loss = loss_of(net, i);
      opt->step(loss);
      loss.eval();
      schedule.step();
    });
  }
}

// A parameter that the loss does not reach keeps its value, and its state, in every step.
TEST_F(OnePlan, WithoutAGradient) {
  for (const auto& [optimizer, make] : kOptimizers) {
    restart();
    Net net;
    const auto opt = make(net);
    const std::vector<float> bias = opt->parameters().back().value().to_vector<float>();
    expect_one_plan(optimizer, *opt, [&](int i) {
      const Tensor loss = loss_of(net, i);
      std::vector<Tensor> gradients = grad(loss, values_of(*opt));
      gradients.back() = Tensor();
      opt->update(gradients);
      loss.eval();
    });
    EXPECT_EQ(opt->parameters().back().value().to_vector<float>(), bias) << optimizer;
  }
}

// Nothing is computed in the first step, its update in the second; what the second records waits for the third.
TEST_F(OnePlan, WhereNothingIsAskedFor) {
  for (const auto& [optimizer, make] : kOptimizers) {
    restart();
    Net net;
    const auto opt = make(net);
    expect_one_plan(
        optimizer, *opt, [&](int i) { opt->step(loss_of(net, i)); }, 2);
    restart();
    expect_one_plan(
        optimizer, *opt, [&](int i) { opt->update(grad(loss_of(net, i), values_of(*opt))); }, 2);
  }
}

// Whoever holds what a step begins with has it afterwards, and the step is the same plan with the same results.
using Hold = std::function<StateDict(Net&, optim::Optimizer&)>;
std::map<std::string, std::vector<float>> train_holding(const std::string& what, const Hold& hold) {
  Net net;
  optim::SGD opt(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  const StateDict held = hold(net, opt);
  std::map<std::string, std::vector<double>> before;
  for (const auto& [name, value] : held) before[name] = value.to_vector<double>();
  const std::int64_t traces = stats().traces, plans = stats().plans_made;
  int i = 0;
  auto step = train_step(net, opt, [&] { return loss_of(net, i); });
  StateDict newest;
  for (; i < 6; ++i) {
    step();
    EXPECT_EQ(stats().traces, traces + 1) << what << ", step " << i + 1;
    EXPECT_EQ(stats().plans_made, plans + 1) << what << ", step " << i + 1;
    if (i == 2) newest = net.state_dict();
  }
  for (const auto& [name, value] : held) EXPECT_EQ(value.to_vector<double>(), before[name]) << what << ": " << name;
  return values_of(net);
}

TEST_F(OnePlan, WithOldValuesHeld) {
  const auto expected = train_holding("nothing", [](Net&, optim::Optimizer&) { return StateDict(); });
  std::optional<Frozen> frozen;
  const std::pair<const char*, Hold> cases[] = {
      {"its state", [](Net& net, optim::Optimizer&) { return net.state_dict(); }},
      {"the optimiser's state", [](Net&, optim::Optimizer& opt) { return opt.state_dict(); }},
      {"what was loaded",
       [](Net& net, optim::Optimizer&) {
         StateDict given;
         for (const auto& [name, value] : net.state_dict())
           given.emplace(name, from_host(value.to_vector<float>(), value.shape()));
         net.load_state_dict(given);
         return given;
       }},
      {"what is frozen",
       [&](Net& net, optim::Optimizer&) {
         frozen = net.eval().freeze();
         static_cast<void>((*frozen)(images(0)).to_vector<float>());
         net.train();
         return StateDict();
       }},
  };
  for (const auto& [what, hold] : cases) {
    restart();
    EXPECT_EQ(train_holding(what, hold), expected) << what;
  }
}

// What a layer keeps for its gradient alone is given up with the step, and is not where its result is still held.
TEST_F(OnePlan, LayersThatKeepTheirInputGiveTheirWeightsUp) {
  std::vector<std::string> lines;
  set_log([&lines](std::string_view line) { lines.emplace_back(line); });
  const auto make = [] {
    manual_seed(3);
    const nn::ConvBatchNorm2dOptions keeps{.save_only_input = true};
    return nn::Sequential(nn::ConvBatchNorm2d(1, 4, 3, keeps), nn::ReLU(), nn::ConvBatchNorm2d(4, 8, 3, keeps));
  };
  for (const bool held : {false, true}) {
    nn::Sequential net = make(), same = make();
    optim::SGD opt(net.parameters(), {.lr = 0.1, .momentum = 0.9});
    Tensor inner;
    auto step = train_step(net, opt, [&](const Tensor& x) {
      const Tensor y = net(x);
      if (held) inner = y;
      return mean(square(y - 1));
    });
    const Tensor x = images(0);
    for (int i = 0; i < 3; ++i) {
      const Tensor expected = same(x).eval();
      lines.clear();
      step(x);
      EXPECT_EQ(lines.empty(), !held) << (lines.empty() ? "" : lines[0]);
      if (held) {
        EXPECT_EQ(inner.to_vector<float>(), expected.to_vector<float>()) << "from the old parameters";
      }
      same.load_state_dict(net.state_dict());
    }
  }
  set_log({});
}

}  // namespace
}  // namespace fusejit::testing
