// Parts of networks in training, over their sizes: every kernel of every plan can be made, on every target. What cannot
// be made throws here, where a session would go to an interpreter.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "ir/passes/grad.h"
#include "scheduler/make_plan.h"
#include "tests/support/nightly.h"

namespace fusejit::testing {
namespace {

using namespace ir;

// The sizes of one network; `variant` turns whatever else there is to choose.
struct Sizes {
  std::int64_t batch, side, channels, variant;
  std::string str() const {
    return fmt::format("batch {} side {} channels {} variant {}", batch, side, channels, variant);
  }
};

class Network {
 public:
  Value parameter(const Shape& shape, DType dtype = DType::f32) {
    parameters_.push_back(ir::parameter({dtype, shape}, fmt::format("p{}", parameters_.size())));
    return parameters_.back();
  }
  // The result with its gradient with respect to every parameter of floats.
  Graph trained(const Value& result) const {
    const Graph graph = capture("network", parameters_, {result});
    std::vector<std::string> names;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (is_float(parameters_[i].type().dtype)) names.push_back(graph.parameter_name(i));
    }
    return differentiate(graph, names);
  }
  Value linear(const Value& x, std::int64_t outputs) {
    return build(Op::linear, {x, parameter({outputs, x.type().shape[x.type().shape.rank() - 1]})});
  }
  Value layer_norm(const Value& x) {
    const std::int64_t c = x.type().shape[x.type().shape.rank() - 1];
    return build(Op::layer_norm, {x, parameter({c}), parameter({c})}, {{"normalized_shape", {c}}});
  }

 private:
  std::vector<Value> parameters_;
};

// Convolution, batch norm, relu and pooling, and a convolution behind them.
Graph convolution(const Sizes& s) {
  static constexpr std::int64_t kPools[][3] = {{2, 2, 0}, {3, 2, 1}, {3, 3, 0}, {2, 3, 0},
                                               {3, 1, 1}, {4, 4, 0}, {5, 2, 2}};
  const auto& [window, stride, edge] = kPools[s.variant % 7];
  const std::int64_t k = 1 + 2 * (s.variant % 3), pad = k / 2, in = 1 + s.variant * 7 % 40, by = 1 + s.variant % 2;
  Network net;
  const Value x = net.parameter({s.batch, in, s.side, s.side}), w = net.parameter({s.channels, in, k, k});
  Value y = build(Op::conv2d, {x, w}, {{"stride", {by, by}}, {"padding", {pad, pad, pad, pad}}});
  if (s.variant % 5 == 0) y = build(Op::sub, {y, net.parameter({s.channels, 1, 1})});
  y = build(Op::batch_norm_train, {y, net.parameter({s.channels}), net.parameter({s.channels})});
  if (s.variant % 4 != 0) y = build(Op::relu, {y});
  if (y.type().shape[2] >= window)
    y = build(Op::max_pool2d, {y},
              {{"kernel_size", {window, window}}, {"stride", {stride, stride}}, {"padding", {edge, edge, edge, edge}}});
  y = build(Op::conv2d, {y, net.parameter({s.channels, s.channels, 3, 3})}, {{"padding", {1, 1, 1, 1}}});
  return net.trained(build(Op::sum, {build(Op::mul, {y, y})}));
}

// layer_norm(x + linear(x)), after another one or alone, in rows of one or two dims.
Graph norm(const Sizes& s) {
  Network net;
  Value x =
      net.parameter(s.variant % 3 == 0 ? Shape{s.batch * s.side, s.channels} : Shape{s.batch, s.side, s.channels});
  for (std::int64_t blocks = 1 + s.variant % 2; blocks > 0; --blocks) {
    Value y = net.linear(s.variant % 5 == 0 ? net.layer_norm(x) : x, s.channels);
    if (s.variant % 4 == 0) y = build(Op::gelu, {y});
    x = build(Op::add, {x, y});
    if (s.variant % 7 != 0) x = net.layer_norm(x);
  }
  return net.trained(x);
}

// Attention over `side` places, with its residual connection and what follows it in a transformer block.
Graph attention(const Sizes& s) {
  Network net;
  const std::int64_t heads = 1 + s.variant % 4, width = heads * s.channels;
  const Value x = net.parameter({s.batch, s.side, width});
  const auto split = [&](const Value& v) {
    const Value apart = build(Op::reshape, {v}, {{"shape", {s.batch, s.side, heads, s.channels}}});
    return build(Op::permute, {apart}, {{"dims", {0, 2, 1, 3}}});
  };
  const Value q = split(net.linear(x, width)), k = split(net.linear(x, width)), v = split(net.linear(x, width));
  Value scores = build(Op::matmul, {q, build(Op::permute, {k}, {{"dims", {0, 1, 3, 2}}})});
  scores = build(Op::softmax, {build(Op::mul, {scores, 0.25})}, {{"dim", std::int64_t{-1}}});
  Value y = build(Op::permute, {build(Op::matmul, {scores, v})}, {{"dims", {0, 2, 1, 3}}});
  y = net.linear(build(Op::reshape, {y}, {{"shape", {s.batch, s.side, width}}}), width);
  if (s.variant % 3 == 0) return net.trained(y);
  y = net.layer_norm(build(Op::add, {x, y}));
  const Value wide = net.linear(build(Op::gelu, {net.linear(y, 2 * width)}), width);
  return net.trained(net.layer_norm(build(Op::add, {y, wide})));
}

// Tokens embedded and compared with every word: (onehot·E)·Eᵀ, with as many words as channels, or more.
Graph tied(const Sizes& s) {
  Network net;
  const std::int64_t words = s.variant % 2 == 0 ? s.channels : s.side;
  const Value tokens = net.parameter({s.batch, s.side}, DType::i64), e = net.parameter({words, s.channels});
  const Value hot = build(Op::one_hot, {tokens}, {{"num_classes", words}, {"dtype", DType::f32}});
  const Value transposed = build(Op::permute, {e}, {{"dims", {1, 0}}});
  const Value embedded = s.variant % 3 == 0 ? build(Op::linear, {hot, transposed}) : build(Op::matmul, {hot, e});
  Value y = s.variant % 5 == 0 ? build(Op::linear, {embedded, e}) : build(Op::matmul, {embedded, transposed});
  if (s.variant % 4 != 0) return net.trained(y);
  y = build(Op::reshape, {y}, {{"shape", {s.batch * s.side, words}}});
  const Value target = build(Op::reshape, {tokens}, {{"shape", {s.batch * s.side}}});
  return net.trained(build(Op::cross_entropy, {y, target}));
}

struct Family {
  const char* name;
  Graph (*network)(const Sizes&);
};
void PrintTo(const Family& f, std::ostream* out) { *out << f.name; }

class PlanSweep : public ::testing::TestWithParam<Family> {};

constexpr std::int64_t kBatches = 4, kFirstSide = 7, kSides = 58, kChannels = 40;

// Some by day, all at night.
TEST_P(PlanSweep, EveryKernelCanBeMade) {
  const std::int64_t step = testing::is_nightly() ? 1 : 389;
  int failures = 0;
  for (std::int64_t i = 0; i < kBatches * kSides * kChannels && failures < 5; i += step) {
    const Sizes sizes{1 + i % kBatches, kFirstSide + i / kBatches % kSides, 1 + i / (kBatches * kSides), i * 31 % 841};
    const Graph graph = GetParam().network(sizes);
    for (const char* target : {"x86:avx512", "x86:avx2", "x86:v2", "cuda:sm_90"}) {
      try {
        scheduler::make_plan(graph, {Target::parse(target), scheduler::Rules::all, {}});
      } catch (const std::exception& error) {
        ++failures;
        ADD_FAILURE() << GetParam().name << ", " << sizes.str() << " on " << target << ": " << error.what() << "\n"
                      << print(graph);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, PlanSweep,
                         ::testing::Values(Family{"convolution", convolution}, Family{"norm", norm},
                                           Family{"attention", attention}, Family{"tied", tied}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fusejit::testing
