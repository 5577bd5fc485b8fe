// Drawing, printing and simplifying networks; network_graph.cpp builds them.
#include "tests/random/generate/network.h"

#include <algorithm>
#include <array>
#include <random>

#include "fusejit/error.h"

namespace fusejit::testing {
namespace {

constexpr std::array<std::string_view, 28> kKinds = {
    "plain",   "residual",    "pre_activation", "bottleneck",   "inverted",   "dense",   "separable",
    "shuffle", "split",       "transposed",     "unet",         "gate",       "pooling", "attention",
    "mixer",   "bordered",    "subpixel",       "sampled",      "sequence",   "scanned", "strongest",
    "gram",    "conditioned", "branched",       "standardised", "correlated", "ordered", "binned"};
constexpr std::array<std::string_view, 8> kNorms = {"none",     "batch", "frozen",   "layer",
                                                    "channels", "group", "instance", "unit"};
constexpr std::array<std::string_view, 16> kActivations = {
    "none", "relu", "relu6",    "leaky_relu",  "elu",       "selu", "gelu",    "gelu_tanh",
    "silu", "mish", "softplus", "hardsigmoid", "hardswish", "tanh", "sigmoid", "prelu"};
constexpr std::array<std::string_view, 5> kPoolings = {"max", "max_padded", "average", "average_inside", "adaptive"};
constexpr std::array<std::string_view, 8> kUps = {"nearest", "bilinear",       "corners", "transposed",
                                                  "factor",  "factor_nearest", "area",    "shuffled"};
constexpr std::array<std::string_view, 7> kHeads = {"mean",   "maximum",   "adaptive", "flatten",
                                                    "pixels", "strongest", "logsumexp"};
constexpr std::array<std::string_view, 7> kLosses = {"cross_entropy", "smoothed", "nll", "mse", "l1",
                                                     "smooth_l1",     "binary"};

constexpr std::array<std::string_view, 4> kOptimizers = {"none", "descent", "momentum", "adam"};

template <std::size_t N, class E>
std::string_view entry(const std::array<std::string_view, N>& names, E e) {
  static_assert(N == static_cast<std::size_t>(E::count_));
  return names[static_cast<std::size_t>(e)];
}

class Drawing {
 public:
  explicit Drawing(std::uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15u + 8) {}

  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  int between(int low, int high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }
  template <class E>
  E any() {
    return static_cast<E>(below(static_cast<int>(E::count_)));
  }
  // As often a multiple of a vector as not.
  int channels() { return chance(40) ? 8 * between(1, 5) : between(1, 40); }

  BlockKind kind() {
    if (chance(25)) return static_cast<BlockKind>(below(4));  // residual networks are most common
    static constexpr BlockKind kOfManyForms[] = {BlockKind::unet, BlockKind::unet, BlockKind::pooling,
                                                 BlockKind::attention};
    return chance(18) ? kOfManyForms[below(4)] : any<BlockKind>();
  }
  Block block(BlockKind kind) {
    Block b;
    b.kind = kind;
    b.channels = channels();
    b.kernel = std::array{1, 2, 3, 3, 3, 5, 7}[static_cast<std::size_t>(below(7))];
    b.stride = std::array{1, 1, 2, 2, 3}[static_cast<std::size_t>(below(5))];
    b.dilation = chance(15) ? 2 : 1;
    b.groups = chance(25) ? between(2, 4) : 1;
    b.width = between(1, 3);
    b.norm = chance(50) ? Norm::batch : any<Norm>();
    b.activation = chance(35) ? Activation::relu : any<Activation>();
    b.pooling = any<Pooling>();
    b.up = any<Up>();
    b.bias = chance(30), b.gated = chance(50), b.dropout = chance(8), b.whole_channels = b.dropout && chance(40);
    if (b.groups > 1) b.channels = (b.channels + b.groups - 1) / b.groups * b.groups;
    return b;
  }

  Network network(const NetworkOptions& options) {
    Network n;
    // Most in f64, where a right engine is exact to 1e-9.
    n.dtype = chance(60) ? DType::f64 : chance(65) ? DType::f32 : DType::bf16;
    n.dtype = options.dtype.value_or(n.dtype);
    n.nhwc = chance(50), n.nhwc = options.nhwc.value_or(n.nhwc), n.nhwc_weights = chance(70) ? n.nhwc : !n.nhwc;
    n.wide_norms = bits(n.dtype) == 16 && chance(50);
    n.batch = between(1, 4), n.channels = chance(60) ? 3 : channels();
    n.height = between(5, 20), n.width = chance(30) ? n.height : between(5, 20);
    n.head = any<Head>();
    const bool has_places = n.head == Head::maximum || n.head == Head::strongest;  // which rounding to 16 bits moves
    if (bits(n.dtype) == 16 && has_places) n.head = Head::mean;
    n.loss = any<Loss>(), n.classes = between(2, 10), n.optimizer = chance(60) ? Optimizer::none : any<Optimizer>();
    const int wanted = between(1, options.most_blocks);
    for (int i = 0; i < wanted; ++i) {
      BlockKind next = options.kind ? *options.kind : kind();
      if (bits(n.dtype) == 16 && (next == BlockKind::strongest || next == BlockKind::sampled)) next = BlockKind::gram;
      for (int tries = 0; tries < 8 && static_cast<int>(n.blocks.size()) <= i; ++tries) {
        n.blocks.push_back(block(next));
        if (!can_be_built(n, options)) n.blocks.pop_back();
      }
    }
    return n;
  }

 private:
  static bool can_be_built(const Network& n, const NetworkOptions& options) {
    try {
      std::int64_t products = 0;
      const ir::Graph graph = training_graph(n).graph;
      for (const ir::Value& node : graph.nodes()) {
        if (node.type().elements() > 24000) return false;
        if (node->op == ir::Op::conv2d || node->op == ir::Op::linear)
          products += node.type().elements() * node->operands[1].value.type().elements() /
                      node->operands[1].value.type().shape[0];
      }
      return products <= options.most_products;
    } catch (const UserError&) {
      return false;  // the dice asked for a window larger than the image
    }
  }

  std::mt19937_64 random_;
};

// Networks with one thing less, those that take most away first.
std::vector<Network> simpler(const Network& network) {
  std::vector<Network> all;
  const auto offer = [&](auto change) {
    Network one = network;
    change(one);
    if (one != network) all.push_back(one);
  };
  for (std::size_t i = 0; i < network.blocks.size(); ++i)
    offer([&](Network& n) { n.blocks.erase(n.blocks.begin() + static_cast<std::ptrdiff_t>(i)); });
  offer([](Network& n) { n.optimizer = Optimizer::none; });
  offer([](Network& n) { n.head = Head::mean; });
  offer([](Network& n) { n.loss = Loss::mse; });
  offer([](Network& n) { n.dtype = DType::f64, n.wide_norms = false; });
  offer([](Network& n) { n.wide_norms = false; });
  offer([](Network& n) { n.nhwc = n.nhwc_weights = false; });
  offer([](Network& n) { n.nhwc_weights = n.nhwc; });
  for (std::size_t i = 0; i < network.blocks.size(); ++i) {
    const auto offer_block = [&](auto change) { offer([&](Network& n) { change(n.blocks[i]); }); };
    offer_block([](Block& b) { b.kind = BlockKind::plain; });
    offer_block([](Block& b) { b.norm = Norm::none; });
    offer_block([](Block& b) { b.norm = b.norm == Norm::none ? Norm::none : Norm::batch; });
    offer_block([](Block& b) { b.activation = Activation::none; });
    offer_block([](Block& b) { b.activation = b.activation == Activation::none ? b.activation : Activation::relu; });
    offer_block([](Block& b) { b.gated = false; });
    offer_block([](Block& b) { b.dropout = b.whole_channels = false; });
    offer_block([](Block& b) { b.whole_channels = false; });
    offer_block([](Block& b) { b.bias = false; });
    offer_block([](Block& b) { b.again = false; });
    offer_block([](Block& b) { b.groups = 1; });
    offer_block([](Block& b) { b.dilation = 1; });
    offer_block([](Block& b) { b.width = 1; });
    offer_block([](Block& b) { b.stride = std::max(1, b.stride - 1); });
    offer_block([](Block& b) { b.kernel = b.kernel > 3 ? 3 : 1; });
    offer_block([](Block& b) { b.pooling = Pooling::max; });
    offer_block([](Block& b) { b.up = Up::nearest; });
    offer_block([](Block& b) { b.channels = b.groups; });
    offer_block([](Block& b) { b.channels = std::max(b.groups, b.channels / 2 / b.groups * b.groups); });
  }
  offer([](Network& n) { n.batch = 1; });
  offer([](Network& n) { n.batch = std::max(1, n.batch - 1); });
  offer([](Network& n) { n.channels = 1; });
  offer([](Network& n) { n.channels = (n.channels + 1) / 2; });
  offer([](Network& n) { n.height = (n.height + 1) / 2; });
  offer([](Network& n) { n.width = (n.width + 1) / 2; });
  offer([](Network& n) { n.height = std::max(1, n.height - 1); });
  offer([](Network& n) { n.width = std::max(1, n.width - 1); });
  offer([](Network& n) { n.classes = 2; });
  return all;
}

}  // namespace

std::string_view name(BlockKind kind) { return entry(kKinds, kind); }
std::string_view name(Norm norm) { return entry(kNorms, norm); }
std::string_view name(Activation activation) { return entry(kActivations, activation); }
std::string_view name(Pooling pooling) { return entry(kPoolings, pooling); }
std::string_view name(Up up) { return entry(kUps, up); }
std::string_view name(Head head) { return entry(kHeads, head); }
std::string_view name(Loss loss) { return entry(kLosses, loss); }
std::string_view name(Optimizer optimizer) { return entry(kOptimizers, optimizer); }

std::string Block::str() const {
  const auto number = [](const char* what, int value, int usual) {
    return value == usual ? std::string() : " " + std::string(what) + std::to_string(value);
  };
  std::string text(name(kind));
  text += number("", channels, 0) + number("k", kernel, 1) + number("s", stride, 1) + number("d", dilation, 1) +
          number("g", groups, 1) + number("x", width, 1);
  if (norm != Norm::none) text += " " + std::string(name(norm)) + "_norm";
  if (activation != Activation::none) text += " " + std::string(name(activation));
  if (kind == BlockKind::pooling || kind == BlockKind::unet) text += " " + std::string(name(pooling));
  if (kind == BlockKind::unet) text += " up:" + std::string(name(up));
  return text + (bias ? " bias" : "") + (gated ? " gated" : "") +
         (whole_channels ? " dropout2d"
          : dropout      ? " dropout"
                         : "") +
         (again ? " again" : "");
}

std::string Network::str() const {
  std::string text = std::string(fusejit::name(dtype)) + "[" + std::to_string(batch) + "," + std::to_string(channels) +
                     "," + std::to_string(height) + "," + std::to_string(width) + "]" + (nhwc ? ":nhwc" : "") +
                     (nhwc_weights ? " weights:nhwc" : "") + (wide_norms ? " norms:f32" : "") + " |";
  for (const Block& block : blocks) text += " " + block.str() + " |";
  return text + " " + std::string(name(head)) + " " + std::string(name(loss)) + " of " + std::to_string(classes) +
         (optimizer == Optimizer::none ? "" : " " + std::string(name(optimizer)));
}

// In a third of the networks some blocks are computed again.
Network random_network(std::uint64_t seed, const NetworkOptions& options) {
  Network network = Drawing(seed).network(options);
  if (seed % 3 == 1)
    for (std::size_t i = 0; i < network.blocks.size(); ++i) network.blocks[i].again = (seed / 3 >> i & 1) == 0;
  return network;
}

Network shrink(Network network, const std::function<bool(const Network&)>& fails) {
  const auto does_fail = [&](const Network& candidate) {
    try {
      training_graph(candidate);
    } catch (const UserError&) {
      return false;  // the blocks no longer fit together
    }
    return fails(candidate);
  };
  for (bool changed = true; changed;) {
    const std::vector<Network> candidates = simpler(network);
    const auto found = std::find_if(candidates.begin(), candidates.end(), does_fail);
    changed = found != candidates.end();
    if (changed) network = *found;
  }
  return network;
}

}  // namespace fusejit::testing
