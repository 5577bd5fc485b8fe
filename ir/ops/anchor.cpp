// Convolution with its two gradients, matmul and linear (ops.md §10). The three convolutions are the partial sums of
// one trilinear form Σ y·x·w over the same index set, so one walk is the meaning of all three, and each one's gradient
// is the other two.
#include "ir/base/check.h"
#include "ir/ops/compose.h"
#include "ir/ops/geometry/contraction.h"
#include "ir/ops/geometry/window.h"
#include "ir/ops/oracle/oracle.h"
#include "ir/ops/require.h"
#include "ir/ops/rows.h"
#include "ir/passes/grad.h"

namespace fusejit::ir {
namespace {

using namespace compose;

// ---- shapes of the three convolutions

std::int64_t checked_groups(const InferContext& context) {
  const std::int64_t groups = context.attrs.integer("groups");
  if (groups < 1) context.fail(fmt::format("groups must be at least 1, it is {}", groups));
  return groups;
}

void require_divides(const InferContext& context, std::int64_t groups, std::int64_t channels, std::string_view which) {
  if (channels % groups != 0)
    context.fail(fmt::format("groups = {} does not divide the {} {} channels", groups, channels, which));
}

// N may be 0, everything else must be there.
void require_filled(const InferContext& context, std::size_t i, int first_axis) {
  const Shape& shape = context.type(i).shape;
  for (int axis = first_axis; axis < shape.rank(); ++axis)
    if (shape[axis] < 1) context.fail(fmt::format("{} has an empty dim", operand_name(context, i)));
}

void require_images(const InferContext& context) {
  require_one_float_dtype(context);
  for (std::size_t i = 0; i < 2; ++i) require_rank(context, i, 4);
}

Type infer_conv2d(const InferContext& context) {
  require_images(context);
  const Type& x = context.type(0);
  const Shape& w = context.type(1).shape;
  require_filled(context, 0, 1);
  require_filled(context, 1, 0);
  const std::int64_t groups = checked_groups(context);
  require_divides(context, groups, x.shape[1], "input");
  require_divides(context, groups, w[0], "output");
  if (w[1] != x.shape[1] / groups)
    context.fail(groups == 1 ? fmt::format("weight has {} input channels, x has {}", w[1], x.shape[1])
                             : fmt::format("weight has {} input channels a group, x has {} in {} groups", w[1],
                                           x.shape[1], groups));
  const Window win = checked_window(context, x.shape[2], x.shape[3], w[2], w[3]);
  return {x.dtype, Shape{x.shape[0], w[0], win.h.out, win.w.out}};
}

void require_output_size(const InferContext& context, const Shape& dy, const Window& win) {
  if (dy[2] != win.h.out || dy[3] != win.w.out)
    context.fail(fmt::format("dy is {}x{}, the convolution's result is {}x{}", dy[2], dy[3], win.h.out, win.w.out));
}

Type infer_conv2d_input_grad(const InferContext& context) {
  require_images(context);
  const Type& dy = context.type(0);
  const Shape& w = context.type(1).shape;
  require_filled(context, 0, 1);
  require_filled(context, 1, 0);
  const std::int64_t groups = checked_groups(context);
  require_divides(context, groups, w[0], "output");
  if (dy.shape[1] != w[0]) context.fail(fmt::format("weight has {} output channels, dy has {}", w[0], dy.shape[1]));
  require_pair(context, "input_size", 1);
  const auto size = context.attrs.ints("input_size");
  const Shape result{dy.shape[0], w[1] * groups, size[0], size[1]};
  require_output_size(context, dy.shape, checked_window(context, size[0], size[1], w[2], w[3]));
  return {dy.dtype, result};
}

Type infer_conv2d_weight_grad(const InferContext& context) {
  require_images(context);
  const Type& x = context.type(0);
  const Shape& dy = context.type(1).shape;
  require_filled(context, 0, 1);
  require_filled(context, 1, 1);
  const std::int64_t groups = checked_groups(context);
  require_divides(context, groups, x.shape[1], "input");
  require_divides(context, groups, dy[1], "output");
  if (x.shape[0] != dy[0]) context.fail(fmt::format("x has {} images, dy has {}", x.shape[0], dy[0]));
  require_pair(context, "kernel_size", 1);
  const auto kernel = context.attrs.ints("kernel_size");
  const Shape result{dy[1], x.shape[1] / groups, kernel[0], kernel[1]};
  require_output_size(context, dy, checked_window(context, x.shape[2], x.shape[3], kernel[0], kernel[1]));
  return {x.dtype, result};
}

// ---- gradients: the attributes are the same but for the one that names a size

Value with_attrs(const Attrs& attrs, Op op, const Value& a, const Value& b, const char* size, const Shape& of) {
  std::vector<AttrInit> given{{"stride", attrs.ints("stride")},
                              {"padding", attrs.ints("padding")},
                              {"dilation", attrs.ints("dilation")},
                              {"groups", attrs.integer("groups")}};
  if (size) given.emplace_back(size, of.dims().subspan(2));
  return build(op, {a, b}, std::move(given));
}

Value forward(const Attrs& attrs, const Value& x, const Value& w) {
  return with_attrs(attrs, Op::conv2d, x, w, nullptr, {});
}
Value input_grad(const Attrs& attrs, const Value& dy, const Value& w, const Value& x) {
  return with_attrs(attrs, Op::conv2d_input_grad, dy, w, "input_size", x.type().shape);
}
Value weight_grad(const Attrs& attrs, const Value& x, const Value& dy, const Value& w) {
  return with_attrs(attrs, Op::conv2d_weight_grad, x, dy, "kernel_size", w.type().shape);
}

std::vector<Value> grad_conv2d(const GradContext& c) {
  const Value &x = c.x(0), &w = c.x(1), &g = c.dy;
  return {c.wants(0) ? input_grad(c.y->attrs, g, w, x) : Value(),
          c.wants(1) ? weight_grad(c.y->attrs, x, g, w) : Value()};
}

std::vector<Value> grad_conv2d_input_grad(const GradContext& c) {
  const Value &dy = c.x(0), &w = c.x(1), &g = c.dy;
  return {c.wants(0) ? forward(c.y->attrs, g, w) : Value(), c.wants(1) ? weight_grad(c.y->attrs, g, dy, w) : Value()};
}

std::vector<Value> grad_conv2d_weight_grad(const GradContext& c) {
  const Value &x = c.x(0), &dy = c.x(1), &g = c.dy;
  return {c.wants(0) ? input_grad(c.y->attrs, dy, g, x) : Value(), c.wants(1) ? forward(c.y->attrs, x, g) : Value()};
}

// ---- the meaning of the three

// Calls use(y index, x index, w index) for every product of the convolution.
template <class F>
void for_each_product(const Attrs& attrs, const Shape& x, const Shape& w, F use) {
  const Window win = window(attrs, x[2], x[3], w[2], w[3]);
  const std::int64_t per_group = w[0] / attrs.integer("groups");
  for (std::int64_t n = 0, y_at = 0; n < x[0]; ++n)
    for (std::int64_t k = 0; k < w[0]; ++k)
      for (std::int64_t p = 0; p < win.h.out; ++p)
        for (std::int64_t q = 0; q < win.w.out; ++q, ++y_at) {
          const WindowAxis::Taps rows = win.h.taps(p), columns = win.w.taps(q);
          for (std::int64_t c = 0; c < w[1]; ++c)
            for (std::int64_t r = rows.first; r < rows.last; ++r) {
              const std::int64_t row = ((n * x[1] + k / per_group * w[1] + c) * x[2] + win.h.input(p, r)) * x[3];
              const std::int64_t weight_row = ((k * w[1] + c) * w[2] + r) * w[3];
              for (std::int64_t s = columns.first; s < columns.last; ++s)
                use(static_cast<std::size_t>(y_at), static_cast<std::size_t>(row + win.w.input(q, s)),
                    static_cast<std::size_t>(weight_row + s));
            }
        }
}

void evaluate_conv(const EvalContext& context) {
  const std::vector<double> a = oracle::doubles(context, 0), b = oracle::doubles(context, 1);
  const Shape &first = oracle::shape(context, 0), &second = oracle::shape(context, 1);
  const Shape& result = context.result.type.shape;
  const Attrs& attrs = context.node.attrs;
  std::vector<double> sums(static_cast<std::size_t>(result.elements()));
  const Op op = context.node.op;
  if (op == Op::conv2d)
    for_each_product(attrs, first, second, [&](auto y, auto x, auto w) { sums[y] += a[x] * b[w]; });
  else if (op == Op::conv2d_input_grad)
    for_each_product(attrs, result, second, [&](auto y, auto x, auto w) { sums[x] += a[y] * b[w]; });
  else
    for_each_product(attrs, first, result, [&](auto y, auto x, auto w) { sums[w] += a[x] * b[y]; });
  oracle::store(context.result, sums);
}

// ---- matmul, linear

Dims leading(const Shape& shape, int last) { return Dims(shape.begin(), shape.end() - last); }

Type infer_matmul(const InferContext& context) {
  require_one_float_dtype(context);
  for (std::size_t i = 0; i < 2; ++i) require_rank_at_least(context, i, 2);
  const Shape &a = context.type(0).shape, &b = context.type(1).shape;
  const std::int64_t inner = a[a.rank() - 1];
  if (inner != b[b.rank() - 2]) context.fail(fmt::format("a has {} columns, b has {} rows", inner, b[b.rank() - 2]));
  Shape batch;
  if (!broadcast_shapes(Shape(leading(a, 2)), Shape(leading(b, 2)), batch))
    context.fail("the leading dims of a and b do not broadcast");
  Dims sizes(batch.begin(), batch.end());
  sizes.push_back(a[a.rank() - 2]);
  sizes.push_back(b[b.rank() - 1]);
  return {context.type(0).dtype, Shape(sizes)};
}

std::vector<Value> grad_matmul(const GradContext& c) {
  const Value &a = c.x(0), &b = c.x(1), &g = c.dy;
  std::vector<Value> grads(2);
  if (c.wants(0)) grads[0] = sum_to(build(Op::matmul, {g, transpose(b)}), a.type().shape);
  if (c.wants(1)) grads[1] = sum_to(build(Op::matmul, {transpose(a), g}), b.type().shape);
  return grads;
}

void evaluate_matmul(const EvalContext& context) {
  const std::vector<double> a = oracle::doubles(context, 0), b = oracle::doubles(context, 1);
  const Shape &as = oracle::shape(context, 0), &bs = oracle::shape(context, 1);
  const Shape batch(leading(context.result.type.shape, 2));
  const auto a_at = oracle::broadcast_positions(Shape(leading(as, 2)), batch);
  const auto b_at = oracle::broadcast_positions(Shape(leading(bs, 2)), batch);
  const std::int64_t rows = as[as.rank() - 2], inner = as[as.rank() - 1], columns = bs[bs.rank() - 1];
  std::int64_t at = 0;
  for (std::size_t n = 0; n < a_at.size(); ++n)
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        double total = 0;
        for (std::int64_t k = 0; k < inner; ++k)
          total += a[static_cast<std::size_t>((a_at[n] * rows + i) * inner + k)] *
                   b[static_cast<std::size_t>((b_at[n] * inner + k) * columns + j)];
        oracle::store(context.result, at++, total);
      }
}

Type infer_linear(const InferContext& context) {
  require_one_float_dtype(context);
  require_rank_at_least(context, 0, 1);
  require_rank(context, 1, 2);
  const Shape &x = context.type(0).shape, &w = context.type(1).shape;
  if (x[x.rank() - 1] != w[1])
    context.fail(fmt::format("weight has {} input features, x has {}", w[1], x[x.rank() - 1]));
  Dims sizes = leading(x, 1);
  sizes.push_back(w[0]);
  return {context.type(0).dtype, Shape(sizes)};
}

// x and g as matrices [rows, features].
std::vector<Value> grad_linear(const GradContext& c) {
  const Value &x = c.x(0), &w = c.x(1), &g = c.dy;
  const Shape& shape = x.type().shape;
  const std::int64_t rows = Shape(leading(shape, 1)).elements();
  const Value g2 = reshape(g, Dims{rows, w.type().shape[0]});
  std::vector<Value> grads(2);
  if (c.wants(0)) grads[0] = reshape(build(Op::matmul, {g2, w}), shape);
  if (c.wants(1)) grads[1] = build(Op::matmul, {transpose(g2), reshape(x, Dims{rows, w.type().shape[1]})});
  return grads;
}

void evaluate_linear(const EvalContext& context) {
  const std::vector<double> x = oracle::doubles(context, 0), w = oracle::doubles(context, 1);
  const Shape& ws = oracle::shape(context, 1);
  const std::size_t features = static_cast<std::size_t>(ws[1]), outputs = static_cast<std::size_t>(ws[0]);
  for (std::size_t at = 0; at < static_cast<std::size_t>(context.result.type.elements()); ++at) {
    double total = 0;
    for (std::size_t k = 0; k < features; ++k) total += x[at / outputs * features + k] * w[at % outputs * features + k];
    oracle::store(context.result, static_cast<std::int64_t>(at), total);
  }
}

// ---- rows

constexpr std::string_view kXW[] = {"x", "w"}, kDyW[] = {"dy", "w"}, kXDy[] = {"x", "dy"}, kAB[] = {"a", "b"};
constexpr AttrDef kStride{"stride", AttrKind::ints, "[1,1]"}, kPadding{"padding", AttrKind::ints, "[0,0,0,0]"},
    kDilation{"dilation", AttrKind::ints, "[1,1]"}, kGroups{"groups", AttrKind::integer, "1"};
constexpr AttrDef kConv[] = {kStride, kPadding, kDilation, kGroups};
constexpr AttrDef kInputGrad[] = {{"input_size", AttrKind::ints}, kStride, kPadding, kDilation, kGroups};
constexpr AttrDef kWeightGrad[] = {{"kernel_size", AttrKind::ints}, kStride, kPadding, kDilation, kGroups};

// A row reads as a paragraph.
// clang-format off
constexpr OpDef kRows[] = {
    {.op = Op::conv2d, .name = "conv2d", .family = Family::anchor, .min_operands = 2, .max_operands = 2,
     .operand_names = kXW, .attrs = kConv, .infer = infer_conv2d, .grad = grad_conv2d, .evaluate = evaluate_conv,
     .contractions = contraction_of_conv2d, .images = 0b011, .packs_second = true,
     .autocast = AutocastRule::narrow, .meaning = "cross-correlation of x [N,C,H,W] with w [K,C/groups,R,S]"},
    {.op = Op::conv2d_input_grad, .name = "conv2d_input_grad", .family = Family::anchor, .min_operands = 2,
     .max_operands = 2, .operand_names = kDyW, .attrs = kInputGrad, .infer = infer_conv2d_input_grad,
     .grad = grad_conv2d_input_grad, .evaluate = evaluate_conv,
     .contractions = contraction_of_conv2d_input_grad, .images = 0b011, .packs_second = true,
     .autocast = AutocastRule::narrow, .meaning = "the gradient of conv2d with respect to x: transposed convolution"},
    {.op = Op::conv2d_weight_grad, .name = "conv2d_weight_grad", .family = Family::anchor, .min_operands = 2,
     .max_operands = 2, .operand_names = kXDy, .attrs = kWeightGrad, .infer = infer_conv2d_weight_grad,
     .grad = grad_conv2d_weight_grad, .evaluate = evaluate_conv,
     .contractions = contraction_of_conv2d_weight_grad, .images = 0b110,
     .meaning = "the gradient of conv2d with respect to w"},
    {.op = Op::matmul, .name = "matmul", .family = Family::anchor, .min_operands = 2, .max_operands = 2,
     .operand_names = kAB, .infer = infer_matmul, .grad = grad_matmul, .evaluate = evaluate_matmul,
     .contractions = contraction_of_matmul, .matrix = true, .packs_second = true,
     .autocast = AutocastRule::narrow, .meaning = "matrix product over the last two dims, leading dims broadcast"},
    {.op = Op::linear, .name = "linear", .family = Family::anchor, .min_operands = 2, .max_operands = 2,
     .operand_names = kXW, .infer = infer_linear, .grad = grad_linear, .evaluate = evaluate_linear,
     .contractions = contraction_of_linear, .matrix = true, .packs_second = true,
     .autocast = AutocastRule::narrow, .meaning = "x times w transposed, over the last dim of x"},
};
// clang-format on
static_assert(rows_fill(kRows, kAnchor), "a row is missing or out of order");
static_assert(all_well_formed(kRows), "a row lacks a field of its family");

}  // namespace

std::span<const OpDef> anchor_rows() { return kRows; }

}  // namespace fusejit::ir
