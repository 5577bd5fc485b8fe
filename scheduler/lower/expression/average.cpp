// Expression: average pooling, up-sampling and their transposes. All of them are a sum over a run of positions per
// spatial dim, read off the row's span: the cells that a result reads, or the results that read a cell.
#include <algorithm>
#include <limits>

#include "ir/ops/geometry/span.h"
#include "scheduler/lower/expression/expression.h"
#include "scheduler/lower/tuning.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Combiner;
using ir::Compare;
using ir::CompareKind;
using ir::Index;
using ir::KernelBuilder;
using ir::LinearAxis;
using ir::NearestAxis;
using ir::Op;
using ir::PartsAxis;

// Positions first, first + 1, ... of which at most `most` count: those for which `inside` holds.
struct Expression::Run {
  Index first;
  std::int64_t most = 1;
  std::function<std::vector<Compare>(const Index& position)> inside = {};
};

namespace {

using Run = Expression::Run;

// Those below `end` that there are.
auto below(const Index& end, std::int64_t extent) {
  return [end, extent](const Index& at) {
    return std::vector<Compare>{compare(at, CompareKind::lt, extent), compare(at - end, CompareKind::lt, 0)};
  };
}
auto there(std::int64_t extent) {
  return [extent](const Index& at) { return within(at, extent); };
}

Run part(const PartsAxis& a, const Index& i) {
  if (a.is_even()) return {a.first(i), a.most()};
  return {a.first(i), a.most(), below(a.end(i), a.in)};
}

// Cells that a result reads.
struct CellsOf {
  Index result;
  Run operator()(const Window& w) const {
    const Index first = w.input(result, Index(0));
    return w.inside() ? Run{first, w.kernel} : Run{first, w.kernel, there(w.in)};
  }
  Run operator()(const PartsAxis& a) const { return part(a, result); }
  Run operator()(const NearestAxis& a) const { return {a.cell(result), 1}; }
  Run operator()(const LinearAxis& a) const {
    if (a.is_copy()) return {a.in == 1 ? Index(0) : a.place(result), 1};
    return {a.place(result) / a.unit, 2, there(a.in)};
  }
};
Run cells_of(const ir::Node& node, int axis, const Index& result) {
  return std::visit(CellsOf{result}, ir::span_of(node, axis));
}

// Results that read a cell.
struct ResultsOf {
  Index cell;
  Run operator()(const Window& w) const {
    const std::int64_t most = w.most_windows();
    return {w.end_window(cell) - Index(most), most, [w, most, pixel = cell](const Index& at) {
              std::vector<Compare> conditions;
              if (most > 1) conditions.push_back(compare(at, CompareKind::ge, 0));
              if (w.end_window(w.in - 1) > w.out) conditions.push_back(compare(at, CompareKind::lt, w.out));
              if (w.kernel % w.stride != 0)  // the first of them may end before the cell
                conditions.push_back(compare(pixel - w.input(at, Index(0)), CompareKind::lt, w.kernel));
              return conditions;
            }};
  }
  Run operator()(const PartsAxis& a) const { return part(a.transposed(), cell); }  // the same cuts, seen from the cells
  Run operator()(const NearestAxis& a) const {
    if (a.out % a.in == 0) return {a.first_result(cell), a.most_results()};
    return {a.first_result(cell), a.most_results(), below(a.first_result(cell + Index(1)), a.out)};
  }
  Run operator()(const LinearAxis& a) const {
    if (a.most_results() == a.out) return {Index(0), a.out};
    return {a.first_result(cell), a.most_results(), there(a.out)};
  }
};
Run results_of(const ir::Node& node, int axis, const Index& cell) {
  return std::visit(ResultsOf{cell}, ir::span_of(node, axis));
}

}  // namespace

Arg Expression::sum_over(const Run& run, DType type, const std::function<Arg(const Index&)>& body) {
  const auto term = [&](const Index& at) {
    const std::vector<Compare> inside = run.inside ? run.inside(at) : std::vector<Compare>();
    return choose(
        inside, type, [&] { return body(at); }, KernelBuilder::literal(0, type));
  };
  if (run.most == 1) return term(run.first.simplify(hooks_.ranges));
  const ir::Binding binding = run.most <= tuning::kUnrolledTaps ? ir::Binding::unroll : ir::Binding::none;
  return builder_.reduce({Index(0)}, {Index(run.most)}, binding, {Combiner::add}, {type},
                         [&](Index t) { return nested([&] { return std::vector<Arg>{term(run.first + t)}; }); })[0];
}

// How many cells result o of this dim averages, as a number of `type`.
Arg Expression::averaged_cells(const ir::Node& node, int axis, const Index& o, DType type) {
  const ir::ImageSpan span = ir::span_of(node, axis);
  if (const auto* parts = std::get_if<PartsAxis>(&span)) {
    if (parts->is_even()) return KernelBuilder::literal(static_cast<double>(parts->most()), type);
    return convert(builder_.index(resolve(parts->end(o) - parts->first(o)), DType::i32), type);
  }
  const auto& window = std::get<Window>(span);
  if (node.attrs.flag("count_include_pad") || window.inside())
    return KernelBuilder::literal(static_cast<double>(window.kernel), type);
  const auto bound = [&](std::int64_t n) { return Arg(ir::cast(ir::Scalar::of(n), DType::i32)); };
  const Arg start = builder_.index(resolve(window.input(o, Index(0))), DType::i32),
            end = builder_.index(resolve(window.input(o, Index(window.kernel))), DType::i32);
  const Arg last = def(Op::maximum, {def(Op::minimum, {end, bound(window.in)}, DType::i32), bound(0)}, DType::i32),
            first = def(Op::minimum, {def(Op::maximum, {start, bound(0)}, DType::i32), bound(window.in)}, DType::i32);
  return convert(def(Op::sub, {last, first}, DType::i32), type);
}

Arg Expression::average_pool(const ir::Node& node, const LogicalIndex& at) {
  const int x = id(node.operands[0].value);
  const DType type = compute_type(node.type.dtype);
  const Run columns = cells_of(node, 1, at[3]);
  const Arg sum = sum_over(cells_of(node, 0, at[2]), type, [&](const Index& h) {
    return sum_over(columns, type, [&](const Index& w) { return value(x, {at[0], at[1], h, w}); });
  });
  const Arg count = def(Op::mul, {averaged_cells(node, 0, at[2], type), averaged_cells(node, 1, at[3], type)}, type);
  return def(Op::div, {sum, count}, type);
}

Arg Expression::average_pool_grad(const ir::Node& node, const LogicalIndex& at) {
  const int dy = id(node.operands[0].value);
  const DType type = compute_type(node.type.dtype);
  const Run columns = results_of(node, 1, at[3]);
  return sum_over(results_of(node, 0, at[2]), type, [&](const Index& p) {
    return sum_over(columns, type, [&](const Index& q) {
      const Arg count = def(Op::mul, {averaged_cells(node, 0, p, type), averaged_cells(node, 1, q, type)}, type);
      return def(Op::div, {value(dy, {at[0], at[1], p, q}), count}, type);
    });
  });
}

Arg Expression::upsample_nearest(const ir::Node& node, const LogicalIndex& at) {
  const DType type = compute_type(node.type.dtype);
  const Run columns = cells_of(node, 1, at[3]);
  return sum_over(cells_of(node, 0, at[2]), type, [&](const Index& h) {
    return sum_over(columns, type, [&](const Index& w) {
      return value(id(node.operands[0].value), {at[0], at[1], h, w});
    });
  });
}

Arg Expression::upsample_nearest_grad(const ir::Node& node, const LogicalIndex& at) {
  const DType type = compute_type(node.type.dtype);
  const Run columns = results_of(node, 1, at[3]);
  return sum_over(results_of(node, 0, at[2]), type, [&](const Index& p) {
    return sum_over(columns, type, [&](const Index& q) {
      return value(id(node.operands[0].value), {at[0], at[1], p, q});
    });
  });
}

// What a result takes of a cell: 1 - distance, 0 beyond its neighbours.
Arg Expression::linear_share(const LinearAxis& a, const Index& result, const Index& cell, DType type) {
  const std::int64_t last = a.last_place(), end = a.place(a.out - 1);
  const DType integer =
      std::max(last, end) + a.unit < std::numeric_limits<std::int32_t>::max() ? DType::i32 : DType::i64;
  const auto number = [&](std::int64_t n) { return Arg(ir::cast(ir::Scalar::of(n), integer)); };
  Arg place = builder_.index(resolve(a.place(result)), integer);
  if (a.offset < 0) place = def(Op::maximum, {place, number(0)}, integer);
  if (end > last) place = def(Op::minimum, {place, number(last)}, integer);
  const Arg apart = def(Op::sub, {place, builder_.index(resolve(cell * a.unit), integer)}, integer);
  const Arg left = def(Op::sub, {number(a.unit), def(Op::abs, {apart}, integer)}, integer);
  const Arg share = convert(def(Op::maximum, {left, number(0)}, integer), type);
  return def(Op::div, {share, KernelBuilder::literal(static_cast<double>(a.unit), type)}, type);
}

Arg Expression::upsample_linear(const ir::Node& node, const LogicalIndex& at) {
  const int x = id(node.operands[0].value);
  const DType type = compute_type(node.type.dtype);
  const auto rows = std::get<LinearAxis>(ir::span_of(node, 0)), columns = std::get<LinearAxis>(ir::span_of(node, 1));
  const auto share = [&](const LinearAxis& a, const Index& result, const Index& cell, const Arg& of) {
    return a.is_copy() ? of : Arg(def(Op::mul, {of, linear_share(a, result, cell, type)}, type));
  };
  const Run across = CellsOf{at[3]}(columns);
  return sum_over(CellsOf{at[2]}(rows), type, [&](const Index& h) {
    const Arg row = sum_over(across, type, [&](const Index& w) {
      return share(columns, at[3], w, value(x, {at[0], at[1], h, w}));
    });
    return share(rows, at[2], h, row);
  });
}

Arg Expression::upsample_linear_grad(const ir::Node& node, const LogicalIndex& at) {
  const int dy = id(node.operands[0].value);
  const DType type = compute_type(node.type.dtype);
  const auto rows = std::get<LinearAxis>(ir::span_of(node, 0)), columns = std::get<LinearAxis>(ir::span_of(node, 1));
  const Run across = ResultsOf{at[3]}(columns);
  return sum_over(ResultsOf{at[2]}(rows), type, [&](const Index& p) {
    const Arg row = sum_over(across, type, [&](const Index& q) {
      return def(Op::mul, {value(dy, {at[0], at[1], p, q}), linear_share(columns, q, at[3], type)}, type);
    });
    return def(Op::mul, {row, linear_share(rows, p, at[2], type)}, type);
  });
}

}  // namespace fusejit::scheduler
