// Convolutions in training of shapes that no built-in network has: signals of a million samples, one large image, many
// channels of a point, windows as long as the image, strides beyond the window. Every kernel can be made, its scratch
// fits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/passes/grad.h"
#include "scheduler/make_plan.h"
#include "tests/random/generate/schedule_generator.h"
#include "tests/random/generate/schedule_trial.h"
#include "tests/support/nightly.h"

namespace fusejit::testing {
namespace {

using namespace ir;

constexpr const char* kTargetsOfShapes[] = {
    "x86:avx512,fma=2,l2=2m",         "x86:avx512bf16,dot2=1,l2=1m",    "x86:avx512,winograd=1", "x86:amx,l2=2m",
    "x86:amx,l2=2m,l3=64m,tasks=512", "x86:avx2,l2=256k,l3=3m,tasks=4", "x86:v2,tasks=64",       "cuda:sm_90"};

struct OddShape {
  std::int64_t n, c, h, w, k, r, s, stride_h, stride_w, dilation, groups, top, left, bottom, right;
  DType dtype;
  Layout layout;
  bool relu, bias, normalised;

  std::int64_t pixels_h() const { return (h + top + bottom - dilation * (r - 1) - 1) / stride_h + 1; }
  std::int64_t pixels_w() const { return (w + left + right - dilation * (s - 1) - 1) / stride_w + 1; }
  bool fit() const {
    const auto bytes = [&](std::int64_t elements) { return elements * fusejit::bytes(dtype); };
    return h + top + bottom > dilation * (r - 1) && w + left + right > dilation * (s - 1) &&
           bytes(n * c * h * w) <= std::int64_t{1} << 31 &&
           bytes(n * k * pixels_h() * pixels_w()) <= std::int64_t{1} << 31;
  }
};

OddShape random_shapes(Random& random) {
  OddShape s;
  const auto side = [&] {
    return random.of<std::int64_t>({1, 2, 3, 5, 8, 13, 17, 32, 61, 100, 129, 256, 500, 513, 1024, 2049, 4096});
  };
  s.n = random.of<std::int64_t>({1, 1, 1, 2, 3, 5, 16, 37, 64, 500});
  s.h = side(), s.w = side();
  if (random.chance(30)) s.h = 1, s.w = random.of<std::int64_t>({50, 999, 4000, 16000, 65536, 160000, 1000000});
  if (random.chance(8)) std::swap(s.h, s.w);
  const auto taps = [&] { return random.of<std::int64_t>({1, 1, 2, 3, 3, 3, 4, 5, 7, 9, 16, 31}); };
  s.r = taps(), s.s = random.chance(70) ? s.r : taps();
  if (s.h == 1 && random.chance(90)) s.r = 1;
  s.stride_h = random.of<std::int64_t>({1, 1, 1, 2, 3, 5}), s.stride_w = random.chance(80) ? s.stride_h : 4;
  s.dilation = random.of<std::int64_t>({1, 1, 1, 2, 4, 16});
  const auto channels = [&] {
    return random.of<std::int64_t>({1, 2, 3, 4, 7, 8, 16, 17, 32, 64, 64, 65, 80, 128, 200, 256, 512, 768, 2048});
  };
  s.groups = random.of<std::int64_t>({1, 1, 1, 1, 2, 8}), s.c = channels() * s.groups, s.k = channels() * s.groups;
  if (random.chance(15)) s.groups = s.c, s.k = s.c * random.of<std::int64_t>({1, 1, 2});  // depthwise
  s.top = random.from(0, s.r / 2), s.bottom = random.chance(70) ? s.top : random.from(0, s.r);
  s.left = random.from(0, s.s / 2), s.right = random.chance(70) ? s.left : random.from(0, s.s);
  s.dtype = random.of<DType>({DType::f32, DType::f32, DType::bf16, DType::f16, DType::f64});
  s.layout = random.chance(60) ? Layout::nhwc : Layout::standard;
  s.relu = random.chance(40), s.bias = random.chance(50), s.normalised = random.chance(30);
  return s;
}

// relu(x) -> convolution -> batch norm or bias, relu, with all gradients.
Graph layer(const OddShape& s) {
  std::vector<Value> parameters;
  const auto add = [&](const char* name, const Type& type) {
    parameters.push_back(parameter(type, name));
    return parameters.back();
  };
  const Value x = add("x", {s.dtype, {s.n, s.c, s.h, s.w}, s.layout}),
              w = add("w", {s.dtype, {s.k, s.c / s.groups, s.r, s.s}});
  Value y = build(Op::conv2d, {s.relu ? build(Op::relu, {x}) : x, w},
                  {{"stride", {s.stride_h, s.stride_w}},
                   {"padding", {s.top, s.left, s.bottom, s.right}},
                   {"dilation", {s.dilation, s.dilation}},
                   {"groups", s.groups}});
  std::vector<std::string> by{"x", "w"};
  if (s.normalised) {
    y = build(Op::batch_norm_train, {y, add("gamma", {s.dtype, {s.k}}), add("beta", {s.dtype, {s.k}})});
    by.insert(by.end(), {"gamma", "beta"});
  } else if (s.bias) {
    y = build(Op::bias_add, {y, add("b", {s.dtype, {s.k}})});
    by.push_back("b");
  }
  return differentiate(capture("layer", parameters, {build(Op::relu, {y})}), by);
}

TEST(OddShapes, EveryKernelCanBeMade) {
  const std::uint64_t wanted = is_nightly() ? 50'000 : 500;
  std::uint64_t made = 0;
  int failures = 0;
  for (std::uint64_t seed = 1; made < wanted && failures < 5; ++seed) {
    Random random(seed);
    const char* target = kTargetsOfShapes[seed % std::size(kTargetsOfShapes)];
    const OddShape shapes = random_shapes(random);
    if (!shapes.fit()) continue;
    ++made;
    const Graph graph = layer(shapes);
    try {
      scheduler::make_plan(graph, {Target::parse(target), scheduler::Rules::all, {}});
    } catch (const std::exception& error) {
      ++failures;
      ADD_FAILURE() << "seed " << seed << " on " << target << ": " << error.what() << "\n" << print(graph);
    }
  }
}

}  // namespace
}  // namespace fusejit::testing
