// What tests of training loops share: a small network, what a round of a loop costs, and what train_step makes of it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "frontend/context.h"
#include "frontend/state.h"
#include "fusejit/fusejit.h"

namespace fusejit::testing {

// Nodes that a value keeps alive: what it was, or is still to be, computed from.
inline std::int64_t nodes_behind(const Tensor& tensor) {
  const std::lock_guard lock(context().graph_mutex);
  std::unordered_set<const ir::Node*> seen;
  std::vector<const ir::Node*> open{tensor.state()->value.get()};
  while (!open.empty()) {
    const ir::Node* node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    for (const ir::Operand& operand : node->operands) {
      if (operand.value) open.push_back(operand.value.get());
    }
    if (deferred(node)) open.push_back(attachment(node)->source.get());
  }
  return static_cast<std::int64_t>(seen.size());
}

struct Net : nn::ModuleOf<Net> {
  nn::Conv2d conv = add("conv", nn::Conv2d(1, 4, 3));
  nn::BatchNorm2d norm = add("norm", nn::BatchNorm2d(4));
  nn::Linear head = add("head", nn::Linear(4 * 4 * 4, 3));
  Tensor forward(const Tensor& x) override { return head(flatten(relu(norm(conv(x))), 1)); }
};

inline Tensor images(int step) {
  std::vector<float> values(8 * 36);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((i * 37 + static_cast<std::size_t>(step) * 101) % 97) / 50 - 1;
  return from_host(values, {8, 1, 6, 6});
}
inline Tensor classes(int step) {
  std::vector<std::int64_t> values(8);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::int64_t>(i + static_cast<std::size_t>(step)) % 3;
  return from_host(values, {8});
}
inline Tensor loss_of(Net& net, int step) { return cross_entropy(net(images(step)), classes(step)); }

inline std::vector<Tensor> values_of(const optim::Optimizer& opt) {
  std::vector<Tensor> values;
  for (const nn::Parameter& p : opt.parameters()) values.push_back(p.value());
  return values;
}

inline std::unique_ptr<optim::Optimizer> optimizer_named(const std::string& name, const nn::Module& net) {
  if (name == "adam") return std::make_unique<optim::Adam>(net.parameters(), optim::AdamOptions{.lr = 0.01});
  if (name == "adadelta") return std::make_unique<optim::Adadelta>(net.parameters());
  return std::make_unique<optim::SGD>(
      net.parameters(), optim::SgdOptions{.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-3, .dampening = 0.1});
}

// What a round cost.
struct Round {
  std::int64_t kernels = 0, evaluations = 0, traces = 0, bytes = 0, nodes = 0;
};

class Loop : public ::testing::Test {
 protected:
  void SetUp() override { restart(); }
  void TearDown() override { set_options({}); }
  static void restart() {
    set_options({.threads = 2});
    manual_seed(5);
  }
  static Round measured(const nn::Module& net, const std::function<void()>& round) {
    const Statistics before = stats();
    round();
    const Statistics after = stats();
    Round r{after.last_plan.kernels, after.evaluations - before.evaluations, after.traces - before.traces,
            memory::allocated(), 0};
    for (const nn::Parameter& p : net.parameters()) r.nodes = std::max(r.nodes, nodes_behind(p.value()));
    return r;
  }
};

// Kernels of a train_step, and what it makes of the network in `steps` steps.
struct Reference {
  std::int64_t kernels = 0;
  std::map<std::string, std::vector<float>> values;
};
inline std::map<std::string, std::vector<float>> values_of(const nn::Module& net) {
  std::map<std::string, std::vector<float>> values;
  for (const auto& [name, value] : net.state_dict()) values[name] = value.to_vector<float>();
  return values;
}
inline Reference train_step_for(const std::string& optimizer, int steps) {
  Net net;
  const auto opt = optimizer_named(optimizer, net);
  int i = 0;
  auto step = train_step(net, *opt, [&] { return loss_of(net, i); });
  for (; i < steps; ++i) step();
  return {stats().last_plan.kernels, values_of(net)};
}
inline void expect_same(const std::map<std::string, std::vector<float>>& got, const Reference& want,
                        const std::string& what) {
  for (const auto& [name, values] : want.values) {
    for (std::size_t e = 0; e < values.size(); ++e)
      ASSERT_NEAR(got.at(name)[e], values[e], 1e-6 + 2e-4 * std::abs(values[e])) << what << ": " << name << " " << e;
  }
}

// A block that is used again may be larger than what is asked for, by a page in all here.
inline constexpr double kBlockBytes = 4096;

inline void expect_like(const Round& got, const Round& want, const std::string& what, std::size_t step) {
  const std::string where = what + ", step " + std::to_string(step);
  EXPECT_EQ(got.kernels, want.kernels) << where;
  EXPECT_EQ(got.evaluations, want.evaluations) << where;
  EXPECT_EQ(got.traces, 0) << where;
  EXPECT_NEAR(static_cast<double>(got.bytes), static_cast<double>(want.bytes), kBlockBytes) << where;
  EXPECT_EQ(got.nodes, want.nodes) << where;
}

}  // namespace fusejit::testing
