// The meaning of the normalisation rows (ops/norm.cpp) once more: naive, two passes, in double precision.
#pragma once

#include <cstdint>

#include "ir/interp.h"

namespace fusejit::ir {

// n - correction of a channel of n elements; NaN where nothing is left.
double batch_norm_divisor(std::int64_t count, const Attrs& attrs);

void evaluate_batch_norm(const EvalContext& context);
void evaluate_batch_norm_train(const EvalContext& context);
void evaluate_batch_norm_train_input_grad(const EvalContext& context);
void evaluate_batch_norm_train_weight_grad(const EvalContext& context);
void evaluate_layer_norm(const EvalContext& context);
void evaluate_group_norm(const EvalContext& context);
void evaluate_instance_norm(const EvalContext& context);

}  // namespace fusejit::ir
