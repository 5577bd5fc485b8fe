// Operations that are made of those of ops.h: names and meaning are PyTorch's. What each records is said in docs/ops.md
// section 15; what it records is fused with what stands around it, and its gradient follows.
//
//   fj::Tensor rows = fj::stack({fj::tensor<float>({1, 2}), fj::tensor<float>({3, 4})});
//   fj::norm(rows, 1, {1}).to_vector<float>();  // 3, 7
//
// Axes (`dim`) may be negative, counting from the end. 16-bit floats are computed in f32 and rounded once.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "fusejit/ops.h"

namespace fusejit {

// ---- joining and taking apart ---------------------------------------------------------------------------------------
// Any dtype; elements are moved, never changed.

// Tensors of one shape, 1 to 64 of them, along a new axis at `dim`, in their common dtype (bool -> int -> float).
Tensor stack(const std::vector<Tensor>& tensors, int dim = 0);
// Pieces along `dim`: of split_size each, the last one of what is left; or of the sizes given, whose sum must be the
// extent.
//
//   fj::split(fj::arange(5), 2)[2].to_vector<int>();       // 4
//   fj::split(fj::arange(5), {1, 4})[1].to_vector<int>();  // 1, 2, 3, 4
std::vector<Tensor> split(const Tensor& x, std::int64_t split_size, int dim = 0);
std::vector<Tensor> split(const Tensor& x, const Dims& sizes, int dim = 0);
inline std::vector<Tensor> split(const Tensor& x, std::initializer_list<std::int64_t> sizes, int dim = 0) {
  return split(x, Dims(sizes), dim);  // {n} is a list, too
}
// At most `chunks` pieces along `dim`, all but the last of ceil(extent/chunks).
//
//   fj::chunk(fj::arange(5), 2)[0].to_vector<int>();  // 0, 1, 2
std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, int dim = 0);
// Every slice along `dim`, without that axis.
//
//   fj::unbind(fj::reshape(fj::arange(4), {2, 2}), 1)[1].to_vector<int>();  // 1, 3
std::vector<Tensor> unbind(const Tensor& x, int dim = 0);
// The slice at `index` along `dim`, without that axis; x[i] in PyTorch. A negative index counts from the end; UserError
// if it is out of range.
//
//   fj::select(fj::reshape(fj::arange(4), {2, 2}), 1, -1).to_vector<int>();  // 1, 3
Tensor select(const Tensor& x, int dim, std::int64_t index);
// The elements at [.., i, .., i + offset, ..] of axes dim1 and dim2, along a new last axis.
//
//   fj::diagonal(fj::reshape(fj::arange(9), {3, 3}), 1).to_vector<int>();  // 1, 5
Tensor diagonal(const Tensor& x, std::int64_t offset = 0, int dim1 = 0, int dim2 = 1);
// x: [..,M,N] with zeros above (tril) or below (triu) the diagonal at `diagonal` places right of the main one.
//
//   fj::tril(fj::ones({2, 2})).to_vector<float>();     // 1, 0, 1, 1
//   fj::triu(fj::ones({2, 2}), 1).to_vector<float>();  // 0, 1, 0, 0
Tensor tril(const Tensor& x, std::int64_t diagonal = 0);
Tensor triu(const Tensor& x, std::int64_t diagonal = 0);

// ---- elements at places that are data -------------------------------------------------------------------------------
// Gradients, and scatter_add(), compare each place of x along `dim` (take(): each element) with each index there, since
// no kernel scatters: time is the product of the two.

// The slices of x along `dim` that `index` names, [L] ints. A place outside gives NaN, in integer tensors 0.
//
//   fj::index_select(fj::tensor<float>({5, 6, 7}), 0, fj::tensor<int>({2, 2, 0})).to_vector<float>();  // 7, 7, 5
Tensor index_select(const Tensor& x, int dim, const Tensor& index);
// The elements of x, in row-major order, that `index` names: its shape. Negative places count from the end.
//
//   fj::take(fj::tensor<float>({5, 6, 7}), fj::tensor<int>({1, -1})).to_vector<float>();  // 6, 7
Tensor take(const Tensor& x, const Tensor& index);
// `value` where the mask (bool) is true, else x; shapes broadcast, x's dtype. value: a number, or a tensor [].
//
//   fj::masked_fill(fj::tensor<float>({1, 2}), fj::tensor<int>({1, 0}) > 0, 9).to_vector<float>();  // 9, 2
Tensor masked_fill(const Tensor& x, const Tensor& mask, Number value);
Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value);
// x with each element of src added at the place that index names along `dim`. index: ints of x's rank, no larger
// than src, nor, elsewhere, than x; x and src of one dtype. Sums in row-major order; a place outside is dropped.
//
//   fj::scatter_add(fj::zeros({3}), 0, fj::tensor<int>({0, 2, 2}), fj::ones({3})).to_vector<float>();  // 1, 0, 2
Tensor scatter_add(const Tensor& x, int dim, const Tensor& index, const Tensor& src);

// ---- order ----------------------------------------------------------------------------------------------------------
// Along `dim`, any dtype; NaN stands above all numbers, and equal elements keep their order. Up to 256 elements are
// compared with each other; of more, runs are, and then merged: extent*log^2(extent) work in all, in some
// log^2(extent)/4 kernels, so that the first call of a new extent compiles for a while. topk() of at most 256 merges no
// more than k.

// Elements in order, and where each of them was along the axis.
struct Sorted {
  Tensor values;   // gradients flow to where each one was
  Tensor indices;  // i64
};
//   fj::sort(fj::tensor<float>({3, 1, 2})).values.to_vector<float>();  // 1, 2, 3
Sorted sort(const Tensor& x, int dim = -1, bool descending = false);
Tensor argsort(const Tensor& x, int dim = -1, bool descending = false);
// The k largest or smallest, in order.
//
//   fj::topk(fj::tensor<float>({3, 1, 2}), 2).indices.to_vector<int>();  // 0, 2
Sorted topk(const Tensor& x, std::int64_t k, int dim = -1, bool largest = true);

// ---- reductions and sums --------------------------------------------------------------------------------------------
// Over the axes in `dim`; empty: over everything. Those axes vanish, or stay with extent 1 if keepdim.

// (sum |x|^p)^(1/p) for p = 1 and 2, the largest |x| for p = infinity; another p is an UnsupportedError. Float, x's
// dtype. Over nothing: 0, for infinity a UserError. The gradient of p = 2 is 0 where the norm is.
Tensor norm(const Tensor& x, double p = 2, const Dims& dim = {}, bool keepdim = false);
// The root of var(); its gradient is 0 where the deviation is.
//
//   fj::std(fj::tensor<float>({1, 3, 5})).item<float>();  // 2
Tensor std(const Tensor& x, const Dims& dim = {}, std::int64_t correction = 1, bool keepdim = false);
// log(sum e^x), without overflow. Float, integers taken as f32. Over nothing, and of -infinity alone: -infinity.
//
//   fj::logsumexp(fj::full({4}, 100)).item<float>();  // 101.386
Tensor logsumexp(const Tensor& x, const Dims& dim = {}, bool keepdim = false);
// The sum of x up to each place along `dim`, that one included: x's shape; bools and integers as i64. Added up in
// log2(extent) rounds, of neighbours 1, 2, 4, ... apart: nothing is rounded more often.
//
//   fj::cumsum(fj::tensor<float>({1, 2, 3}), 0).to_vector<float>();  // 1, 3, 6
Tensor cumsum(const Tensor& x, int dim);

// ---- products -------------------------------------------------------------------------------------------------------

Tensor outer(const Tensor& a, const Tensor& b);  // a: [N], b: [M] -> [N,M], every product
// The sum of the products. a, b: [N], one dtype, which the result has.
//
//   fj::dot(fj::tensor<float>({1, 2}), fj::tensor<float>({3, 4})).item<float>();  // 11
Tensor dot(const Tensor& a, const Tensor& b);
// Sums of products by letters, one an axis: "ij,jk->ik" is a product of matrices. Letters that the result lacks are
// summed over; without "->" the result has those that stand once, in order of the alphabet (capitals first). A letter
// twice in one operand is its diagonal, "..." stands for axes that broadcast, as do extents of 1. One dtype, float or
// int, which the result has. Several operands are joined from left to right. Letters common to both sides and absent
// from the result make matrix products (matmul) of floats, whose sums accumulate in f32.
//
//   fj::Tensor m = fj::reshape(fj::tensor<float>({1, 2, 3, 4}), {2, 2});
//   fj::einsum("ij,kj->ik", {m, m}).to_vector<float>();  // 5, 11, 11, 25
//   fj::einsum("ii", {m}).item<float>();                 // 5
Tensor einsum(const std::string& equation, const std::vector<Tensor>& operands);

// ---- images and sequences -------------------------------------------------------------------------------------------

// Padding of a sequence: one number, {before, after}, or "same" (stride 1; the odd cell goes to the end) or "valid".
struct Padding1d {
  std::int64_t before = 0, after = 0;
  bool same = false;
  Padding1d(std::int64_t both) : before(both), after(both) {}
  Padding1d(int both) : before(both), after(both) {}
  Padding1d(std::int64_t b, std::int64_t a) : before(b), after(a) {}
  Padding1d(const char* word) : same(Padding(word).same) {}
};
struct Conv1dOptions {
  std::int64_t stride = 1;
  Padding1d padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
};
// x: [N,C,L], w: [K,C/groups,S], bias: [K] or empty -> [N,K,P], P = floor((L + before + after - dilation*(S - 1) - 1)
// /stride) + 1. Float, one dtype. As conv2d() of images of one row.
//
//   fj::conv1d(fj::ones({1, 1, 4}), fj::ones({1, 1, 3}), {.padding = 1}).to_vector<float>();  // 2, 3, 3, 2
Tensor conv1d(const Tensor& x, const Tensor& w, const Conv1dOptions& options = {});
Tensor conv1d(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv1dOptions& options = {});
// x: [..,C*r*r,H,W] -> [..,C,H*r,W*r] with r = upscale_factor: channel c*r*r + i*r + j is cell (i, j) of each square.
//
//   fj::pixel_shuffle(fj::reshape(fj::arange(4), {4, 1, 1}), 2).to_vector<int>();  // 0, 1, 2, 3
Tensor pixel_shuffle(const Tensor& x, std::int64_t upscale_factor);
Tensor pixel_unshuffle(const Tensor& x, std::int64_t downscale_factor);  // the way back

// x: [N,C,H,W] float -> [N,C,P,Q] with [P,Q] = output_size: max_pool2d() over windows of [H/P,W/Q] cells.
// UnsupportedError where these are not whole.
//
//   fj::adaptive_max_pool2d(fj::reshape(fj::arange(4).to(fj::f32), {1, 1, 2, 2}), 1).item<float>();  // 3
Tensor adaptive_max_pool2d(const Tensor& x, Pair output_size);

// A factor for both axes, or {vertical, horizontal}.
struct Scale {
  double vertical, horizontal;
  Scale(double both) : vertical(both), horizontal(both) {}
  Scale(double v, double h) : vertical(v), horizontal(h) {}
};
struct InterpolateOptions {
  std::optional<Pair> size = {};           // of the result, or
  std::optional<Scale> scale_factor = {};  // floor(extent*factor), sampled at steps of 1/factor
  std::string mode = "nearest";            // "bilinear", "area"
  bool align_corners = false;              // bilinear only
};
// x: [N,C,H,W] float -> [N,C,P,Q], with exactly one of size and scale_factor: upsample_nearest2d, upsample_bilinear2d
// or adaptive_avg_pool2d. A factor that gives no whole extents samples as PyTorch does then, at steps of 1/factor,
// unless align_corners; these are places that are data, and gradients take the time of those of index_select().
//
//   fj::interpolate(fj::ones({1, 1, 2, 2}), {.scale_factor = 2}).size(2);  // 4
Tensor interpolate(const Tensor& x, const InterpolateOptions& options);
struct GridSampleOptions {
  std::string mode = "bilinear";       // "nearest": the cell at the point rounded to whole, half to even
  std::string padding_mode = "zeros";  // cells outside count as 0; "border": as the nearest cell inside
  bool align_corners = false;          // -1 and 1 are the centres of the outer cells, else their outer edges
};
// x: [N,C,H,W], grid: [N,P,Q,2] -> [N,C,P,Q], float of one dtype: x at the points (horizontal, vertical) of the grid,
// each from -1 to 1. The gradient in x compares each cell with each point.
//
//   fj::Tensor image = fj::reshape(fj::tensor<float>({1, 3, 5, 7}), {1, 1, 2, 2});
//   fj::grid_sample(image, fj::zeros({1, 1, 1, 2})).item<float>();  // 4
Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& options = {});

}  // namespace fusejit
