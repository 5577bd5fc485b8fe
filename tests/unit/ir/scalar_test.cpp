// Scalar: conversions against plain definitions, over all 16-bit values and the edges of the wide ones.
#include "ir/base/scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace fusejit::ir {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

double value16(std::uint16_t bits, DType dtype) { return Scalar{dtype, bits}.as_double(); }

// Rounding by its definition: the nearer of the two neighbours in `dtype`, the even one on a tie.
std::uint16_t round_by_search(double value, DType dtype) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::abs(value);
  const std::uint16_t infinity = dtype == DType::f16 ? 0x7c00 : 0x7f80;
  std::uint16_t low = 0;
  std::uint16_t high = infinity;
  while (high - low > 1) {
    const auto middle = static_cast<std::uint16_t>((low + high) / 2);
    (value16(middle, dtype) <= magnitude ? low : high) = middle;
  }
  if (magnitude == kInf) return sign | infinity;
  const double below = value16(low, dtype);
  // Beyond the largest value, the next power of two takes the place of inf.
  const double above = high == infinity ? std::ldexp(1.0, dtype == DType::f16 ? 16 : 128) : value16(high, dtype);
  const double to_below = magnitude - below;
  const double to_above = above - magnitude;
  const bool up = to_above < to_below || (to_above == to_below && (low & 1) != 0);
  return sign | (up ? high : low);
}

TEST(Scalar, EverySixteenBitValueSurvivesF32) {
  for (int i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float from_f16 = f16_to_f32(bits);
    const float from_bf16 = bf16_to_f32(bits);
    if (std::isnan(from_f16)) {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(from_f16))));
    } else {
      ASSERT_EQ(f32_to_f16(from_f16), bits);
      ASSERT_EQ(f64_to_f16(from_f16), bits);
    }
    if (std::isnan(from_bf16)) {
      EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(from_bf16))));
    } else {
      ASSERT_EQ(f32_to_bf16(from_bf16), bits);
      ASSERT_EQ(f64_to_bf16(from_bf16), bits);
    }
  }
}

TEST(Scalar, F16ValuesByDefinition) {
  EXPECT_EQ(f16_to_f32(0x0001), 0x1p-24f);
  EXPECT_EQ(f16_to_f32(0x03ff), 0x3ffp-24f);
  EXPECT_EQ(f16_to_f32(0x0400), 0x1p-14f);
  EXPECT_EQ(f16_to_f32(0x3c01), 1.0f + 0x1p-10f);
  EXPECT_EQ(f16_to_f32(0x7bff), 65504.0f);
  EXPECT_EQ(f16_to_f32(0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::signbit(f16_to_f32(0x8000)));
  EXPECT_EQ(f32_to_f16(65519.996f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(0x1p-25f), 0);
  EXPECT_EQ(f32_to_f16(-0x1.000002p-25f), 0x8001);
}

TEST(Scalar, RoundsToTheNearestOnce) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const std::uint16_t infinity = dtype == DType::f16 ? 0x7c00 : 0x7f80;
    const auto round = [&](double v) { return static_cast<std::uint16_t>(cast(Scalar::of(v), dtype).bits); };
    for (int i = 0; i < infinity; ++i) {
      const double here = value16(static_cast<std::uint16_t>(i), dtype);
      const double next = value16(static_cast<std::uint16_t>(i + 1), dtype);
      if (next == kInf) continue;
      const double middle = (here + next) / 2;  // exact in f64
      for (const double v : {middle, std::nextafter(middle, 0.0), std::nextafter(middle, kInf), -middle}) {
        ASSERT_EQ(round(v), round_by_search(v, dtype)) << name(dtype) << ' ' << v;
      }
    }
    std::mt19937_64 random(7);
    for (int i = 0; i < 20000; ++i) {
      const double v = std::bit_cast<double>(random());
      if (!std::isnan(v)) {
        ASSERT_EQ(round(v), round_by_search(v, dtype)) << name(dtype) << ' ' << v;
      }
      const float f = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
      if (!std::isnan(f)) {
        ASSERT_EQ(cast(Scalar::of(f), dtype).bits, round_by_search(f, dtype)) << f;
      }
    }
  }
  // Through f32 this one would become 1 + 2^-7 (bf16) on a tie that is none.
  EXPECT_EQ(f64_to_bf16(1 + 0x1p-8 + 0x1p-40), 0x3f81);
  EXPECT_EQ(f64_to_bf16(1 + 0x1p-8 - 0x1p-40), 0x3f80);
}

TEST(Scalar, NanStaysAQuietNan) {
  const float signalling = std::bit_cast<float>(0x7f800001u);
  EXPECT_EQ(f32_to_bf16(signalling), 0x7fc0);
  EXPECT_EQ(f32_to_f16(std::bit_cast<float>(0xffc00000u)), 0xfe00);
  EXPECT_TRUE(std::isnan(cast(Scalar::of(std::nan("")), DType::f32).f32()));
}

struct ToInt {
  double from;
  std::int64_t i32, i64;
  std::uint64_t u32, u64;
};

TEST(Scalar, FloatToIntSaturatesTowardZero) {
  const ToInt table[] = {
      {1.9, 1, 1, 1, 1},
      {-1.9, -1, -1, 0, 0},
      {-0.5, 0, 0, 0, 0},
      {std::nan(""), 0, 0, 0, 0},
      {kInf, INT32_MAX, INT64_MAX, UINT32_MAX, UINT64_MAX},
      {-kInf, INT32_MIN, INT64_MIN, 0, 0},
      {2147483647.5, INT32_MAX, 2147483647, 2147483647, 2147483647},
      {2147483648.0, INT32_MAX, 2147483648, 2147483648, 2147483648},
      {-2147483649.0, INT32_MIN, -2147483649, 0, 0},
      {4294967295.9, INT32_MAX, 4294967295, UINT32_MAX, 4294967295},
      {4294967296.0, INT32_MAX, 4294967296, UINT32_MAX, 4294967296},
      {0x1p63, INT32_MAX, INT64_MAX, UINT32_MAX, std::uint64_t{1} << 63},
      {-0x1p63, INT32_MIN, INT64_MIN, 0, 0},
      {0x1p64, INT32_MAX, INT64_MAX, UINT32_MAX, UINT64_MAX},
  };
  for (const ToInt& row : table) {
    const Scalar from = Scalar::of(row.from);
    EXPECT_EQ(cast(from, DType::i32).i32(), row.i32) << row.from;
    EXPECT_EQ(cast(from, DType::i64).i64(), row.i64) << row.from;
    EXPECT_EQ(cast(from, DType::u32).bits, row.u32) << row.from;
    EXPECT_EQ(cast(from, DType::u64).bits, row.u64) << row.from;
  }
}

TEST(Scalar, IntsWrapAndConvertWithOneRounding) {
  EXPECT_EQ(cast(Scalar::of(std::int64_t{0x1'8000'0001}), DType::i32).i32(), INT32_MIN + 1);
  EXPECT_EQ(cast(Scalar::of(std::int32_t{-1}), DType::i64).i64(), -1);
  EXPECT_EQ(cast(Scalar::of(std::int32_t{-1}), DType::u64).bits, UINT64_MAX);
  EXPECT_EQ(cast(Scalar::of(std::uint32_t{0xffffffffu}), DType::i64).i64(), 0xffffffff);
  EXPECT_EQ(cast(Scalar::of(std::int64_t{INT64_MIN}), DType::f64).f64(), -0x1p63);
  EXPECT_EQ(cast(Scalar::of(std::uint64_t{UINT64_MAX}), DType::f32).f32(), 0x1p64f);
  // 2^54 + 2^46 is a tie for bf16, the last bit decides; in f32 and in f64 that bit is lost.
  const std::int64_t tie = (std::int64_t{1} << 62) + (std::int64_t{1} << 54);
  EXPECT_EQ(cast(Scalar::of(tie), DType::bf16).bits, 0x5e80u);
  EXPECT_EQ(cast(Scalar::of(tie + 1), DType::bf16).bits, 0x5e81u);
  EXPECT_EQ(cast(Scalar::of(-tie - 1), DType::bf16).bits, 0xde81u);
  const std::int64_t f32_tie = (std::int64_t{1} << 62) + (std::int64_t{1} << 38);
  EXPECT_EQ(cast(Scalar::of(f32_tie), DType::f32).f32(), 0x1p62f);
  EXPECT_EQ(cast(Scalar::of(f32_tie + 1), DType::f32).f32(), 0x1.000002p62f);
  EXPECT_EQ(cast(Scalar::of(std::int64_t{65520}), DType::f16).bits, 0x7c00u);
  EXPECT_EQ(cast(Scalar::of((std::int64_t{1} << 53) + 1), DType::f64).f64(), 0x1p53);
}

TEST(Scalar, Booleans) {
  EXPECT_TRUE(cast(Scalar::of(std::nan("")), DType::boolean).boolean());
  EXPECT_TRUE(cast(Scalar::of(0x1p-1074), DType::boolean).boolean());
  EXPECT_FALSE(cast(Scalar::of(-0.0), DType::boolean).boolean());
  EXPECT_EQ(cast(Scalar::of(std::int64_t{1} << 32), DType::boolean).bits, 1u);
  EXPECT_EQ(cast(Scalar::of(true), DType::f32).f32(), 1.0f);
  EXPECT_EQ(cast(Scalar::of(true), DType::b1), (Scalar{DType::b1, 1}));
}

TEST(Scalar, ElementsOfArrays) {
  unsigned char bytes[16] = {};
  store_element(bytes, DType::bf16, 3, {DType::bf16, 0x3f80});
  EXPECT_EQ(bytes[7], 0x3f);
  EXPECT_EQ(load_element(bytes, DType::bf16, 3).as_double(), 1.0);
  store_element(bytes, DType::b1, 9, {DType::b1, 1});
  EXPECT_EQ(bytes[1], 2);
  EXPECT_TRUE(load_element(bytes, DType::b1, 9).boolean());
  store_element(bytes, DType::b1, 9, {DType::b1, 0});
  EXPECT_EQ(bytes[1], 0);
  bytes[0] = 7;  // any nonzero byte is true
  EXPECT_EQ(load_element(bytes, DType::boolean, 0), Scalar::of(true));
  store_element(bytes, DType::f64, 1, Scalar::of(-2.5));
  EXPECT_EQ(load_element(bytes, DType::f64, 1).f64(), -2.5);
}

}  // namespace
}  // namespace fusejit::ir
