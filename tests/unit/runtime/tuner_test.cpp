// Schedules chosen by their time: which, is the machine's business; that results are right, that "quick" changes no
// bit, and that the choice is kept, is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "ir/passes/grad.h"
#include "runtime/disk/disk_cache.h"
#include "runtime/session.h"
#include "scheduler/choose/neighbours.h"
#include "scheduler/make_plan.h"
#include "tests/support/cache_folder.h"

namespace fusejit::runtime {
namespace {

// Two convolutions in training: statistics, a prologue, weight gradients, an update.
ir::Graph network() {
  const auto image = [](const char* name, std::vector<std::int64_t> dims) {
    return ir::parameter({DType::f32, Shape(dims), Layout::nhwc}, name);
  };
  const std::vector<std::int64_t> one{1, 1, 1, 1}, three{3, 3};
  const ir::Value x = image("x", {4, 16, 14, 14}), w = image("w", {32, 16, 3, 3}), v = image("v", {32, 32, 3, 3});
  const ir::Value y = ir::build(ir::Op::relu,
                                {ir::build(ir::Op::batch_norm_train,
                                           {ir::build(ir::Op::conv2d, {x, w}, {{"padding", one}}), 1, 0})}),
                  z = ir::build(ir::Op::conv2d, {y, v}, {{"padding", one}}),
                  dv = ir::build(ir::Op::conv2d_weight_grad, {y, z}, {{"kernel_size", three}, {"padding", one}}),
                  next = ir::build(ir::Op::sub, {v, ir::build(ir::Op::mul, {dv, 0.1})});
  return ir::capture("g", {x, w, v}, {z, next});
}

std::vector<Buffer> arguments(const ir::Graph& graph) {
  std::vector<Buffer> list;
  for (const ir::Value& parameter : graph.parameters()) {
    list.push_back(Buffer::allocate(parameter.type()));
    auto* numbers = reinterpret_cast<float*>(list.back().data());
    for (std::int64_t i = 0; i < parameter.type().elements(); ++i)
      numbers[i] = static_cast<float>((i * 37) % 64 - 31) / 64;
  }
  return list;
}

SessionOptions options(Tune tune, std::vector<std::string>* said = nullptr) {
  SessionOptions wanted;
  wanted.threads = 2;
  wanted.tune = tune;
  if (said != nullptr) wanted.log = [said](const std::string& line) { said->push_back(line); };
  return wanted;
}

std::vector<Buffer> run(Session& session, const ir::Graph& graph) {
  const std::vector<Buffer> given = arguments(graph);
  return session.run(graph, given);
}

bool same_bits(const Buffer& a, const Buffer& b) {
  return std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.type().bytes())) == 0;
}

TEST(Tune, QuickHasTheBitsOfThePlanWithout) {
  const ir::Graph graph = network();
  std::vector<std::string> said;
  Session plain(options(Tune::off)), tuned(options(Tune::quick, &said));
  const std::vector<Buffer> right = run(plain, graph), results = run(tuned, graph);
  for (std::size_t r = 0; r < right.size(); ++r) EXPECT_TRUE(same_bits(results[r], right[r])) << r;
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("tune=quick: "), std::string::npos) << said[0];
  EXPECT_EQ(said[0].find(" 0 were tried"), std::string::npos) << said[0];
}

// A convolution of one tap, whose gradients are one kernel where L2 is small: that stays, and others are tried.
TEST(Tune, BothGradientsStayTogether) {
  const ir::Graph forward = ir::parse_graph(
      R"(graph @g(%x: f32[4,8,20,20]:nhwc, %w: f32[32,8,1,1], %v: f32[8,32,3,3], %a: f32[32], %b: f32[32]) {
  %0 = conv2d(%x, %w) : f32[4,32,20,20]:nhwc
  %1 = batch_norm_train(%0, %a, %b) : f32[4,32,20,20]:nhwc
  %2 = relu(%1) : f32[4,32,20,20]:nhwc
  %3 = conv2d(%2, %v) {padding=[1,1,1,1]} : f32[4,8,20,20]:nhwc
  return %3
})");
  const ir::Graph graph = ir::differentiate(forward, {"x", "w", "v"});
  std::vector<std::string> said;
  SessionOptions off = options(Tune::off), quick = options(Tune::quick, &said);
  off.target = quick.target = Target::parse("x86:avx2,l1=2k,l2=20k,tasks=16");
  Session plain(off), tuned(quick);
  const std::vector<Buffer> right = run(plain, graph), results = run(tuned, graph);
  for (std::size_t r = 0; r < right.size(); ++r) EXPECT_TRUE(same_bits(results[r], right[r])) << r;
  const scheduler::Plan plan = scheduler::make_plan(graph, {off.target, scheduler::Rules::all, {}});
  EXPECT_TRUE(std::any_of(plan.steps.begin(), plan.steps.end(), [](const auto& step) {
    return step.name.find("weight_grad") != std::string::npos && step.name.find("input_grad") != std::string::npos;
  })) << print_outline(plan);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].find(" 0 were tried"), std::string::npos) << said[0];
}

TEST(Tune, FullIsRightToo) {
  const ir::Graph graph = network();
  SessionOptions interpreted = options(Tune::off);
  interpreted.engine = Engine::graph_interpreter;
  Session reference(interpreted), tuned(options(Tune::full));
  const std::vector<Buffer> right = run(reference, graph), results = run(tuned, graph);
  for (std::size_t r = 0; r < right.size(); ++r) {
    const auto *a = reinterpret_cast<const float*>(results[r].data()),
               *b = reinterpret_cast<const float*>(right[r].data());
    float largest = 0;
    for (std::int64_t i = 0; i < right[r].type().elements(); ++i) largest = std::max(largest, std::abs(b[i]));
    for (std::int64_t i = 0; i < right[r].type().elements(); ++i)
      ASSERT_NEAR(a[i], b[i], 1e-5F * largest) << r << " " << i;
  }
}

// A second session, as another process would, takes the plan from disk and tries nothing; without `tune` it is another
// plan.
TEST(Tune, IsKeptWithThePlan) {
  const test::CacheFolder folder;
  const ir::Graph graph = network();
  const auto open = [&](Tune tune, std::vector<std::string>& said) {
    SessionOptions wanted = options(tune, &said);
    wanted.disk = std::make_shared<disk::DiskCache>(disk::DiskCacheOptions{.folder = folder.path("tuned")});
    return wanted;
  };
  std::vector<std::string> first, second, third;
  std::string schedules;
  {
    Session session(open(Tune::quick, first));
    schedules = print(*session.plan(graph));
  }
  EXPECT_EQ(first.size(), 1u);
  Session again(open(Tune::quick, second)), plain(open(Tune::off, third));
  EXPECT_EQ(print(*again.plan(graph)), schedules);
  EXPECT_EQ(second.size(), 0u);
  EXPECT_EQ(again.statistics().plans_loaded, 1);
  plain.plan(graph);
  EXPECT_EQ(plain.statistics().plans_loaded, 0);
}

}  // namespace
}  // namespace fusejit::runtime
