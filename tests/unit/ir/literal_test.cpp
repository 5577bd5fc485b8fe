// Literals: shortest text that reads back, exact reading.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "ir/base/number.h"
#include "ir/base/scalar.h"

namespace fusejit::ir {
namespace {

TEST(Literal, Texts) {
  EXPECT_EQ(literal_text(Scalar::of(0.1f)), "0.1");
  EXPECT_EQ(literal_text(Scalar::of(1e-5)), "1e-05");
  EXPECT_EQ(literal_text(Scalar::of(7.971939e-05f)), "7.971939e-05");
  EXPECT_EQ(literal_text(Scalar::of(3.0)), "3");
  EXPECT_EQ(literal_text(Scalar::of(-5.0f)), "-5");
  EXPECT_EQ(literal_text(Scalar::of(100000.0)), "100000");
  EXPECT_EQ(literal_text(Scalar::of(0.0)), "0");
  EXPECT_EQ(literal_text(Scalar::of(-0.0f)), "-0.0");
  EXPECT_EQ(literal_text(Scalar::of(std::numeric_limits<float>::infinity())), "inf");
  EXPECT_EQ(literal_text(Scalar::of(-std::numeric_limits<double>::infinity())), "-inf");
  EXPECT_EQ(literal_text(Scalar::of(-std::nan(""))), "nan");
  EXPECT_EQ(literal_text(Scalar::of(INT64_MIN)), "-9223372036854775808");
  EXPECT_EQ(literal_text(Scalar::of(UINT64_MAX)), "18446744073709551615");
  EXPECT_EQ(literal_text(Scalar::of(true)), "1");
  EXPECT_EQ(literal_text(cast(Scalar::of(0.1f), DType::f16)), "0.1");
  EXPECT_EQ(literal_text(cast(Scalar::of(0.1f), DType::bf16)), "0.1");
  EXPECT_EQ(literal_text({DType::f16, 1}), "6e-08");
  EXPECT_EQ(literal_text({DType::f16, 0x8000}), "-0.0");
  EXPECT_EQ(literal_text({DType::f16, 0x7bff}), "65504");
}

// The fewest digits that any decimal reading back as `value` has: tries them all.
int fewest_digits(Scalar value) {
  const double real = std::abs(value.as_double());
  const int exponent = static_cast<int>(std::floor(std::log10(real)));
  for (int digits = 1; digits < 6; ++digits) {
    const int unit = exponent - digits + 1;
    const auto near = static_cast<long long>(real / std::pow(10.0, unit));
    for (long long d = near - 2; d <= near + 2; ++d) {
      const std::optional<Scalar> back = read_literal(std::to_string(d) + "e" + std::to_string(unit), value.dtype);
      if (back && back->bits == value.bits) return digits;
    }
  }
  return 6;
}

int digits_of(const std::string& text) {
  std::string digits;
  for (const char c : text.substr(0, text.find('e'))) {
    if (c >= '0' && c <= '9' && (c != '0' || !digits.empty())) digits += c;
  }
  digits.erase(digits.find_last_not_of('0') + 1);
  return static_cast<int>(digits.size());
}

TEST(Literal, EverySixteenBitValueReadsBackAndIsShortest) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (std::uint64_t bits = 0; bits < 0x10000; ++bits) {
      const Scalar value{dtype, bits};
      const std::string text = literal_text(value);
      const std::optional<Scalar> back = read_literal(text, dtype);
      ASSERT_TRUE(back) << text;
      if (std::isnan(value.as_double())) {
        ASSERT_EQ(text, "nan");
        continue;
      }
      ASSERT_EQ(back->bits, bits) << name(dtype) << ' ' << text;
      const double real = value.as_double();
      const bool plain = real == std::trunc(real) && std::abs(real) < (dtype == DType::f16 ? 65536 : 256);
      if (bits < 0x8000 && !plain && std::isfinite(real)) {
        ASSERT_EQ(digits_of(text), fewest_digits(value)) << text;
      }
    }
  }
}

TEST(Literal, RandomWideValuesReadBack) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 50000; ++i) {
    for (const Scalar v :
         {Scalar{DType::f64, random()}, Scalar{DType::f32, random() & 0xffffffffu},
          Scalar{DType::f64, random() & 0x800fffffffffffffull}, Scalar{DType::i64, random()},
          Scalar{DType::i32, random() & 0xffffffffu}, Scalar{DType::u64, random()}, Scalar{DType::i8, random() & 0xff},
          Scalar{DType::u8, random() & 0xff}, Scalar{DType::i16, random() & 0xffff}}) {
      if (is_float(v.dtype) && std::isnan(v.as_double())) continue;
      const std::optional<Scalar> back = read_literal(literal_text(v), v.dtype);
      ASSERT_TRUE(back);
      ASSERT_EQ(back->bits, v.bits) << literal_text(v);
    }
  }
}

TEST(Literal, ReadsExactly) {
  const auto bits = [](const char* text, DType dtype) { return read_literal(text, dtype).value().bits; };
  // Just above, on and just below the middle of 1 and 1 + 2^-10; f64 sees one number.
  EXPECT_EQ(bits("1.00048828125", DType::f16), 0x3c00u);
  EXPECT_EQ(bits("1.000488281250000000000000000000000000001", DType::f16), 0x3c01u);
  EXPECT_EQ(bits("-1.000488281250000000000000000000000000001", DType::f16), 0xbc01u);
  EXPECT_EQ(bits("1.00146484375", DType::f16), 0x3c02u);
  EXPECT_EQ(bits("1.001464843749999999999999999999999999999", DType::f16), 0x3c01u);
  EXPECT_EQ(bits("0x1.002p0", DType::f16), 0x3c00u);
  EXPECT_EQ(bits("0x1.00200000000000000001p0", DType::f16), 0x3c01u);
  EXPECT_EQ(bits("0x0.00801p+9", DType::bf16), 0x3f80u);
  EXPECT_EQ(bits("65519.999999999999999999999999", DType::f16), 0x7bffu);
  EXPECT_EQ(bits("65520", DType::f16), 0x7c00u);
  EXPECT_EQ(bits("1e400", DType::bf16), 0x7f80u);
  // Twice rounded, this is the f32 above.
  EXPECT_EQ(bits("1.00000005960464477539062500000001", DType::f32), 0x3f800001u);
  EXPECT_EQ(bits("1.000000059604644775390625", DType::f32), 0x3f800000u);
  EXPECT_EQ(bits("-0", DType::f32), 0x80000000u);
  EXPECT_EQ(bits("nan", DType::f32), 0x7fc00000u);
}

TEST(Literal, OverflowAndUnderflow) {
  EXPECT_EQ(read_double("1e999"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(read_double("-1e99999999999999999999999999"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(read_double("1e-99999999999999999999999999"), 0.0);
  EXPECT_EQ(read_double("0e99999999999999999999999999"), 0.0);
  EXPECT_EQ(read_double("0x1p-2000"), 0.0);
  EXPECT_EQ(read_double("0x1p+2000"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(read_double("0." + std::string(400, '0') + "1e401"), 1.0);
  EXPECT_EQ(read_double("5e-324"), 0x1p-1074);
  EXPECT_EQ(read_double("0x1p-1074"), 0x1p-1074);
  EXPECT_EQ(read_float("1e-45"), 0x1p-149f);
  EXPECT_EQ(read_float("3.5e38"), std::numeric_limits<float>::infinity());
}

TEST(Literal, Refuses) {
  for (const char* text :
       {"", "-", "--1", "+1", "1.5x", "1e", "infinity", "-nan", "nan(1)", "0x", "0xg", "e5", " 1", "1 "}) {
    EXPECT_FALSE(read_double(text)) << text;
    EXPECT_FALSE(read_literal(text, DType::f16)) << text;
  }
  EXPECT_FALSE(read_literal("2147483648", DType::i32));
  EXPECT_EQ(read_literal("-2147483648", DType::i32)->i32(), INT32_MIN);
  EXPECT_FALSE(read_literal("-2147483649", DType::i32));
  EXPECT_FALSE(read_literal("9223372036854775808", DType::i64));
  EXPECT_FALSE(read_literal("18446744073709551616", DType::u64));
  EXPECT_FALSE(read_literal("-1", DType::u32));
  EXPECT_FALSE(read_literal("1.0", DType::i32));
  EXPECT_FALSE(read_literal("inf", DType::i32));
  EXPECT_FALSE(read_literal("2", DType::boolean));
  EXPECT_TRUE(read_literal("1", DType::boolean)->boolean());
}

TEST(Literal, ComparesWithTheTextItself) {
  EXPECT_EQ(compare_with("0.1", 0.1), -1);  // the f64 is above
  EXPECT_EQ(compare_with("0.1000000000000000055511151231257827021181583404541015625", 0.1), 0);
  EXPECT_EQ(compare_with("-0.1", -0.1), 1);
  EXPECT_EQ(compare_with("1e-400", 0.0), 1);
  EXPECT_EQ(compare_with("-1", 0.0), -1);
  EXPECT_EQ(compare_with("0.000", 0.0), 0);
  EXPECT_EQ(compare_with("0x1.8p1", 3.0), 0);
  EXPECT_EQ(compare_with("0x.00000000000000000000c1p+88", 0x0.c1p0 * 256), 0);
  EXPECT_EQ(compare_with("0x1.80000000000000000000001p1", 3.0), 1);
}

}  // namespace
}  // namespace fusejit::ir
