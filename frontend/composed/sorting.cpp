// sort, argsort and topk (fusejit/composed.h).
//
// Few elements are ranked: how many stand before each one, by comparing all with all, then the element of each rank.
// That is n^2 work, but of a kind that fuses into two kernels. More of them are cut into runs that are ranked, and the
// runs are merged in twos: a place of the result finds by bisection how much of the first run stands before it (merge
// path, Odeh et al. 2012), so that each round is gathers alone, n*log n work without a scatter, in one kernel or a few.
// A merge takes equal elements from the first run first, so both ways are stable, and compare, so they are exact and
// the same on every engine.
#include <cmath>

#include "frontend/ops/axis.h"
#include "frontend/record.h"
#include "fusejit/composed.h"
#include "fusejit/grad.h"
#include "ir/base/check.h"
#include "ir/base/scalar.h"

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
Tensor ranked_places(const Tensor& x, int axis, bool descending, std::int64_t count) {
  const Tensor rank = ranks(x, axis, descending);
  const Tensor place =
      record_on(x.state()->device, Op::iota, {}, {{"shape", x.shape().dims()}, {"dim", axis}, {"dtype", i64}});
  Dims shape(x.shape().begin(), x.shape().end());
  shape[static_cast<std::size_t>(axis)] = count;
  // One element has each rank, so what is added up is one number; ranks beyond are dropped.
  return record(Op::gather_grad, {place, rank}, {{"dim", axis}, {"shape", std::span<const std::int64_t>(shape)}});
}

// Beyond so many elements half of n^2 comparisons are more work than log2(n) rounds of bisection.
constexpr std::int64_t kMostRanked = 256;
constexpr std::int64_t kMostInRun = 128;

// Whole numbers that kernels know, where operators would make arguments of them.
Tensor plus(const Tensor& a, std::int64_t b) { return record(Op::add, {a, Number(b)}); }
Tensor counted(const Tensor& like, const Dims& shape, int dim) {
  return record_on(like.state()->device, Op::iota, {},
                   {{"shape", std::span<const std::int64_t>(shape)}, {"dim", dim}, {"dtype", i64}});
}

// Sorted elements and where they were: [rows,runs,length].
struct Runs {
  Tensor keys, places;
};

// The first `count` elements, or all, of each two runs.
Runs merged(const Runs& runs, bool descending, std::int64_t count) {
  const std::int64_t rows = runs.keys.size(0), pairs = runs.keys.size(1) / 2, length = runs.keys.size(2);
  const std::int64_t kept = std::min(2 * length, count);
  const Tensor keys = reshape(runs.keys, {rows, pairs, 2 * length});
  // Of each two runs the elements at `first` and `second`, which is one of the second run, in that order: also where
  // they are equal.
  const auto leads = [&](const Tensor& first, const Tensor& second) {
    const Tensor a = gather(keys, 2, first), b = gather(keys, 2, second);
    const Tensor in_order = descending ? a >= b : a <= b;
    return is_float(a.dtype()) ? in_order | isnan(descending ? a : b) : in_order;
  };
  const Tensor place = counted(keys, {rows, pairs, kept}, 2), in_second = plus(place, length);
  // How many of the first run are among the elements before this place: as many as lead the last of the others there.
  const Tensor most = record(Op::minimum, {place, Number(length)});
  Tensor taken = record(Op::maximum, {plus(place, -length), Number(0)});
  std::int64_t step = 1;
  while (2 * step <= std::min(kept, length)) step *= 2;
  for (; step > 0; step /= 2) {
    const Tensor more = plus(taken, step);
    taken = where((more <= most) & leads(plus(more, -1), in_second - more), more, taken);
  }
  // Of two runs, one may be at its end.
  const Tensor other = in_second - taken;
  const Tensor from_first =
      record(Op::lt, {taken, Number(length)}) & (record(Op::ge, {other, Number(2 * length)}) | leads(taken, other));
  const Tensor from = where(from_first, taken, other);
  return {gather(keys, 2, from), gather(reshape(runs.places, {rows, pairs, 2 * length}), 2, from)};
}

// What stands behind all other elements: at the end of x it is in nobody's way, since equal ones keep their order.
Number last_of(DType dtype, bool descending) {
  if (is_float(dtype) && !descending) return std::nan("");
  const ir::Scalar last = ir::end_of_range(dtype, !descending);
  return is_float(dtype) ? Number(last.as_double()) : Number(last.integer());
}

Tensor merged_places(const Tensor& x, int axis, bool descending, std::int64_t count) {
  const std::int64_t extent = x.size(axis);
  std::int64_t pieces = 1;
  while ((extent + pieces - 1) / pieces > kMostInRun) pieces *= 2;
  const std::int64_t length = (extent + pieces - 1) / pieces;
  const Tensor last = transpose(x.detach(), axis, -1);
  const std::int64_t rows = x.elements() / extent;
  const Tensor keys =
      reshape(pad(reshape(last, {rows, extent}), {0, 0}, {0, pieces * length - extent}, last_of(x.dtype(), descending)),
              {rows, pieces, length});
  const Tensor first = ranked_places(keys, 2, descending, std::min(length, count));
  const Tensor start = record(Op::mul, {counted(keys, {1, pieces, 1}, 1), Number(length)});
  Runs runs{gather(keys, 2, first), first + start};
  while (runs.keys.size(1) > 1) runs = merged(runs, descending, count);
  Dims shape(last.shape().begin(), last.shape().end());
  shape.back() = count;
  return transpose(reshape(runs.places, shape), axis, -1);
}

Tensor first_places(const Tensor& x, int axis, bool descending, std::int64_t count) {
  const bool is_short = x.size(axis) <= kMostRanked || x.elements() == 0;
  return is_short ? ranked_places(x, axis, descending, count) : merged_places(x, axis, descending, count);
}

int sorted_axis(const char* op, const Tensor& x, int dim) {
  const int axis = axis_of(op, x, dim);
  FJ_CHECK(x.rank() < kMaxRank, "{}: x must have fewer than {} axes (x: {})", op, kMaxRank, x.type().str());
  return axis;
}

// The gradient of a gather compares each place of x with each index. Where both are many, all of x is put in order, and
// each place reads the gradient from where its element went: where its number is among the indices, in order.
Sorted sorted(const Tensor& x, int axis, bool descending, std::int64_t count) {
  if (count <= kMostRanked) {
    const Tensor indices = first_places(x, axis, descending, count);
    return {gather(x, axis, indices), indices};
  }
  const std::int64_t extent = x.size(axis);
  const Tensor indices = first_places(x, axis, descending, extent);
  const TensorFunction in_order = custom_gradient(
      [&](const std::vector<Tensor>& in) {
        return Saved{gather(in[0], axis, indices), {indices}};
      },
      [axis, extent](const std::vector<Tensor>& saved, const Tensor& gradient) {
        return std::vector{gather(gradient, axis, first_places(saved[0], axis, false, extent))};
      });
  return {slice(in_order({x}), axis, 0, count), slice(indices, axis, 0, count)};
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
