// Panels: copies in scratch of what a part of the nest reads of an operand. Padding is there as zeros, so that no
// window leaves a panel; steps over elements that nothing reads are left out; rows of channels do not all begin in a
// few sets of the cache, as rows of a power of two do.
#include <algorithm>

#include "ir/base/check.h"
#include "scheduler/lower/nest/factor.h"
#include "scheduler/lower/nest/nest.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Binding;
using ir::Index;
using ir::KernelBuilder;

// Whole blocks of lanes, as they are read.
std::int64_t Nest::size_in_panel(int d) const {
  const std::int64_t size = range(d).size;
  return d == vector_ ? ir::ceil_divide<std::int64_t>(size, s_.block()) * s_.block() : size;
}

// What there is to be copied.
void Nest::measure(Panel& panel) const {
  panel.axes.clear();
  for (std::size_t i = 0; i < panel.of->index.size(); ++i) {
    const ir::DimSum& sum = panel.of->index[i];
    Panel::Axis axis;
    axis.low = sum.constant;
    axis.may_leave = panel.of->may_leave(static_cast<int>(i), c_.dims);
    const ir::DimSum::Term* only = nullptr;
    int free = 0;
    for (const ir::DimSum::Term& term : sum.terms) {
      const Range& of_dim = range(term.dim);
      const std::int64_t size = size_in_panel(term.dim), last = (size - 1) * term.coefficient;
      axis.low = axis.low + of_dim.base * term.coefficient + Index(std::min<std::int64_t>(last, 0));
      axis.extent += std::abs(last);
      axis.may_leave |= of_dim.limited || size > of_dim.size || size > dim(term.dim).extent;
      if (size > 1) only = &term, ++free;
    }
    if (free == 1) {
      const std::int64_t at_once = terms_at_once(only->dim);
      axis.step = std::abs(only->coefficient) * at_once;
      axis.extent = ir::ceil_divide(size_in_panel(only->dim), at_once);
    }
    panel.axes.push_back(axis);
  }
  panel.order = physical_order(kernel_.graph().value(panel.value).type());
}

// The copy, and what reads it.
void Nest::in_panel(Panel& panel, std::size_t next) {
  measure(panel);
  std::vector<std::int64_t> dims;
  for (const int d : panel.order) dims.push_back(panel.axes[static_cast<std::size_t>(d)].extent);
  std::int64_t& row = dims.back();
  row = ir::ceil_divide<std::int64_t>(row, s_.lanes) * s_.lanes;
  const std::int64_t vectors = row / s_.lanes;
  if (vectors > 2 && vectors % 2 == 0) row += s_.lanes;
  panel.memory = builder_.local(ir::MemKind::scratch_local, factor_, dims);
  std::vector<Index> at(panel.axes.size(), Index(0));
  fill(panel, 0, at, false);
  const std::vector<bool> before = pending_;
  if (&panel == &panel_a_) pending_.assign(pending_.size(), false);
  walk(next);
  pending_ = before;
  panel.memory = -1;
}

// Coordinates of the dims before the n-th are in `at`; `zero`: one of them is outside of the operand.
void Nest::fill(const Panel& panel, std::size_t n, std::vector<Index>& at, bool zero) {
  const auto d = static_cast<std::size_t>(panel.order[n]);
  const Panel::Axis& axis = panel.axes[d];
  const auto inside = [&] { return within(axis.low + at[d] * axis.step, panel.of->extents[d]); };
  if (n + 1 < panel.order.size()) {
    return emit_loop({Index(0)}, {Index(axis.extent)}, Binding::none, [&](const Index& i) {
      at[d] = i;
      if (zero || !axis.may_leave) return fill(panel, n + 1, at, zero);
      builder_.when(
          inside(), [&] { fill(panel, n + 1, at, false); }, [&] { fill(panel, n + 1, at, true); });
    });
  }
  const std::int64_t lanes = s_.lanes, rest = axis.extent % lanes;
  emit_loop({Index(0)}, {Index(ir::ceil_divide(axis.extent, lanes))}, Binding::none, [&](const Index& vector) {
    builder_.loop(Index(0), Index(lanes), Binding::vector, [&](const Index& lane) {
      at[d] = vector * lanes + lane;
      std::vector<ir::Compare> there;
      if (rest > 0) there.push_back(compare(at[d], ir::CompareKind::lt, axis.extent));
      if (axis.may_leave)
        for (const ir::Compare& c : inside()) there.push_back(c);
      const Arg nothing = KernelBuilder::literal(0, factor_);
      const auto element = [&]() -> Arg {
        if (zero) return nothing;
        if (there.empty()) return copied(panel, at);
        return builder_.choose(
            there, {factor_}, [&] { return std::vector<Arg>{copied(panel, at)}; },
            [&] { return std::vector<Arg>{nothing}; })[0];
      };
      std::vector<Index> place;
      for (const int of : panel.order) place.push_back(at[static_cast<std::size_t>(of)]);
      builder_.store(panel.memory, place, element());
    });
  });
}

Arg Nest::copied(const Panel& panel, const std::vector<Index>& at) {
  LogicalIndex first;
  for (std::size_t i = 0; i < panel.axes.size(); ++i) first.push_back(panel.axes[i].low + at[i] * panel.axes[i].step);
  Expression& expression = kernel_.expression();
  return expression.nested([&] {
    return dot_ < 0 ? expression.value(panel.value, first) : bf16_pair(expression, panel.value, *panel.of, first, dot_);
  });
}

Arg Nest::from_panel(const Panel& panel) {
  std::vector<Index> place;
  for (const int d : panel.order) {
    const Panel::Axis& axis = panel.axes[static_cast<std::size_t>(d)];
    place.push_back((evaluate(panel.of->index[static_cast<std::size_t>(d)]) - axis.low) / axis.step);
  }
  return builder_.load(panel.memory, place);
}

}  // namespace fusejit::scheduler
