// Winograd as an algorithm of a schedule: what it is for, its rules, its order of sums, when it is chosen, its
// transforms.
#include "scheduler/schedule/winograd.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

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

TEST(WinogradDims, AreThoseOfAWindowOfThreeByThree) {
  const std::optional<WinogradDims> dims = winograd_dims(contraction({}));
  ASSERT_TRUE(dims);
  const ir::Contraction c = contraction({});
  const auto name = [&](int d) { return c.dims[static_cast<std::size_t>(d)].name; };
  EXPECT_EQ(
      name(dims->n) + name(dims->p) + name(dims->q) + name(dims->k) + name(dims->r) + name(dims->s) + name(dims->c),
      "npqkrsc");
  EXPECT_FALSE(winograd_dims(contraction({.stride = 2})));
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
      {"algorithm winograd 4 vector k 16 x 2 pack b 32", "stride 1, without groups, and not out[", {.stride = 2}},
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
  EXPECT_EQ(chosen("x86:avx512,winograd=1", {.stride = 2}), 0);
  // One image of the last stage reads more weights than it has products, few channels are mostly transforms.
  const Convolution last{.x = {1, 512, 7, 7}, .w = {512, 512, 3, 3}}, few{.x = {16, 4, 56, 56}, .w = {16, 4, 3, 3}};
  EXPECT_EQ(chosen("x86:avx512,winograd=1,fma=2", last), 0);
  EXPECT_EQ(chosen("x86:avx512,winograd=1,fma=2", few), 0);
  // Timed on a Zen 5: 0.6 and 0.65 of the direct one's time, and 1.03.
  const char* zen5 = "x86:avx512bf16,l1=48k,l2=1m,l3=32m,fma=2,tasks=64,dot2=1,winograd=1";
  EXPECT_EQ(chosen(zen5, {.x = {128, 16, 32, 32}, .w = {16, 16, 3, 3}}), 4);
  EXPECT_EQ(chosen(zen5, {.x = {128, 8, 32, 32}, .w = {32, 8, 3, 3}}), 4);
  EXPECT_EQ(chosen(zen5, {.x = {16, 3, 112, 112}, .w = {64, 3, 3, 3}}), 0);
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

// A row of 4 results of 3 taps, from the 6 elements that they read, is what the definition says: with whole numbers
// that 24 divides nothing is rounded.
TEST(WinogradTransform, OfARowGivesItsResults) {
  for (const bool has_fma : {true, false}) {
    ir::KernelBuilder builder("row", Isa::x86_avx2);
    const ir::MemId d = builder.buffer(ir::MemKind::read, DType::f32, {6}),
                    g = builder.buffer(ir::MemKind::read, DType::f32, {3}),
                    y = builder.buffer(ir::MemKind::write, DType::f32, {4});
    const auto loaded = [&](ir::MemId from, std::int64_t count) {
      std::vector<ir::Arg> all;
      for (std::int64_t i = 0; i < count; ++i) all.push_back(builder.load(from, {ir::Index(i)}));
      return all;
    };
    const WinogradTransform transform(builder, has_fma, DType::f32);
    const std::vector<ir::Arg> v = transform.input(loaded(d, 6)), u = transform.weights(loaded(g, 3));
    std::vector<ir::Arg> m;
    for (std::size_t i = 0; i < 6; ++i) m.push_back(builder.def(ir::Op::mul, {v[i], u[i]}, DType::f32));
    const std::vector<ir::Arg> results = transform.results(m);
    for (std::size_t i = 0; i < 4; ++i) builder.store(y, {ir::Index(static_cast<std::int64_t>(i))}, results[i]);
    const ir::Kernel kernel = std::move(builder).finish();
    std::array<float, 6> in{3, -1, 4, 1, -5, 9};
    std::array<float, 3> taps{24, -48, 72};
    std::array<float, 4> out{};
    void* const buffers[] = {in.data(), taps.data(), out.data()};
    ir::interpret(kernel, buffers, {});
    for (std::size_t i = 0; i < 4; ++i)
      EXPECT_EQ(out[i], in[i] * taps[0] + in[i + 1] * taps[1] + in[i + 2] * taps[2]) << i;
  }
}

}  // namespace
}  // namespace fusejit::scheduler
