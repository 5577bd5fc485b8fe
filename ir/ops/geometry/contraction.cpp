// The anchors as contractions: what their rows say to lowering (ir/contraction.h).
#include "ir/ops/geometry/contraction.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "ir/node.h"

namespace fusejit::ir {
namespace {

int add(Contraction& to, const char* name, std::int64_t extent, bool reduced) {
  to.dims.push_back({name, extent, reduced});
  return static_cast<int>(to.dims.size()) - 1;
}

DimSum of(int dim) { return {{{dim, 1}}, 0}; }
DimSum of(int dim, std::int64_t coefficient, std::int64_t constant) { return {{{dim, coefficient}}, constant}; }
// g * size + dim, or the dim alone.
DimSum in_group(int g, std::int64_t size, int dim) { return g < 0 ? of(dim) : DimSum{{{g, size}, {dim, 1}}, 0}; }

ContractionOperand operand(const Node& node, int i, std::vector<DimSum> index) {
  const Type& type = node.operands[static_cast<std::size_t>(i)].value.type();
  return {i, std::move(index), {type.shape.begin(), type.shape.end()}, false, type.dtype};
}

struct Axis {  // rows or columns of a convolution
  std::int64_t stride, padding, dilation;
  Axis(const Node& node, std::size_t axis)
      : stride(node.attrs.ints("stride")[axis]),
        padding(node.attrs.ints("padding")[axis]),
        dilation(node.attrs.ints("dilation")[axis]) {}
  DimSum window(int output, int tap) const { return {{{output, stride}, {tap, dilation}}, -padding}; }
};

}  // namespace

// y [N,K,P,Q] += x [N,C,H,W] * w [K,C/g,R,S]
std::vector<Contraction> contraction_of_conv2d(const Node& node) {
  const Shape &w = node.operands[1].value.type().shape, &y = node.type.shape;
  const std::int64_t groups = node.attrs.integer("groups");
  Contraction all;
  const auto dim = std::bind_front(add, std::ref(all));
  const int n = dim("n", y[0], false), g = groups > 1 ? dim("g", groups, false) : -1, p = dim("p", y[2], false),
            q = dim("q", y[3], false), k = dim("k", y[1] / groups, false), r = dim("r", w[2], true),
            s = dim("s", w[3], true), c = dim("c", w[1], true);
  const Axis rows(node, 0), columns(node, 1);
  all.a = operand(node, 0, {of(n), in_group(g, w[1], c), rows.window(p, r), columns.window(q, s)});
  all.b = operand(node, 1, {in_group(g, y[1] / groups, k), of(c), of(r), of(s)});
  all.b.weights = true;
  all.result = {of(n), in_group(g, y[1] / groups, k), of(p), of(q)};
  return {all};
}

namespace {

// One phase of the input gradient along one axis: pixels stride * i + offset. With g the common divisor of stride and
// dilation, only taps first + stride/g * m meet them, so each phase is a convolution of stride 1 and dilation
// dilation/g over dy with those taps in reverse.
struct Phase {
  std::int64_t outputs = 0, taps = 0;
  std::int64_t offset = 0;                     // pixel of output i: i * stride + offset
  std::int64_t first = 0, tap_stride = 1;      // tap of window tap m: first + tap_stride * (taps - 1 - m)
  std::int64_t low_padding = 0, dilation = 1;  // of the windows over dy
};

std::vector<Phase> phases(const Axis& axis, std::int64_t pixels, std::int64_t kernel) {
  const std::int64_t common = std::gcd(axis.stride, axis.dilation);
  std::vector<Phase> all;
  for (std::int64_t a = 0; a < axis.stride && a < pixels; ++a) {
    Phase phase;
    phase.outputs = (pixels - a + axis.stride - 1) / axis.stride;
    phase.offset = a, phase.tap_stride = axis.stride / common, phase.dilation = axis.dilation / common;
    while (phase.first < phase.tap_stride && (a + axis.padding - phase.first * axis.dilation) % axis.stride != 0)
      ++phase.first;
    std::int64_t base = 0;  // no taps if none falls on these pixels
    if (phase.first < std::min(phase.tap_stride, kernel)) {
      phase.taps = (kernel - phase.first + phase.tap_stride - 1) / phase.tap_stride;
      base = (a + axis.padding - phase.first * axis.dilation) / axis.stride;
    }
    phase.low_padding = (phase.taps - 1) * phase.dilation - base;
    all.push_back(phase);
  }
  return all;
}

}  // namespace

// dx [N,C,H,W] += dy [N,K,P,Q] * w [K,C/g,R,S]; k is the channel of dx and c that of dy, which is summed.
std::vector<Contraction> contraction_of_conv2d_input_grad(const Node& node) {
  const Shape &w = node.operands[1].value.type().shape, &x = node.type.shape;
  const std::int64_t groups = node.attrs.integer("groups"), outputs = w[1], channels = w[0] / groups;
  const Axis rows(node, 0), columns(node, 1);
  std::vector<Contraction> all;
  for (const Phase& row : phases(rows, x[2], w[2])) {
    for (const Phase& column : phases(columns, x[3], w[3])) {
      Contraction one;
      const auto dim = std::bind_front(add, std::ref(one));
      const bool touched = row.taps * column.taps > 0;  // if no window touches these pixels they are 0
      const int n = dim("n", x[0], false), g = groups > 1 ? dim("g", groups, false) : -1,
                p = dim("p", row.outputs, false), q = dim("q", column.outputs, false), k = dim("k", outputs, false),
                r = dim("r", row.taps, true), s = dim("s", column.taps, true),
                c = dim("c", touched ? channels : 0, true);
      const auto window = [](const Phase& phase, int output, int tap) {
        return DimSum{{{output, 1}, {tap, phase.dilation}}, -phase.low_padding};
      };
      const auto tap = [](const Phase& phase, int dim) {
        return of(dim, -phase.tap_stride, phase.first + phase.tap_stride * (phase.taps - 1));
      };
      one.a = operand(node, 0, {of(n), in_group(g, channels, c), window(row, p, r), window(column, q, s)});
      one.b = operand(node, 1, {in_group(g, channels, c), of(k), tap(row, r), tap(column, s)});
      one.b.weights = true;
      one.result = {of(n), in_group(g, outputs, k), of(p, rows.stride, row.offset),
                    of(q, columns.stride, column.offset)};
      all.push_back(std::move(one));
    }
  }
  return all;
}

// dw [K,C/g,R,S] += x [N,C,H,W] * dy [N,K,P,Q]
std::vector<Contraction> contraction_of_conv2d_weight_grad(const Node& node) {
  const Shape &dy = node.operands[1].value.type().shape, &w = node.type.shape;
  const std::int64_t groups = node.attrs.integer("groups");
  Contraction all;
  const auto dim = std::bind_front(add, std::ref(all));
  const int g = groups > 1 ? dim("g", groups, false) : -1, k = dim("k", dy[1] / groups, false),
            r = dim("r", w[2], false), s = dim("s", w[3], false), c = dim("c", w[1], false), n = dim("n", dy[0], true),
            p = dim("p", dy[2], true), q = dim("q", dy[3], true);
  const Axis rows(node, 0), columns(node, 1);
  all.a = operand(node, 0, {of(n), in_group(g, w[1], c), rows.window(p, r), columns.window(q, s)});
  all.b = operand(node, 1, {of(n), in_group(g, dy[1] / groups, k), of(p), of(q)});
  all.result = {in_group(g, dy[1] / groups, k), of(c), of(r), of(s)};
  return {all};
}

namespace {

// a [..., M, C] times b [..., C, K], or x [..., C] times w [K, C]. Dims of the result's rows that b has too are g, the
// products of a batch; the others are q, p, n from the innermost on. Dims of one element are none.
std::vector<Contraction> matrix_product(const Node& node, bool transposed) {
  const Shape &left = node.operands[0].value.type().shape, &right = node.operands[1].value.type().shape,
              &out = node.type.shape;
  const int rank = out.rank();
  Contraction all;
  std::vector<int> dim_of(static_cast<std::size_t>(rank), -1);
  std::vector<std::pair<int, bool>> rows;  // logical dim; of a batch
  for (int d = 0; d < rank - 1; ++d) {
    const int of_b = d - (rank - right.rank());
    if (out[d] != 1) rows.push_back({d, !transposed && d < rank - 2 && of_b >= 0 && right[of_b] != 1});
  }
  const auto names = [](const char* first, std::int64_t i) {
    return i == 0 ? std::string(first) : first + std::to_string(i + 1);
  };
  std::vector<std::string> name_of(static_cast<std::size_t>(rank));
  std::int64_t plain = 0, batch = 0;
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    std::string& name = name_of[static_cast<std::size_t>(row->first)];
    if (row->second) {
      name = names("g", batch++);
    } else {
      name = plain == 0 ? "q" : plain == 1 ? "p" : names("n", plain - 2);
      ++plain;
    }
  }
  for (const char* name : {"p", "q"}) {  // a tile has rows and columns, if only one
    if (std::find(name_of.begin(), name_of.end(), name) == name_of.end()) all.dims.push_back({name, 1, false});
  }
  for (const bool of_batch : {false, true}) {  // rows outside of batches, as a convolution's images and groups
    for (const auto& [d, in_batch] : rows) {
      if (in_batch != of_batch) continue;
      dim_of[static_cast<std::size_t>(d)] = static_cast<int>(all.dims.size());
      all.dims.push_back({name_of[static_cast<std::size_t>(d)], out[d], false});
    }
  }
  const int k = static_cast<int>(all.dims.size());
  all.dims.push_back({"k", out[rank - 1], false});
  const int c = k + 1;
  all.dims.push_back({"c", left[left.rank() - 1], true});
  for (int d = 0; d < rank - 1; ++d) {
    const int dim = dim_of[static_cast<std::size_t>(d)];
    all.result.push_back(dim < 0 ? DimSum{} : of(dim));
  }
  all.result.push_back(of(k));
  // The operand's dims beside its matrix, broadcast.
  const auto outer = [&](const Shape& shape, int matrix_dims) {
    std::vector<DimSum> index;
    for (int d = 0; d < shape.rank() - matrix_dims; ++d) {
      const int dim = dim_of[static_cast<std::size_t>(rank - shape.rank() + d)];
      index.push_back(shape[d] == 1 || dim < 0 ? DimSum{} : of(dim));
    }
    return index;
  };
  std::vector<DimSum> a = outer(left, 1), b;
  a.push_back(of(c));
  if (transposed) {
    b = {of(k), of(c)};
  } else {
    b = outer(right, 2);
    b.push_back(of(c));
    b.push_back(of(k));
  }
  all.a = operand(node, 0, std::move(a));
  all.b = operand(node, 1, std::move(b));
  all.b.weights = true;
  return {all};
}

}  // namespace

std::vector<Contraction> contraction_of_matmul(const Node& node) { return matrix_product(node, false); }
std::vector<Contraction> contraction_of_linear(const Node& node) { return matrix_product(node, true); }

}  // namespace fusejit::ir
