// Expression: average pooling, up-sampling and their transposes. All of them are a sum over a span of positions per
// spatial dim: the cells that a window averages, the two that a result lies between, or the results that use a cell.
#include <algorithm>
#include <limits>
#include <numeric>

#include "scheduler/lower/expression.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Combiner;
using ir::Compare;
using ir::CompareKind;
using ir::Index;
using ir::KernelBuilder;
using ir::Op;

// Positions first, first + 1, ... of which at most `most` count: those for which `inside` holds.
struct Expression::Span {
  Index first;
  std::int64_t most = 1;
  std::function<std::vector<Compare>(const Index& position)> inside;
};

namespace {

Index ceil_divide(const Index& a, std::int64_t by) { return (a + Index(by - 1)) / by; }

// floor(i * extent / parts) without common factors, which would hide that the quotient is simple.
Index start_of(const Index& i, std::int64_t extent, std::int64_t parts) {
  const std::int64_t common = std::gcd(extent, parts);
  return i * (extent / common) / (parts / common);
}
Index end_of(const Index& i, std::int64_t extent, std::int64_t parts) {
  const std::int64_t common = std::gcd(extent, parts);
  return ceil_divide((i + Index(1)) * (extent / common), parts / common);
}

// One spatial dim of an average pool: windows of a fixed size, or those that cut `in` into `out` parts.
struct AveragedAxis {
  std::int64_t in = 1, out = 1;
  std::int64_t kernel = 0, stride = 1, padding = 0;  // kernel 0: adaptive
  bool adaptive() const { return kernel == 0; }
  bool inside() const { return padding == 0 && (out - 1) * stride + kernel <= in; }
};

AveragedAxis averaged_axis(const ir::Node& node, int axis, const Shape& in, const Shape& out) {
  AveragedAxis a{in[2 + axis], out[2 + axis]};
  if (node.op == Op::avg_pool2d || node.op == Op::avg_pool2d_grad) {
    const auto i = static_cast<std::size_t>(axis);
    a.kernel = node.attrs.ints("kernel_size")[i], a.stride = node.attrs.ints("stride")[i];
    a.padding = node.attrs.ints("padding")[i];
  }
  return a;
}

}  // namespace

// Part i of `extent` cells cut into `parts` that may overlap by a cell: floor(i*extent/parts) up to
// ceil((i+1)*extent/parts).
Expression::Span Expression::part(const Index& i, std::int64_t extent, std::int64_t parts) {
  if (extent % parts == 0) return {i * (extent / parts), extent / parts, {}};
  std::int64_t most = 1;
  for (std::int64_t p = 0; p < parts; ++p) {
    most = std::max(most, ((p + 1) * extent + parts - 1) / parts - p * extent / parts);
  }
  const Index end = end_of(i, extent, parts);
  return {start_of(i, extent, parts), most, [end, extent](const Index& at) {
            return std::vector<Compare>{compare(at, CompareKind::lt, extent), compare(at - end, CompareKind::lt, 0)};
          }};
}

namespace {

// Cells of `in` that window o of fixed size covers.
auto fixed_cells(const AveragedAxis& a) {
  return [a](const Index& at) { return a.inside() ? std::vector<Compare>() : within(at, a.in); };
}
// Windows of fixed size that contain a pixel.
auto fixed_windows(const AveragedAxis& a, const Index& pixel) {
  return [a, pixel](const Index& at) {
    std::vector<Compare> conditions;
    if ((a.kernel - 1) / a.stride > 0) conditions.push_back(compare(at, CompareKind::ge, 0));
    if ((a.in - 1 + a.padding) / a.stride >= a.out) conditions.push_back(compare(at, CompareKind::lt, a.out));
    if (a.kernel % a.stride != 0) {  // the first of them may end before the pixel
      conditions.push_back(compare(pixel + Index(a.padding) - at * a.stride, CompareKind::lt, a.kernel));
    }
    return conditions;
  };
}

}  // namespace

Arg Expression::sum_over(const Span& span, DType type, const std::function<Arg(const Index&)>& body) {
  const auto term = [&](const Index& at) {
    const std::vector<Compare> inside = span.inside ? span.inside(at) : std::vector<Compare>();
    return choose(
        inside, type, [&] { return body(at); }, KernelBuilder::literal(0, type));
  };
  if (span.most == 1) return term(span.first.simplify(hooks_.ranges));
  constexpr std::int64_t kUnrolled = 4;
  const ir::Binding binding = span.most <= kUnrolled ? ir::Binding::unroll : ir::Binding::none;
  return builder_.reduce({Index(0)}, {Index(span.most)}, binding, {Combiner::add}, {type},
                         [&](Index t) { return nested([&] { return std::vector<Arg>{term(span.first + t)}; }); })[0];
}

// How many cells window o of this dim averages, as a number of `type`.
Arg Expression::averaged_cells(const ir::Node& node, int axis, const Index& o, const Shape& in, const Shape& out,
                               DType type) {
  const AveragedAxis a = averaged_axis(node, axis, in, out);
  if (a.adaptive()) {
    if (a.in % a.out == 0) return KernelBuilder::literal(static_cast<double>(a.in / a.out), type);
    return convert(builder_.index(resolve(end_of(o, a.in, a.out) - start_of(o, a.in, a.out)), DType::i32), type);
  }
  if (node.attrs.flag("count_include_pad") || a.inside()) {
    return KernelBuilder::literal(static_cast<double>(a.kernel), type);
  }
  const auto bound = [&](std::int64_t n) { return Arg(ir::cast(ir::Scalar::of(n), DType::i32)); };
  const Arg start = builder_.index(resolve(o * a.stride - Index(a.padding)), DType::i32),
            end = builder_.index(resolve(o * a.stride + Index(a.kernel - a.padding)), DType::i32);
  const Arg last = def(Op::maximum, {def(Op::minimum, {end, bound(a.in)}, DType::i32), bound(0)}, DType::i32),
            first = def(Op::minimum, {def(Op::maximum, {start, bound(0)}, DType::i32), bound(a.in)}, DType::i32);
  return convert(def(Op::sub, {last, first}, DType::i32), type);
}

Arg Expression::average_pool(const ir::Node& node, const LogicalIndex& at) {
  const ir::Value& x = node.operands[0].value;
  const DType type = compute_type(node.type.dtype);
  const Shape &in = x.type().shape, &out = node.type.shape;
  const auto cells = [&](int axis) -> Span {
    const AveragedAxis a = averaged_axis(node, axis, in, out);
    const Index& o = at[static_cast<std::size_t>(2 + axis)];
    if (a.adaptive()) return part(o, a.in, a.out);
    return {o * a.stride - Index(a.padding), a.kernel, fixed_cells(a)};
  };
  const Span columns = cells(1);
  const Arg sum = sum_over(cells(0), type, [&](const Index& h) {
    return sum_over(columns, type, [&](const Index& w) { return value(id(x), {at[0], at[1], h, w}); });
  });
  const Arg count = def(
      Op::mul, {averaged_cells(node, 0, at[2], in, out, type), averaged_cells(node, 1, at[3], in, out, type)}, type);
  return def(Op::div, {sum, count}, type);
}

Arg Expression::average_pool_grad(const ir::Node& node, const LogicalIndex& at) {
  const ir::Value& dy = node.operands[0].value;
  const DType type = compute_type(node.type.dtype);
  const Shape &in = node.type.shape, &out = dy.type().shape;
  const auto windows = [&](int axis) -> Span {
    const AveragedAxis a = averaged_axis(node, axis, in, out);
    const Index& pixel = at[static_cast<std::size_t>(2 + axis)];
    if (a.adaptive()) return part(pixel, a.out, a.in);  // the same cuts, seen from the cells
    const std::int64_t most = (a.kernel - 1) / a.stride + 1;
    return {(pixel + Index(a.padding)) / a.stride - Index(most - 1), most, fixed_windows(a, pixel)};
  };
  const Span columns = windows(1);
  return sum_over(windows(0), type, [&](const Index& p) {
    return sum_over(columns, type, [&](const Index& q) {
      const Arg count =
          def(Op::mul, {averaged_cells(node, 0, p, in, out, type), averaged_cells(node, 1, q, in, out, type)}, type);
      return def(Op::div, {value(id(dy), {at[0], at[1], p, q}), count}, type);
    });
  });
}

Arg Expression::upsample_nearest(const ir::Node& node, const LogicalIndex& at) {
  const ir::Value& x = node.operands[0].value;
  const Shape &in = x.type().shape, &out = node.type.shape;
  return value(id(x), {at[0], at[1], start_of(at[2], in[2], out[2]).simplify(hooks_.ranges),
                       start_of(at[3], in[3], out[3]).simplify(hooks_.ranges)});
}

Arg Expression::upsample_nearest_grad(const ir::Node& node, const LogicalIndex& at) {
  const ir::Value& dy = node.operands[0].value;
  const DType type = compute_type(node.type.dtype);
  const Shape &in = node.type.shape, &out = dy.type().shape;
  // Results i with floor(i * in / out) = pixel.
  const auto copies = [&](int axis) -> Span {
    const std::int64_t cells = in[2 + axis], results = out[2 + axis], common = std::gcd(cells, results);
    const Index& pixel = at[static_cast<std::size_t>(2 + axis)];
    if (results % cells == 0) return {pixel * (results / cells), results / cells, {}};
    const auto first = [&](const Index& p) { return ceil_divide(p * (results / common), cells / common); };
    const Index end = first(pixel + Index(1));
    return {first(pixel), (results + cells - 1) / cells, [end, results](const Index& i) {
              return std::vector<Compare>{compare(i, CompareKind::lt, results), compare(i - end, CompareKind::lt, 0)};
            }};
  };
  const Span columns = copies(1);
  return sum_over(copies(0), type, [&](const Index& p) {
    return sum_over(columns, type, [&](const Index& q) { return value(id(dy), {at[0], at[1], p, q}); });
  });
}

// One spatial dim of a linear interpolation. Result i lies at (i * step + offset) / unit among the cells, exactly: in
// integers, no rounding decides between two cells.
struct Expression::LinearAxis {
  std::int64_t cells = 1, results = 1;
  std::int64_t step = 0, offset = 0, unit = 1;
  Index place(const Index& result) const { return result * step + Index(offset); }
  bool copies() const { return unit == 1 || cells == 1; }  // every result is a cell
};

Expression::LinearAxis Expression::linear_axis(const ir::Node& node, std::int64_t cells, std::int64_t results) {
  LinearAxis a{cells, results};
  if (!node.attrs.flag("align_corners")) {
    a.step = 2 * cells, a.offset = cells - results,
    a.unit = 2 * results;  // the middle of a result: (i + 1/2) * H/P - 1/2
  } else if (results > 1) {
    a.step = cells - 1, a.unit = results - 1;
  }
  const std::int64_t common = std::gcd(std::gcd(a.step, a.offset), a.unit);
  a.step /= common, a.offset /= common, a.unit /= common;
  return a;
}

// What a result takes of a cell: 1 - distance, 0 beyond its neighbours. Results in front of the first cell and behind
// the last are those cells.
Arg Expression::linear_share(const LinearAxis& a, const Index& result, const Index& cell, DType type) {
  const std::int64_t last = (a.cells - 1) * a.unit, end = (a.results - 1) * a.step + a.offset;
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
  const ir::Value& x = node.operands[0].value;
  const DType type = compute_type(node.type.dtype);
  const Shape &in = x.type().shape, &out = node.type.shape;
  const LinearAxis rows = linear_axis(node, in[2], out[2]), columns = linear_axis(node, in[3], out[3]);
  const auto neighbours = [](const LinearAxis& a, const Index& result) -> Span {
    if (a.copies()) return {a.cells == 1 ? Index(0) : a.place(result), 1, {}};
    return {a.place(result) / a.unit, 2, [cells = a.cells](const Index& at) { return within(at, cells); }};
  };
  const auto share = [&](const LinearAxis& a, const Index& result, const Index& cell, const Arg& of) {
    return a.copies() ? of : Arg(def(Op::mul, {of, linear_share(a, result, cell, type)}, type));
  };
  const Span across = neighbours(columns, at[3]);
  return sum_over(neighbours(rows, at[2]), type, [&](const Index& h) {
    const Arg row = sum_over(across, type, [&](const Index& w) {
      return share(columns, at[3], w, value(id(x), {at[0], at[1], h, w}));
    });
    return share(rows, at[2], h, row);
  });
}

Arg Expression::upsample_linear_grad(const ir::Node& node, const LogicalIndex& at) {
  const ir::Value& dy = node.operands[0].value;
  const DType type = compute_type(node.type.dtype);
  const Shape &in = node.type.shape, &out = dy.type().shape;
  const LinearAxis rows = linear_axis(node, in[2], out[2]), columns = linear_axis(node, in[3], out[3]);
  // Results closer than a cell: (cell - 1) * unit < place < (cell + 1) * unit.
  const auto users = [](const LinearAxis& a, const Index& cell) -> Span {
    if (a.step == 0) return {Index(0), a.results, {}};
    const std::int64_t most = std::min(a.results, (2 * a.unit - 1) / a.step + 1);
    if (most == a.results) return {Index(0), most, {}};
    return {((cell - Index(1)) * a.unit - Index(a.offset)) / a.step + Index(1), most,
            [results = a.results](const Index& at) { return within(at, results); }};
  };
  const Span across = users(columns, at[3]);
  return sum_over(users(rows, at[2]), type, [&](const Index& p) {
    const Arg row = sum_over(across, type, [&](const Index& q) {
      return def(Op::mul, {value(id(dy), {at[0], at[1], p, q}), linear_share(columns, q, at[3], type)}, type);
    });
    return def(Op::mul, {row, linear_share(rows, p, at[2], type)}, type);
  });
}

}  // namespace fusejit::scheduler
