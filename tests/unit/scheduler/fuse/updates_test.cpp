// What an optimiser moves: each tensor of its state is read once and written once, in place, whoever computes it.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "frontend/models/named.h"
#include "ir/kernel/cost/cost.h"
#include "ir/passes/grad.h"
#include "runtime/cudnn/step.h"
#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

struct Bytes {
  std::int64_t read = 0, written = 0;
};
// Of each value of the plan, by all of its steps.
std::map<int, Bytes> moved(const Plan& plan) {
  std::map<int, Bytes> of_value;
  for (const PlanStep& step : plan.steps) {
    std::map<ir::MemId, int> value;
    std::size_t next = 0;
    for (const ir::KernelParam& param : step.kernel->params)
      if (param.memory >= 0) value[param.memory] = step.values[next++];
    for (const ir::MemoryTraffic& traffic : ir::traffic(*step.kernel)) {
      const auto found = value.find(traffic.memory);
      if (found == value.end()) continue;  // work
      of_value[found->second].read += traffic.read_bytes;
      of_value[found->second].written += traffic.written_bytes;
    }
  }
  return of_value;
}

// `wants(name)`: the parameter is one of the optimiser's own.
int expect_once(const ir::Graph& graph, const std::vector<bool>& donated, const char* target, const auto& wants) {
  const Plan plan = make_plan(graph, {Target::parse(target), Rules::all, donated, runtime::cudnn::supports_step});
  std::map<int, Bytes> of_value = moved(plan);
  int count = 0;
  for (std::size_t i = 0; i < donated.size(); ++i) {
    const std::string name = graph.parameter_name(i);
    if (!donated[i] || !wants(name)) continue;
    const int before = plan.parameters[i];
    Bytes bytes = of_value[before];
    int results = 0;
    for (std::size_t v = 0; v < plan.values.size(); ++v) {
      if (plan.values[v].storage != Storage::donated || plan.values[v].index != static_cast<int>(i)) continue;
      ++results;
      if (static_cast<int>(v) == before) continue;
      bytes.read += of_value[static_cast<int>(v)].read, bytes.written += of_value[static_cast<int>(v)].written;
    }
    const std::int64_t all = graph.parameters()[i].type().bytes();
    EXPECT_EQ(bytes.read, all) << name << " on " << target;
    ++count;
    if (graph.parameters()[i].type().shape.rank() == 1) continue;  // a vector may be a new one
    EXPECT_EQ(results, 1) << name << " on " << target << " is not updated in place";
    EXPECT_EQ(bytes.written, all) << name << " on " << target;
  }
  return count;
}

bool is_state(const std::string& name) {
  for (const char* end : {"_momentum", "_acc_delta", "_square_avg", "_m", "_v"})
    if (name.ends_with(end)) return true;
  return false;
}

constexpr const char* kTargets[] = {"x86:avx512", "x86:avx2", "cuda:sm_90", "cuda:sm_90,cudnn=1"};

// SGD with momentum, Adadelta.
TEST(Updates, MoveEachTensorOfTheStateOnce) {
  for (const auto& [model, states] : {std::pair("resnet50@16x3x224x224:train", 161),
                                      {"mobilenet_v2@4x3x224x224:train", 158},
                                      {"convnet@250:train", 12}}) {
    const models::ModelGraph m = models::model_graph(model);
    for (const char* target : kTargets)
      EXPECT_EQ(expect_once(m.graph, {m.donated.begin(), m.donated.end()}, target, is_state), states) << model;
  }
}

// Adam, of a convolution's weights and a vector.
TEST(Updates, OfAdamToo) {
  const ir::Graph forward = ir::parse_graph(R"(graph @adam(%x: f32[16,64,28,28]:nhwc, %w: f32[64,64,3,3], %b: f32[64],
           %w_m: f32[64,64,3,3], %w_v: f32[64,64,3,3], %b_m: f32[64], %b_v: f32[64]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f32[16,64,28,28]:nhwc
  %1 = bias_add(%0, %b) : f32[16,64,28,28]:nhwc
  %2 = square(%1) : f32[16,64,28,28]:nhwc
  %3 = sum(%2) : f32[]
  return %3
})");
  const ir::Graph step = ir::differentiate(forward, {"w", "b"});
  std::vector<ir::Value> results{step.results()[0]};
  for (std::size_t i = 0; i < 2; ++i) {
    const ir::Value g = step.results()[1 + i], w = step.parameters()[1 + i], m = step.parameters()[3 + 2 * i],
                    v = step.parameters()[4 + 2 * i];
    const auto mixed = [](const ir::Value& old, double share, const ir::Value& next) {
      return ir::build(ir::Op::add, {ir::build(ir::Op::mul, {old, share}), ir::build(ir::Op::mul, {next, 1 - share})});
    };
    const ir::Value mean = mixed(m, 0.9, g), square = mixed(v, 0.99, ir::build(ir::Op::square, {g}));
    const ir::Value scale = ir::build(ir::Op::add, {ir::build(ir::Op::sqrt, {square}), 1e-6});
    results.push_back(mean), results.push_back(square);
    results.push_back(
        ir::build(ir::Op::sub, {w, ir::build(ir::Op::mul, {ir::build(ir::Op::div, {mean, scale}), 0.001})}));
  }
  const ir::Graph graph = ir::capture("adam", {step.parameters().begin(), step.parameters().end()}, results);
  std::vector<bool> donated(graph.parameters().size(), false);
  for (std::size_t i = 1; i < 7; ++i) donated[i] = true;
  for (const char* target : kTargets) EXPECT_EQ(expect_once(graph, donated, target, is_state), 4) << target;
}

}  // namespace
}  // namespace fusejit::scheduler
