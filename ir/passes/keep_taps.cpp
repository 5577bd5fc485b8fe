// Max pooling backwards on a GPU where windows overlap: where in its window each maximum lies is a byte that the
// forward pass has at hand. Without it the gradient of a pixel looks for the maximum of every window over it: a window
// of 3x3 at a stride of two is read up to four times nine times, and 64 images of 112x112 pixels and 64 channels
// took 3.4 ms of an H200, which moves the bytes of that gradient in 0.1 ms.
//   max_pool2d_grad(x, dy) = max_pool2d_tap_grad(dy, max_pool2d_tap(x, max_pool2d(x)))
// The tap reads the maximum so that it is found where that is found.
// Processors keep the maxima of a few rows in scratch instead (scheduler/lower/expression/kept_maxima.h), unless values
// are of 16 bits, each of which is widened, and rounded where it is computed, before it is compared: the gradient of
// ResNet-50's pool takes 0.43 of that time with a byte, and the pool no more (Zen 5; in f32 0.55, and the pool 1.8).
#include <array>

#include "ir/ops/geometry/span.h"
#include "ir/passes/passes.h"
#include "ir/rewrite.h"

namespace fusejit::ir {

namespace {

// The pool that this is the gradient of; null: it is not in the graph.
const Node* forward_of(const Graph& graph, const Node& gradient) {
  for (const Value& value : graph.nodes()) {
    const bool same = value->op == Op::max_pool2d &&
                      value->operands[0].value.get() == gradient.operands[0].value.get() &&
                      value->attrs == gradient.attrs;
    if (same) return value.get();
  }
  return nullptr;
}

}  // namespace

Graph keep_taps(const Graph& graph, const Target& target) {
  return rewrite(graph, [&](const Node& node, const std::vector<Operand>& operands) -> Value {
    if (node.op != Op::max_pool2d_grad) return {};
    if (target.isa != Isa::cuda && bits(node.type.dtype) != 16) return {};
    const WindowAxis rows = pool_window(node, 0), columns = pool_window(node, 1);
    if (rows.dilation != 1 || columns.dilation != 1 || rows.kernel * columns.kernel > 256) return {};
    // Each pixel looks through one window: what it reads there, the mask of a relu reads in any case.
    if (rows.most_windows() < 2 && columns.most_windows() < 2) return {};
    const auto same = [&](const char* name) { return AttrInit(name, node.attrs.ints(name)); };
    const Type byte{DType::u8, operands[1].value.type().shape, operands[1].value.type().layout};
    Value tap;
    {
      // The kernel of the forward pass computes it, and is called by what that does.
      const Node* forward = forward_of(graph, node);
      const OriginScope scope(forward ? origin_of_replacement(*forward) : current_origin());
      const Value y = build_as(operands[1].value.type(), Op::max_pool2d, {operands[0]},
                               {same("kernel_size"), same("stride"), same("padding")}, node.region);
      tap = build_as(byte, Op::max_pool2d_tap, {operands[0], y}, {same("kernel_size"), same("stride"), same("padding")},
                     node.region);
    }
    const std::array<std::int64_t, 2> size{rows.in, columns.in};
    return build_as(
        node.type, Op::max_pool2d_tap_grad, {operands[1], tap},
        {{"input_size", std::span<const std::int64_t>(size)}, same("kernel_size"), same("stride"), same("padding")},
        node.region);
  });
}

}  // namespace fusejit::ir
