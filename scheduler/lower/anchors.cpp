#include "scheduler/lower/anchors.h"

#include <numeric>

#include "ir/base/check.h"
#include "scheduler/lower/cuda/lower.h"
#include "scheduler/lower/cuda/threads.h"
#include "scheduler/lower/tile.h"
#include "scheduler/naming.h"

namespace fusejit::scheduler {

using ir::Index;
using ir::Op;

namespace {

int operand_id(const ir::Graph& graph, const ir::Node& node, std::size_t i) {
  return graph.index_of(node.operands[i].value.get());
}

TileProblem forward(GroupKernel& kernel, const ir::Node& node) {
  const ir::Graph& graph = kernel.graph();
  const int x = operand_id(graph, node, 0), w = operand_id(graph, node, 1);
  const Shape &in = graph.value(x).type().shape, &out = node.type.shape, &weight = graph.value(w).type().shape;
  TileProblem p;
  const std::int64_t groups = node.attrs.integer("groups"), outputs = out[1] / groups, channels = weight[1];
  p.images = in[0], p.groups = groups, p.outputs = outputs, p.channels = channels;
  p.lanes_along_groups = run_lanes_along_groups(groups, outputs);
  p.rows = convolution_window(node, 0, in[2], out[2], weight[2]);
  p.columns = convolution_window(node, 1, in[3], out[3], weight[3]);
  p.input = [&kernel, x, channels](const Index& n, const Index& h, const Index& v, const Index& g, const Index& c) {
    return kernel.expression().value(x, {n, g * channels + c, h, v});
  };
  p.prefetch = [&kernel, x, channels](const Index& n, const Index& h, const Index& v, const Index& g, const Index& c) {
    kernel.prefetch(x, {n, g * channels + c, h, v});
  };
  p.move_to = [&kernel, outputs](const Index& n, const Index& r, const Index& q, const Index& g, const Index& k) {
    kernel.move_to_dims({n, g * outputs + k, r, q});
  };
  p.weight = [w, outputs](Expression& e, const Index& g, const Index& k, const Index& r, const Index& s,
                          const Index& c) {
    return e.value(w, {g * outputs + k, c, r, s});
  };
  p.channels_adjoin = weight[2] * weight[3] == 1 || graph.value(w).type().layout == Layout::nhwc;
  return p;
}

// One phase of the input gradient: rows h = stride * i + a (columns likewise). With g the common divisor of stride and
// dilation, only taps r = first + stride/g * m meet them, so each phase is a convolution of stride 1 and dilation
// dilation/g over dy with those taps in reverse.
struct Phase {
  Window window;
  std::int64_t offset = 0, stride = 1;     // pixel of output i: i * stride + offset
  std::int64_t first = 0, tap_stride = 1;  // tap of window tap m: first + tap_stride * (kernel - 1 - m)
};

std::vector<Phase> phases(const ir::Node& node, std::size_t axis, std::int64_t in, std::int64_t dy,
                          std::int64_t kernel) {
  const std::int64_t stride = node.attrs.ints("stride")[axis], pad = node.attrs.ints("padding")[axis],
                     dilation = node.attrs.ints("dilation")[axis], common = std::gcd(stride, dilation);
  std::vector<Phase> all;
  for (std::int64_t a = 0; a < stride && a < in; ++a) {
    Phase phase;
    phase.offset = a, phase.stride = stride, phase.tap_stride = stride / common;
    while (phase.first < phase.tap_stride && (a + pad - phase.first * dilation) % stride != 0) ++phase.first;
    std::int64_t taps = 0, base = 0;  // none if no tap falls on these rows
    if (phase.first < std::min(phase.tap_stride, kernel)) {
      taps = (kernel - phase.first + phase.tap_stride - 1) / phase.tap_stride;
      base = (a + pad - phase.first * dilation) / stride;
    }
    const std::int64_t step = dilation / common;
    phase.window = {dy, (in - a + stride - 1) / stride, taps, 1, (taps - 1) * step - base, step};
    all.push_back(phase);
  }
  return all;
}

std::vector<TileProblem> input_gradient(GroupKernel& kernel, const ir::Node& node) {
  const ir::Graph& graph = kernel.graph();
  const int dy = operand_id(graph, node, 0), w = operand_id(graph, node, 1);
  const Shape &out = graph.value(dy).type().shape, &in = node.type.shape, &weight = graph.value(w).type().shape;
  const std::int64_t groups = node.attrs.integer("groups"), outputs = weight[1], channels = weight[0] / groups;
  std::vector<TileProblem> problems;
  for (const Phase& row : phases(node, 0, in[2], out[2], weight[2])) {
    for (const Phase& column : phases(node, 1, in[3], out[3], weight[3])) {
      TileProblem p;
      p.images = in[0], p.groups = groups, p.outputs = outputs, p.channels = channels;
      p.lanes_along_groups = run_lanes_along_groups(groups, outputs);
      p.rows = row.window, p.columns = column.window;
      if (p.rows.kernel == 0 || p.columns.kernel == 0) p.channels = 0;  // no window touches these pixels: zeros
      p.input = [&kernel, dy, channels](const Index& n, const Index& h, const Index& v, const Index& g,
                                        const Index& c) {
        return kernel.expression().value(dy, {n, g * channels + c, h, v});
      };
      p.prefetch = [&kernel, dy, channels](const Index& n, const Index& h, const Index& v, const Index& g,
                                           const Index& c) {
        kernel.prefetch(dy, {n, g * channels + c, h, v});
      };
      p.move_to = [&kernel, row, column, outputs](const Index& n, const Index& i, const Index& j, const Index& g,
                                                  const Index& k) {
        kernel.move_to_dims(
            {n, g * outputs + k, i * row.stride + Index(row.offset), j * column.stride + Index(column.offset)});
      };
      p.weight = [w, row, column, channels](Expression& e, const Index& g, const Index& k, const Index& r,
                                            const Index& s, const Index& c) {
        const auto tap = [](const Phase& phase, const Index& m) {
          return (Index(phase.window.kernel - 1) - m) * phase.tap_stride + Index(phase.first);
        };
        return e.value(w, {g * channels + c, k, tap(row, r), tap(column, s)});
      };
      p.outputs_adjoin = weight[2] * weight[3] == 1 || graph.value(w).type().layout == Layout::nhwc;
      problems.push_back(p);
    }
  }
  return problems;
}

// matmul(a [..., M, K], b [..., K, N]) and linear(x [..., I], w [O, I]). The innermost dim of the result's rows is the
// columns of the tile, those further out are rows and images, so that none of them is a quotient. Dims that b has of
// its own, the products of a batch, are groups.
TileProblem matrix(GroupKernel& kernel, const ir::Node& node) {
  const ir::Graph& graph = kernel.graph();
  const int a = operand_id(graph, node, 0), b = operand_id(graph, node, 1);
  const Shape &left = graph.value(a).type().shape, &right = graph.value(b).type().shape, &out = node.type.shape;
  const int rank = out.rank();
  std::vector<int> rows, in_group;  // dims of the result, those of one element left out
  for (int d = 0; d < rank - 1; ++d) {
    const int of_b = d - (rank - right.rank());
    if (out[d] != 1) (d < rank - 2 && of_b >= 0 && right[of_b] != 1 ? in_group : rows).push_back(d);
  }
  TileProblem p;
  p.outputs = out[rank - 1], p.channels = left[left.rank() - 1];
  p.is_batch = is_batched(node);
  int column = -1, row = -1;
  for (int* loop : {&column, &row}) {
    if (rows.empty()) break;
    *loop = rows.back();
    rows.pop_back();
  }
  if (column >= 0) p.columns.in = p.columns.out = out[column];
  if (row >= 0) p.rows.in = p.rows.out = out[row];
  const auto extents = [&](const std::vector<int>& dims) {
    std::vector<std::int64_t> of_dims;
    for (const int d : dims) of_dims.push_back(out[d]);
    return Shape(of_dims);
  };
  const Shape images = extents(rows), groups = extents(in_group);
  p.images = images.elements(), p.groups = groups.elements();
  // The result's index.
  const auto index = [=](const Index& n, const Index& i, const Index& q, const Index& g, const Index& last) {
    LogicalIndex at(static_cast<std::size_t>(rank), Index(0));
    const auto place = [&at](const std::vector<int>& dims, const LogicalIndex& parts) {
      for (std::size_t d = 0; d < dims.size(); ++d) at[static_cast<std::size_t>(dims[d])] = parts[d];
    };
    place(rows, delinearise(n, images));
    place(in_group, delinearise(g, groups));
    if (row >= 0) at[static_cast<std::size_t>(row)] = i;
    if (column >= 0) at[static_cast<std::size_t>(column)] = q;
    at.back() = last;
    return at;
  };
  p.input = [&kernel, a, index, out, left](const Index& n, const Index& i, const Index& q, const Index& g,
                                           const Index& c) {
    return kernel.expression().value(a, broadcast_index(index(n, i, q, g, c), out, left));
  };
  p.move_to = [&kernel, index](const Index& n, const Index& i, const Index& q, const Index& g, const Index& k) {
    kernel.move_to_dims(index(n, i, q, g, k));
  };
  p.prefetch = [&kernel, a, index, out, left](const Index& n, const Index& i, const Index& q, const Index& g,
                                              const Index& c) {
    kernel.prefetch(a, broadcast_index(index(n, i, q, g, c), out, left));
  };
  const bool transposed = node.op == Op::linear;
  p.weight = [b, index, out, right, transposed](Expression& e, const Index& g, const Index& k, const Index&,
                                                const Index&, const Index& c) {
    if (transposed) return e.value(b, {k, c});
    LogicalIndex at = index(0, 0, 0, g, k);
    at[at.size() - 2] = c;
    return e.value(b, broadcast_index(at, out, right));
  };
  p.channels_adjoin = transposed, p.outputs_adjoin = !transposed;
  return p;
}

// 0, the target's, for a convolution without groups.
int lanes_of(const LowerContext& context, const ir::Node& node) {
  const std::int64_t groups = ir::op_def(node.op).matrix ? 1 : node.attrs.integer("groups");
  if (groups == 1) return 0;
  const int most = vector_lanes(context.target, compute_type(node.type.dtype) == DType::f64);
  return lanes_in_group(groups, node.type.shape[1] / groups, most);
}

}  // namespace

std::optional<LoweredGroup> lower_tiled(const LowerContext& context, const Group& group, int lanes) {
  const ir::Node& node = *context.graph.value(group.anchor);
  const bool cuda = context.target.isa == Isa::cuda;
  if (!cuda) lanes = lanes_of(context, node);
  GroupKernel kernel(context, group, false, lanes);
  std::vector<TileProblem> problems;
  if (node.op == Op::conv2d) {
    problems = {forward(kernel, node)};
  } else if (node.op == Op::conv2d_input_grad) {
    problems = input_gradient(kernel, node);
  } else {
    problems = {matrix(kernel, node)};
  }
  LoweredGroup lowered;
  std::vector<TiledProblem> tiled;
  for (TileProblem& problem : problems) {
    if (problem.images * problem.rows.out * problem.columns.out * problem.groups * problem.outputs == 0) continue;
    problem.compute = compute_type(node.type.dtype);
    if (cuda && problem.groups_adjoin() && problem.outputs % kernel.lanes() != 0) return std::nullopt;
    const TileShape tile =
        cuda ? cuda::choose_tile(kernel, problem) : choose_tile(context.target, problem, kernel.lanes());
    ir::MemId packed = -1;
    const bool stored = context.grouping.stored[static_cast<std::size_t>(operand_id(context.graph, node, 1))];
    const bool as_they_are = cuda && stored && cuda::reads_whole_vectors(problem, tile, kernel.lanes());
    if (problem.channels > 0 && !context.library && !as_they_are) {
      if (cuda && lanes * bytes(problem.compute) > cuda::kAccessBytes) return std::nullopt;
      const int id = context.first_extra + static_cast<int>(lowered.extras.size());
      const std::string name = std::string(kPacking) + std::string(ir::name(node.op));
      lowered.kernels.push_back(lower_packing(context, problem, tile, kernel.lanes(), id, name));
      const std::vector<std::int64_t> dims = packed_dims(problem, tile, kernel.lanes());
      lowered.extras.push_back(
          {problem.compute, dims, label(context.graph, operand_id(context.graph, node, 1)) + " packed"});
      packed = kernel.extra_buffer(ir::MemKind::read, problem.compute, dims, id);
    }
    tiled.push_back({std::move(problem), tile, packed});
  }
  if (!tiled.empty()) cuda ? cuda::emit_tiles(kernel, tiled, kernel.lanes()) : emit_tiles(kernel, tiled);
  if (cuda && !kernel.builder().vectors_aligned()) return std::nullopt;
  if (!tiled.empty()) lowered.kernels.push_back(std::move(kernel).finish());
  return lowered;
}

WeightGradProblem weight_grad_problem(const ir::Graph& graph, const ir::Node& node) {
  const ir::Value &x = node.operands[0].value, &dy = node.operands[1].value;
  const Shape &in = x.type().shape, &out = dy.type().shape, &weight = node.type.shape;
  const std::int64_t groups = node.attrs.integer("groups");
  return {graph.index_of(x.get()),
          graph.index_of(dy.get()),
          in[0],
          groups,
          weight[1],
          out[1] / groups,
          convolution_window(node, 0, in[2], out[2], weight[2]),
          convolution_window(node, 1, in[3], out[3], weight[3]),
          compute_type(node.type.dtype)};
}

}  // namespace fusejit::scheduler
