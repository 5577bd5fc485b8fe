// Expression: the value of a graph node at one point of an iteration space, written as kernel statements.
//
// Element-wise ops become definitions, views become index arithmetic, pooling becomes small loops, and what is stored
// becomes a load. Values are in the compute type of their dtype (f32 for f16 and bf16). The same walk, with a `load`
// that only records, is how the scheduler learns what a group reads (scheduler/analysis).
#pragma once

#include <functional>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "ir/kernel/builder.h"
#include "scheduler/lower/expression/window.h"

namespace fusejit::scheduler {

using LogicalIndex = std::vector<ir::Index>;  // one per logical dim, over placeholders and loop variables

struct ExpressionHooks {
  // True if the node's value is in memory (or bound) and not to be computed here.
  std::function<bool(int node)> is_stored;
  // Loads element `physical` (over placeholders) of a stored node, in its storage dtype. `through_views`: views made
  // the index.
  std::function<ir::Arg(int node, const std::vector<ir::Index>& physical, bool through_views)> load;
  // Loads two neighbouring elements of a stored node, the first of them even along the last physical dim, as one word;
  // -1: they are no word in memory. Empty: no two are.
  std::function<ir::ValueId(int node, const std::vector<ir::Index>& words)> load_pair = {};
  // Replaces placeholders by the kernel's loop variables.
  std::function<ir::Index(const ir::Index&)> resolve;
  // True if the index differs between lanes: it may then bound no loop.
  std::function<bool(const ir::Index&)> varies_by_lane;
  // Ranges of the placeholders: they let views cancel.
  ir::RangeOf ranges;
  // Asked of every index that a view makes; false: the operand there is no longer followed. Empty: all are.
  std::function<bool(const LogicalIndex&)> follow;
};

class Expression {
 public:
  Expression(const ir::Graph& graph, ir::KernelBuilder& builder, ExpressionHooks hooks)
      : graph_(graph), builder_(builder), hooks_(std::move(hooks)) {}

  // The kernel multiplies pairs of bf16: what it makes bf16 is rounded by the processor's instruction, which reads
  // denormals as zero, as that of the products does (kernel-ir.md §7).
  void round_beside_pairs() { beside_pairs_ = true; }

  // The value of `node` there, in its compute type.
  ir::Arg value(int node, const LogicalIndex& at);
  // The same as it is or would be stored: in its own dtype.
  ir::Arg stored_value(int node, const LogicalIndex& at);
  // The elements at `first` and behind it along a dim of the value as one word, low half first, where that is how they
  // lie in memory; else -1.
  ir::ValueId stored_pair(int node, const LogicalIndex& first, int dim);
  // Says that `node` has this value there, for example because an anchor's tile holds it.
  void bind(int node, const LogicalIndex& at, ir::Arg value) { memo_.push_back({node, at, value}); }
  // Finds the first maximum of the window over this pixel, for the gradients of all its pixels that follow in this
  // block. `node` is a max_pool2d_grad whose windows do not overlap.
  void share_window(int node, const LogicalIndex& at);
  // Where in the image, row by row, the first maximum of a window lies: `at` is [n, c, p, q] of a max_pool2d_grad.
  ir::Arg first_maximum(const ir::Node& node, const LogicalIndex& at);
  // From now on the gradients of this max_pool2d_grad at `pixel` take the first maximum of window [p, q] from `load`;
  // node -1: they look for it again.
  using KeptMaximum = std::function<ir::Arg(const ir::Index& p, const ir::Index& q)>;
  void keep_maxima(int node, LogicalIndex pixel, KeptMaximum load) { kept_ = {node, std::move(pixel), load}; }
  // From now on no tap of the windows at this place of an axis is outside of the image, as a condition around them
  // says; nothing: that is known of none.
  void assume_inside(std::optional<ir::Index> place) { inside_ = std::move(place); }
  // Runs `body` in a nested block: what it defines is forgotten afterwards.
  template <class F>
  auto nested(F&& body) {
    struct Restore {
      std::vector<Known>&memo, &windows;
      std::size_t size, windows_size;
      ~Restore() { memo.resize(size), windows.resize(windows_size); }
    } restore{memo_, windows_, memo_.size(), windows_.size()};
    return body();
  }
  // Definitions written so far, for cost limits.
  double flop() const { return flop_; }
  // Conversion between compute types and to a storage dtype.
  ir::Arg convert(ir::Arg value, DType to);
  // A value as `dtype` holds it, in the compute type again: f16 and bf16 round, narrow integers wrap.
  ir::Arg rounded(ir::Arg value, DType dtype);
  ir::KernelBuilder& builder() { return builder_; }
  struct Run;  // average.cpp

 private:
  struct Known {
    int node;
    LogicalIndex at;
    ir::Arg value;
  };
  ir::Arg compute(int node, const LogicalIndex& at);
  ir::Arg stored(int node, const LogicalIndex& at);
  ir::Arg operand(const ir::Operand& operand, const LogicalIndex& at, DType type);
  // A value of what is read at other elements than the one at hand: loads that are not proven to be inside get a
  // condition.
  ir::Arg elsewhere(const std::function<ir::Arg()>& value);
  ir::Arg of_other_elements(const ir::Node& node, const LogicalIndex& at);
  ir::Arg elementwise(const ir::Node& node, const LogicalIndex& at);
  ir::Arg view(const ir::Node& node, const LogicalIndex& at);
  ir::Arg source(const ir::Node& node, const LogicalIndex& at);
  ir::Arg random(const ir::Node& node, const LogicalIndex& at);
  ir::Arg gather(const ir::Node& node, const LogicalIndex& at);
  ir::Arg gather_grad(const ir::Node& node, const LogicalIndex& at);
  std::vector<ir::ValueId> over_taps(const Window& window, const ir::Index& out, ir::Combiner combiner,
                                     const std::vector<DType>& types,
                                     const std::function<std::vector<ir::Arg>(ir::Index)>& body,
                                     const std::vector<ir::Arg>& outside);
  ir::Arg over_windows(const Window& window, const ir::Index& pixel, DType type, bool unrolled,
                       const std::function<ir::Arg(ir::Index)>& body);
  std::vector<ir::ValueId> first_of_window(
      const ir::Value& x, DType type, const Window& rows, const Window& columns, const LogicalIndex& at,
      const std::function<ir::Index(const ir::Index& r, const ir::Index& s)>& place);
  int tap_beside(const ir::Node& pool) const;
  std::vector<ir::ValueId> maximum_and_tap(const ir::Node& tap, const LogicalIndex& at);
  ir::Arg max_pool(const ir::Node& node, const LogicalIndex& at);
  ir::Arg max_pool_grad(const ir::Node& node, const LogicalIndex& at);
  ir::Arg max_pool_tap(const ir::Node& node, const LogicalIndex& at);
  ir::Arg max_pool_tap_grad(const ir::Node& node, const LogicalIndex& at);
  ir::Arg sum_over(const Run& run, DType type, const std::function<ir::Arg(const ir::Index&)>& body);
  ir::Arg averaged_cells(const ir::Node& node, int axis, const ir::Index& o, DType type);
  ir::Arg average_pool(const ir::Node& node, const LogicalIndex& at);
  ir::Arg average_pool_grad(const ir::Node& node, const LogicalIndex& at);
  ir::Arg upsample_nearest(const ir::Node& node, const LogicalIndex& at);
  ir::Arg upsample_nearest_grad(const ir::Node& node, const LogicalIndex& at);
  ir::Arg linear_share(const ir::LinearAxis& a, const ir::Index& result, const ir::Index& cell, DType type);
  ir::Arg upsample_linear(const ir::Node& node, const LogicalIndex& at);
  ir::Arg upsample_linear_grad(const ir::Node& node, const LogicalIndex& at);
  ir::Arg choose(std::vector<ir::Compare> condition, DType type, const std::function<ir::Arg()>& then,
                 ir::Arg otherwise);
  ir::Index as_index(ir::Arg integer);
  ir::Arg def(ir::Op op, std::vector<ir::Arg> args, DType type);
  int id(const ir::Value& value) const { return graph_.index_of(value.get()); }
  ir::Index resolve(const ir::Index& index) const { return hooks_.resolve(index); }

  const ir::Graph& graph_;
  ir::KernelBuilder& builder_;
  ExpressionHooks hooks_;
  bool beside_pairs_ = false;
  std::vector<Known> memo_;
  std::vector<Known> windows_;  // shared ones, by the kernel's own indices: they outlive a move to another pixel
  struct Kept {
    int node = -1;
    LogicalIndex pixel;
    KeptMaximum load;
  };
  Kept kept_;
  std::optional<ir::Index> inside_;
  std::unordered_map<ir::ValueId, ir::Arg> narrow_;  // what a value in a compute type was loaded as
  double flop_ = 0;
  int elsewhere_ = 0;  // views and windows around what is being computed
};

// left < right etc. with the constant part moved to the right.
ir::Compare compare(const ir::Index& left, ir::CompareKind kind, std::int64_t right);
// 0 <= index < extent as the comparisons that are not already true for every index >= 0.
std::vector<ir::Compare> within(const ir::Index& index, std::int64_t extent);
// Index of a broadcast operand: right-aligned, 0 where the operand's extent is 1.
LogicalIndex broadcast_index(const LogicalIndex& at, const Shape& from, const Shape& operand);
// `parts` with every index simplified for the ranges.
LogicalIndex simplified(LogicalIndex at, const ir::RangeOf& ranges);
// Row-major linear index and back; extents bound the parts, so `/` and `%` stay exact.
ir::Index linearise(const LogicalIndex& at, const Shape& shape);
LogicalIndex delinearise(const ir::Index& linear, const Shape& shape);
// The index of the same element in another shape of as many elements, none of them 0. Runs of dims that hold the same
// number of elements are mapped apart, so that an index of a dim which stays is left as it is.
LogicalIndex reshaped(const LogicalIndex& at, const Shape& from, const Shape& to, const ir::RangeOf& ranges);

}  // namespace fusejit::scheduler
