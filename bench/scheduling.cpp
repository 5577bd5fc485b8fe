// What planning costs: microseconds a node to build, capture, run the passes on and schedule graphs of growing size.
// The columns must not grow with the rows: planning is linear.
//
//   scheduling [--most NODES] [--rules all|none]
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <functional>

#include "bench/command_line/options.h"
#include "ir/passes/passes.h"
#include "scheduler/make_plan.h"

namespace {

using namespace fusejit;
using ir::Op;
using ir::Value;

// Of this thread, so that others on the machine count little; the least of some runs, of few nodes of many.
double seconds_of(const std::function<void()>& work) {
  const auto now = [] {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  double least = 1e9, all = 0;
  for (int run = 0; run < 3 || (run < 20 && all < 0.2); ++run) {
    const double start = now();
    work();
    const double took = now() - start;
    least = std::min(least, took), all += took;
  }
  return least;
}

// One form of graph, with about `nodes` nodes.
struct Form {
  std::string name;
  std::function<Value(int nodes, std::vector<Value>& parameters)> build;
};

Value new_parameter(std::vector<Value>& parameters, std::initializer_list<std::int64_t> dims) {
  parameters.push_back(ir::parameter({f32, Shape(dims), Layout::standard}));
  return parameters.back();
}

Value chain(int nodes, std::vector<Value>& parameters) {
  Value x = new_parameter(parameters, {64, 64});
  for (int i = 0; i < nodes; ++i) x = i % 2 == 0 ? ir::build(Op::tanh, {x}) : ir::build(Op::mul, {x, 0.7});
  return x;
}

// Pairs are added until one value is left; the leaves are a parameter by different numbers.
Value tree(int nodes, std::vector<Value>& parameters) {
  const Value x = new_parameter(parameters, {64, 64});
  std::vector<Value> level;
  for (int i = 0; i < nodes / 2; ++i) level.push_back(ir::build(Op::mul, {x, 1.0 + i}));
  while (level.size() > 1) {
    std::vector<Value> next;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2) next.push_back(ir::build(Op::add, {level[i], level[i + 1]}));
    if (level.size() % 2 == 1) next.push_back(level.back());
    level = std::move(next);
  }
  return level[0];
}

// Every value is used by the next node and again much later, as in a training step.
Value there_and_back(int nodes, std::vector<Value>& parameters) {
  std::vector<Value> saved{new_parameter(parameters, {64, 64})};
  for (int i = 0; i < nodes / 4; ++i) saved.push_back(ir::build(Op::tanh, {saved.back()}));
  Value g = saved.back();
  for (std::size_t i = saved.size(); i-- > 0;) {
    const Value square = ir::build(Op::mul, {saved[i], saved[i]});
    g = ir::build(Op::mul, {g, ir::build(Op::sub, {1.0, square})});
  }
  return g;
}

// A layer is five nodes as recorded.
Value convolutions(int nodes, std::vector<Value>& parameters) {
  Value x = new_parameter(parameters, {1, 16, 8, 8});
  for (int i = 0; i < nodes / 5; ++i) {
    const Value w = new_parameter(parameters, {16, 16, 3, 3}), b = new_parameter(parameters, {16});
    const Value y = ir::build(Op::conv2d, {x, w}, {{"padding", {1, 1, 1, 1}}});
    const Value mean = ir::build(Op::mean, {y}, {{"dim", {0, 2, 3}}, {"keepdim", true}});
    const Value centred = ir::build(Op::sub, {y, mean});
    x = ir::build(Op::relu, {ir::build(Op::bias_add, {centred, b})});
  }
  return x;
}

void measure(const Form& form, int nodes, const std::string& rules) {
  std::vector<Value> parameters;
  Value result;
  ir::Graph graph, optimised;
  scheduler::Plan plan;
  const Target target = Target::parse("x86:avx2");
  const double build = seconds_of([&] {
    parameters.clear();
    result = form.build(nodes, parameters);
  });
  const double capture = seconds_of([&] { graph = ir::capture("bench", parameters, {result}); });
  const double passes = seconds_of([&] { optimised = ir::optimise(graph, target); });
  const double all = seconds_of([&] {
    plan = scheduler::make_plan(graph, {target, scheduler::parse_rules(rules), {}});
  });
  const double schedule = rules == "all" ? all - passes : all;
  const double count = static_cast<double>(graph.nodes().size());
  fmt::print("{:<16} {:>8} {:>8} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f}\n", form.name, graph.nodes().size(),
             plan.steps.size(), build / count * 1e6, capture / count * 1e6, passes / count * 1e6,
             schedule / count * 1e6);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  int most = 100000;
  std::string rules = "all", only;
  const auto end = fusejit::bench::read_options(
      argc, argv, "What planning costs, in microseconds a node",
      {{"--most", &most, "Nodes of the largest graph"},
       {"--rules", &rules, "Fusion: all or none", fusejit::bench::Range::any, {"all", "none"}},
       {"--only", &only, "One form of graph"}});
  if (end) return *end;
  const Form forms[] = {
      {"chain", chain}, {"tree", tree}, {"there-and-back", there_and_back}, {"convolutions", convolutions}};
  fmt::print("{:<16} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9}  us a node\n", "graph", "nodes", "kernels", "build", "capture",
             "passes", "schedule");
  for (const Form& form : forms) {
    if (!only.empty() && form.name != only) continue;
    for (int nodes = 1000; nodes <= most; nodes *= 10) {
      if (form.name == "convolutions" && nodes > 10000) break;  // 2000 layers
      measure(form, nodes, rules);
    }
  }
  return 0;
}
