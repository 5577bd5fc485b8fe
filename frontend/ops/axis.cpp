#include "frontend/ops/axis.h"

#include <algorithm>
#include <numeric>

#include "ir/base/check.h"

namespace fusejit {

void check_defined(const char* op, const Tensor& x) { FJ_CHECK(x.defined(), "{}: an operand is an empty tensor", op); }

int axis_of(const char* op, const Tensor& x, std::int64_t dim, int more) {
  check_defined(op, x);
  const int rank = x.rank() + more;
  FJ_CHECK(dim >= -rank && dim < rank, "{}: dim {} is out of range for rank {} (x: {})", op, dim, rank, x.type().str());
  return static_cast<int>(dim < 0 ? dim + rank : dim);
}

Dims axes_of(const char* op, const Tensor& x, const Dims& dim) {
  check_defined(op, x);
  Dims axes(dim.empty() ? static_cast<std::size_t>(x.rank()) : 0);
  std::iota(axes.begin(), axes.end(), 0);
  for (const std::int64_t d : dim) {
    const std::int64_t axis = axis_of(op, x, d);
    FJ_CHECK(std::find(axes.begin(), axes.end(), axis) == axes.end(), "{}: dim {} is named twice (x: {})", op, d,
             x.type().str());
    axes.push_back(axis);
  }
  return axes;
}

}  // namespace fusejit
