#include "scheduler/fuse/gradients.h"

namespace fusejit::scheduler {

bool go_over_same_rows(const ir::Graph& graph, int by_input, int by_weights) {
  if (by_input < 0 || by_weights < 0) return false;
  const ir::Node &one = *graph.value(by_input), &other = *graph.value(by_weights);
  if (one.op != ir::Op::conv2d_input_grad || other.op != ir::Op::conv2d_weight_grad) return false;
  const ir::Value& gradient = one.operands[0].value;
  if (gradient != other.operands[1].value || gradient.type().dtype != DType::f32) return false;
  const Shape &weights = other.type.shape, &in = one.type.shape, &out = gradient.type().shape;
  const std::int64_t groups = other.attrs.integer("groups");
  if (one.operands[1].value.type().shape != weights || one.attrs.integer("groups") != groups) return false;
  return groups == 1 ? weights[2] * weights[3] == 1 : groups == in[1] && groups == out[1];
}

}  // namespace fusejit::scheduler
