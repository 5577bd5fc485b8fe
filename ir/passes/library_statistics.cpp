// Statistics of a convolution's channels as engines of a library leave them beside its result (cuDNN, see
// docs/cudnn.md), where the target may take them so (Target::fast_norm):
//   mean(y)   = s / n                            s = Σ y, q = Σ y·y over all but channels, n elements each
//   var(y, c) = max(q − s·mean(y), 0) / (n − c)
// Of f16 alone, which those engines sum deterministically. That is not how batch norm's variance is made otherwise
// (ops.md §6): its relative error is a few u·(mean/σ)², u = 2⁻²⁴. A value of f16 is off by up to 2⁻¹² of its size as it
// is, and its variance by about as much.
#include <map>
#include <set>

#include "ir/passes/passes.h"
#include "ir/rewrite.h"

namespace fusejit::ir {

namespace {

// The convolution whose channels this describes; null: none, or none of the library's.
const Node* described(const Node& node, const Target& target) {
  if (node.op != Op::mean && node.op != Op::var) return nullptr;
  const Node& values = *node.operands[0].value;
  if (values.op != Op::cast || values.type.dtype != DType::f32 || values.operands[0].is_number()) return nullptr;
  const Node& convolution = *values.operands[0].value;
  const bool fits = convolution.op == Op::conv2d && convolution.type.dtype == DType::f16 && reduces_to_channels(node) &&
                    !node.attrs.flag("keepdim") && suits_library(convolution, target);
  return fits ? &convolution : nullptr;
}

struct Moments {
  Value sum, squares, mean;
};

Moments moments_of(const Value& values, std::int64_t count, std::uint32_t region) {
  const Type per_channel{DType::f32, Shape{values.type().shape[1]}};
  const auto sum = [&](const Value& of) {
    return build_as(per_channel, Op::sum, {of}, {{"dim", std::span(kAllButChannels)}}, region);
  };
  Moments made;
  made.sum = sum(values);
  made.squares = sum(build_as(values.type(), Op::mul, {values, values}, {}, region));
  made.mean = build_as(per_channel, Op::div, {made.sum, count}, {}, region);
  return made;
}

// A convolution with both of its sums.
Graph call_of(const Node& convolution) {
  const Value x = parameter(convolution.operands[0].value.type(), "x"),
              w = parameter(convolution.operands[1].value.type(), "w");
  const Value y = build_in(convolution.type.layout, Op::conv2d, {x, w}, convolution.attrs);
  const Value wide =
      build_in(convolution.type.layout, Op::cast, {y}, build(Op::cast, {y}, {{"dtype", DType::f32}})->attrs);
  const Moments moments = moments_of(wide, 1, 0);
  return capture("conv2d", {x, w}, {y, moments.sum, moments.squares});
}

}  // namespace

Graph statistics_for_library(const Graph& graph, const Target& target, const LibraryLeaves& leaves) {
  if (!target.fast_norm || target.cudnn == CudnnMode::off || !leaves) return graph;
  std::set<const Node*> of_call;  // values whose variance is asked for, and whose sums a call leaves
  for (const Value& value : graph.nodes()) {
    const Node* convolution = value->op == Op::var ? described(*value, target) : nullptr;
    if (convolution && leaves(call_of(*convolution))) of_call.insert(value->operands[0].value.get());
  }
  std::map<const Node*, Moments> known;  // by the values that are described, as they are now
  return rewrite(graph, [&](const Node& node, const std::vector<Operand>& operands) -> Value {
    const Node* convolution = described(node, target);
    if (!convolution || !of_call.contains(node.operands[0].value.get())) return {};
    const std::int64_t count = convolution->type.elements() / convolution->type.shape[1];
    const auto [found, fresh] = known.try_emplace(operands[0].value.get());
    if (fresh) found->second = moments_of(operands[0].value, count, node.region);
    const Moments& moments = found->second;
    if (node.op == Op::mean) return moments.mean;
    const std::int64_t divisor = count - node.attrs.integer("correction");
    if (divisor <= 0) return {};
    const auto vector = [&](Op op, const Operand& a, const Operand& b) {
      return build_as(node.type, op, {a, b}, {}, node.region);
    };
    const Value about_mean = vector(Op::sub, moments.squares, vector(Op::mul, moments.sum, moments.mean));
    return vector(Op::div, vector(Op::maximum, about_mean, 0), divisor);
  });
}

}  // namespace fusejit::ir
