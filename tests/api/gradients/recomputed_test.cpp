// What is computed again for its gradient: the same gradients, less memory, whatever is inside.
#include <gtest/gtest.h>

#include <functional>

#include "fusejit/fusejit.h"
#include "tests/support/error_of.h"

namespace fusejit::testing {
namespace {

// A block as it is, and as a part that is computed again: value and gradients by everything that it reads.
struct Both {
  std::vector<std::vector<float>> plain, again;
};
using Block = std::function<Tensor(const std::vector<Tensor>&)>;
Both both(const Block& block, const std::vector<Shape>& shapes) {
  Both found;
  for (const bool again : {false, true}) {
    manual_seed(7);
    std::vector<Tensor> inputs;
    for (const Shape& shape : shapes) {
      Tensor input = randn(shape);
      input.eval();
      inputs.push_back(input.requires_grad());
    }
    const Tensor y = again ? recomputed([&] { return block(inputs); }) : block(inputs);
    std::vector<Tensor> values = grad(sum(square(y) + y), inputs);
    values.push_back(y);
    auto& to = again ? found.again : found.plain;
    for (const Tensor& value : values) to.push_back(value.to_vector<float>());
  }
  return found;
}

TEST(Recomputed, GradientsAreTheSame) {
  const struct {
    const char* name;
    Block block;
    std::vector<Shape> shapes;
  } cases[] = {
      {"element by element", [](auto& in) { return exp(sin(in[0])) * in[1]; }, {{5, 7}, {7}}},
      {"products and sums",
       [](auto& in) { return softmax(matmul(relu(matmul(in[0], in[1])), in[2]), 1); },
       {{4, 6}, {6, 8}, {8, 3}}},
      {"batch norm",
       [](auto& in) { return relu(batch_norm_train(conv2d(in[0], in[1]), in[2], in[3])); },
       {{2, 3, 8, 8}, {4, 3, 3, 3}, {4}, {4}}},
      {"dropout", [](auto& in) { return dropout(in[0] * in[0], 0.5); }, {{64}}},
      {"an input that is the result", [](auto& in) { return in[0]; }, {{6}}},
      {"one that is read twice, and one that is not", [](auto& in) { return in[0] * sin(in[0]); }, {{6}}},
      {"within one another",
       [](auto& in) {
         const Tensor h = exp(in[0]);
         const Tensor inner = recomputed([&] { return sin(h) * in[1]; });
         return inner * recomputed([&] { return cos(inner); });
       },
       {{6}, {6}}},
      {"a gradient of its own", [](auto& in) { return sort(in[0] * in[1], 0).values; }, {{9}, {9}}},
      {"a layer that keeps its input",
       [](auto& in) {
         const nn::ConvBatchNorm2d layer(3, 4, 3);
         return relu(layer(in[0]));
       },
       {{2, 3, 8, 8}}},
  };
  for (const auto& [name, block, shapes] : cases) {
    const Both found = both(block, shapes);
    ASSERT_EQ(found.again.size(), found.plain.size()) << name;
    for (std::size_t i = 0; i < found.again.size(); ++i) {
      ASSERT_EQ(found.again[i].size(), found.plain[i].size()) << name;
      for (std::size_t e = 0; e < found.again[i].size(); ++e)
        EXPECT_NEAR(found.again[i][e], found.plain[i][e], 2e-6 * (1 + std::abs(found.plain[i][e])))
            << name << ", value " << i << ", element " << e;
    }
  }
}

// What a function captures has its gradient like an argument, also where it is itself computed.
TEST(Recomputed, WhatIsCapturedHasGradients) {
  const Tensor w = tensor<float>({1, 2, 3}).requires_grad();
  const Tensor twice = w * 2;
  const Tensor y = recomputed([&] { return square(twice) * w; });
  const std::vector<Tensor> g = grad({sum(y) + sum(twice)}, {ones({})}, {w, twice});
  EXPECT_EQ(g[0].to_vector<float>(), (std::vector<float>{12 + 2, 48 + 2, 108 + 2}));
  EXPECT_EQ(g[1].to_vector<float>(), (std::vector<float>{4 + 1, 16 + 1, 36 + 1}));
}

TEST(Recomputed, CanBeDifferentiatedTwice) {
  const Tensor x = tensor<double>({0.3, -1.2});
  const auto f = [](const std::vector<Tensor>& in) { return recomputed([&] { return exp(in[0] * in[0]); }); };
  EXPECT_TRUE(gradcheck(f, {x}));
  EXPECT_TRUE(gradcheck([&](const std::vector<Tensor>& in) { return grad(sum(f(in)), {in[0]})[0]; }, {x}));
}

TEST(Recomputed, NothingIsKeptWhereNoGradientIsAsked) {
  const Tensor x = tensor<float>({1, 2});
  EXPECT_EQ(recomputed([&] { return x + 1; }).to_vector<float>(), (std::vector<float>{2, 3}));
  Tensor w = x;
  w.requires_grad();
  {
    const NoGrad off;
    EXPECT_FALSE(recomputed([&] { return w * 2; }).needs_grad());
  }
  EXPECT_EQ(error_of([] { recomputed({}); }), "recomputed: there is no function");
  EXPECT_EQ(error_of([] { recomputed([] { return Tensor(); }); }), "recomputed: the function gave an empty result");
}

TEST(Recomputed, AModuleIsFoundByItsName) {
  models::ResNet net = models::resnet18(10);
  EXPECT_EQ(
      error_of([&] { net.recompute("layer5"); }),
      "recompute: there is no module 'layer5' in ResNet (there are: conv1, bn1, layer1, layer2, layer3, layer4, fc)");
  EXPECT_EQ(error_of([&] { net.recompute("layer2.7"); }),
            "recompute: there is no module '7' in layer2 (there are: 0, 1)");
  EXPECT_EQ(error_of([&] { net.recompute("layer2.0.conv1.x"); }),
            "recompute: there is no module 'x' in layer2.0.conv1 (there are: none)");
}

// Named modules of a whole network, whose kernels are planned as one step: less memory with the same numbers.
TEST(Recomputed, StagesOfANetworkTakeLessMemory) {
  const auto train = [](bool again) {
    set_options({});
    manual_seed(2);
    models::ResNet net = models::resnet18(10);
    if (again) net.recompute("layer1.0").recompute("layer1.1").recompute("layer2").recompute("layer3");
    optim::SGD opt(net.parameters(), {.lr = 0.05, .momentum = 0.9});
    auto step = train_step(net, opt, [&](const Tensor& x, const Tensor& t) { return cross_entropy(net(x), t); });
    const Tensor x = rand({4, 3, 64, 64}), target = tensor<std::int64_t>({1, 7, 3, 0});
    std::vector<float> losses;
    for (int i = 0; i < 3; ++i) losses.push_back(step(x, target).item<float>());
    return std::pair(stats().last_plan.arena_bytes, losses);
  };
  const auto [plain, losses] = train(false);
  const auto [less, same] = train(true);
  EXPECT_LT(static_cast<double>(less), 0.9 * static_cast<double>(plain));
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(same[i], losses[i], 2e-3 * losses[i]) << i;
}

// A chain of wide layers: statistics move once, arguments are given up, and the step takes less memory with the same
// numbers.
TEST(Recomputed, AModuleTakesLessMemory) {
  struct Result {
    std::int64_t bytes;
    std::vector<float> weights, running;
  };
  const auto train = [](bool recompute) {
    set_options({});
    manual_seed(3);
    nn::Sequential net;
    for (int i = 0; i < 4; ++i) {
      nn::Sequential block(nn::Conv2d(i == 0 ? 3 : 32, 32, 3, {.padding = 1}), nn::BatchNorm2d(32), nn::SiLU(),
                           nn::Conv2d(32, 32, 3, {.padding = 1}), nn::BatchNorm2d(32), nn::SiLU());
      block.recompute(recompute);
      net.push_back(block);
    }
    optim::SGD opt(net.parameters(), {.lr = 0.1, .momentum = 0.9});
    std::vector<std::string> lines;
    set_log([&lines](std::string_view line) { lines.emplace_back(line); });
    auto step = train_step(net, opt, [&](const Tensor& x) { return mean(square(net(x))); });
    for (int i = 0; i < 2; ++i) step(rand({8, 3, 16, 16}).eval());
    set_log({});
    EXPECT_TRUE(lines.empty()) << lines[0];
    return Result{stats().last_plan.memory_bytes, net.parameters()[0].value().to_vector<float>(),
                  net.state_dict().at("1.1.running_mean").to_vector<float>()};
  };
  const Result plain = train(false), again = train(true);
  EXPECT_LT(static_cast<double>(again.bytes), 0.6 * static_cast<double>(plain.bytes));
  for (std::size_t i = 0; i < plain.weights.size(); ++i) EXPECT_NEAR(again.weights[i], plain.weights[i], 2e-5) << i;
  for (std::size_t i = 0; i < plain.running.size(); ++i) EXPECT_NEAR(again.running[i], plain.running[i], 1e-5) << i;
}

}  // namespace
}  // namespace fusejit::testing
