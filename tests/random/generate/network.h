// Random convolutional networks in training, as values: a list of blocks as people build them, which prints, from which
// a graph is built, and which can be made simpler piece by piece when an engine gets the graph wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace fusejit::testing {

enum class BlockKind : std::uint8_t {
  plain,           // convolution, norm, activation
  residual,        // two convolutions, added to the input or to its projection
  pre_activation,  // norm and activation in front of each convolution, added likewise
  bottleneck,      // 1x1, kxk in groups, 1x1, added likewise
  inverted,        // 1x1 up, depthwise, squeeze-and-excitation, 1x1 down, added where shapes agree
  dense,           // twice: the input beside a convolution of its norm and activation
  separable,       // depthwise, then 1x1
  shuffle,         // convolution in groups, channels shuffled, 1x1 in groups
  split,           // half of the channels go through a convolution, beside the others
  transposed,      // transposed convolution, norm, activation
  unet,            // down, convolution, up again, beside the input or added to it, convolution
  gate,            // squeeze-and-excitation alone
  pooling,         //
  attention,       // layer norm, heads of self-attention over the pixels (strided: causal), added; two linear layers
  mixer,           // depthwise, layer norm over channels, two linear layers, scaled, added (ConvNeXt)
  // What the functions of fusejit/composed.h and layers record:
  bordered,      // convolution of an image with edges that are reflected, replicated or circular
  subpixel,      // cells to channels, or a convolution and channels to cells
  sampled,       // the image at points that are computed from it (spatial transformer)
  sequence,      // conv1d over the pixels in a row
  scanned,       // cumulative sums along an axis
  strongest,     // the largest channels of each pixel
  gram,          // products of channels with channels, their softmax times the image, added (dual attention)
  conditioned,   // scaled and shifted by the rows of a table that labels name
  branched,      // branches stacked, each channel's shares of them split off and unbound (selective kernels)
  standardised,  // weights, and what channels count for, by their deviations
  correlated,    // image by image: the diagonal of its products of channels, outer and inner products of that
  ordered,       // channels in the order of scores, and back
  binned,        // pixels added to the bins that labels name, and taken from there
  count_
};
enum class Norm : std::uint8_t { none, batch, frozen, layer, channels, group, instance, unit, count_ };
enum class Activation : std::uint8_t {
  none,
  relu,
  relu6,
  leaky_relu,
  elu,
  selu,
  gelu,
  gelu_tanh,
  silu,
  mish,
  softplus,
  hardsigmoid,
  hardswish,
  tanh,
  sigmoid,
  prelu,
  count_
};
enum class Pooling : std::uint8_t { max, max_padded, average, average_inside, adaptive, count_ };
enum class Up : std::uint8_t { nearest, bilinear, corners, transposed, factor, factor_nearest, area, shuffled, count_ };
enum class Head : std::uint8_t { mean, maximum, adaptive, flatten, pixels, strongest, logsumexp, count_ };
enum class Loss : std::uint8_t { cross_entropy, smoothed, nll, mse, l1, smooth_l1, binary, count_ };
enum class Optimizer : std::uint8_t { none, descent, momentum, adam, count_ };

std::string_view name(BlockKind kind);
std::string_view name(Norm norm);
std::string_view name(Activation activation);
std::string_view name(Pooling pooling);
std::string_view name(Up up);
std::string_view name(Head head);
std::string_view name(Loss loss);
std::string_view name(Optimizer optimizer);

// Not every field means something to every kind; those that do not stay as they are here.
struct Block {
  BlockKind kind = BlockKind::plain;
  int channels = 1;  // of the result, or what dense adds twice
  int kernel = 1, stride = 1, dilation = 1, groups = 1;
  int width = 1;  // of what is inside, as a multiple (inverted, mixer, attention); which edges, axis, form of attention
  Norm norm = Norm::none;
  Activation activation = Activation::none;
  Pooling pooling = Pooling::max;
  Up up = Up::nearest;
  bool bias = false, gated = false, dropout = false, whole_channels = false;
  bool again = false;  // computed again for its gradient
  std::string str() const;
  friend bool operator==(const Block&, const Block&) = default;
};

struct Network {
  DType dtype = DType::f64;
  bool nhwc = false, nhwc_weights = false;
  bool wide_norms = false;  // vectors of norms are f32 beside images of 16 bits
  int batch = 1, channels = 1, height = 5, width = 5;
  std::vector<Block> blocks;
  Head head = Head::mean;
  Loss loss = Loss::mse;
  int classes = 2;
  Optimizer optimizer = Optimizer::none;  // else results are the updated parameters, in place of their gradients
  std::string str() const;
  friend bool operator==(const Network&, const Network&) = default;
};

// What a seed may draw.
struct NetworkOptions {
  int most_blocks = 4;
  int most_products = 400000;  // multiplications of the forward pass: the interpreter does them one by one
  // These and no others.
  std::optional<BlockKind> kind = {};
  std::optional<DType> dtype = {};
  std::optional<bool> nhwc = {};
};

// The same seed and options give the same network everywhere.
Network random_network(std::uint64_t seed, const NetworkOptions& options = {});

// A training step: the loss, the new running statistics, then for every parameter and the input its gradient, or for
// parameters the updated value and the optimiser's state. UserError if the blocks do not fit together.
struct TrainingGraph {
  ir::Graph graph;
  ir::Graph forward;                 // the loss and the running statistics alone, of the same parameters
  std::vector<std::string> results;  // of `graph`: "loss", "gradient of b0_conv1_w"
  std::vector<bool> donated;         // parameters whose update is a result
};
TrainingGraph training_graph(const Network& network);

// A network, as small as greedy steps make it, for which `fails` still holds: fewer blocks, simpler ones, smaller
// sizes. Some of what is tried cannot be built: `fails` is then not asked.
Network shrink(Network network, const std::function<bool(const Network&)>& fails);

}  // namespace fusejit::testing
