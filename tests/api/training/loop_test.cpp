// Training loops of one's own: what a round of grad, update and eval costs does not depend on the rounds before it, and
// is what train_step's costs.
#include <optional>

#include "tests/api/training/loops.h"

namespace fusejit::testing {
namespace {

using LoopForm = std::function<void(Net&, optim::Optimizer&, int step)>;
struct NamedForm {
  const char* name;
  LoopForm round;
  // Of train_step's kernels. Where the loss is asked for before the update is recorded, updates are kernels of their
  // own and not epilogues of their gradients.
  double most = 1.3;
};

const NamedForm kForms[] = {
    {"update, then the loss",
     [](Net& net, optim::Optimizer& opt, int i) {
       const Tensor loss = loss_of(net, i);
       opt.update(grad(loss, values_of(opt)));
       loss.eval();
     }},
    {"the loss, then update",
     [](Net& net, optim::Optimizer& opt, int i) {
       const Tensor loss = loss_of(net, i);
       const std::vector<Tensor> gradients = grad(loss, values_of(opt));
       loss.eval();
       opt.update(gradients);
     },
     1.5},
    {"everything evaluated",
     [](Net& net, optim::Optimizer& opt, int i) {
       std::vector<Tensor> wanted{loss_of(net, i)};
       opt.update(grad(wanted[0], values_of(opt)));
       for (const auto& [name, value] : net.state_dict()) wanted.push_back(value);
       for (const auto& [name, value] : opt.state_dict()) wanted.push_back(value);
       eval(wanted);
     }},
    {"update without gradients",
     [](Net& net, optim::Optimizer& opt, int i) {
       const Tensor loss = loss_of(net, i);
       const std::vector<Tensor> gradients = grad(loss, values_of(opt));
       const NoGrad off;
       opt.update(gradients);
       loss.eval();
     }},
    {"parameters alone evaluated",
     [](Net& net, optim::Optimizer& opt, int i) {
       opt.update(grad(loss_of(net, i), values_of(opt)));
       eval(values_of(opt));
     }},
    {"step",
     [](Net& net, optim::Optimizer& opt, int i) {
       const Tensor loss = loss_of(net, i);
       opt.step(loss);
       static_cast<void>(loss.item<float>());
     }},
    {"nothing asked for", [](Net& net, optim::Optimizer& opt, int i) { opt.step(loss_of(net, i)); }},
    {"the loss of every third round",
     [](Net& net, optim::Optimizer& opt, int i) {
       const Tensor loss = loss_of(net, i);
       opt.step(loss);
       if (i % 3 == 0) static_cast<void>(loss.item<float>());
     }},
};

TEST_F(Loop, CostsWhatTrainStepCosts) {
  constexpr int kSteps = 30;
  for (const char* optimizer : {"sgd", "adam", "adadelta"}) {
    restart();
    const Reference reference = train_step_for(optimizer, kSteps);
    for (const NamedForm& form : kForms) {
      if (std::string(optimizer) != "sgd" && std::string(form.name) != "step") continue;
      restart();
      const std::string what = std::string(optimizer) + ", " + form.name;
      Net net;
      const auto opt = optimizer_named(optimizer, net);
      std::vector<Round> rounds;
      for (int i = 0; i < kSteps; ++i) rounds.push_back(measured(net, [&] { form.round(net, *opt, i); }));
      for (std::size_t i = 12; i < kSteps; ++i) expect_like(rounds[i], rounds[9 + i % 3], what, i);
      std::int64_t evaluations = 0;
      for (const Round& r : rounds) {
        EXPECT_LE(static_cast<double>(r.kernels), form.most * static_cast<double>(reference.kernels)) << what;
        evaluations += r.evaluations;
      }
      EXPECT_LE(evaluations, kSteps) << what;
      expect_same(values_of(net), reference, what);
    }
  }
}

// Everything a round does is in one plan when the loss is asked for, and in none before.
TEST_F(Loop, AStepIsLazyAndOnePlan) {
  Net net;
  optim::SGD opt(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  eval(values_of(opt));
  const std::int64_t before = stats().evaluations;
  const Tensor loss = loss_of(net, 0);
  opt.step(loss);
  EXPECT_EQ(stats().evaluations, before);
  EXPECT_EQ(opt.steps(), 1);
  EXPECT_FALSE(net.head.weight().value().evaluated());
  static_cast<void>(net.head.weight().value().to_vector<float>());
  EXPECT_EQ(stats().evaluations, before + 1);
  EXPECT_TRUE(loss.evaluated());
  for (const auto& [name, value] : net.state_dict()) EXPECT_TRUE(value.evaluated()) << name;
  for (const auto& [name, value] : opt.state_dict()) EXPECT_TRUE(value.evaluated()) << name;
  EXPECT_EQ(stats().evaluations, before + 1);
}

TEST_F(Loop, TwoThousandStepsAreFlat) {
  nn::Sequential net(nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 1));
  optim::Adam opt(net.parameters());
  const Tensor x = rand({16, 4}).eval(), y = sum(x, {1}, true).eval();
  std::vector<Round> rounds;
  float first = 0, last = 0;
  for (int i = 0; i < 2000; ++i) {
    rounds.push_back(measured(net, [&] {
      const Tensor loss = mse_loss(net(x), y);
      opt.step(loss);
      last = loss.item<float>();
    }));
    if (i == 0) first = last;
  }
  for (std::size_t i = 10; i < rounds.size(); ++i) expect_like(rounds[i], rounds[9], "adam", i);
  EXPECT_LT(last, first / 10);
}

// Weights that are plain tensors, as one would write without nn and optim.
TEST_F(Loop, PlainTensorsKeepNoHistory) {
  for (const bool with_no_grad : {false, true}) {
    restart();
    Tensor w = rand({4, 1}).requires_grad();
    const Tensor x = rand({16, 4}).eval(), y = sum(x, {1}, true).eval();
    std::int64_t kernels = 0, nodes = 0;
    float value = 0;
    for (int i = 0; i < 40; ++i) {
      const Tensor loss = mse_loss(matmul(x, w), y);
      const Tensor g = grad(loss, {w})[0];
      if (with_no_grad) {
        const NoGrad off;
        w = (w - g * 0.5).requires_grad();
      } else {
        w = (w - g * 0.5).detach().requires_grad();
      }
      value = loss.item<float>();
      if (i == 9) kernels = stats().last_plan.kernels, nodes = nodes_behind(w);
      if (i > 9) {
        ASSERT_EQ(stats().last_plan.kernels, kernels) << i;
        ASSERT_EQ(nodes_behind(w), nodes) << i;
      }
    }
    EXPECT_EQ(nodes, 1);
    EXPECT_LT(value, 1e-3);
  }
}

// Micro-batches add up to the batch; how often values are asked for in between changes no number and keeps nothing.
// A moving average of the weights: as plain tensors that are asked for or never are, and as state of a module.
// Two optimisers of one loss, and two that take turns as a generator and a discriminator do.
// What an update leaves is a leaf: the gradient does not go on through it, evaluated or not.
TEST_F(Loop, GradientsEndAtAnUpdatedParameter) {
  for (const bool evaluated : {false, true}) {
    const nn::Parameter w("w", tensor<float>({3}));
    const Tensor old = w.value();
    optim::SGD opt({w}, {.lr = 0.5});
    opt.step(sum(square(w.value())));
    if (evaluated) w.value().eval();
    const Tensor loss = sum(square(w.value()));
    EXPECT_THROW(grad(loss, {old}), UserError);
    EXPECT_EQ(grad(loss, {w.value()})[0].item<float>(), 0);
    EXPECT_EQ(w.value().item<float>(), 0);
    EXPECT_EQ(old.item<float>(), 3) << "old handles keep the old value";
  }
  const nn::Parameter a("a", tensor<float>({3})), b("b", tensor<float>({2}));
  b.set(a.value() * 2);
  EXPECT_THROW(grad(sum(b.value()), {a.value()}), UserError);
  EXPECT_EQ(grad(sum(square(b.value())), {b.value()})[0].item<float>(), 12);
}

TEST_F(Loop, RefusedUpdatesChangeNothing) {
  const nn::Parameter a("a", tensor<float>({1, 2})), b("b", tensor<float>({3}));
  optim::SGD opt({a, b}, {.lr = 1, .momentum = 0.5});
  EXPECT_THROW(opt.update({ones({2}), ones({2})}), UserError);
  EXPECT_THROW(opt.step(a.value()), UserError) << "two numbers";
  EXPECT_THROW(opt.step(sum(ones({2}))), UserError) << "depends on no parameter";
  EXPECT_THROW(opt.step(Tensor()), UserError);
  EXPECT_EQ(opt.steps(), 0);
  EXPECT_EQ(a.value().to_vector<float>(), (std::vector<float>{1, 2}));
  opt.step(sum(b.value()));
  EXPECT_EQ(a.value().to_vector<float>(), (std::vector<float>{1, 2})) << "the loss does not depend on it";
  EXPECT_EQ(b.value().item<float>(), 2);
}

// 10^5 values set one after the other, none asked for, end without recursion.
TEST_F(Loop, LongChainsOfLeavesEnd) {
  set_trace_limit(1'000'000);
  const nn::Parameter p("p", zeros({1}));
  for (int i = 0; i < 100'000; ++i) p.set(p.value() + 1);
  p.set(ones({1}).eval());
  set_trace_limit(10'000);
  EXPECT_EQ(p.value().item<float>(), 1);
}

}  // namespace
}  // namespace fusejit::testing
