// What fusejit/composed.h has for images and sequences.
#include <cmath>

#include "frontend/ops/axis.h"
#include "frontend/record.h"
#include "fusejit/composed.h"
#include "ir/base/check.h"

namespace fusejit {
namespace {

// before and after of a sequence, "same" worked out.
Padding1d padding_of(const Conv1dOptions& o, std::int64_t window) {
  if (!o.padding.same) return o.padding;
  FJ_CHECK(o.stride == 1, "conv1d: padding \"same\" needs stride 1, the stride is {}", o.stride);
  const std::int64_t cells = window - 1;
  return {cells / 2, cells - cells / 2};
}

std::int64_t scaled(std::int64_t extent, double factor, const Tensor& x) {
  const double cells = static_cast<double>(extent) * factor;
  FJ_CHECK(cells >= 1 && cells <= 0x1p40, "interpolate: scale_factor {} makes {} cells of {} (x: {})", factor, cells,
           extent, text(x));
  return static_cast<std::int64_t>(cells);
}

// x with `count` cells along `axis`, sampled where the factor says and not where the extents do. As PyTorch, which
// takes the reciprocal factor in f32 for the nearest cell.
Tensor sampled(const Tensor& x, int axis, std::int64_t count, double factor, bool linear) {
  const std::int64_t last = x.size(axis) - 1;
  const float reciprocal = static_cast<float>(1 / factor);
  std::vector<std::int64_t> first, second;
  std::vector<double> shares;  // of the second cell
  for (std::int64_t i = 0; i < count; ++i) {
    const double source = linear ? std::max((static_cast<double>(i) + 0.5) / factor - 0.5, 0.0)
                                 : std::floor(static_cast<float>(i) * reciprocal);
    first.push_back(std::min(static_cast<std::int64_t>(source), last));
    second.push_back(std::min(first.back() + 1, last));
    shares.push_back(std::min(source - static_cast<double>(first.back()), 1.0));
  }
  const Device device = x.device();
  const Tensor a = index_select(x, axis, from_host(first, {count}).to(device));
  if (!linear) return a;
  Dims along(4, 1);
  along[static_cast<std::size_t>(axis)] = count;
  const Tensor share = reshape(from_host(shares, {count}).to(x.dtype()).to(device), along);
  return a * (1 - share) + index_select(x, axis, from_host(second, {count}).to(device)) * share;
}

// One number of each point that grid_sample() reads, in cells: 0 is the centre of the first of `extent`.
Tensor coordinate(const Tensor& grid, int which, std::int64_t extent, const GridSampleOptions& o) {
  const Tensor from_minus_one = squeeze(slice(grid, 3, which, which + 1), {3});
  const double cells = static_cast<double>(extent);
  Tensor at = o.align_corners ? (from_minus_one + 1) * ((cells - 1) / 2) : ((from_minus_one + 1) * cells - 1) * 0.5;
  if (o.padding_mode == "border") at = clamp(at, 0.0, cells - 1);
  return at;
}

// x at the cells `row`, `column` (whole numbers), 0 outside. x: [N,C,H,W], row, column: [N,P,Q] -> [N,C,P,Q].
Tensor cells_at(const Tensor& x, const Tensor& row, const Tensor& column) {
  const std::int64_t n = x.size(0), c = x.size(1), h = x.size(2), w = x.size(3), p = row.size(1), q = row.size(2);
  const double last_row = static_cast<double>(h - 1), last_column = static_cast<double>(w - 1);
  const Tensor inside = (row >= 0) & (row <= last_row) & (column >= 0) & (column <= last_column);
  const Tensor place = clamp(row, 0, last_row).to(i64) * w + clamp(column, 0, last_column).to(i64);
  const Tensor index = expand(reshape(place, {n, 1, p * q}), {n, c, p * q});
  const Tensor found = gather(reshape(x, {n, c, h * w}), 2, index);
  return where(unsqueeze(inside, 1), reshape(found, {n, c, p, q}), 0);
}

}  // namespace

Tensor conv1d(const Tensor& sequence, const Tensor& weight, const Conv1dOptions& o) {
  check_defined("conv1d", sequence), check_defined("conv1d", weight);
  const Tensor x = autocast(ir::AutocastRule::narrow, sequence), w = autocast(ir::AutocastRule::narrow, weight);
  const auto refuse_unless = [&](bool condition, const std::string& sentence) {
    FJ_CHECK(condition, "conv1d: {} (x: {}, w: {})", sentence, text(x), text(w));
  };
  refuse_unless(x.rank() == 3 && w.rank() == 3, "x and w must have rank 3");
  refuse_unless(is_float(x.dtype()) && x.dtype() == w.dtype(), "x and w must be float, of one dtype");
  refuse_unless(o.stride >= 1 && o.dilation >= 1 && o.groups >= 1, "stride, dilation and groups must be at least 1");
  refuse_unless(o.padding.before >= 0 && o.padding.after >= 0, "padding must not be negative");
  refuse_unless(x.size(1) % o.groups == 0 && x.size(1) / o.groups == w.size(1),
                fmt::format("weight has {} input channels, x has {} in {} groups", w.size(1), x.size(1), o.groups));
  refuse_unless(w.size(0) % o.groups == 0, fmt::format("groups {} do not divide {} outputs", o.groups, w.size(0)));
  refuse_unless(x.elements() > 0 || x.size(0) == 0, "x has no elements");
  refuse_unless(w.elements() > 0, "w has no elements");
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  refuse_unless(
      o.dilation <= kMost / w.size(2) && o.padding.before <= kMost && o.padding.after <= kMost && o.stride <= kMost,
      "stride, padding and dilated window must be within 2^40 cells");
  const std::int64_t window = o.dilation * (w.size(2) - 1) + 1;
  const Padding1d padding = padding_of(o, window);
  refuse_unless(x.size(2) + padding.before + padding.after >= window,
                fmt::format("the window of {} cells is larger than the padded input", window));
  const CalledAs called("conv1d");
  return squeeze(conv2d(unsqueeze(x, 2), unsqueeze(w, 2),
                        {.stride = Pair(1, o.stride),
                         .padding = Padding(0, padding.before, 0, padding.after),
                         .dilation = Pair(1, o.dilation),
                         .groups = o.groups}),
                 {2});
}

Tensor conv1d(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv1dOptions& options) {
  const Tensor y = conv1d(x, w, options);
  if (!bias.defined()) return y;
  FJ_CHECK(bias.rank() == 1 && bias.size(0) == y.size(1),
           "conv1d: bias must have the {} output channels (x: {}, w: {}, bias: {})", y.size(1), text(x), text(w),
           text(bias));
  const CalledAs called("conv1d");
  return bias_add(y, bias);
}

Tensor pixel_shuffle(const Tensor& x, std::int64_t upscale_factor) {
  check_defined("pixel_shuffle", x);
  const std::int64_t r = upscale_factor;
  FJ_CHECK(x.rank() >= 3, "pixel_shuffle: x must have at least three axes (x: {})", text(x));
  FJ_CHECK(r >= 1 && r <= (1 << 20) && x.size(-3) % (r * r) == 0,
           "pixel_shuffle: the {} channels are no multiple of upscale_factor {} squared (x: {})", x.size(-3), r,
           text(x));
  const CalledAs called("pixel_shuffle");
  const std::int64_t channels = x.size(-3) / (r * r), h = x.size(-2), w = x.size(-1);
  Dims shape(x.shape().begin(), x.shape().end() - 3);
  std::int64_t images = 1;
  for (const std::int64_t extent : shape) images *= extent;
  const Tensor squares = permute(reshape(x, {images, channels, r, r, h, w}), {0, 1, 4, 2, 5, 3});
  shape.insert(shape.end(), {channels, h * r, w * r});
  return reshape(squares, shape);
}

Tensor pixel_unshuffle(const Tensor& x, std::int64_t downscale_factor) {
  check_defined("pixel_unshuffle", x);
  const std::int64_t r = downscale_factor;
  FJ_CHECK(x.rank() >= 3, "pixel_unshuffle: x must have at least three axes (x: {})", text(x));
  FJ_CHECK(r >= 1 && x.size(-2) % r == 0 && x.size(-1) % r == 0,
           "pixel_unshuffle: height and width are no multiples of downscale_factor {} (x: {})", r, text(x));
  const CalledAs called("pixel_unshuffle");
  const std::int64_t channels = x.size(-3), h = x.size(-2) / r, w = x.size(-1) / r;
  Dims shape(x.shape().begin(), x.shape().end() - 3);
  std::int64_t images = 1;
  for (const std::int64_t extent : shape) images *= extent;
  const Tensor squares = permute(reshape(x, {images, channels, h, r, w, r}), {0, 1, 3, 5, 2, 4});
  shape.insert(shape.end(), {channels * r * r, h, w});
  return reshape(squares, shape);
}

Tensor adaptive_max_pool2d(const Tensor& x, Pair output_size) {
  check_defined("adaptive_max_pool2d", x);
  FJ_CHECK(x.rank() == 4, "adaptive_max_pool2d: x must have rank 4 (x: {})", x.type().str());
  const auto [p, q] = output_size;
  FJ_CHECK(p >= 1 && q >= 1, "adaptive_max_pool2d: output_size is [{},{}], it must be at least 1 (x: {})", p, q,
           x.type().str());
  const std::int64_t h = x.size(2), w = x.size(3);
  if (h % p != 0 || w % q != 0) {
    throw UnsupportedError(
        fmt::format("adaptive_max_pool2d: output_size [{},{}] does not divide the image into windows of one size "
                    "(x: {})",
                    p, q, x.type().str()));
  }
  const CalledAs called("adaptive_max_pool2d");
  return max_pool2d(x, {h / p, w / q});
}

Tensor interpolate(const Tensor& x, const InterpolateOptions& o) {
  check_defined("interpolate", x);
  FJ_CHECK(x.rank() == 4 && is_float(x.dtype()), "interpolate: x must be float of rank 4 (x: {})", text(x));
  FJ_CHECK(o.size.has_value() != o.scale_factor.has_value(),
           "interpolate: exactly one of size and scale_factor is wanted (x: {})", text(x));
  FJ_CHECK(o.mode == "nearest" || o.mode == "bilinear" || o.mode == "area",
           "interpolate: mode '{}' is not known (nearest, bilinear, area)", o.mode);
  FJ_CHECK(!o.align_corners || o.mode == "bilinear", "interpolate: align_corners is for bilinear, the mode is {}",
           o.mode);
  FJ_CHECK(x.size(2) > 0 && x.size(3) > 0, "interpolate: the images have no cells (x: {})", text(x));
  const std::int64_t h = x.size(2), w = x.size(3);
  const Pair size =
      o.size ? *o.size : Pair(scaled(h, o.scale_factor->vertical, x), scaled(w, o.scale_factor->horizontal, x));
  FJ_CHECK(size.vertical >= 1 && size.horizontal >= 1, "interpolate: size is [{},{}], it must be positive (x: {})",
           size.vertical, size.horizontal, text(x));
  const CalledAs called("interpolate");
  if (o.mode == "area") return adaptive_avg_pool2d(x, size);
  const bool linear = o.mode == "bilinear";
  const auto whole = [](std::int64_t from, double factor, std::int64_t to) {
    return static_cast<double>(from) * factor == static_cast<double>(to);
  };
  if (o.scale_factor && !o.align_corners &&
      !(whole(h, o.scale_factor->vertical, size.vertical) && whole(w, o.scale_factor->horizontal, size.horizontal))) {
    const Tensor rows = sampled(x.to(compute_type(x.dtype())), 2, size.vertical, o.scale_factor->vertical, linear);
    return sampled(rows, 3, size.horizontal, o.scale_factor->horizontal, linear).to(x.dtype());
  }
  return linear ? upsample_bilinear2d(x, size, o.align_corners) : upsample_nearest2d(x, size);
}

Tensor grid_sample(const Tensor& image, const Tensor& at, const GridSampleOptions& o) {
  check_defined("grid_sample", image), check_defined("grid_sample", at);
  const std::vector<Tensor> operands = autocast_to_widest({image, at});
  const Tensor &x = operands[0], &grid = operands[1];
  FJ_CHECK(x.rank() == 4 && grid.rank() == 4 && grid.size(0) == x.size(0) && grid.size(3) == 2 && is_float(x.dtype()) &&
               grid.dtype() == x.dtype(),
           "grid_sample: x must be [N,C,H,W] and grid [N,P,Q,2], float of one dtype (x: {}, grid: {})", text(x),
           text(grid));
  FJ_CHECK(x.size(2) > 0 && x.size(3) > 0, "grid_sample: the images have no cells (x: {})", text(x));
  FJ_CHECK(o.mode == "bilinear" || o.mode == "nearest", "grid_sample: mode '{}' is not known (bilinear, nearest)",
           o.mode);
  FJ_CHECK(o.padding_mode == "zeros" || o.padding_mode == "border",
           "grid_sample: padding_mode '{}' is not known (zeros, border)", o.padding_mode);
  const CalledAs called("grid_sample");
  const Tensor points = grid.to(compute_type(grid.dtype()));
  const Tensor column = coordinate(points, 0, x.size(3), o), row = coordinate(points, 1, x.size(2), o);
  if (o.mode == "nearest") return cells_at(x, round(row), round(column));
  const Tensor top = floor(row), left = floor(column);
  const Tensor down = row - top, right = column - left;  // shares of the cells below and to the right
  const Tensor images = x.to(points.dtype());
  const auto share = [](const Tensor& weights, const Tensor& cells) { return unsqueeze(weights, 1) * cells; };
  const Tensor sum = share((1 - down) * (1 - right), cells_at(images, top, left)) +
                     share((1 - down) * right, cells_at(images, top, left + 1)) +
                     share(down * (1 - right), cells_at(images, top + 1, left)) +
                     share(down * right, cells_at(images, top + 1, left + 1));
  return sum.to(x.dtype());
}

}  // namespace fusejit
