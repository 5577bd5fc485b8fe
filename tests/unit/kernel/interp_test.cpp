// The interpreter's rules: poison, combination trees, conversions; its direct functions against the rows.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ir/kernel/interp/scalar.h"
#include "ir/kernel/philox.h"
#include "tests/unit/kernel/run.h"

namespace fusejit::testing {
namespace {

using namespace fusejit::ir;
using fusejit::testing::run;

std::string error_unverified(const Kernel& kernel) {
  std::vector<Bytes> buffers = buffers_of(kernel);
  try {
    run(kernel, buffers, {});
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}
std::string error_of(const std::string& text) {
  const Kernel kernel = parse_kernel(text);
  verify(kernel);
  return error_unverified(kernel);
}
std::string on_y(const std::string& body) {
  return "kernel @t(%x: f32[16] read, %y: f32[16] write) on x86:avx2 { phase { " + body + " } }";
}

TEST(Interpret, ReadingPoisonIsAnError) {
  EXPECT_NE(
      error_of(on_y("local %a: f32[4] scratch %0 = load %a[0] : f32 for %i in 0..16 { store %y[%i], %0 }")).find("V10"),
      std::string::npos);
  EXPECT_NE(error_of(on_y("for %i in 0..16 { %0 = load %y[15 - %i] : f32 store %y[%i], 1 }")).find("V10"),
            std::string::npos);
  // A local is new for each execution of its block.
  EXPECT_NE(error_of(on_y("for %i in 0..16 { local %a: f32[1] register if %i == 0 { store %a[0], 1 }"
                          " %0 = load %a[0] : f32 store %y[%i], %0 }"))
                .find("V10"),
            std::string::npos);
  EXPECT_EQ(error_of(on_y("for %i in 0..16 { local %a: f32[1] register = 2 %0 = load %a[0] : f32 store %y[%i], %0 }")),
            "");
}

// What verify would refuse too (V11), seen while it runs.
TEST(Interpret, AStoreOverOneThatNothingReadIsAnError) {
  const std::string all = "for %i in 0..16 { store %y[%i], 1 }";
  EXPECT_NE(error_unverified(parse_kernel(on_y(all + " store %y[7], 2"))).find("V11: element 7"), std::string::npos);
  EXPECT_NE(error_unverified(parse_kernel(on_y(all + " } phase { " + all))).find("V11: element 0"), std::string::npos);
  EXPECT_EQ(error_unverified(parse_kernel(on_y(all + " %0 = load %y[7] : f32 store %y[7], %0"))), "");
}

TEST(Interpret, EveryElementOfAWriteBufferIsStored) {
  EXPECT_NE(error_of(on_y("for %i in 0..15 { store %y[%i], 1 }")).find("element 15"), std::string::npos);
  EXPECT_EQ(error_of(on_y("for %i in 0..16 { store %y[%i], 1 }")), "");
}

float tree(std::vector<float> x) {
  for (std::size_t d = x.size() / 2; d > 0; d /= 2)
    for (std::size_t i = 0; i < d; ++i) x[i] += x[i + d];
  return x[0];
}

// Sums whose value depends on the order of the additions.
TEST(Interpret, ReductionsOverLanesAreTrees) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(-1e4f, 1e4f);
  for (const int lanes : {2, 4, 8, 16, 32, 64}) {
    const Kernel kernel =
        parse_kernel(fmt::format("kernel @t(%x: f32[{0}] read, %y: f32[] write) on x86:avx512 {{ phase {{ %s = for %l "
                                 "in 0..{0} vector reduce add : f32 {{"
                                 " %a = load %x[%l] : f32 yield %a }} store %y[], %s }} }}",
                                 lanes));
    std::vector<Bytes> buffers = buffers_of(kernel);
    std::vector<float> x(static_cast<std::size_t>(lanes));
    for (float& v : x) v = uniform(random);
    std::copy(x.begin(), x.end(), buffers[0].as<float>());
    run_in_all_orders(kernel, buffers);
    const float expected =
        lanes <= 32 ? tree(x) : tree({tree({x.begin(), x.begin() + 32}), tree({x.begin() + 32, x.end()})});
    EXPECT_EQ(buffers[1].as<float>()[0], expected) << lanes;
  }
}

TEST(Interpret, BlocksReduceInRunsOf32) {
  const Kernel kernel = parse_kernel(
      "kernel @t(%x: f32[256] read, %y: f32[1] write) on cuda { phase { for %g in 0..1 grid.x { %s = for %b in 0..256 "
      "block.x reduce add : f32 {"
      " %a = load %x[%b] : f32 yield %a } store %y[%g], %s } } }");
  std::vector<Bytes> buffers = buffers_of(kernel);
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(-1e4f, 1e4f);
  std::vector<float> runs;
  for (int r = 0; r < 8; ++r) {
    std::vector<float> x(32);
    for (float& v : x) v = uniform(random);
    std::copy(x.begin(), x.end(), buffers[0].as<float>() + r * 32);
    runs.push_back(tree(x));
  }
  run_in_all_orders(kernel, buffers);
  EXPECT_EQ(buffers[1].as<float>()[0], tree(runs));
}

TEST(Interpret, SerialSumsStartFromZero) {
  const Kernel kernel = parse_kernel(on_y(
      "%s = for %i in 0..1 reduce add : f32 { %a = load %x[%i] : f32 yield %a } for %i in 0..16 { store %y[%i], %s }"));
  std::vector<Bytes> buffers = buffers_of(kernel);
  buffers[0].as<float>()[0] = -0.0f;
  run_in_all_orders(kernel, buffers);
  EXPECT_FALSE(std::signbit(buffers[1].as<float>()[0]));  // 0 + -0 = 0
}

TEST(Interpret, TuplesCombineMemberByMember) {
  const Kernel kernel = parse_kernel(
      "kernel @t(%x: f32[16] read, %s: f32[1] write, %m: f32[1] write, %q: f32[1] write, %i: i32[1] write) on x86:avx2 "
      "{ phase {"
      " %0, %1, %2, %3, %4, %5 = for %k in 0..16 reduce (add, welford, argmin) : f32, f32, f32, f32, f32, i32 {"
      " %a = load %x[%k] : f32 %b = index(%k) : i32 yield %a, 1, %a, 0, %a, %b }"
      " store %s[0], %0 store %m[0], %2 store %q[0], %3 store %i[0], %5 } }");
  std::vector<Bytes> buffers = buffers_of(kernel);
  for (int i = 0; i < 16; ++i) buffers[0].as<float>()[i] = static_cast<float>((i * 7) % 16);
  run_in_all_orders(kernel, buffers);
  EXPECT_EQ(buffers[1].as<float>()[0], 120);
  EXPECT_NEAR(buffers[2].as<float>()[0], 7.5, 1e-6);
  EXPECT_NEAR(buffers[3].as<float>()[0], 340, 1e-3);
  EXPECT_EQ(buffers[4].as<std::int32_t>()[0], 0);
}

TEST(Interpret, GatherUnderACondition) {
  const Kernel kernel = parse_kernel(
      "kernel @t(%x: f32[4] read, %n: i32[6] read, %y: f32[6] write) on x86:avx2 { phase { for %i in 0..6 { %k = load "
      "%n[%i] : i32"
      " %v = if %k >= 0 and %k < 4 : f32 { %a = load %x[%k] : f32 yield %a } else { yield nan } store %y[%i], %v } } "
      "}");
  std::vector<Bytes> buffers = buffers_of(kernel);
  const std::int32_t indices[] = {3, -1, 0, 4, 2, -2147483648};
  std::copy(indices, indices + 6, buffers[1].as<std::int32_t>());
  for (int i = 0; i < 4; ++i) buffers[0].as<float>()[i] = static_cast<float>(i + 1);
  run_in_all_orders(kernel, buffers);
  const float* y = buffers[2].as<float>();
  EXPECT_EQ(y[0], 4);
  EXPECT_TRUE(std::isnan(y[1]) && std::isnan(y[3]) && std::isnan(y[5]));
  EXPECT_EQ(y[2], 1);
  EXPECT_EQ(y[4], 3);
}

TEST(Interpret, QuotientsAndRemaindersFloor) {
  const Kernel kernel = parse_kernel(
      "kernel @t(%q: i64[16] write, %r: i64[16] write) on any { phase { for %i in 0..16 { %0 = index((%i - 8) / 3) : "
      "i64"
      " %1 = index((%i - 8) % 3) : i64 store %q[%i], %0 store %r[%i], %1 } } }");
  std::vector<Bytes> buffers = buffers_of(kernel);
  run_in_all_orders(kernel, buffers);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(buffers[0].as<std::int64_t>()[i], static_cast<std::int64_t>(std::floor((i - 8) / 3.0)));
    EXPECT_EQ(buffers[1].as<std::int64_t>()[i], ((i - 8) % 3 + 3) % 3);
  }
}

TEST(Interpret, HalvesGoThroughCastsAndBits) {
  const Kernel kernel = parse_kernel(
      "kernel @t(%h: f16[4] read, %y: f16[4] write, %u: u32[4] write, %b: bf16[4] write) on x86:avx2 { phase { for %i "
      "in 0..4 {"
      " %0 = load %h[%i] : f16 %1 = cast(%0) : f32 %2 = mul(%1, 3) : f32 %3 = cast(%2) : f16 store %y[%i], %3"
      " %4 = bits(%3) : u32 store %u[%i], %4 %5 = from_bits(%4) : bf16 store %b[%i], %5 } } }");
  std::vector<Bytes> buffers = buffers_of(kernel);
  const std::uint16_t halves[] = {0x3c00, 0x0001, 0x7800, 0xc200};  // 1, smallest denormal, 32768, -3
  std::copy(halves, halves + 4, buffers[0].as<std::uint16_t>());
  run_in_all_orders(kernel, buffers);
  const std::uint16_t expected[] = {0x4200, 0x0003, 0x7c00, 0xc880};  // 3, 3 units, inf, -9
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(buffers[1].as<std::uint16_t>()[i], expected[i]);
    EXPECT_EQ(buffers[2].as<std::uint32_t>()[i], expected[i]);
    EXPECT_EQ(buffers[3].as<std::uint16_t>()[i], expected[i]);
  }
}

// As vcvtneps2bf16: ties to even, NaN quiet, denormals as zeros of their sign; cast keeps them.
TEST(Interpret, RoundingBesidePairsReadsDenormalsAsZero) {
  const Kernel kernel = parse_kernel(
      "kernel @t(%x: f32[8] read, %y: bf16[8] write, %z: bf16[8] write) on x86:avx512bf16 { phase { for %i in 0..8 {"
      " %0 = load %x[%i] : f32 %1 = round_bf16(%0) : bf16 store %y[%i], %1 %2 = cast(%0) : bf16 store %z[%i], %2 } } }");
  std::vector<Bytes> buffers = buffers_of(kernel);
  const std::uint32_t words[] = {0x3f808000, 0x3f818000, 0x3f808001, 0x7f7fffff,
                                 0xffa00001, 0x007fffff, 0x80400000, 0x00800000};
  std::copy(words, words + 8, buffers[0].as<std::uint32_t>());
  run_in_all_orders(kernel, buffers);
  const std::uint16_t rounded[] = {0x3f80, 0x3f82, 0x3f81, 0x7f80, 0xffe0, 0x0000, 0x8000, 0x0080},
                      kept[] = {0x3f80, 0x3f82, 0x3f81, 0x7f80, 0xffe0, 0x0080, 0x8040, 0x0080};
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(buffers[1].as<std::uint16_t>()[i], rounded[i]) << i;
    EXPECT_EQ(buffers[2].as<std::uint16_t>()[i], kept[i]) << i;
  }
}

TEST(Interpret, Philox) {
  const auto zero = philox(0, 0, 0);
  EXPECT_EQ(zero, (std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const auto pi = philox(static_cast<std::int64_t>(0x85a308d3243f6a88u), static_cast<std::int64_t>(0x0370734413198a2eu),
                         static_cast<std::int64_t>(0x299f31d0a4093822u));
  EXPECT_EQ(pi, (std::array<std::uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Interpret, WrongArgumentsAreRefused) {
  const Kernel kernel = parse_kernel(on_y("for %i in 0..16 { store %y[%i], 1 }"));
  std::vector<Bytes> buffers = buffers_of(kernel);
  buffers.pop_back();
  EXPECT_THROW(run(kernel, buffers, {}), InternalError);
  buffers = buffers_of(kernel);
  EXPECT_THROW(run(kernel, buffers, {Scalar::of(1.0f)}), InternalError);
}

// The shortcuts mean what the rows mean.
TEST(Interpret, DirectFunctionsEqualTheRows) {
  std::mt19937_64 random(11);
  const auto word = [&](DType t) -> Scalar {
    static constexpr double kSpecial[] = {0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 1e-40, 3e38, 0.5};
    if (t == DType::boolean) return Scalar::of(random() % 2 == 0);
    if (is_float(t) && random() % 3 != 0) return cast(Scalar::of(kSpecial[random() % 10]), t);
    if (random() % 4 == 0) return cast(Scalar::of(static_cast<std::int64_t>(random() % 5) - 2), t);
    const std::uint64_t bits = random();
    return {t, fusejit::bits(t) == 64 ? bits : bits & ((std::uint64_t{1} << fusejit::bits(t)) - 1)};
  };
  int compared = 0;
  for (int o = 0; o < static_cast<int>(Op::count_); ++o) {
    const Op op = static_cast<Op>(o);
    for (const DType t : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u32, DType::u64, DType::boolean}) {
      const ScalarFn direct = direct_function(op, t);
      if (!direct) continue;
      const OpDef& row = op_def(op);
      for (int i = 0; i < 300; ++i) {
        Scalar args[3] = {word(t), word(t), word(t)};
        if (op == Op::where) args[1] = word(DType::f32), args[2] = word(DType::f32);
        const Word actual = direct(args[0].bits, args[1].bits, args[2].bits);
        const Scalar expected = row.eval({args, static_cast<std::size_t>(row.max_operands)}, Attrs{});
        if (is_float(expected.dtype) && std::isnan(expected.as_double())) {
          EXPECT_TRUE(std::isnan((Scalar{expected.dtype, actual}.as_double()))) << row.name;
        } else {
          ASSERT_EQ(actual, expected.bits) << row.name << " of " << name(t) << ": " << literal_text(args[0]) << ", "
                                           << literal_text(args[1]) << ", " << literal_text(args[2]);
        }
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 10000);
}

TEST(Interpret, DirectCastsEqualCast) {
  std::mt19937_64 random(13);
  const DType all[] = {DType::boolean, DType::i8,   DType::u8,  DType::i16, DType::i32, DType::i64,
                       DType::f16,     DType::bf16, DType::f32, DType::f64, DType::u32, DType::u64};
  for (const DType from : all)
    for (const DType to : all) {
      const ScalarFn direct = direct_cast(from, to);
      if (!direct) continue;
      for (int i = 0; i < 300; ++i) {
        const std::int64_t width = from == DType::boolean ? 1 : bits(from);
        const std::uint64_t raw = random();
        const Scalar x{from, width == 64 ? raw : raw & ((std::uint64_t{1} << width) - 1)};
        const Scalar expected = cast(x, to);
        if (is_float(to) && std::isnan(expected.as_double())) continue;
        ASSERT_EQ(direct(x.bits, 0, 0), expected.bits) << name(from) << " to " << name(to);
      }
    }
}

}  // namespace
}  // namespace fusejit::testing
