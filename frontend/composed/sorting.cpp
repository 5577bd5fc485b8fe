// sort, argsort and topk (fusejit/composed.h): each element's rank by counting those before it, then the element of
// each rank. Comparing all with all is n^2 work, but of a kind that fuses into two kernels and runs on every engine
// alike.
#include "frontend/axis.h"
#include "frontend/record.h"
#include "fusejit/composed.h"
#include "ir/base/check.h"

namespace fusejit {
namespace {

using ir::Op;

// a < b with NaN above all numbers, as PyTorch sorts.
Tensor below(const Tensor& a, const Tensor& b) {
  const Tensor less = a < b;
  return is_float(a.dtype()) ? less | (isnan(b) & ~isnan(a)) : less;
}

// How many elements along `axis` stand before each one in that order; equal ones keep theirs.
Tensor ranks(const Tensor& x, int axis, bool descending) {
  const Tensor values = x.detach();                                                 // a rank has no gradient
  const Tensor one = unsqueeze(values, axis + 1), other = unsqueeze(values, axis);  // along axis, along axis + 1
  const std::int64_t n = x.size(axis);
  Dims shape(static_cast<std::size_t>(x.rank() + 1), 1);
  const auto places = [&](int along) {
    Dims only = shape;
    only[static_cast<std::size_t>(along)] = n;
    return record_on(x.state()->device, Op::iota, {},
                     {{"shape", std::span<const std::int64_t>(only)}, {"dim", along}, {"dtype", i64}});
  };
  const Tensor ahead = descending ? below(one, other) : below(other, one);
  const Tensor behind = descending ? below(other, one) : below(one, other);
  return sum(ahead | (~behind & (places(axis + 1) < places(axis))), {axis + 1});
}

// The places of the first `count` elements in that order.
Tensor first_places(const Tensor& x, int axis, bool descending, std::int64_t count) {
  const Tensor rank = ranks(x, axis, descending);
  const Tensor place =
      record_on(x.state()->device, Op::iota, {}, {{"shape", x.shape().dims()}, {"dim", axis}, {"dtype", i64}});
  Dims shape(x.shape().begin(), x.shape().end());
  shape[static_cast<std::size_t>(axis)] = count;
  // One element has each rank, so what is added up is one number; ranks beyond are dropped.
  return record(Op::gather_grad, {place, rank}, {{"dim", axis}, {"shape", std::span<const std::int64_t>(shape)}});
}

int sorted_axis(const char* op, const Tensor& x, int dim) {
  const int axis = axis_of(op, x, dim);
  FJ_CHECK(x.rank() < kMaxRank, "{}: x must have fewer than {} axes (x: {})", op, kMaxRank, x.type().str());
  return axis;
}

Sorted sorted(const Tensor& x, int axis, bool descending, std::int64_t count) {
  const Tensor indices = first_places(x, axis, descending, count);
  return {gather(x, axis, indices), indices};
}

}  // namespace

Tensor argsort(const Tensor& x, int dim, bool descending) {
  const int axis = sorted_axis("argsort", x, dim);
  const CalledAs called("argsort");
  return first_places(x, axis, descending, x.size(axis));
}

Sorted sort(const Tensor& x, int dim, bool descending) {
  const int axis = sorted_axis("sort", x, dim);
  const CalledAs called("sort");
  return sorted(x, axis, descending, x.size(axis));
}

Sorted topk(const Tensor& x, std::int64_t k, int dim, bool largest) {
  const int axis = sorted_axis("topk", x, dim);
  const std::int64_t extent = x.size(axis);
  FJ_CHECK(k >= 0 && k <= extent, "topk: k is {}, the extent is {} (x: {})", k, extent, x.type().str());
  const CalledAs called("topk");
  return sorted(x, axis, largest, k);
}

}  // namespace fusejit
