// What the choosers for processors have in common: a contraction's dims by their part in it, and a schedule in the
// making.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/choose/roles.h"
#include "scheduler/choose/tuning.h"
#include "scheduler/lower/split.h"

namespace fusejit::scheduler {

class X86Chooser {
 public:
  X86Chooser(const ir::Contraction& c, const Target& target, const FusedWork& fused)
      : c_(c), target_(target), fused_(fused), roles_(roles_of(c)) {
    const int most = target.lanes32() / (fused.compute == DType::f64 ? 2 : 1);
    const std::int64_t outputs = extent(roles_.outputs), groups = product(roles_.groups);
    along_groups_ = runs_along_groups(roles_, c);
    s_.lanes = most;
    if (roles_.adjoin && groups > 1) {  // lanes along the outputs of a group where they divide them
      const std::int64_t even = power_of_two_in(outputs, most);
      if (even >= tuning::kLeastLanes) s_.lanes = static_cast<int>(even);
    }
    vector_ = along_groups_ ? roles_.groups.front() : roles_.outputs;
    s_.vector = name(vector_);
  }

 protected:
  const std::string& name(int d) const { return c_.dims[static_cast<std::size_t>(d)].name; }
  std::int64_t extent(int d) const { return d < 0 ? 1 : c_.dims[static_cast<std::size_t>(d)].extent; }
  std::int64_t product(const std::vector<int>& dims) const {
    std::int64_t all = 1;
    for (const int d : dims) all *= extent(d);
    return all;
  }
  // The dim of the first operand's index that this one makes together with another, which is `tap`; its coefficient.
  struct Window {
    int axis = -1, other = -1;
    std::int64_t stride = 1, in = 1;
    bool leaves = false;
    std::int64_t span = 1;  // elements from the first tap to the last
  };
  Window window_of(int d) const {
    Window window{-1, -1, 1, extent(d), false, 1};
    for (std::size_t i = 0; d >= 0 && i < c_.a.index.size(); ++i) {
      const ir::DimSum& sum = c_.a.index[i];
      if (sum.coefficient_of(d) == 0) continue;
      window = {static_cast<int>(i),
                -1,
                sum.coefficient_of(d),
                c_.a.extents[i],
                c_.a.may_leave(static_cast<int>(i), c_.dims),
                1};
      for (const ir::DimSum::Term& term : sum.terms)
        if (term.dim != d)
          window.other = term.dim, window.span = (extent(term.dim) - 1) * std::abs(term.coefficient) + 1;
    }
    return window;
  }
  std::vector<std::string> names(const std::vector<int>& dims) const {
    std::vector<std::string> list;
    for (const int d : dims) list.push_back(name(d));
    return list;
  }
  static void add(std::vector<ScheduledLoop>& loops, std::string dim, std::int64_t step = 0) {
    loops.push_back({{std::move(dim)}, step});
  }
  void add_if_any(std::vector<ScheduledLoop>& loops, int d, std::int64_t step = 0) const {
    if (extent(d) > 1) add(loops, name(d), step);
  }
  void add_together(std::vector<ScheduledLoop>& loops, const std::vector<int>& dims) const {
    ScheduledLoop loop;
    for (const int d : dims)
      if (extent(d) > 1) loop.dims.push_back(name(d));
    if (!loop.dims.empty()) loops.push_back(std::move(loop));
  }

  bool has_many_registers() const { return target_.vector_registers() == 32; }
  std::int64_t vectors_in_registers() const { return (target_.vector_registers() - 2 - s_.vectors) / s_.vectors; }
  // Vectors of groups, where a tap of each is a register beside what it is multiplied with. More neighbours side by
  // side, for a part of the taps, read longer pieces of each pixel.
  int vectors_along_groups(std::int64_t taps) const {
    const std::int64_t groups = extent(vector_);
    int vectors = groups % (2 * s_.lanes) == 0 && 2 * (taps + 1) <= target_.vector_registers() - 1 ? 2 : 1;
    for (const int more : {3, tuning::kMostVectorsOfGroups})
      if (has_many_registers() && groups % (more * s_.lanes) == 0) vectors = more;
    return vectors;
  }
  // Both gradients along groups (R9) have blocks of so many rows as tasks.
  Split rows_of_both_gradients(int p, int q) const {
    const std::int64_t row = extent(q) * s_.block() * bytes(fused_.compute);
    const std::int64_t fit = std::max<std::int64_t>(1, target_.l2_bytes / tuning::kRowsOfGroupsInL2 / row);
    return split(extent(p), extent(p) / divisor_up_to(extent(p), fit));
  }
  // Elements of a row of the first operand that so many neighbours along d read.
  std::int64_t read_by(int d, std::int64_t pixels) const {
    const Window window = window_of(d);
    return pixels < extent(d) ? (pixels - 1) * window.stride + window.span : window.in;
  }
  // Of so many channels.
  std::int64_t panel_bytes(const Window& rows, const Window& columns, std::int64_t rows_of_task,
                           std::int64_t channels) const {
    const std::int64_t in_rows = (rows_of_task - 1) * rows.stride + rows.span;
    return in_rows * columns.in * channels * bytes(fused_.compute);
  }

  int c_last() const { return static_cast<int>(c_.dims.size()) - 1; }
  // Where the target's table says that dot2 beats FMA on widened values.
  bool dot2_wins() const { return target_.dot2_is_faster && c_.a.dtype == DType::bf16 && c_.b.dtype == DType::bf16; }
  bool multiplies_pairs(int channel) const { return dot2_wins() && extent(channel) > 0 && extent(channel) % 2 == 0; }

  const ir::Contraction& c_;
  const Target& target_;
  const FusedWork& fused_;
  const Roles roles_;
  bool along_groups_ = false;
  int vector_ = -1;
  Schedule s_;
};

}  // namespace fusejit::scheduler
