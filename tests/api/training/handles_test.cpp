// Optimisers and train steps are handles: in containers, as members, returned from functions, and alive for as long as
// something names them.
#include "tests/api/training/loops.h"

namespace fusejit::testing {
namespace {

class Handles : public Loop {};

optim::Adam returned(const nn::Module& net) {
  optim::Adam opt(net.parameters());
  opt.set_lr(0.5);
  return opt;
}

TEST_F(Handles, OptimisersAreValuesThatNameTheSameState) {
  std::vector<optim::Adam> optimisers;
  std::vector<Net> nets(3);
  for (const Net& net : nets) optimisers.push_back(returned(net));
  optim::Optimizer first = optimisers[0];  // of the class that all are of
  optim::Adam moved = std::move(optimisers[0]);
  optimisers.erase(optimisers.begin());
  for (int i = 0; i < 2; ++i) {
    const Tensor loss = loss_of(nets[0], i);
    first.step(loss);
    loss.eval();
  }
  EXPECT_EQ(moved.steps(), 2);
  EXPECT_EQ(moved.lr(), 0.5);
  EXPECT_TRUE(moved == first);
  EXPECT_FALSE(optimisers[0] == first);
  EXPECT_EQ(optimisers[0].steps(), 0);
  first.set_lr(0.25);
  EXPECT_EQ(moved.lr(), 0.25);
  first = optimisers[1];
  EXPECT_EQ(moved.steps(), 2) << "another handle is made to name something else";
}

// One of one's own, which is no class of the library.
TEST_F(Handles, ARuleOfOnesOwn) {
  struct Halving : optim::Rule {
    std::string name() const override { return "Halving"; }
    std::vector<std::string> state() const override { return {"last"}; }
    std::vector<double> numbers(const Settings& group, std::int64_t step) const override {
      return {group.lr, static_cast<double>(step)};
    }
    void apply(Update& u, const std::vector<Tensor>& n) const override {
      u.state[0] = u.value;
      u.value = u.value / 2 - u.gradient * n[0] * n[1];
    }
  };
  const nn::Parameter p("p", tensor<float>({8}));
  optim::Optimizer opt(std::make_shared<Halving>(), {{.parameters = {p}}}, {.lr = 1});
  for (int i = 0; i < 2; ++i) opt.update({tensor<float>({1})});
  EXPECT_EQ(p.value().item<float>(), (8.f / 2 - 1) / 2 - 2);
  EXPECT_EQ(opt.state_dict().at("0.last").item<float>(), 3);
}

// Nothing that the step was made of is left but what it holds.
Step<Tensor(int)> step_of_what_is_gone() {
  Net net;
  optim::SGD opt(net.parameters(), {.lr = 0.05, .momentum = 0.9});
  return train_step(net, opt, [net](int i) mutable { return loss_of(net, i); });
}

TEST_F(Handles, AStepHoldsWhatItNeeds) {
  const Reference reference = [] {
    Net net;
    optim::SGD opt(net.parameters(), {.lr = 0.05, .momentum = 0.9});
    auto step = train_step(net, opt, [&](int i) { return loss_of(net, i); });
    for (int i = 0; i < 3; ++i) step(i);
    return Reference{0, {{"loss", step(3).to_vector<float>()}}};
  }();
  restart();
  Step<Tensor(int)> step = step_of_what_is_gone();
  for (int i = 0; i < 3; ++i) step(i);
  EXPECT_EQ(step(3).to_vector<float>(), reference.values.at("loss"));
}

struct Trainer {
  Net net;
  optim::SGD opt{net.parameters(), {.lr = 0.05}};
  Step<std::pair<Tensor, Tensor>(Tensor, Tensor)> step =
      train_step(net, opt, [net = net](const Tensor& x, const Tensor& y) mutable {
        const Tensor scores = net(x);
        return std::pair(cross_entropy(scores, y), scores);
      });
};

TEST_F(Handles, AStepIsAMember) {
  std::vector<Trainer> trainers;
  for (int i = 0; i < 3; ++i) trainers.emplace_back();  // moves those before
  auto [before, scores] = trainers[1].step(images(0), classes(0));
  EXPECT_EQ(scores.shape(), (Shape{8, 3}));
  const Trainer copy = trainers[1];
  trainers[1].step(images(0), classes(0));
  EXPECT_LT(trainers[1].step(images(0), classes(0)).first.item<float>(), before.item<float>());
  EXPECT_EQ(copy.step.count(), 3);
  EXPECT_EQ(copy.opt.steps(), 3);
  EXPECT_EQ(values_of(copy.net), values_of(trainers[1].net));
  EXPECT_EQ(trainers[2].step.count(), 0);
}

TEST_F(Handles, AnEmptyStepSaysSo) {
  Step<Tensor(Tensor)> step;
  const std::function<void()> uses[] = {[&] { step(ones({1})); }, [&] { static_cast<void>(step.count()); },
                                        [&] { static_cast<void>(step.state_dict()); }};
  for (const auto& use : uses) {
    try {
      use();
      ADD_FAILURE() << "no error";
    } catch (const UserError& error) {
      EXPECT_STREQ(error.what(), "this train step is empty: train_step() makes one");
    }
  }
  nn::Linear net(1, 1);
  step = train_step(net, optim::SGD(net.parameters()), [net](const Tensor& x) mutable { return sum(net(x)); });
  step(ones({1, 1}));
  EXPECT_EQ(step.count(), 1);
}

}  // namespace
}  // namespace fusejit::testing
