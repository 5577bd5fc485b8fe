// The meaning of upsampling (ops.md §10) and its transposes; the rows are in ops/pool.cpp.
#pragma once

#include "ir/interp.h"

namespace fusejit::ir {

void evaluate_upsample_nearest(const EvalContext& context);
void evaluate_upsample_nearest_grad(const EvalContext& context);
void evaluate_upsample_bilinear(const EvalContext& context);
void evaluate_upsample_bilinear_grad(const EvalContext& context);

}  // namespace fusejit::ir
