// Expression: pooling and its gradients as small loops over the window; a gradient asks the windows over its pixel
// (kernel-ir.md §12 (i)), so there is no scatter.
#include "ir/base/check.h"
#include "scheduler/lower/expression.h"
#include "scheduler/lower/window.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Combiner;
using ir::Index;
using ir::KernelBuilder;
using ir::Op;

namespace {

// The window geometry of one spatial dim of a pool.
Window pool_window(const ir::Node& node, int axis, std::int64_t in, std::int64_t out) {
  const auto a = static_cast<std::size_t>(axis);
  Window w;
  w.in = in, w.out = out;
  w.kernel = node.attrs.ints("kernel_size")[a];
  w.stride = node.attrs.ints("stride")[a];
  w.low_padding = node.attrs.ints("padding")[a];
  for (const ir::AttrDef& attr : node.attrs.schema()) {
    if (attr.name == "dilation") w.dilation = node.attrs.ints("dilation")[a];
  }
  return w;
}

constexpr std::int64_t kUnrolledTaps = 4;

}  // namespace

Arg Expression::max_pool(const ir::Node& node, const LogicalIndex& at) {
  const ir::Value& x = node.operands[0].value;
  const DType type = compute_type(node.type.dtype);
  const Window rows = pool_window(node, 0, x.type().shape[2], node.type.shape[2]);
  const Window columns = pool_window(node, 1, x.type().shape[3], node.type.shape[3]);
  const auto loop = [&](const Window& window, const Index& out, const std::function<Arg(Index)>& body) {
    const TapRange taps = tap_range(window, resolve(out));
    const auto binding = taps.constant && window.kernel <= kUnrolledTaps ? ir::Binding::unroll : ir::Binding::none;
    return Arg(builder_.reduce(taps.low, taps.high, binding, {Combiner::maximum}, {type}, [&](Index tap) {
      return nested([&] { return std::vector<Arg>{body(tap)}; });
    })[0]);
  };
  return loop(rows, at[2], [&](const Index& r) {
    return loop(columns, at[3], [&](const Index& s) {
      return value(id(x), {at[0], at[1], rows.input(at[2], r), columns.input(at[3], s)});
    });
  });
}

Arg Expression::max_pool_grad(const ir::Node& node, const LogicalIndex& at) {
  const ir::Value &x = node.operands[0].value, &dy = node.operands[1].value;
  const DType type = compute_type(node.type.dtype);
  const Shape &in = x.type().shape, &out = dy.type().shape;
  const Window rows = pool_window(node, 0, in[2], out[2]), columns = pool_window(node, 1, in[3], out[3]);
  FJ_ASSERT(in[2] * in[3] < (std::int64_t{1} << 31), "max_pool2d_grad: image {} too large", x.type().str());
  // dy of window (p, q) if this pixel is its first maximum, else 0.
  const auto share = [&](const Index& p, const Index& q) -> Arg {
    const auto scan = [&](const Window& window, const Index& o, const std::function<std::vector<Arg>(Index)>& body) {
      const TapRange taps = tap_range(window, resolve(o));
      const auto binding = taps.constant && window.kernel <= kUnrolledTaps ? ir::Binding::unroll : ir::Binding::none;
      return builder_.reduce(taps.low, taps.high, binding, {Combiner::argmax}, {type, DType::i32},
                             [&](Index tap) { return nested([&] { return body(tap); }); });
    };
    const std::vector<ir::ValueId> best = scan(rows, p, [&](const Index& r) {
      const std::vector<ir::ValueId> row = scan(columns, q, [&](const Index& s) {
        const Index h = rows.input(p, r), w = columns.input(q, s);
        const Arg candidate = value(id(x), {at[0], at[1], h, w});
        return std::vector<Arg>{candidate, builder_.index(resolve(h * in[3] + w), DType::i32)};
      });
      return std::vector<Arg>{row[0], row[1]};
    });
    const Arg own = builder_.index(resolve(at[2] * in[3] + at[3]), DType::i32);
    const Arg hit = def(Op::eq, {best[1], own}, DType::boolean);
    return def(Op::where, {hit, value(id(dy), {at[0], at[1], p, q}), KernelBuilder::literal(0, type)}, type);
  };
  const auto over = [&](const Window& window, const Index& pixel, const std::function<Arg(Index)>& body) -> Arg {
    if (window.tiles()) {  // windows that do not overlap: exactly one, or none behind the last
      const Index o = (pixel / window.stride).simplify(hooks_.ranges);
      if (window.in <= window.out * window.stride) return body(o);
      return choose({compare(o, ir::CompareKind::lt, window.out)}, type, [&] { return body(o); },
                    KernelBuilder::literal(0, type));
    }
    const TapRange windows = covering_windows(window, resolve(pixel));
    return builder_.reduce(windows.low, windows.high, ir::Binding::none, {Combiner::add}, {type}, [&](Index o) {
      return nested([&] { return std::vector<Arg>{body(o)}; });
    })[0];
  };
  return over(rows, at[2], [&](const Index& p) { return over(columns, at[3], [&](const Index& q) { return share(p, q); }); });
}

Arg Expression::average_pool(const ir::Node& node, const LogicalIndex&) {
  throw UnsupportedError(fmt::format("{}: cannot be lowered to a loop kernel yet; the graph interpreter runs it",
                                     ir::name(node.op)));
}

Arg Expression::average_pool_grad(const ir::Node& node, const LogicalIndex& at) { return average_pool(node, at); }

}  // namespace fusejit::scheduler
