#include "scheduler/fuse/gradients.h"

namespace fusejit::scheduler {

bool go_over_same_rows(const ir::Graph& graph, int by_input, int by_weights) {
  if (by_input < 0 || by_weights < 0) return false;
  const ir::Node &one = *graph.value(by_input), &other = *graph.value(by_weights);
  if (one.op != ir::Op::conv2d_input_grad || other.op != ir::Op::conv2d_weight_grad) return false;
  const ir::Value& gradient = one.operands[0].value;
  if (gradient != other.operands[1].value || gradient.type().dtype != DType::f32) return false;
  const Shape &taps = other.type.shape, &in = one.type.shape, &out = gradient.type().shape;
  return taps[2] * taps[3] == 1 && in[2] == out[2] && in[3] == out[3];
}

}  // namespace fusejit::scheduler
