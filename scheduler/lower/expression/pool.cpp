// Expression: max pooling and its gradient as small loops over the window; a gradient asks the windows over its pixel
// (kernel-ir.md §12 (i)), so there is no scatter.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/base/check.h"
#include "scheduler/lower/expression/expression.h"
#include "scheduler/lower/expression/window.h"
#include "scheduler/lower/tuning.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Combiner;
using ir::Compare;
using ir::Index;
using ir::KernelBuilder;
using ir::Op;

namespace {

// The open loops leave out the windows at the edges.
bool all_taps_inside(const KernelBuilder& builder, const Window& window, const Index& out) {
  const auto range = (out * window.stride - Index(window.low_padding)).interval([&](const ir::IndexAtom& atom) {
    return builder.range(atom);
  });
  return range && range->low >= 0 && range->high + (window.kernel - 1) * window.dilation < window.in;
}

ir::Binding tap_binding(const Window& window, const TapRange& taps) {
  return taps.constant && window.kernel <= tuning::kUnrolledTaps ? ir::Binding::unroll : ir::Binding::none;
}

}  // namespace

// Taps of window `out`; where lanes have windows of their own, all taps, and those outside yield `outside`.
std::vector<ir::ValueId> Expression::over_taps(const Window& window, const Index& out, ir::Combiner combiner,
                                               const std::vector<DType>& types,
                                               const std::function<std::vector<Arg>(Index)>& body,
                                               const std::vector<Arg>& outside) {
  const bool masked = !window.inside() && hooks_.varies_by_lane(out);
  TapRange taps = masked ? TapRange{{Index(0)}, {Index(window.kernel)}, true} : tap_range(window, resolve(out));
  const bool said = inside_ && resolve(*inside_) == resolve(out);
  if (!taps.constant && (said || all_taps_inside(builder_, window, resolve(out))))
    taps = {{Index(0)}, {Index(window.kernel)}, true};
  return builder_.reduce(taps.low, taps.high, tap_binding(window, taps), {combiner}, types, [&](Index tap) {
    return nested([&] {
      if (!masked) return body(tap);
      std::vector<Compare> inside;
      for (const Compare& c : within(window.input(out, tap), window.in))
        inside.push_back(compare(resolve(c.left), c.kind, c.right));
      const std::vector<ir::ValueId> chosen = builder_.choose(
          inside, types, [&] { return nested([&] { return body(tap); }); }, [&] { return outside; });
      return std::vector<Arg>(chosen.begin(), chosen.end());
    });
  });
}

// The maximum of a window and where it is: `place` says what is noted of a tap. `at` is [n, c, p, q].
std::vector<ir::ValueId> Expression::first_of_window(
    const ir::Value& x, DType type, const Window& rows, const Window& columns, const LogicalIndex& at,
    const std::function<Index(const Index& r, const Index& s)>& place) {
  const std::vector<DType> types{type, DType::i32};
  const std::vector<Arg> outside{ir::identity(Combiner::argmax, 0, types[0]),
                                 ir::identity(Combiner::argmax, 1, types[1])};
  return over_taps(
      rows, at[2], Combiner::argmax, types,
      [&](const Index& r) {
        const std::vector<ir::ValueId> row = over_taps(
            columns, at[3], Combiner::argmax, types,
            [&](const Index& s) {
              const Arg candidate = elsewhere([&] {
                return value(id(x), {at[0], at[1], rows.input(at[2], r), columns.input(at[3], s)});
              });
              return std::vector<Arg>{candidate, builder_.index(resolve(place(r, s)), DType::i32)};
            },
            outside);
        return std::vector<Arg>{row[0], row[1]};
      },
      outside);
}

// The max_pool2d_tap of this max_pool2d, where this kernel computes that too; else -1.
int Expression::tap_beside(const ir::Node& pool) const {
  for (const ir::Value& value : graph_.nodes()) {
    if (value->op == Op::max_pool2d_tap && value->operands[1].value.get() == &pool && !hooks_.is_stored(id(value)))
      return id(value);
  }
  return -1;
}

Arg Expression::max_pool(const ir::Node& node, const LogicalIndex& at) {
  const ir::Value& x = node.operands[0].value;
  const DType type = compute_type(node.type.dtype);
  const Window rows = ir::pool_window(node, 0), columns = ir::pool_window(node, 1);
  if (const int tap = tap_beside(node); tap >= 0) {
    const std::vector<ir::ValueId> found = maximum_and_tap(*graph_.value(tap), at);
    bind(tap, at, found[1]);
    return found[0];
  }
  const std::vector<Arg> outside{ir::identity(Combiner::maximum, 0, type)};
  return over_taps(
      rows, at[2], Combiner::maximum, {type},
      [&](const Index& r) {
        return std::vector<Arg>{over_taps(
            columns, at[3], Combiner::maximum, {type},
            [&](const Index& s) {
              return std::vector<Arg>{value(id(x), {at[0], at[1], rows.input(at[2], r), columns.input(at[3], s)})};
            },
            outside)[0]};
      },
      outside)[0];
}

std::vector<ir::ValueId> Expression::maximum_and_tap(const ir::Node& tap, const LogicalIndex& at) {
  const ir::Value& x = tap.operands[0].value;
  const Window rows = ir::pool_window(tap, 0), columns = ir::pool_window(tap, 1);
  return first_of_window(x, compute_type(x.type().dtype), rows, columns, at,
                         [&](const Index& r, const Index& s) { return r * columns.kernel + s; });
}

Arg Expression::max_pool_tap(const ir::Node& node, const LogicalIndex& at) {
  const int self = graph_.index_of(&node);
  value(id(node.operands[1].value), at);  // who computes the maximum finds its tap too
  for (const Known& known : memo_)
    if (known.node == self && known.at == at) return known.value;
  return maximum_and_tap(node, at)[1];
}

// Sum over the windows that cover `pixel`, ascending. `unrolled`: as copies where their number is known.
Arg Expression::over_windows(const Window& window, const Index& pixel, DType type, bool unrolled,
                             const std::function<Arg(Index)>& body) {
  const Arg zero = KernelBuilder::literal(0, type);
  if (window.tiles()) {  // windows that do not overlap: exactly one, or none behind the last
    const Index o = (pixel / window.stride).simplify(hooks_.ranges);
    if (window.in <= window.out * window.stride) return body(o);
    return choose(
        {compare(o, ir::CompareKind::lt, window.out)}, type, [&] { return body(o); }, zero);
  }
  if (!hooks_.varies_by_lane(pixel)) {
    const TapRange windows = covering_windows(window, resolve(pixel));
    const Index first = builder_.canonical(windows.low.back()), end = builder_.canonical(windows.high.back());
    if (const Index count = end - first; unrolled && count.is_constant() && count.constant() <= tuning::kUnrolledTaps) {
      // A window that is not there adds 0: to a sum that begins with 0 this is no change.
      return builder_.reduce({Index(0)}, {count}, ir::Binding::unroll, {Combiner::add}, {type}, [&](Index t) {
        return nested([&] {
          const Index o = first + t;
          return std::vector<Arg>{choose(
              within(o, window.out), type, [&] { return body(o); }, zero)};
        });
      })[0];
    }
    return builder_.reduce(windows.low, windows.high, ir::Binding::none, {Combiner::add}, {type},
                           [&](Index o) { return nested([&] { return std::vector<Arg>{body(o)}; }); })[0];
  }
  const std::int64_t most = window.most_windows(), reach = (window.kernel - 1) * window.dilation;
  const ir::Binding binding = unrolled && most <= tuning::kUnrolledTaps ? ir::Binding::unroll : ir::Binding::none;
  return builder_.reduce({Index(0)}, {Index(most)}, binding, {Combiner::add}, {type}, [&](Index t) {
    return nested([&] {
      const Index o = window.end_window(pixel) - Index(most) + t;
      std::vector<Compare> covers = within(o, window.out);
      if ((reach + 1) % window.stride != 0)  // else as many windows are over every pixel
        covers.push_back(compare(pixel - o * window.stride, ir::CompareKind::lt, reach + 1 - window.low_padding));
      return std::vector<Arg>{choose(
          std::move(covers), type, [&] { return body(o); }, zero)};
    });
  })[0];
}

Arg Expression::first_maximum(const ir::Node& node, const LogicalIndex& at) {
  for (const Known& known : windows_) {
    const auto same = [&](std::size_t d) { return known.at[d] == builder_.canonical(resolve(at[d])); };
    if (graph_.value(known.node).get() == &node && same(0) && same(1) && same(2) && same(3)) return known.value;
  }
  const Window rows = pooled_window(node, 0), columns = pooled_window(node, 1);
  return first_of_window(
      node.operands[0].value, compute_type(node.type.dtype), rows, columns, at,
      [&](const Index& r, const Index& s) { return rows.input(at[2], r) * columns.in + columns.input(at[3], s); })[1];
}

void Expression::share_window(int node, const LogicalIndex& at) {
  const ir::Node& grad = *graph_.value(node);
  LogicalIndex window{at[0], at[1], at[2] / pooled_window(grad, 0).stride, at[3] / pooled_window(grad, 1).stride};
  const Arg best = first_maximum(grad, window);
  for (Index& index : window) index = builder_.canonical(resolve(index));
  windows_.push_back({node, window, best});
}

Arg Expression::max_pool_grad(const ir::Node& node, const LogicalIndex& at) {
  const ir::Value &x = node.operands[0].value, &dy = node.operands[1].value;
  const DType type = compute_type(node.type.dtype);
  const Window rows = pooled_window(node, 0), columns = pooled_window(node, 1);
  FJ_ASSERT(rows.in * columns.in < (std::int64_t{1} << 31), "max_pool2d_grad: image {} too large", x.type().str());
  const bool kept = graph_.value(std::max(kept_.node, 0)).get() == &node && kept_.node >= 0 && kept_.pixel == at;
  return over_windows(rows, at[2], type, kept, [&](const Index& p) {
    return over_windows(columns, at[3], type, kept, [&](const Index& q) {
      // dy of the window if this pixel is its first maximum, else 0.
      const Arg best = kept ? kept_.load(resolve(p), resolve(q)) : first_maximum(node, {at[0], at[1], p, q});
      const Arg own = builder_.index(resolve(at[2] * columns.in + at[3]), DType::i32);
      const Arg hit = def(Op::eq, {best, own}, DType::boolean);
      return def(Op::where, {hit, value(id(dy), {at[0], at[1], p, q}), KernelBuilder::literal(0, type)}, type);
    });
  });
}

Arg Expression::max_pool_tap_grad(const ir::Node& node, const LogicalIndex& at) {
  const ir::Value &dy = node.operands[0].value, &tap = node.operands[1].value;
  const DType type = compute_type(node.type.dtype);
  const Window rows = pooled_window(node, 0), columns = pooled_window(node, 1);
  return over_windows(rows, at[2], type, true, [&](const Index& p) {
    return over_windows(columns, at[3], type, true, [&](const Index& q) {
      const Index r = at[2] - rows.input(p, Index(0)), s = at[3] - columns.input(q, Index(0));
      const Arg own = builder_.index(resolve(r * columns.kernel + s), DType::i32);
      const Arg hit = def(Op::eq, {value(id(tap), {at[0], at[1], p, q}), own}, DType::boolean);
      return def(Op::where, {hit, value(id(dy), {at[0], at[1], p, q}), KernelBuilder::literal(0, type)}, type);
    });
  });
}

}  // namespace fusejit::scheduler
