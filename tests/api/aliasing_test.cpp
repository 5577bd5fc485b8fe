// One tensor in several roles of a step: two parameters that hold it, two arguments, an argument that is a result, an
// old parameter that is one. Nothing is overwritten that somebody still reads.
#include <gtest/gtest.h>

#include <sstream>

#include "fusejit/fusejit.h"
#include "tests/api/logged_test.h"

namespace fusejit {
namespace {

using Floats = std::vector<float>;

struct Two : nn::ModuleOf<Two> {
  explicit Two(const Tensor& of_a, const Tensor& of_b) : a(parameter("a", of_a)), b(parameter("b", of_b)) {}
  Tensor forward(const Tensor& x) override { return x * a.value() + b.value(); }
  nn::Parameter a, b;
};

// The log says what was lost to it: memory that could not be written again, a step in two parts.
class Aliasing : public LoggedTest {};

// Both are updated by their own gradient; neither sees the other's new value.
TEST_P(Aliasing, TwoParametersHoldOneTensor) {
  const Tensor shared = tensor<float>({3, 5});
  Two net(shared, shared);
  optim::SGD opt(net.parameters(), {.lr = 1.0});
  auto step = train_step(net, opt, [&](const Tensor& x) { return sum(net(x)); });
  for (int i = 0; i < 2; ++i) step(tensor<float>({2, 4}));
  EXPECT_EQ(net.a.value().to_vector<float>(), (Floats{-1, -3}));
  EXPECT_EQ(net.b.value().to_vector<float>(), (Floats{1, 3}));
  EXPECT_EQ(shared.to_vector<float>(), (Floats{3, 5}));
  EXPECT_GE(lines_with("a is not donated"), 1) << "it has the memory of the other and of a handle";
}

// However it came to that: not yet computed, a host's number, loaded under two names, handed from one to the other.
TEST_P(Aliasing, ValuesOfOtherParametersAreTheirOwn) {
  const auto train = [](Two& net) {
    optim::SGD opt(net.parameters(), {.lr = 1.0});
    auto step = train_step(net, opt, [&](const Tensor& x) { return sum(net(x)); });
    for (int i = 0; i < 2; ++i) step(tensor<float>({2, 4}));
    EXPECT_EQ(net.a.value().to_vector<float>(), (Floats{-1, -3}));
    EXPECT_EQ(net.b.value().to_vector<float>(), (Floats{1, 3}));
  };
  const Tensor late = tensor<float>({2, 4}) + 1;
  Two unevaluated(late, late);
  train(unevaluated);
  const Tensor wanted = tensor<float>({3, 5});
  Two loaded(zeros({2}), zeros({2}));
  loaded.load_state_dict({{"a", wanted}, {"b", wanted}});
  train(loaded);
  Two handed(wanted, zeros({2}));
  handed.b.set(handed.a.value());
  train(handed);
  Two again(wanted, wanted);  // which others were made of
  again.a.set(again.a.value());
  train(again);
  EXPECT_EQ(wanted.to_vector<float>(), (Floats{3, 5}));
}

TEST_P(Aliasing, OneTensorIsTwoArguments) {
  Two net(tensor<float>({3, 5}), tensor<float>({1, 1}));
  optim::SGD opt(net.parameters(), {.lr = 1.0});
  auto step = train_step(net, opt, [&](const Tensor& x, const Tensor& y) { return sum(net(x) * y); });
  const Tensor x = tensor<float>({2, 4});
  EXPECT_EQ(step(x, x).item<float>(), (2 * 3 + 1) * 2 + (4 * 5 + 1) * 4);
  EXPECT_EQ(net.a.value().to_vector<float>(), (Floats{3 - 4, 5 - 16}));
  EXPECT_EQ(net.b.value().to_vector<float>(), (Floats{1 - 2, 1 - 4}));
  EXPECT_EQ(x.to_vector<float>(), (Floats{2, 4}));
}

// A parameter's value is the parameter, wherever it is read: as in PyTorch.
TEST_P(Aliasing, AParameterIsAnArgument) {
  Two net(tensor<float>({3, 5}), tensor<float>({1, 1}));
  optim::SGD opt(net.parameters(), {.lr = 1.0});
  auto step = train_step(net, opt, [&](const Tensor& x) { return sum(net(x)); });
  const Tensor old = net.a.value();
  step(old);
  EXPECT_EQ(net.a.value().to_vector<float>(), (Floats{3 - 2 * 3, 5 - 2 * 5}));
  EXPECT_EQ(old.to_vector<float>(), (Floats{3, 5}));
  EXPECT_EQ(lines_with("a is not donated"), 1);
  EXPECT_EQ(lines_with("b is not donated"), 0);
}

TEST_P(Aliasing, ArgumentsAndOldParametersAreResults) {
  Two net(tensor<float>({3, 5}), tensor<float>({1, 1}));
  optim::SGD opt(net.parameters(), {.lr = 1.0});
  auto step = train_step(net, opt,
                         [&](const Tensor& x) { return std::tuple(sum(net(x)), x, net.a.value(), net.b.value() + 0); });
  const Tensor x = tensor<float>({2, 4});
  for (int i = 0; i < 2; ++i) {
    const Floats a = net.a.value().to_vector<float>(), b = net.b.value().to_vector<float>();
    auto [loss, same, before, other] = step(x);
    EXPECT_EQ(loss.item<float>(), 2 * a[0] + b[0] + 4 * a[1] + b[1]);
    EXPECT_EQ(same.to_vector<float>(), (Floats{2, 4}));
    EXPECT_EQ(before.to_vector<float>(), a);
    EXPECT_EQ(other.to_vector<float>(), b);
    EXPECT_EQ(net.a.value().to_vector<float>(), (Floats{a[0] - 2, a[1] - 4}));
  }
  EXPECT_GE(lines_with("a is not donated"), 1) << "its old value is a result";
}

// In the middle of a step.
TEST_P(Aliasing, PrintedAndReadOnTheWay) {
  Two net(tensor<float>({3, 5}), tensor<float>({1, 1}));
  optim::SGD opt(net.parameters(), {.lr = 1.0, .momentum = 0.5});
  std::vector<std::string> printed;
  auto step = train_step(net, opt, [&](const Tensor& x) {
    const Tensor y = net(x);
    std::ostringstream text;
    text << y;
    printed.push_back(text.str());
    return sum(y * y);
  });
  const Tensor x = tensor<float>({2, 4});
  EXPECT_EQ(step(x).item<float>(), 7 * 7 + 21 * 21);
  EXPECT_EQ(printed, (std::vector<std::string>{"[7, 21] : f32[2]"}));
  EXPECT_EQ(lines_with("the step is split there"), 1);
  EXPECT_EQ(net.a.value().to_vector<float>(), (Floats{3 - 2 * 7 * 2, 5 - 2 * 21 * 4}));
  EXPECT_EQ(net.b.value().to_vector<float>(), (Floats{1 - 2 * 7, 1 - 2 * 21}));
}

INSTANTIATE_TEST_SUITE_P(Engines, Aliasing, ::testing::Values("graph_interpreter", "compiled"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fusejit
