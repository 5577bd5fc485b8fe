// Winograd as an algorithm of a schedule: what it is for, its rules, its order of sums, when it is chosen, its
// transforms.
#include "scheduler/schedule/winograd.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "ir/kernel/interp/interp.h"
#include "ir/node.h"
#include "scheduler/choose/choose.h"
#include "scheduler/lower/winograd/transform.h"

namespace fusejit::scheduler {
namespace {

struct Convolution {
  Shape x{16, 64, 56, 56}, w{64, 64, 3, 3};
  std::int64_t stride = 1, padding = 1, dilation = 1, groups = 1;
  DType dtype = DType::f32;
};
ir::Contraction contraction(const Convolution& c) {
  const std::vector<std::int64_t> stride(2, c.stride), dilation(2, c.dilation), padding(4, c.padding);
  const ir::Value y =
      ir::build(ir::Op::conv2d, {ir::parameter({c.dtype, c.x}), ir::parameter({c.dtype, c.w})},
                {{"stride", stride}, {"padding", padding}, {"dilation", dilation}, {"groups", c.groups}});
  return ir::contractions_of(*y).at(0);
}

TEST(WinogradDims, AreThoseOfASmallWindow) {
  const std::optional<WinogradDims> dims = winograd_dims(contraction({}));
  ASSERT_TRUE(dims);
  const ir::Contraction c = contraction({});
  const auto name = [&](int d) { return c.dims[static_cast<std::size_t>(d)].name; };
  EXPECT_EQ(
      name(dims->n) + name(dims->p) + name(dims->q) + name(dims->k) + name(dims->r) + name(dims->s) + name(dims->c),
      "npqkrsc");
  EXPECT_EQ(dims->points(), 36);
  EXPECT_EQ(dims->weight_points(), 36);
  const auto points = [](const Convolution& of) {
    const std::optional<WinogradDims> dims = winograd_dims(contraction(of));
    return dims ? std::pair{dims->points(), dims->weight_points()} : std::pair<std::int64_t, std::int64_t>{0, 0};
  };
  EXPECT_EQ(points({.stride = 2}), std::pair(std::int64_t{81}, std::int64_t{36}));
  EXPECT_EQ(points({.w = {64, 64, 2, 2}}), std::pair(std::int64_t{25}, std::int64_t{25}));
  EXPECT_EQ(points({.w = {64, 64, 2, 3}}), std::pair(std::int64_t{30}, std::int64_t{30}));
  EXPECT_EQ(points({.w = {64, 64, 3, 1}}), std::pair(std::int64_t{6}, std::int64_t{6}));
  EXPECT_FALSE(winograd_dims(contraction({.stride = 3})));
  EXPECT_FALSE(winograd_dims(contraction({.w = {64, 64, 2, 2}, .stride = 2})));
  EXPECT_FALSE(winograd_dims(contraction({.dilation = 2})));
  EXPECT_FALSE(winograd_dims(contraction({.w = {64, 32, 3, 3}, .groups = 2})));
  EXPECT_FALSE(winograd_dims(contraction({.w = {64, 64, 1, 1}})));
  EXPECT_FALSE(winograd_dims(contraction({.w = {64, 64, 3, 5}})));
  const ir::Value x = ir::parameter({DType::f32, Shape{16, 64, 56, 56}}),
                  w = ir::parameter({DType::f32, {64, 64, 3, 3}});
  const std::vector<std::int64_t> size{56, 56}, taps{3, 3}, padding(4, 1);
  const ir::Value dx = ir::build(ir::Op::conv2d_input_grad, {x, w}, {{"input_size", size}, {"padding", padding}});
  EXPECT_TRUE(winograd_dims(ir::contractions_of(*dx).at(0)));
  const ir::Value dw = ir::build(ir::Op::conv2d_weight_grad, {x, x}, {{"kernel_size", taps}, {"padding", padding}});
  const std::optional<WinogradDims> of_weights = winograd_dims(ir::contractions_of(*dw).at(0));
  ASSERT_TRUE(of_weights);
  EXPECT_TRUE(of_weights->of_weights);
  // The gradient of a window that moves by two is four, of 1 x 1, 1 x 2, 2 x 1 and 2 x 2 taps.
  const std::vector<std::int64_t> by_two(2, 2);
  const ir::Value of_stride = ir::build(ir::Op::conv2d_input_grad, {ir::parameter({DType::f32, {16, 64, 28, 28}}), w},
                                        {{"input_size", size}, {"padding", padding}, {"stride", by_two}});
  std::vector<std::int64_t> all;
  for (const ir::Contraction& one : ir::contractions_of(*of_stride)) {
    const std::optional<WinogradDims> of = winograd_dims(one);
    all.push_back(of ? of->points() : 0);
  }
  EXPECT_EQ(all, (std::vector<std::int64_t>{0, 5, 5, 25}));
}

TEST(WinogradSchedule, IsRefusedWithTheRuleThatItBreaks) {
  struct Case {
    const char* schedule;
    const char* message;
    Convolution of = {};
    const char* target = "x86:avx512";
  };
  const Case cases[] = {
      {"algorithm winograd 4 vector k 16 x 2 tile n*p*q 14 unroll c 4 task n, p/8 pack b 32", ""},
      {"algorithm winograd 4 vector k 16 x 2 task n, k/64, p pack b 32", ""},
      {"algorithm winograd 4 vector k 16 x 2 task n, p/8 pack b 32 fetch q 8", ""},
      {"algorithm winograd 4 vector k 16 x 2 task n, p/8 pack b 32 fetch q 6",
       "fetches what patches read further along q: q 4, not q 6"},
      {"algorithm winograd 4 vector k 16 x 2 task n, p/8 pack b 32 fetch p 4", "q 4, not p 4"},
      {"algorithm winograd 2 vector k 16 x 2 pack b 32", "Winograd's patches are 4 x 4, not 2"},
      {"algorithm winograd 4 vector k 16 x 2 pack b 32", "without groups, and not out[", {.stride = 3}},
      {"algorithm winograd 4 vector k 16 x 2 task n, p/8 pack b 32 fetch q 4", "", {.stride = 2}},
      // Along rows without taps a patch is one row.
      {"algorithm winograd 4 vector k 16 x 2 task n, p/3 pack b 32 fetch q 4", "", {.w = {64, 64, 1, 3}}},
      {"algorithm winograd 4 vector k 16 x 2 task n, p/3 pack b 32", "3 rows of results are no patches of 4"},
      {"algorithm winograd 4 vector k 16 x 2 task n, p/4 pack b 32 fetch q 1", "", {.w = {64, 64, 3, 1}}},
      {"algorithm winograd 4 vector k 16 x 2 task n, p/8 pack b 32", "", {.dtype = DType::bf16}},
      {"algorithm winograd 4 vector k 16 x 2 pack b 32", "f16 and bf16, not for f64 and f64", {.dtype = DType::f64}},
      {"algorithm winograd 4 vector k 16 x 1 task grid.x n pack b 16", "Winograd is for processors", {}, "cuda:sm_90"},
      {"algorithm winograd 4 vector k 16 x 2 registers 128 pack b 32", "not of a processor"},
      {"algorithm winograd 4 vector k 16 x 2 tile q 14 pack b 32", "tile is one of patches: n*p*q 14"},
      {"algorithm winograd 4 vector k 16 x 2 unroll r 3 pack b 32", "Winograd unrolls c alone"},
      {"algorithm winograd 4 vector k 16 x 2 task n, p/8 outer k/64 pack b 32 fetch q 4, b", ""},
      {"algorithm winograd 4 vector k 16 x 2 task k/32 outer k/64 pack b 32", "steps of 64 k do not fill those of its"},
      {"algorithm winograd 4 vector k 16 x 2 outer k/48 pack b 32", "blocks of 48 k are no multiple of the 32"},
      {"algorithm winograd 4 vector k 16 x 2 outer n pack b 32", "outer loops share out outputs, not n"},
      {"algorithm winograd 4 vector k 16 x 2 pack b 32 combine n", "results are not combined"},
      {"vector k 16 x 2 task n outer k inner p, q, r, s, c fetch p 1, b", "by Winograd alone"},
      {"algorithm winograd 4 vector k 16 x 2 task q pack b 32", "share out images, rows and outputs, not q"},
      {"algorithm winograd 4 vector k 16 x 2 task n, n/2 pack b 32", "not again along n"},
      {"algorithm winograd 4 vector k 16 x 2 task p/6 pack b 32", "6 rows of results are no patches of 4"},
      {"algorithm winograd 4 vector k 16 x 2 task k/48 pack b 32", "tasks of 48 k are no multiple of the 32"},
      {"algorithm winograd 4 vector k 16 x 2 pack b 64", "blocks of the 32 outputs in registers, not 64"},
      {"algorithm winograd 4 vector k 16 x 2 task n/4 pack b 32",
       "copies take 56623104 bytes a task; at most 15728640",
       {.x = {16, 64, 128, 128}}},
      // 5.3 MiB of inputs at all points, and sums of 64 outputs: 5.3 MiB, of 160: 13.2.
      {"algorithm winograd 4 vector k 16 x 2 task n, p/64 outer k/64 pack b 32",
       "",
       {.x = {16, 64, 208, 208}, .w = {160, 64, 3, 3}}},
      {"algorithm winograd 4 vector k 16 x 2 task n, p/64 outer k/160 pack b 32",
       "copies take",
       {.x = {16, 64, 208, 208}, .w = {160, 64, 3, 3}}},
      {"algorithm winograd 4 vector k 16 x 2 tile n*p*q 16 pack b 32", "needs 35 registers, there are 32"},
  };
  for (const Case& c : cases) {
    const Schedule schedule = parse_schedule(std::string("schedule { ") + c.schedule + " }");
    const std::string broken = check(contraction(c.of), schedule, Target::parse(c.target), false);
    if (*c.message == 0) {
      EXPECT_EQ(broken, "") << c.schedule;
    } else {
      EXPECT_NE(broken.find(c.message), std::string::npos) << c.schedule << ": " << broken;
    }
  }
}

TEST(WinogradSchedule, ReadsBackAndHasAnOrderOfSums) {
  const char* text =
      "schedule { algorithm winograd 4 vector k 16 x 2 tile n*p*q 14 unroll c 4 task n, p/8 pack b 32 store stream }";
  EXPECT_EQ(print(parse_schedule(text)), text);
  const char* blocks = "schedule { algorithm winograd 4 vector k 16 x 2 outer k/64 pack b 32 fetch q 4, b }";
  EXPECT_EQ(print(parse_schedule(blocks)), blocks);
  const auto order = [](const std::string& rest) {
    return sum_order(contraction({}), parse_schedule("schedule { algorithm winograd 4 vector k 16 x 2 " + rest + " }"),
                     true);
  };
  EXPECT_EQ(order("task n, p/8 pack b 32"), "terms winograd 4 c; results n/1 p/8 | n, p/4, q/4, p, q");
  EXPECT_EQ(order("tile n*p*q 7 unroll c 2 task k/32, n, p/8 pack b 32"), order("task n, p/8 pack b 32"));
  EXPECT_EQ(order("task n, p/8 outer k/64 pack b 32 fetch q 4, b"), order("task n, p/8 pack b 32"));
  EXPECT_NE(order("task n, p/16 pack b 32"), order("task n, p/8 pack b 32"));
}

TEST(WinogradSchedule, IsChosenWhereTheTargetAllowsItAndItPays) {
  const auto chosen = [](const char* target, const Convolution& of) {
    return candidates(contraction(of), Target::parse(target), {}).front().winograd;
  };
  EXPECT_EQ(chosen("x86:avx512", {}), 0);
  EXPECT_EQ(chosen("x86:avx512,winograd=1", {}), 4);
  EXPECT_EQ(chosen("x86:avx2,winograd=1", {}), 4);
  // One image of the last stage reads more weights than it has products, few channels are mostly transforms.
  const Convolution last{.x = {1, 512, 7, 7}, .w = {512, 512, 3, 3}}, few{.x = {16, 4, 56, 56}, .w = {16, 4, 3, 3}};
  EXPECT_EQ(chosen("x86:avx512,winograd=1,fma=2", last), 0);
  EXPECT_EQ(chosen("x86:avx512,winograd=1,fma=2", few), 0);
  // Timed on a Zen 5: 0.6 and 0.65 of the direct one's time, and 1.03.
  const char* zen5 = "x86:avx512bf16,l1=48k,l2=1m,l3=32m,fma=2,tasks=64,dot2=1,winograd=1";
  EXPECT_EQ(chosen(zen5, {.x = {128, 16, 32, 32}, .w = {16, 16, 3, 3}}), 4);
  EXPECT_EQ(chosen(zen5, {.x = {128, 8, 32, 32}, .w = {32, 8, 3, 3}}), 4);
  EXPECT_EQ(chosen(zen5, {.x = {16, 3, 112, 112}, .w = {64, 3, 3, 3}}), 0);
  // Of every other element: 0.77 and 0.86 of the direct one's time, 1.0; and of the gradient's windows 0.7.
  EXPECT_EQ(chosen(zen5, {.x = {16, 128, 56, 56}, .w = {128, 128, 3, 3}, .stride = 2}), 4);
  EXPECT_EQ(chosen(zen5, {.x = {16, 256, 28, 28}, .w = {256, 256, 3, 3}, .stride = 2}), 4);
  EXPECT_EQ(chosen(zen5, {.x = {16, 512, 14, 14}, .w = {512, 512, 3, 3}, .stride = 2}), 0);
  EXPECT_EQ(chosen(zen5, {.x = {16, 128, 28, 28}, .w = {128, 128, 2, 2}, .padding = 0}), 4);
  // In bf16 beside dot products, twice as fast: 0.64 and 0.71 of the direct one's time, and 1.08 and 1.5. In a matrix
  // unit products are 16 times as fast; where they are widened, no faster than those of f32.
  const auto narrow = [](Convolution c, DType dtype = DType::bf16) { return c.dtype = dtype, c; };
  const Convolution late{.x = {16, 512, 7, 7}, .w = {512, 512, 3, 3}},
      one{.x = {1, 256, 14, 14}, .w = {256, 256, 3, 3}};
  EXPECT_EQ(chosen(zen5, narrow({})), 4);
  EXPECT_EQ(chosen(zen5, narrow({.x = {128, 64, 8, 8}})), 4);
  EXPECT_EQ(chosen(zen5, late), 4);
  EXPECT_EQ(chosen(zen5, narrow(late)), 0);
  EXPECT_EQ(chosen(zen5, one), 4);
  EXPECT_EQ(chosen(zen5, narrow(one)), 0);
  EXPECT_EQ(chosen(zen5, narrow(late, DType::f16)), 4);
  EXPECT_EQ(chosen("x86:amx,l2=2m,fma=2,winograd=1", narrow({})), 0);
  EXPECT_EQ(chosen("x86:amx,l2=2m,fma=2,winograd=1", narrow({}, DType::f16)), 4);
  EXPECT_EQ(chosen("x86:avx512,winograd=1", narrow({})), 4);
  EXPECT_EQ(chosen("x86:avx512,winograd=2", last), 4);
  EXPECT_EQ(chosen("x86:avx512,winograd=2", few), 4);
}

// What `body` makes of `buffers`, the last of which it writes: elements that are loaded from all of them but that.
using Args = std::vector<ir::Arg>;
std::vector<float> computed(const std::vector<std::vector<float>>& in, std::size_t results,
                            const std::function<Args(ir::KernelBuilder&, const std::vector<Args>&)>& body) {
  ir::KernelBuilder builder("row", Isa::x86_avx2);
  std::vector<Args> loaded;
  std::vector<void*> buffers;
  for (const std::vector<float>& one : in) {
    const auto count = static_cast<std::int64_t>(one.size());
    const ir::MemId from = builder.buffer(ir::MemKind::read, DType::f32, {count});
    Args& elements = loaded.emplace_back();
    for (std::int64_t i = 0; i < count; ++i) elements.push_back(builder.load(from, {ir::Index(i)}));
    buffers.push_back(const_cast<float*>(one.data()));
  }
  std::vector<float> out(results);
  const ir::MemId to = builder.buffer(ir::MemKind::write, DType::f32, {static_cast<std::int64_t>(results)});
  buffers.push_back(out.data());
  const Args made = body(builder, loaded);
  EXPECT_EQ(made.size(), results);
  for (std::size_t i = 0; i < results; ++i) builder.store(to, {ir::Index(static_cast<std::int64_t>(i))}, made[i]);
  const ir::Kernel kernel = std::move(builder).finish();
  ir::interpret(kernel, buffers, {});
  return out;
}

// Results of a row from the elements that they read, and taps' gradients from those of the results, are what their
// definitions say: with whole numbers that 24 divides nothing is rounded.
TEST(WinogradTransform, OfARowGivesItsResultsAndTheGradientsOfItsTaps) {
  for (const WinogradAxis axis : {WinogradAxis{3, 1}, WinogradAxis{2, 1}, WinogradAxis{3, 2}, WinogradAxis{1, 1}}) {
    for (const bool has_fma : {true, false}) {
      SCOPED_TRACE(fmt::format("{} taps, stride {}, fma {}", axis.taps, axis.stride, has_fma));
      const auto some = [](std::int64_t count, std::initializer_list<float> from) {
        return std::vector<float>(from.begin(), from.begin() + count);
      };
      const std::vector<float> d = some(axis.points(), {3, -1, 4, 1, -5, 9, 2, -6, 5}),
                               g = some(axis.taps, {24, -48, 72}), e = some(axis.results(), {48, 24, -72, 96});
      const auto at_points = [&](ir::KernelBuilder& builder, const Args& a, const Args& b) {  // b: of weights
        Args m;
        for (std::size_t i = 0; i < a.size(); ++i)
          m.push_back(builder.def(ir::Op::mul, {a[i], b[std::min(i, b.size() - 1)]}, DType::f32));
        return m;
      };
      const std::vector<float> y =
          computed({d, g}, e.size(), [&](ir::KernelBuilder& builder, const std::vector<Args>& in) {
            const WinogradTransform transform(builder, has_fma, DType::f32);
            return transform.results(axis,
                                     at_points(builder, transform.input(axis, in[0]), transform.weights(axis, in[1])));
          });
      for (std::size_t i = 0; i < y.size(); ++i) {
        float want = 0;
        for (std::size_t t = 0; t < g.size(); ++t) want += d[i * static_cast<std::size_t>(axis.stride) + t] * g[t];
        EXPECT_EQ(y[i], want) << i;
      }
      const std::vector<float> of_taps =
          computed({d, e}, g.size(), [&](ir::KernelBuilder& builder, const std::vector<Args>& in) {
            const WinogradTransform transform(builder, has_fma, DType::f32);
            const Args all = at_points(builder, transform.input(axis, in[0]), transform.gradients(axis, in[1]));
            const auto met = static_cast<std::size_t>(axis.weight_points());
            Args sums(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(met));
            for (std::size_t i = met; i < all.size(); ++i)
              sums.back() = builder.def(ir::Op::add, {sums.back(), all[i]}, DType::f32);
            return transform.taps(axis, sums);
          });
      for (std::size_t t = 0; t < of_taps.size(); ++t) {
        float want = 0;
        for (std::size_t i = 0; i < e.size(); ++i) want += d[i * static_cast<std::size_t>(axis.stride) + t] * e[i];
        EXPECT_EQ(of_taps[t], want) << t;
      }
    }
  }
}

}  // namespace
}  // namespace fusejit::scheduler
