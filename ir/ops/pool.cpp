// Pools and their gradients (ops.md §10); the meaning of upsampling is in upsample.h. Which cells a result reads is the
// row's span. A pool's gradient op is its transpose, so one walk over (result, cell, weight) is the meaning of both;
// max pooling walks windows.
#include <cmath>
#include <limits>

#include "ir/base/check.h"
#include "ir/ops/compose.h"
#include "ir/ops/geometry/span.h"
#include "ir/ops/oracle/oracle.h"
#include "ir/ops/oracle/upsample.h"
#include "ir/ops/require.h"
#include "ir/ops/rows.h"
#include "ir/passes/grad.h"

namespace fusejit::ir {
namespace {

using namespace compose;

void require_image(const InferContext& context) {
  require_float(context, 0);
  require_rank(context, 0, 4);
}

Type resized(const Type& x, std::int64_t h, std::int64_t w) { return {x.dtype, Shape{x.shape[0], x.shape[1], h, w}}; }

Window checked_pool(const InferContext& context, std::int64_t input_h, std::int64_t input_w) {
  require_pair(context, "kernel_size", 1);
  const auto kernel = context.attrs.ints("kernel_size");
  return checked_window(context, input_h, input_w, kernel[0], kernel[1]);
}

// ---- spans

// The image whose cells are read and the one of the results: an op, its gradient, max pooling's gradient.
struct Images {
  const Shape& cells;
  const Shape& results;
};
const Shape& operand_shape(const Node& node, std::size_t i) { return node.operands[i].value.type().shape; }
Images forward(const Node& node) { return {operand_shape(node, 0), node.type.shape}; }
Images gradient(const Node& node) { return {node.type.shape, operand_shape(node, 0)}; }
Images max_gradient(const Node& node) { return {operand_shape(node, 0), operand_shape(node, 1)}; }

using ImagesFn = Images (*)(const Node& node);
template <ImagesFn images>
ImageSpan window_span(const Node& node, int axis) {
  const auto a = static_cast<std::size_t>(axis);
  return window_axis(node.attrs, a, images(node).cells[2 + axis], node.attrs.ints("kernel_size")[a]);
}
template <ImagesFn images>
ImageSpan parts_span(const Node& node, int axis) {
  return PartsAxis{images(node).cells[2 + axis], images(node).results[2 + axis]};
}
template <ImagesFn images>
ImageSpan nearest_span(const Node& node, int axis) {
  return NearestAxis{images(node).cells[2 + axis], images(node).results[2 + axis]};
}
template <ImagesFn images>
ImageSpan linear_span(const Node& node, int axis) {
  return LinearAxis::of(images(node).cells[2 + axis], images(node).results[2 + axis], node.attrs.flag("align_corners"));
}

// Of a *_grad row without x: result [N,C] of dy with the sizes of `input_size`.
Type input_type(const InferContext& context) {
  require_image(context);
  require_pair(context, "input_size", 1);
  const auto size = context.attrs.ints("input_size");
  return resized(context.type(0), size[0], size[1]);
}

void require_result_size(const InferContext& context, std::size_t dy, std::int64_t h, std::int64_t w) {
  const Shape& shape = context.type(dy).shape;
  if (shape[2] != h || shape[3] != w)
    context.fail(fmt::format("dy is {}x{}, the result of the pool is {}x{}", shape[2], shape[3], h, w));
}

// ---- max pooling

Type infer_max_pool(const InferContext& context) {
  require_image(context);
  const Shape& x = context.type(0).shape;
  const Window win = checked_pool(context, x[2], x[3]);
  for (const WindowAxis& axis : {win.h, win.w})
    if (std::max(axis.low_padding, axis.high_padding) > axis.dilation * (axis.kernel - 1))
      context.fail("padding is larger than dilation * (kernel_size - 1), a window would see nothing but padding");
  return resized(context.type(0), win.h.out, win.w.out);
}

Type infer_max_pool_grad(const InferContext& context) {
  const Type result = infer_max_pool(context);
  if (context.type(1).dtype != result.dtype || context.type(1).shape != result.shape)
    context.fail(fmt::format("dy must have the type of the pool's result, {}", result.str()));
  return context.type(0);
}

// Calls use(output index, index of the first maximum in x) for every window.
template <class F>
void for_each_maximum(const EvalContext& context, const std::vector<double>& x, F use) {
  const Shape& shape = oracle::shape(context, 0);
  const WindowAxis down = pool_window(context.node, 0), across = pool_window(context.node, 1);
  std::int64_t out = 0;
  for (std::int64_t image = 0; image < shape[0] * shape[1]; ++image)
    for (std::int64_t p = 0; p < down.out; ++p)
      for (std::int64_t q = 0; q < across.out; ++q, ++out) {
        const WindowAxis::Taps rows = down.taps(p), columns = across.taps(q);
        std::int64_t best = -1;
        for (std::int64_t r = rows.first; r < rows.last; ++r)
          for (std::int64_t s = columns.first; s < columns.last; ++s) {
            const std::int64_t at = (image * shape[2] + down.input(p, r)) * shape[3] + across.input(q, s);
            const double candidate = x[static_cast<std::size_t>(at)];
            const double held = best < 0 ? 0 : x[static_cast<std::size_t>(best)];
            if (best < 0 || candidate > held || (std::isnan(candidate) && !std::isnan(held))) best = at;
          }
        use(out, best);
      }
}

void evaluate_max_pool(const EvalContext& context) {
  const std::vector<double> x = oracle::doubles(context, 0);
  for_each_maximum(context, x, [&](std::int64_t out, std::int64_t best) {
    const double none = -std::numeric_limits<double>::infinity();
    oracle::store(context.result, out, best < 0 ? none : x[static_cast<std::size_t>(best)]);
  });
}

void evaluate_max_pool_grad(const EvalContext& context) {
  const std::vector<double> x = oracle::doubles(context, 0), dy = oracle::doubles(context, 1);
  std::vector<double> dx(x.size());
  for_each_maximum(context, x, [&](std::int64_t out, std::int64_t best) {
    if (best >= 0) dx[static_cast<std::size_t>(best)] += dy[static_cast<std::size_t>(out)];
  });
  oracle::store(context.result, dx);
}

std::vector<Value> grad_max_pool_grad(const GradContext& context) {
  if (context.wants(1))
    throw UnsupportedError(
        fmt::format("max_pool2d_grad cannot be differentiated again (x: {})", context.x(0).type().str()));
  return std::vector<Value>(2);
}

// ---- max pooling by the tap of each window's maximum

std::vector<Value> grad_max_pool_tap_grad(const GradContext& context) {
  if (context.wants(0))
    throw UnsupportedError(
        fmt::format("max_pool2d_tap_grad cannot be differentiated again (dy: {})", context.x(0).type().str()));
  return std::vector<Value>(2);
}

// Taps are numbered row by row, in a byte.
void require_tap_in_byte(const InferContext& context) {
  const auto kernel = context.attrs.ints("kernel_size");
  if (kernel[0] * kernel[1] > 256)
    context.fail(fmt::format("a window has at most 256 taps, not {}x{}", kernel[0], kernel[1]));
}

Type infer_max_pool_tap(const InferContext& context) {
  Type result = infer_max_pool(context);
  require_tap_in_byte(context);
  if (context.type(1).dtype != result.dtype || context.type(1).shape != result.shape)
    context.fail(fmt::format("y must have the type of the pool's result, {}", result.str()));
  result.dtype = DType::u8;
  return result;
}

Type infer_max_pool_tap_grad(const InferContext& context) {
  const Type result = input_type(context);
  const Window win = checked_pool(context, result.shape[2], result.shape[3]);
  require_tap_in_byte(context);
  require_result_size(context, 0, win.h.out, win.w.out);
  if (context.type(1).dtype != DType::u8 || context.type(1).shape != context.type(0).shape)
    context.fail("tap must be u8 and have the shape of dy");
  return result;
}

void evaluate_max_pool_tap(const EvalContext& context) {
  const Shape& shape = oracle::shape(context, 0);
  const WindowAxis down = pool_window(context.node, 0), across = pool_window(context.node, 1);
  for_each_maximum(context, oracle::doubles(context, 0), [&](std::int64_t out, std::int64_t best) {
    const std::int64_t p = out / across.out % down.out, q = out % across.out;
    const std::int64_t r = best / shape[3] % shape[2] - down.input(p, 0), s = best % shape[3] - across.input(q, 0);
    oracle::store(context.result, out, static_cast<double>(r * across.kernel + s));
  });
}

void evaluate_max_pool_tap_grad(const EvalContext& context) {
  const std::vector<double> dy = oracle::doubles(context, 0), taps = oracle::doubles(context, 1);
  const Shape& shape = context.result.type.shape;
  const WindowAxis down = pool_window(context.node, 0), across = pool_window(context.node, 1);
  std::vector<double> dx(static_cast<std::size_t>(shape.elements()));
  for (std::int64_t out = 0; out < static_cast<std::int64_t>(dy.size()); ++out) {
    const std::int64_t image = out / (down.out * across.out), tap = static_cast<std::int64_t>(taps[out]);
    const std::int64_t h = down.input(out / across.out % down.out, tap / across.kernel);
    const std::int64_t w = across.input(out % across.out, tap % across.kernel);
    if (h < 0 || h >= shape[2] || w < 0 || w >= shape[3]) continue;
    dx[static_cast<std::size_t>((image * shape[2] + h) * shape[3] + w)] += dy[static_cast<std::size_t>(out)];
  }
  oracle::store(context.result, dx);
}

// ---- average pooling

Type infer_avg_pool(const InferContext& context) {
  require_image(context);
  const Shape& x = context.type(0).shape;
  const Window win = checked_pool(context, x[2], x[3]);
  return resized(context.type(0), win.h.out, win.w.out);
}

Type infer_avg_pool_grad(const InferContext& context) {
  const Type result = input_type(context);
  const Window win = checked_pool(context, result.shape[2], result.shape[3]);
  require_result_size(context, 0, win.h.out, win.w.out);
  return result;
}

// ---- adaptive average pooling

Type infer_adaptive(const InferContext& context) {
  require_image(context);
  require_pair(context, "output_size", 1);
  const Shape& x = context.type(0).shape;
  if (x[2] < 1 || x[3] < 1) context.fail("x has empty images");
  const auto size = context.attrs.ints("output_size");
  return resized(context.type(0), size[0], size[1]);
}

Type infer_adaptive_grad(const InferContext& context) {
  const Type result = input_type(context);
  const Shape& dy = context.type(0).shape;
  if (dy[2] < 1 || dy[3] < 1) context.fail("dy has empty images");
  return result;
}

// ---- both averages

// Cells [first, last) that a result averages, and by how many it divides.
struct Averaged {
  std::int64_t first, last, count;
};
Averaged averaged(const ImageSpan& span, std::int64_t o, const Attrs& attrs) {
  if (const auto* parts = std::get_if<PartsAxis>(&span))
    return {parts->first(o), parts->end(o), parts->end(o) - parts->first(o)};
  const auto& window = std::get<WindowAxis>(span);
  const WindowAxis::Taps taps = window.taps(o);
  return {window.input(o, taps.first), window.input(o, taps.last),
          attrs.flag("count_include_pad") ? window.kernel : taps.count()};
}

// `images` forward: y = Σ x / count; gradient: x = Σ y / count.
template <ImagesFn images>
void evaluate_average(const EvalContext& context) {
  const std::vector<double> source = oracle::doubles(context, 0);
  const auto [x, y] = images(context.node);
  const ImageSpan down = span_of(context.node, 0), across = span_of(context.node, 1);
  const bool is_forward = images == forward;
  std::vector<double> sums(static_cast<std::size_t>(context.result.type.shape.elements()));
  std::size_t out = 0;
  for (std::int64_t image = 0; image < x[0] * x[1]; ++image)
    for (std::int64_t p = 0; p < y[2]; ++p)
      for (std::int64_t q = 0; q < y[3]; ++q, ++out) {
        const Averaged rows = averaged(down, p, context.node.attrs), columns = averaged(across, q, context.node.attrs);
        const double count = static_cast<double>(rows.count) * static_cast<double>(columns.count);
        // No cell inside: 0/0.
        if (count == 0 && is_forward) sums[out] = std::numeric_limits<double>::quiet_NaN();
        for (std::int64_t h = rows.first; h < rows.last; ++h)
          for (std::int64_t w = columns.first; w < columns.last; ++w) {
            const std::size_t in = static_cast<std::size_t>((image * x[2] + h) * x[3] + w);
            if (is_forward)
              sums[out] += source[in] / count;
            else
              sums[in] += source[out] / count;
          }
      }
  oracle::store(context.result, sums);
}

// ---- gradients

// Attributes of a node, for another row that has some of the same names.
AttrInit ints(const Attrs& attrs, std::string_view attribute) { return {attribute, attrs.ints(attribute)}; }
AttrInit size_of(const char* attribute, const Value& x) { return {attribute, x.type().shape.dims().subspan(2)}; }

Value averaging(const GradContext& c, Op op, const AttrInit* input_size) {
  const Attrs& attrs = c.y->attrs;
  std::vector<AttrInit> given{ints(attrs, "kernel_size"),
                              ints(attrs, "stride"),
                              ints(attrs, "padding"),
                              {"count_include_pad", attrs.flag("count_include_pad")}};
  if (input_size) given.push_back(*input_size);
  return build(op, {c.dy}, std::move(given));
}

// ---- rows

constexpr std::string_view kX[] = {"x"}, kXDy[] = {"x", "dy"}, kDy[] = {"dy"}, kDyTap[] = {"dy", "tap"},
                           kXY[] = {"x", "y"};
constexpr AttrDef kKernel{"kernel_size", AttrKind::ints}, kStride{"stride", AttrKind::ints, "=kernel_size"},
    kPadding{"padding", AttrKind::ints, "[0,0,0,0]"}, kDilation{"dilation", AttrKind::ints, "[1,1]"},
    kInputSize{"input_size", AttrKind::ints}, kOutputSize{"output_size", AttrKind::ints},
    kCountPad{"count_include_pad", AttrKind::flag, "true"}, kCorners{"align_corners", AttrKind::flag, "false"};
constexpr AttrDef kMax[] = {kKernel, kStride, kPadding, kDilation};
constexpr AttrDef kTap[] = {kKernel, kStride, kPadding}, kTapGrad[] = {kInputSize, kKernel, kStride, kPadding};
constexpr AttrDef kAvg[] = {kKernel, kStride, kPadding, kCountPad};
constexpr AttrDef kAvgGrad[] = {kInputSize, kKernel, kStride, kPadding, kCountPad};
constexpr AttrDef kToOutput[] = {kOutputSize}, kToInput[] = {kInputSize};
constexpr AttrDef kBilinear[] = {kOutputSize, kCorners}, kBilinearGrad[] = {kInputSize, kCorners};

// A row reads as a paragraph.
// clang-format off
constexpr OpDef kRows[] = {
    {.op = Op::max_pool2d, .name = "max_pool2d", .family = Family::anchor, .operand_names = kX, .attrs = kMax,
     .infer = infer_max_pool,
     .grad = [](const GradContext& c) -> std::vector<Value> {
       return {build(Op::max_pool2d_grad, {c.x(0), c.dy}, c.y->attrs)};
     },
     .evaluate = evaluate_max_pool, .span = window_span<forward>, .images = 0b011, .meaning = "the maximum of each window"},
    {.op = Op::max_pool2d_grad, .name = "max_pool2d_grad", .family = Family::anchor, .min_operands = 2,
     .max_operands = 2, .operand_names = kXDy, .attrs = kMax, .infer = infer_max_pool_grad,
     .grad = grad_max_pool_grad, .evaluate = evaluate_max_pool_grad, .span = window_span<max_gradient>,
     .images = 0b111, .meaning = "dy at the first maximum of each window, added up"},
    {.op = Op::max_pool2d_tap, .name = "max_pool2d_tap", .family = Family::anchor, .min_operands = 2,
     .max_operands = 2, .operand_names = kXY, .attrs = kTap, .infer = infer_max_pool_tap,
     .grad = [](const GradContext&) { return std::vector<Value>(2); }, .evaluate = evaluate_max_pool_tap,
     .span = window_span<forward>, .images = 0b111, .meaning = "which tap of each window of x is y, its first maximum"},
    {.op = Op::max_pool2d_tap_grad, .name = "max_pool2d_tap_grad", .family = Family::anchor, .min_operands = 2,
     .max_operands = 2, .operand_names = kDyTap, .attrs = kTapGrad, .infer = infer_max_pool_tap_grad,
     .grad = grad_max_pool_tap_grad, .evaluate = evaluate_max_pool_tap_grad, .span = window_span<gradient>,
     .images = 0b111, .meaning = "dy at the given tap of each window, added up"},
    {.op = Op::avg_pool2d, .name = "avg_pool2d", .family = Family::anchor, .operand_names = kX, .attrs = kAvg,
     .infer = infer_avg_pool,
     .grad = [](const GradContext& c) -> std::vector<Value> {
       const AttrInit size = size_of("input_size", c.x(0));
       return {averaging(c, Op::avg_pool2d_grad, &size)};
     },
     .evaluate = evaluate_average<forward>, .span = window_span<forward>, .images = 0b011, .meaning = "the mean of each window"},
    {.op = Op::avg_pool2d_grad, .name = "avg_pool2d_grad", .family = Family::anchor, .operand_names = kDy,
     .attrs = kAvgGrad, .infer = infer_avg_pool_grad,
     .grad = [](const GradContext& c) -> std::vector<Value> { return {averaging(c, Op::avg_pool2d, nullptr)}; },
     .evaluate = evaluate_average<gradient>, .span = window_span<gradient>, .images = 0b011, .meaning = "the transpose of avg_pool2d"},
    {.op = Op::adaptive_avg_pool2d, .name = "adaptive_avg_pool2d", .family = Family::anchor, .operand_names = kX,
     .attrs = kToOutput, .infer = infer_adaptive,
     .grad = [](const GradContext& c) -> std::vector<Value> {
       return {build(Op::adaptive_avg_pool2d_grad, {c.dy}, {size_of("input_size", c.x(0))})};
     },
     .evaluate = evaluate_average<forward>, .span = parts_span<forward>, .images = 0b011, .meaning = "the mean of output_size windows that cover x evenly"},
    {.op = Op::adaptive_avg_pool2d_grad, .name = "adaptive_avg_pool2d_grad", .family = Family::anchor,
     .operand_names = kDy, .attrs = kToInput, .infer = infer_adaptive_grad,
     .grad = [](const GradContext& c) -> std::vector<Value> {
       return {build(Op::adaptive_avg_pool2d, {c.dy}, {size_of("output_size", c.x(0))})};
     },
     .evaluate = evaluate_average<gradient>, .span = parts_span<gradient>, .images = 0b011, .meaning = "the transpose of adaptive_avg_pool2d"},
    {.op = Op::upsample_nearest2d, .name = "upsample_nearest2d", .family = Family::anchor, .operand_names = kX,
     .attrs = kToOutput, .infer = infer_adaptive,
     .grad = [](const GradContext& c) -> std::vector<Value> {
       return {build(Op::upsample_nearest2d_grad, {c.dy}, {size_of("input_size", c.x(0))})};
     },
     .evaluate = evaluate_upsample, .span = nearest_span<forward>, .images = 0b011,
     .meaning = "rows and columns repeated to output_size"},
    {.op = Op::upsample_nearest2d_grad, .name = "upsample_nearest2d_grad", .family = Family::anchor,
     .operand_names = kDy, .attrs = kToInput, .infer = infer_adaptive_grad,
     .grad = [](const GradContext& c) -> std::vector<Value> {
       return {build(Op::upsample_nearest2d, {c.dy}, {size_of("output_size", c.x(0))})};
     },
     .evaluate = evaluate_upsample_grad, .span = nearest_span<gradient>, .images = 0b011,
     .meaning = "the transpose of upsample_nearest2d"},
    {.op = Op::upsample_bilinear2d, .name = "upsample_bilinear2d", .family = Family::anchor, .operand_names = kX,
     .attrs = kBilinear, .infer = infer_adaptive,
     .grad = [](const GradContext& c) -> std::vector<Value> {
       return {build(Op::upsample_bilinear2d_grad, {c.dy},
                     {size_of("input_size", c.x(0)), {"align_corners", c.y->attrs.flag("align_corners")}})};
     },
     .evaluate = evaluate_upsample, .span = linear_span<forward>, .images = 0b011,
     .meaning = "linear interpolation between rows and columns"},
    {.op = Op::upsample_bilinear2d_grad, .name = "upsample_bilinear2d_grad", .family = Family::anchor,
     .operand_names = kDy, .attrs = kBilinearGrad, .infer = infer_adaptive_grad,
     .grad = [](const GradContext& c) -> std::vector<Value> {
       return {build(Op::upsample_bilinear2d, {c.dy},
                     {size_of("output_size", c.x(0)), {"align_corners", c.y->attrs.flag("align_corners")}})};
     },
     .evaluate = evaluate_upsample_grad, .span = linear_span<gradient>, .images = 0b011,
     .meaning = "the transpose of upsample_bilinear2d"},
};
// clang-format on
static_assert(rows_fill(kRows, kPool), "a row is missing or out of order");
static_assert(all_well_formed(kRows), "a row lacks a field of its family");

}  // namespace

std::span<const OpDef> pool_rows() { return kRows; }

}  // namespace fusejit::ir
