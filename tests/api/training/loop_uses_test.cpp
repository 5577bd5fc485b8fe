// What surrounds training: evaluation, micro-batches, moving averages, several optimisers. None of it keeps a history.
#include <optional>

#include "tests/api/training/loops.h"

namespace fusejit::testing {
namespace {

TEST_F(Loop, EvaluationKeepsNothing) {
  for (const bool without_gradients : {false, true}) {
    restart();
    Net net;
    net.eval();
    std::vector<Round> rounds;
    for (int i = 0; i < 30; ++i) {
      rounds.push_back(measured(net, [&] {
        std::optional<NoGrad> off;
        if (without_gradients) off.emplace();
        static_cast<void>(sum(eq(argmax(net(images(i)), 1), classes(i)).to(f32)).item<float>());
      }));
    }
    for (std::size_t i = 10; i < rounds.size(); ++i) expect_like(rounds[i], rounds[9], "evaluation", i);
  }
}

TEST_F(Loop, GradientsAddUpOverMicroBatches) {
  constexpr int kSteps = 20, kParts = 3;
  std::map<std::string, std::vector<float>> lazily;
  for (const char* form : {"at the end", "every loss", "every sum"}) {
    restart();
    Net net;
    optim::SGD opt(net.parameters(), {.lr = 0.05, .momentum = 0.9});
    std::vector<Round> rounds;
    for (int i = 0; i < kSteps; ++i) {
      rounds.push_back(measured(net, [&] {
        std::vector<Tensor> total;
        Tensor loss;
        for (int part = 0; part < kParts; ++part) {
          loss = loss_of(net, i * kParts + part) / kParts;
          const std::vector<Tensor> gradients = grad(loss, values_of(opt));
          for (std::size_t p = 0; p < gradients.size(); ++p) {
            if (part == 0) total.push_back(gradients[p]);
            if (part != 0) total[p] = total[p] + gradients[p];
          }
          if (std::string(form) == "every loss") loss.eval();
          if (std::string(form) == "every sum") eval(total);
        }
        opt.update(total);
        if (std::string(form) == "at the end") loss.eval();
      }));
    }
    for (std::size_t i = 10; i < kSteps; ++i) expect_like(rounds[i], rounds[9], form, i);
    const auto values = values_of(net);
    if (lazily.empty()) lazily = values;
    expect_same(values, {0, lazily}, form);
  }
}

struct Average : nn::ModuleOf<Average> {
  explicit Average(const nn::Module& net) {
    for (const auto& [name, p] : net.named_parameters())
      values.push_back(state(std::to_string(values.size()), p.value()));
  }
  Tensor forward(const Tensor& x) override { return x; }
  std::vector<nn::Parameter> values;
};

TEST_F(Loop, MovingAveragesOfWeights) {
  constexpr int kSteps = 40;
  std::vector<float> expected;
  for (const char* form : {"asked for", "never asked for", "state of a module"}) {
    restart();
    Net net;
    optim::SGD opt(net.parameters(), {.lr = 0.05, .momentum = 0.9});
    std::vector<Tensor> average = values_of(opt);
    for (Tensor& a : average) a = a.detach();
    const Average module(net);
    std::vector<Round> rounds;
    std::int64_t nodes = 0;
    for (int i = 0; i < kSteps; ++i) {
      rounds.push_back(measured(net, [&] {
        const Tensor loss = loss_of(net, i);
        opt.step(loss);
        const NoGrad off;
        for (std::size_t p = 0; p < average.size(); ++p) {
          if (std::string(form) == "state of a module") {
            module.values[p].set(module.values[p].value() * 0.9 + opt.parameters()[p].value() * 0.1);
          } else {
            average[p] = average[p] * 0.9 + opt.parameters()[p].value() * 0.1;
          }
        }
        if (std::string(form) == "asked for") eval(average);
        loss.eval();
      }));
      for (const Tensor& a : average) nodes = std::max(nodes, nodes_behind(a));
    }
    for (std::size_t i = 12; i < kSteps; ++i) {
      EXPECT_NEAR(static_cast<double>(rounds[i].bytes), static_cast<double>(rounds[8 + i % 4].bytes), kBlockBytes)
          << form << " " << i;
      EXPECT_EQ(rounds[i].kernels, rounds[8 + i % 4].kernels) << form << " " << i;
      EXPECT_EQ(rounds[i].traces, 0) << form << " " << i;
    }
    EXPECT_LT(nodes, 300) << form;
    std::vector<float> got;
    for (std::size_t p = 0; p < average.size(); ++p) {
      const Tensor a = std::string(form) == "state of a module" ? module.values[p].value() : average[p];
      const std::vector<float> values = a.to_vector<float>();
      got.insert(got.end(), values.begin(), values.end());
    }
    if (expected.empty()) expected = got;
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t e = 0; e < got.size(); ++e) EXPECT_NEAR(got[e], expected[e], 1e-5) << form;
  }
}

TEST_F(Loop, TwoOptimisersOfOneLoss) {
  constexpr int kSteps = 20;
  const optim::SgdOptions options{.lr = 0.05, .momentum = 0.9};
  Net together;
  optim::SGD both(together.parameters(), options);
  int i = 0;
  auto step = train_step(together, both, [&] { return loss_of(together, i); });
  for (; i < kSteps; ++i) step();
  const Reference reference{stats().last_plan.kernels, values_of(together)};

  restart();
  Net net;
  optim::SGD body(net.conv.parameters(), options),
      rest({{.parameters = net.norm.parameters()}, {.parameters = net.head.parameters()}}, options);
  std::vector<Round> rounds;
  for (i = 0; i < kSteps; ++i) {
    rounds.push_back(measured(net, [&] {
      const Tensor loss = loss_of(net, i);
      body.step(loss);
      rest.step(loss);
      loss.eval();
    }));
    EXPECT_LE(static_cast<double>(rounds.back().kernels), 1.3 * static_cast<double>(reference.kernels));
    EXPECT_EQ(rounds.back().evaluations, 1);
  }
  for (std::size_t r = 10; r < kSteps; ++r) expect_like(rounds[r], rounds[9], "two optimisers", r);
  expect_same(values_of(net), reference, "two optimisers");
}

TEST_F(Loop, TakingTurns) {
  const auto run = [](bool asks) {
    restart();
    nn::Sequential maker(nn::Linear(2, 8), nn::ReLU(), nn::Linear(8, 4)),
        judge(nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 1));
    optim::Adam makers(maker.parameters()), judges(judge.parameters());
    const Tensor real = rand({16, 4}).eval();
    std::vector<Round> rounds;
    for (int i = 0; i < 30; ++i) {
      const Tensor noise = rand({16, 2}).eval();
      rounds.push_back(measured(judge, [&] {
        const Tensor made = maker(noise);
        const Tensor judged = mean(judge(made.detach())) - mean(judge(real));
        judges.step(judged);
        const Tensor fooled = -mean(judge(made));  // by the judge as it is now
        makers.step(fooled);
        if (asks) eval({judged, fooled});
      }));
      EXPECT_LE(rounds.back().evaluations, 2);
    }
    for (std::size_t r = 10; r < 30; ++r) expect_like(rounds[r], rounds[9], "turns", r);
    std::vector<float> values;
    for (const nn::Module* net : {static_cast<nn::Module*>(&maker), static_cast<nn::Module*>(&judge)}) {
      for (const auto& [name, value] : values_of(*net)) values.insert(values.end(), value.begin(), value.end());
    }
    return values;
  };
  const std::vector<float> asked = run(true), unasked = run(false);
  ASSERT_EQ(asked.size(), unasked.size());
  for (std::size_t e = 0; e < asked.size(); ++e) EXPECT_NEAR(asked[e], unasked[e], 1e-5);
}

}  // namespace
}  // namespace fusejit::testing
