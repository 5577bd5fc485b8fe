// The generator of random networks itself: what the seeds of a day reach, and that shrinking finds the cause.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "ir/kernel/walk.h"
#include "scheduler/make_plan.h"
#include "tests/random/generate/network_check.h"
#include "tests/random/generate/network_layers.h"

namespace fusejit::testing {
namespace {

constexpr std::uint64_t kSeedsOfADay = 150;

using Reached = std::map<std::string, int>;

template <class E>
void expect_all(const Reached& reached, const std::string& prefix) {
  for (int e = 0; e < static_cast<int>(E::count_); ++e) {
    const std::string what = prefix + std::string(name(static_cast<E>(e)));
    EXPECT_TRUE(reached.contains(what)) << "no network has " << what;
  }
}
void expect_reached(const Reached& reached, std::initializer_list<const char*> all) {
  for (const char* what : all) EXPECT_TRUE(reached.contains(what)) << "no network has " << what;
}

bool reads_window(BlockKind kind) {
  static const std::set<BlockKind> kOthers{
      BlockKind::gate, BlockKind::attention,   BlockKind::pooling,    BlockKind::scanned, BlockKind::strongest,
      BlockKind::gram, BlockKind::conditioned, BlockKind::correlated, BlockKind::ordered, BlockKind::binned};
  return !kOthers.contains(kind);
}

// A network whose blocks are computed again means the same, but for the order in which cotangents are added, and has
// values in regions.
TEST(RandomNetworks, WhatIsComputedAgainMeansTheSame) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Network network = random_network(seed);
    const bool again =
        std::any_of(network.blocks.begin(), network.blocks.end(), [](const Block& b) { return b.again; });
    if (!again) continue;
    const ir::Graph with = training_graph(network).graph;
    EXPECT_TRUE(std::any_of(with.nodes().begin(), with.nodes().end(), [](const auto& v) { return v->region > 0; }));
    for (Block& block : network.blocks) block.again = false;
    const ir::Graph plain = training_graph(network).graph;
    const std::vector<ir::Array> arguments = network_arguments(in_f64(plain), plain, seed);
    const std::vector<ir::Array> a = ir::interpret(in_f64(with), arguments),
                                 b = ir::interpret(in_f64(plain), arguments);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i].type.dtype != DType::f64) continue;
      const std::span<const double> one = a[i].as<double>(), other = b[i].as<double>();
      for (std::size_t e = 0; e < one.size(); ++e)
        ASSERT_NEAR(one[e], other[e], 1e-10 * (1 + std::abs(other[e]))) << network.str() << ": result " << i;
    }
    ++found;
  }
  EXPECT_GE(found, 10);
}

TEST(RandomNetworks, SeedsOfADayReachEveryLayer) {
  Reached reached;
  for (std::uint64_t seed = 1; seed <= kSeedsOfADay; ++seed) {
    const Network n = random_network(seed);
    const auto mark = [&](const std::string& what) { ++reached[what]; };
    mark(std::string(name(n.dtype)));
    mark(n.nhwc ? "nhwc" : "nchw");
    if (n.nhwc != n.nhwc_weights) mark("mixed layouts");
    if (n.wide_norms) mark("f32 norms");
    mark("optimizer " + std::string(name(n.optimizer)));
    if (n.height % 2 == 1 || n.width % 2 == 1) mark("odd image");
    mark("batch " + std::to_string(n.batch));
    mark("head " + std::string(name(n.head)));
    mark("loss " + std::string(name(n.loss)));
    for (const Block& b : n.blocks) {
      const std::string kind(name(b.kind));
      mark(kind);
      if (b.kind >= BlockKind::branched) mark((b.gated ? "gated " : "plain ") + kind);
      if (b.kind == BlockKind::ordered && b.width > 1) mark("order and back");
      mark("norm " + std::string(name(b.norm))), mark("activation " + std::string(name(b.activation)));
      if (b.kind == BlockKind::pooling) mark("pooling " + std::string(name(b.pooling)));
      if (b.kind == BlockKind::unet) mark("up " + std::string(name(b.up)));
      if (b.dropout) mark(b.whole_channels ? "dropout of channels" : "dropout");
      if (b.kind == BlockKind::bordered && b.kernel > 1) mark("edges " + std::to_string(b.width));
      if (b.kind == BlockKind::scanned) mark("scan along " + std::to_string(b.width));
      if (b.kind == BlockKind::attention) mark(b.width == 2 ? "packed attention" : "attention");
      if (b.kind == BlockKind::attention && b.stride > 1) mark("causal attention");
      if (!reads_window(b.kind)) continue;
      mark("stride " + std::to_string(b.stride)), mark("kernel " + std::to_string(b.kernel));
      if (b.groups > 1) mark("groups");
      if (b.dilation > 1 && b.kernel > 1) mark("dilation");
      if (b.kind == BlockKind::transposed) mark("transposed, stride " + std::to_string(b.stride));
      mark(b.channels == 1 ? "1 channel" : b.channels % 8 == 0 ? "whole vectors" : "ragged vectors");
    }
  }
  expect_all<BlockKind>(reached, "");
  expect_all<Norm>(reached, "norm ");
  expect_all<Activation>(reached, "activation ");
  expect_all<Pooling>(reached, "pooling ");
  expect_all<Up>(reached, "up ");
  expect_all<Head>(reached, "head ");
  expect_all<Loss>(reached, "loss ");
  expect_all<Optimizer>(reached, "optimizer ");
  expect_reached(reached, {"f64",
                           "f32",
                           "bf16",
                           "nhwc",
                           "nchw",
                           "mixed layouts",
                           "f32 norms",
                           "odd image",
                           "batch 1",
                           "batch 2",
                           "batch 3",
                           "batch 4",
                           "dropout",
                           "dropout of channels",
                           "edges 1",
                           "edges 2",
                           "edges 3",
                           "scan along 1",
                           "scan along 2",
                           "scan along 3",
                           "packed attention",
                           "causal attention",
                           "plain branched",
                           "gated branched",
                           "plain standardised",
                           "gated standardised",
                           "plain correlated",
                           "gated correlated",
                           "plain ordered",
                           "gated ordered",
                           "order and back",
                           "plain binned",
                           "gated binned",
                           "stride 1",
                           "stride 2",
                           "stride 3",
                           "kernel 1",
                           "kernel 2",
                           "kernel 3",
                           "kernel 5",
                           "kernel 7",
                           "groups",
                           "dilation",
                           "transposed, stride 1",
                           "transposed, stride 2",
                           "transposed, stride 3",
                           "1 channel",
                           "whole vectors",
                           "ragged vectors"});
}

// What the rules of ARCHITECTURE.md made of the steps of a plan.
void mark_rules(const scheduler::Plan& plan, Reached& reached) {
  for (const scheduler::PlanValue& value : plan.values)
    if (value.storage == scheduler::Storage::donated) ++reached["in place"];
  for (const scheduler::Refusal& refusal : plan.refusals) ++reached["refused " + std::string(name(refusal.code))];
  for (const scheduler::PlanStep& step : plan.steps) {
    std::string anchor;
    int stores = 0, reductions = 0, finals = 0;
    for (const std::string& label : step.ops) {
      const auto op = ir::op_named(label.substr(label.find(' ') + 1));
      if (!op) continue;  // packed weights
      const ir::OpDef& row = ir::op_def(*op);
      if (row.is_contraction()) {
        anchor = row.name;
      } else if (row.family == ir::Family::reduce) {
        ++reductions;
      } else {
        ++(reductions > 0 ? finals : stores);  // finals are listed behind the reductions that they finish
      }
    }
    int computed = 0;
    bool masks = false;
    for (const ir::Phase& phase : step.kernel->phases)
      ir::for_each_stmt(phase.body, [&](const ir::Stmt& s) {
        const auto* def = std::get_if<ir::DefStmt>(&s.node);
        if (!def) return;
        ++computed;
        masks = masks || ir::op_def(def->op).comparison;
      });
    if (anchor.empty() && reductions == 0 && stores == 1 && computed > 3) ++reached["R1 chain"];
    if (anchor.empty() && stores > 0 && reductions > 0) ++reached["R2 chain into reductions"];
    if (anchor.empty() && reductions > 1) ++reached["R2 several reductions"];
    if (finals > 0) ++reached[anchor.empty() ? "R3 finalised" : "R3 finalised behind " + anchor];
    if (!anchor.empty() && stores > 0) ++reached["R5 epilogue of " + anchor];
    if (!anchor.empty() && reductions > 0) ++reached["R5 sums of " + anchor];
    if (!anchor.empty() && masks) ++reached["R8 mask beside " + anchor];
    if (anchor.empty() && masks && reductions > 0) ++reached["R8 mask in reductions"];
    if (anchor.empty() && reductions == 0 && stores > 1) ++reached["R9 horizontal"];
  }
}

TEST(RandomNetworks, SeedsOfADayReachEveryRule) {
  std::set<std::string> missing = {"R1 chain",
                                   "R2 chain into reductions",
                                   "R2 several reductions",
                                   "R3 finalised",
                                   "R3 finalised behind conv2d",
                                   "R3 finalised behind conv2d_input_grad",
                                   "R5 epilogue of conv2d",
                                   "R5 epilogue of conv2d_input_grad",
                                   "R5 epilogue of linear",
                                   "R5 epilogue of matmul",
                                   "R5 sums of conv2d",
                                   "R5 sums of conv2d_input_grad",
                                   "R5 sums of linear",
                                   "R8 mask beside conv2d_input_grad",
                                   "R8 mask in reductions",
                                   "R9 horizontal",
                                   "in place"};
  for (int code = 0; code < scheduler::kRefusalCodes; ++code) {
    const auto refusal = static_cast<scheduler::RefusalCode>(code);
    const bool of_a_library = refusal == scheduler::RefusalCode::library_call;
    const bool of_a_fallback = refusal == scheduler::RefusalCode::no_kernel;
    const bool of_a_rule = refusal == scheduler::RefusalCode::rule_off;
    if (!of_a_library && !of_a_fallback && !of_a_rule) missing.insert("refused " + std::string(name(refusal)));
  }
  for (std::uint64_t seed = 1; seed <= kSeedsOfADay && !missing.empty(); ++seed) {
    const TrainingGraph made = training_graph(random_network(seed));
    Reached reached;
    try {
      const Target target = Target::parse(seed % 2 ? "x86:avx512" : "x86:avx2,l1=1k,l2=4k,l3=16k,tasks=5");
      mark_rules(scheduler::make_plan(made.graph, {target, scheduler::Rules::all, made.donated}), reached);
    } catch (const Error&) {
      continue;  // network_test.cpp says so
    }
    for (const auto& [what, count] : reached) missing.erase(what);
  }
  for (const std::string& what : missing) ADD_FAILURE() << what << " is not reached";
}

TEST(RandomNetworks, TheSameSeedGivesTheSameGraph) {
  for (const std::uint64_t seed : {3, 14, 15}) {
    EXPECT_EQ(random_network(seed), random_network(seed));
    EXPECT_EQ(ir::print(training_graph(random_network(seed)).graph),
              ir::print(training_graph(random_network(seed)).graph));
  }
  EXPECT_NE(random_network(1), random_network(2));
}

TEST(RandomNetworks, InF64NoOtherFloatIsLeft) {
  int checked = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Network network = random_network(seed);
    if (network.dtype == f64) continue;
    const ir::Graph wide = in_f64(training_graph(network).graph);
    ir::verify(wide);
    for (int v = 0; v < wide.value_count(); ++v) {
      const DType dtype = wide.value(v).type().dtype;
      EXPECT_TRUE(dtype == f64 || !is_float(dtype)) << network.str();
    }
    // The network of f64 values, but for casts to itself.
    network.dtype = f64, network.wide_norms = false;
    const ir::Graph same = training_graph(network).graph;
    // A host number such as 1/3 is rounded to the network's compute type.
    const auto is_number = [](const ir::Value& p) { return number_in_name(p->name).has_value(); };
    if (std::any_of(same.parameters().begin(), same.parameters().end(), is_number)) continue;
    const std::vector<ir::Array> arguments = network_arguments(same, same, seed);
    const std::vector<ir::Array> a = ir::interpret(wide, arguments), b = ir::interpret(same, arguments);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t r = 0; r < a.size(); ++r) EXPECT_EQ(a[r].bytes, b[r].bytes) << network.str() << " result " << r;
    ++checked;
  }
  EXPECT_GT(checked, 5);
}

// Shrinking keeps what the predicate asks for and nothing else.
TEST(RandomNetworks, ShrinkingLeavesTheCause) {
  const auto has_strided_input_gradient = [](const Network& n) {
    const TrainingGraph made = training_graph(n);
    for (const ir::Value& node : made.graph.nodes())
      if (node->op == ir::Op::conv2d_input_grad && node->attrs.ints("stride")[0] > 1) return true;
    return false;
  };
  int shrunk = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Network network = random_network(seed);
    if (!has_strided_input_gradient(network)) continue;
    const Network small = shrink(network, has_strided_input_gradient);
    EXPECT_TRUE(has_strided_input_gradient(small));
    EXPECT_EQ(small.str(), "f64[1,1,1,1] | plain 1 s2 | mean mse of 2");
    ++shrunk;
  }
  EXPECT_GT(shrunk, 3);
}

TEST(RandomNetworks, DistanceToKink) {
  const ir::Graph graph = ir::parse_graph(R"(graph @kinks(%x: f64[1,1,2,2]) {
  %0 = relu(%x) : f64[1,1,2,2]
  %1 = max_pool2d(%x) {kernel_size=[2,2]} : f64[1,1,1,1]
  %2 = abs(%1) : f64[1,1,1,1]
  return %0, %2
})");
  const auto at = [&](std::initializer_list<double> values) {
    ir::Array x(graph.parameters()[0].type());
    std::copy(values.begin(), values.end(), x.as<double>().begin());
    return distance_to_kink(graph, {x});
  };
  EXPECT_NEAR(at({-1, 2, 4, 1}), 0.25, 1e-12);        // relu: 1 of 4
  EXPECT_NEAR(at({-1, 3.6, 4, 2}), 0.1, 1e-12);       // the window: 0.4 of 4
  EXPECT_NEAR(at({-1, 4, 4, -1e-3}), 2.5e-4, 1e-12);  // equals are no tie that could go another way
}

}  // namespace
}  // namespace fusejit::testing
