// Whatever is chosen is legal: convolutions of the sizes that networks have, their gradients and matrix products, with
// whatever may be fused to them, on every kind of target. Kernels are built of few of them elsewhere; a size that
// breaks a rule of its own choice would end in an error of the compiler.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/node.h"
#include "scheduler/choose/choose.h"
#include "tests/random/generate/schedule_trial.h"
#include "tests/support/nightly.h"

namespace fusejit::testing {
namespace {

using namespace ir;

constexpr const char* kTargetsOfChoices[] = {"x86:avx512,fma=2",
                                             "x86:avx512,winograd=1",
                                             "x86:avx512bf16,fma=2,dot2=1",
                                             "x86:avx2,l2=256k,l3=3m",
                                             "x86:avx2,winograd=1",
                                             "x86:v2,tasks=5",
                                             "x86:avx512bf16,dot2=1,l1=2k,l2=16k,l3=64k,tasks=7",
                                             "cuda:sm_80",
                                             "cuda:sm_120"};

// Empty: the window does not fit into the image.
Value random_layer(Random& random, DType dtype) {
  const std::int64_t n = random.of<std::int64_t>({1, 2, 3, 4, 7, 8, 16, 16, 32, 33, 128}),
                     kernel = random.of<std::int64_t>({1, 1, 2, 3, 3, 3, 4, 5, 7, 11}),
                     width = random.chance(85) ? kernel : random.from(1, 4),
                     stride = random.of<std::int64_t>({1, 1, 1, 2, 2, 3, 4}), dilation = random.chance(85) ? 1 : 2;
  const auto channels = [&] {
    return random.of<std::int64_t>(
        {1, 2, 3, 3, 4, 8, 10, 16, 24, 32, 48, 64, 96, 100, 128, 144, 160, 256, 320, 512, 960, 1024, 2048});
  };
  const std::int64_t pad = random.from(0, kernel / 2),
                     size = random.of<std::int64_t>({1, 4, 6, 7, 9, 14, 15, 28, 31, 56, 64, 112, 224, 227}),
                     other = random.chance(70) ? size : random.from(1, 130);
  const bool depthwise = random.chance(20);
  const std::int64_t groups = depthwise ? channels() : random.of<std::int64_t>({1, 1, 1, 1, 2, 4, 32}),
                     in = depthwise ? 1 : channels(), out = depthwise ? random.of<std::int64_t>({1, 1, 2}) : channels();
  const std::int64_t h = size + 2 * pad - dilation * (kernel - 1), w = other + 2 * pad - dilation * (width - 1);
  if (random.chance(10)) {
    const Value a = parameter({dtype, {n, size, in}});
    return random.chance(50) ? build(Op::linear, {a, parameter({dtype, {out, in}})})
                             : build(Op::matmul, {a, parameter({dtype, {n, in, out}})});
  }
  if (h < 1 || w < 1) return {};
  const Layout layout = random.chance(70) ? Layout::nhwc : Layout::standard;
  const Value x = parameter({dtype, {n, in * groups, size, other}, layout}),
              weight = parameter({dtype, {out * groups, in, kernel, width}}),
              y = parameter({dtype, {n, out * groups, (h - 1) / stride + 1, (w - 1) / stride + 1}, layout});
  std::vector<AttrInit> attrs{{"stride", {stride, stride}},
                              {"padding", {pad, pad, pad, pad}},
                              {"dilation", {dilation, dilation}},
                              {"groups", groups}};
  switch (random.from(0, 2)) {
    case 0:
      return build(Op::conv2d, {x, weight}, attrs);
    case 1:
      attrs.push_back({"input_size", {size, other}});
      return build(Op::conv2d_input_grad, {y, weight}, attrs);
    default:
      attrs.push_back({"kernel_size", {kernel, width}});
      return build(Op::conv2d_weight_grad, {x, y}, attrs);
  }
}

TEST(RandomChoices, AreLegal) {
  const std::uint64_t wanted = is_nightly() ? 5'000'000 : 200'000;
  std::uint64_t checked = 0;
  for (std::uint64_t seed = 1; checked < wanted && !HasFailure(); ++seed) {
    Random random(seed);
    const Target target =
        Target::parse(random.of<const char*>({std::begin(kTargetsOfChoices), std::end(kTargetsOfChoices)}));
    const bool cuda = target.isa == Isa::cuda;
    const DType dtype = random.of<DType>({DType::f32, DType::f32, DType::bf16, DType::bf16, DType::f16, DType::f64});
    const Value layer = random_layer(random, dtype);
    if (layer.get() == nullptr) continue;
    scheduler::FusedWork fused{.compute = compute_type(dtype), .result_bytes = layer.type().bytes()};
    fused.sums = op_def(layer->op).packs_second && random.chance(30);
    fused.elements_read = random.from(0, 2);
    fused.computes_a = !cuda && !op_def(layer->op).matrix && random.chance(40);
    fused.computes_b = !cuda && !op_def(layer->op).matrix && random.chance(40);
    for (const Contraction& of_row : contractions_of(*layer)) {
      const Contraction contraction = scheduler::operands_in_order(of_row, target, fused.computes_b);
      for (const scheduler::Schedule& schedule : candidates(contraction, target, fused)) {
        ++checked;
        const std::string broken = check(contraction, schedule, target, fused.sums);
        EXPECT_EQ(broken, "") << fmt::format("seed {}, {} of {}\n{}\n", seed, name(layer->op), name(dtype),
                                             str(contraction))
                              << print(schedule) << "\n"
                              << target.str();
      }
    }
  }
}

}  // namespace
}  // namespace fusejit::testing
