// Axes as callers name them, for the operations that work them out before they record.
#pragma once

#include "fusejit/ops.h"

namespace fusejit {

// `dim` counted from the front, with a rank that has `more` axes than x. UserError if it is out of range.
int axis_of(const char* op, const Tensor& x, std::int64_t dim, int more = 0);
// All axes if `dim` is empty; UserError for one out of range or named twice.
Dims axes_of(const char* op, const Tensor& x, const Dims& dim);
// UserError, in the words of `op`, for an empty tensor.
void check_defined(const char* op, const Tensor& x);

}  // namespace fusejit
