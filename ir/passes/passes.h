// The Graph -> Graph passes, one table with the reason for each one's place (passes/pipeline.cpp).
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string_view>

#include "fusejit/target.h"
#include "ir/graph.h"

namespace fusejit::ir {

// Composite rows -> primitive ops. Regions are kept.
Graph expand(const Graph& graph);
// Algebra and constant folding that changes no bit of any result; one rule a line with its equation.
Graph simplify(const Graph& graph);
// Variances that are written out by hand.
Graph find_variances(const Graph& graph);
// Zeros around an image in front of a convolution become its padding.
Graph fold_padding(const Graph& graph);
// Images of few channels get more of them where the target's library is to convolve them.
Graph widen_few_channels(const Graph& graph, const Target& target);
// Masks of a relu read its output where its input would be stored for them alone.
Graph masks_from_outputs(const Graph& graph);
// Statistics of convolutions as a library leaves them, where the target may take those and `leaves` says that a call, a
// convolution with both sums as a graph of its own, does so. After the pipeline: `leaves` is the scheduler's to ask.
using LibraryLeaves = std::function<bool(const Graph& call)>;
Graph statistics_for_library(const Graph& graph, const Target& target, const LibraryLeaves& leaves);
// All dims of [N,C,H,W] but the channels, and whether a reduction is over these.
inline constexpr std::array<std::int64_t, 3> kAllButChannels{0, 2, 3};
bool reduces_to_channels(const Node& reduction);
// Masks and sums behind input gradients as the engines of a library take them, where the target compiles such.
Graph gradients_for_library(const Graph& graph, const Target& target);
// True for a comparison with 0 of what a relu wrote, or of a value from outside: who reads that needs no mask.
bool asks_output(const Node& mask);
// Gradients of max pooling read which tap of each window was its maximum, where the target finds it again slowly.
Graph keep_taps(const Graph& graph, const Target& target);
// Late reads of a value that is recomputed for the backward pass go to the recomputed one, so that the first may die.
Graph reuse_recomputed(const Graph& graph);
// What copies of a value in another layout are called (origin.h).
inline constexpr const char* kNewLayout = "layout";
// Chooses a layout for every rank-4 node around the anchors; layouts of parameters and results bind.
Graph choose_layouts(const Graph& graph, const Target& target);
// True for a value [N,C,H,W] whose elements lie in memory as they would in NHWC: weights of 1x1 convolutions do.
bool lies_as_nhwc(const Type& type);
// True for anchors that the target's library is asked about: convolutions and their gradients. Not with one channel a
// group (depthwise): those are bound by memory, and what a generated kernel fuses saves more than a faster sum.
bool suits_library(const Node& node, const Target& target);

struct Pass {
  std::string_view name;
  Graph (*run)(const Graph& graph, const Target& target);
  std::string_view why_here;
};
std::span<const Pass> pipeline();
// Runs the pipeline, verifying after each pass.
Graph optimise(const Graph& graph, const Target& target);

}  // namespace fusejit::ir
