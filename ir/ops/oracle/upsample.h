// The meaning of upsampling (ops.md §10) and its transposes; the rows are in ops/pool.cpp.
#pragma once

#include "ir/interp.h"

namespace fusejit::ir {

void evaluate_upsample(const EvalContext& context);
void evaluate_upsample_grad(const EvalContext& context);

}  // namespace fusejit::ir
