#include "runtime/cudnn/support/support.h"

#include <algorithm>

#include "ir/base/check.h"

namespace fusejit::runtime::cudnn {
namespace {

#include "runtime/cudnn/support/support_table.inc"

constexpr std::array<int, 3> kArchitectures = {80, 90, 100};

std::vector<Pattern> make_patterns() {
  ConvolutionCall forward, gradient, weights;
  gradient.direction = Direction::input_gradient;
  weights.direction = Direction::weight_gradient;
  const auto with = [](ConvolutionCall call, auto change) {
    change(call);
    return call;
  };
  using Call = ConvolutionCall;
  const auto bias_and = [&](bool side, bool bias, Activation activation) {
    return with(forward, [&](Call& c) { c.side = side, c.bias = bias, c.activation = activation; });
  };
  const auto masked = [&](bool side, Mask mask, Sums sums) {
    return with(gradient, [&](Call& c) { c.side = side, c.mask = mask, c.sums = sums; });
  };
  return {
      {"conv", forward},
      {"conv, bias", bias_and(false, true, Activation::none)},
      {"conv, bias, relu", bias_and(false, true, Activation::relu)},
      {"conv, bias, relu6", bias_and(false, true, Activation::relu6)},
      {"conv, bias, elu", bias_and(false, true, Activation::elu)},
      {"conv, bias, silu", bias_and(false, true, Activation::silu)},
      {"conv, relu", bias_and(false, false, Activation::relu)},
      {"conv, side", bias_and(true, false, Activation::none)},
      {"conv, side, bias", bias_and(true, true, Activation::none)},
      {"conv, side, bias, relu", bias_and(true, true, Activation::relu)},
      {"conv, side, bias, silu", bias_and(true, true, Activation::silu)},
      {"conv, statistics", with(forward, [](Call& c) { c.sums = Sums::statistics; })},
      {"affine, relu, conv", with(forward, [](Call& c) { c.prologue = Prologue::affine_relu; })},
      {"affine, relu, conv, statistics", with(forward,
                                              [](Call& c) {
                                                c.prologue = Prologue::affine_relu;
                                                c.sums = Sums::statistics;
                                              })},
      {"dgrad", gradient},
      {"dgrad, side", masked(true, Mask::none, Sums::none)},
      {"dgrad, mask", masked(false, Mask::output, Sums::none)},
      {"dgrad, side, mask", masked(true, Mask::output, Sums::none)},
      {"dgrad, side, mask bits", masked(true, Mask::bits, Sums::none)},
      {"dgrad, mask, sums", masked(false, Mask::output, Sums::gradient)},
      {"dgrad, mask bits, sums", masked(false, Mask::bits, Sums::gradient)},
      {"dgrad, recomputed mask, sums", masked(false, Mask::recompute, Sums::gradient)},
      {"dgrad, side, mask, sums", masked(true, Mask::output, Sums::gradient)},
      {"dgrad, side, mask bits, sums", masked(true, Mask::bits, Sums::gradient)},
      {"dgrad, recomputed mask, batch-norm weights", masked(false, Mask::recompute, Sums::batch_norm_weights)},
      {"dgrad, side, recomputed mask, batch-norm weights", masked(true, Mask::recompute, Sums::batch_norm_weights)},
      {"wgrad", weights},
      {"affine, relu, wgrad", with(weights, [](Call& c) { c.prologue = Prologue::affine_relu; })},
      // The longest chains stand for every other one without a row, forward the last and, of input gradients, the one
      // with side input, bits and sums, since the engines that take them take any. norm is (conv − mean) · scale +
      // bias.
      {"conv, norm, side, silu",
       with(bias_and(true, true, Activation::silu), [](Call& c) { c.centre = c.scale = true; })},
  };
}

const std::vector<Pattern>& all_patterns() {
  static const auto& table = *new const std::vector<Pattern>(make_patterns());  // never destroyed
  return table;
}

enum ClassIndex { kDense, kPointwise, kStrided, kOdd, kEven, kGrouped, kDepthwise, kDilated, kAsymmetric, kClasses };
constexpr std::array<ShapeClass, kClasses> kShapeClasses = {{
    {"dense", "3x3, channels in eights"},
    {"pointwise", "1x1"},
    {"strided", "stride 2"},
    {"stem", "an odd number of channels (3)"},
    {"even", "channels even, but not in eights"},
    {"grouped", "several groups of several channels"},
    {"depthwise", "as many groups as channels"},
    {"dilated", "dilation 2"},
    {"asymmetric", "more padding on one side than on the other"},
}};

// The classes that a call belongs to; dense where nothing is special.
std::vector<int> classes_of(const ConvolutionCall& call) {
  std::vector<int> classes;
  const bool depthwise = call.groups > 1 && call.groups == call.x[1] && call.groups == call.w[0];
  if (call.w[2] == 1 && call.w[3] == 1) classes.push_back(kPointwise);
  if (call.stride != std::array<std::int64_t, 2>{1, 1}) classes.push_back(kStrided);
  if (call.x[1] % 2 || call.w[0] % 2) {
    classes.push_back(kOdd);
  } else if (call.x[1] % 8 || call.w[0] % 8) {
    classes.push_back(kEven);
  }
  if (call.groups > 1) classes.push_back(depthwise ? kDepthwise : kGrouped);
  if (call.dilation != std::array<std::int64_t, 2>{1, 1}) classes.push_back(kDilated);
  if (call.padding[0] != call.padding[2] || call.padding[1] != call.padding[3]) classes.push_back(kAsymmetric);
  if (classes.empty()) classes.push_back(kDense);
  return classes;
}

// Activations that one row stands for: the engines that know them are the same.
Activation representative(Activation activation) {
  if (activation == Activation::sigmoid || activation == Activation::tanh) return Activation::elu;
  const bool generic = activation == Activation::leaky_relu || activation == Activation::gelu ||
                       activation == Activation::gelu_tanh || activation == Activation::softplus;
  return generic ? Activation::silu : activation;
}

bool same_steps(const ConvolutionCall& a, const ConvolutionCall& b) {
  return a.direction == b.direction && a.prologue == b.prologue && a.centre == b.centre && a.scale == b.scale &&
         a.side == b.side && a.bias == b.bias && a.activation == b.activation && a.mask == b.mask && a.sums == b.sums;
}

std::optional<int> row_of(const ConvolutionCall& call) {
  ConvolutionCall wanted = call;
  // What no row of its own has is left to the engines that take any activation, whose row is silu's.
  for (const Activation activation : {representative(call.activation), Activation::silu}) {
    if (activation != call.activation && call.activation == Activation::none) continue;
    wanted.activation = activation;
    for (std::size_t i = 0; i < all_patterns().size(); ++i) {
      if (same_steps(all_patterns()[i].steps, wanted)) return static_cast<int>(i);
    }
  }
  const bool is_chain =
      call.direction == Direction::forward && call.prologue == Prologue::none && call.sums == Sums::none;
  if (is_chain) return static_cast<int>(all_patterns().size()) - 1;
  const bool is_gradient = call.direction == Direction::input_gradient && call.mask != Mask::recompute &&
                           call.sums != Sums::batch_norm_weights;
  const bool is_longest = call.side && call.mask == Mask::bits && call.sums == Sums::gradient;
  if (!is_gradient || is_longest) return std::nullopt;
  wanted = call, wanted.side = true, wanted.mask = Mask::bits, wanted.sums = Sums::gradient;
  return row_of(wanted);
}

std::optional<int> column_of(const ConvolutionCall& call, int compute_capability, const Numerics& numerics) {
  const int family = compute_capability / 10 * 10;
  for (int i = 0; i < kColumns; ++i) {
    const Column c = column(i);
    const bool tf32 = call.dtype == DType::f32 && numerics.tf32;
    if (c.compute_capability == family && c.dtype == call.dtype && c.tf32 == tf32 && c.layout == call.layout) return i;
  }
  return std::nullopt;
}

}  // namespace

std::span<const Pattern> patterns() { return all_patterns(); }
std::span<const ShapeClass> shape_classes() { return kShapeClasses; }
std::span<const std::string_view> reasons() { return kReasons; }
int table_version() { return kTableVersion; }

Column column(int index) {
  constexpr std::array<DType, 4> kDTypes = {DType::f16, DType::bf16, DType::f32, DType::f32};
  return {.compute_capability = kArchitectures[static_cast<std::size_t>(index / 8)],
          .dtype = kDTypes[static_cast<std::size_t>(index % 4)],
          .tf32 = index % 4 == 3,
          .layout = index / 4 % 2 == 0 ? Layout::nhwc : Layout::standard};
}

std::string Column::name() const {
  return fmt::format("sm_{} {} {}", compute_capability, tf32 ? "tf32" : fusejit::name(dtype),
                     layout == Layout::nhwc ? "nhwc" : "nchw");
}

ConvolutionCall sample_call(const Pattern& pattern, int shape_class, const Column& column) {
  ConvolutionCall call = pattern.steps;
  call.dtype = column.dtype;
  call.layout = column.layout;
  std::int64_t in = 64, out = 64, kernel = 3;
  switch (static_cast<ClassIndex>(shape_class)) {
    case kPointwise:
      kernel = 1;
      break;
    case kStrided:
      call.stride = {2, 2};
      break;
    case kOdd:
      in = 3;
      break;
    case kEven:
      in = out = 18;
      break;
    case kGrouped:
      call.groups = 4;
      break;
    case kDepthwise:
      call.groups = 64;
      break;
    case kDilated:
      call.dilation = {2, 2};
      break;
    case kDense:
    case kAsymmetric:
    case kClasses:
      break;
  }
  call.x = Shape{16, in, 56, 56};
  call.w = Shape{out, in / call.groups, kernel, kernel};
  const std::int64_t padding = kernel / 2 * call.dilation[0];
  call.padding = {padding, padding, padding, padding};
  if (shape_class == kAsymmetric) call.padding = {0, 0, 2, 2};
  return call;
}

std::string_view cells(int pattern, int shape_class) {
  return kCells[static_cast<std::size_t>(pattern * kClasses + shape_class)];
}

Support supports(const ConvolutionCall& call, int compute_capability, const Numerics& numerics) {
  call.check();
  Support support{.ok = true};
  const auto no = [](std::string why) { return Support{.why = std::move(why)}; };
  const std::optional<int> row = row_of(call);
  if (!row) return no("these steps around a convolution are in no engine of cuDNN that was probed");
  const std::optional<int> at = column_of(call, compute_capability, numerics);
  if (!at) return no(fmt::format("sm_{} was not probed; there are sm_80, sm_90 and sm_100", compute_capability));
  for (const int shape_class : classes_of(call)) {
    const ShapeClass& kind = kShapeClasses[static_cast<std::size_t>(shape_class)];
    const char cell = cells(*row, shape_class)[static_cast<std::size_t>(*at)];
    const std::string where = fmt::format("{} ({}) on {}", all_patterns()[static_cast<std::size_t>(*row)].name,
                                          kind.meaning, column(*at).name());
    if (cell == '?') return no(fmt::format("{} was not probed", where));
    if (cell >= 'a' && cell <= 'z') {
      return no(fmt::format("cuDNN has no engine for {}: {}", where, kReasons[static_cast<std::size_t>(cell - 'a')]));
    }
    if (cell == 'R') support.tier = Tier::runtime_compiled;
    if (cell == 'S') {
      support.slow = true;
      support.why = "the precompiled engine does not use tensor cores; a runtime-compiled one does";
    }
  }
  return support;
}

}  // namespace fusejit::runtime::cudnn
