// Every element-wise row on every dtype at the edges, against expectations that share no code with the rows: floats in
// long double, ints in 128 bits.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>

#include "ir/interp.h"
#include "tests/unit/ops/special.h"

namespace fusejit::ir {
namespace {

using Real = long double;
using Int = __int128;
using RealFn = std::function<Real(Real, Real, Real)>;
using IntFn = std::function<Int(Int, Int, Int)>;

// What an op means; a missing function: the dtype is refused.
struct Meaning {
  int operands;
  RealFn real;
  IntFn whole;
  IntFn truth;  // on bools
  bool is_bool = false;
  double ulp = 0;  // 0: equal bits (any NaN is one NaN), else units in the last place
};

Real python_floor_divide(Real a, Real b) {
  if (b == 0) return a / b;
  if (std::isinf(a)) return kNan;
  if (std::isinf(b)) return std::isnan(a) ? Real(kNan) : a == 0 ? Real(0) : (a < 0) != (b < 0) ? Real(-1) : Real(0);
  return std::floor(a / b);
}
Real python_remainder(Real a, Real b) {
  const Real r = std::fmod(a, b);
  return r != 0 && std::signbit(r) != std::signbit(b) ? r + b : r;
}
Int divided(Int a, Int b) {
  if (b == 0) return 0;
  Int q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
Int power(Int a, Int b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  // Modulo 2^64 is enough for both widths.
  unsigned long long r = 1, base = static_cast<unsigned long long>(a);
  for (auto n = static_cast<unsigned long long>(b); n; n >>= 1, base *= base)
    if (n & 1) r *= base;
  return static_cast<Int>(static_cast<long long>(r));
}
Real half_even(Real x) { return std::nearbyint(x); }

RealFn one(Real (*f)(Real)) {
  return [f](Real a, Real, Real) { return f(a); };
}
Meaning comparison(std::function<bool(Real, Real)> real, std::function<bool(Int, Int)> whole) {
  const IntFn w = [whole](Int a, Int b, Int) { return Int(whole(a, b)); };
  return {2, [real](Real a, Real b, Real) { return Real(real(a, b)); }, w, w, true};
}
Meaning logical(std::function<bool(bool, bool)> f) {
  const IntFn w = [f](Int a, Int b, Int) { return Int(f(a != 0, b != 0)); };
  return {2, [f](Real a, Real b, Real) { return Real(f(a != 0, b != 0)); }, w, w, true};
}

const std::map<std::string, Meaning>& meanings() {
  static const IntFn same = [](Int a, Int, Int) { return a; };
  static const IntFn no;
  static const RealFn refused;
  static const std::map<std::string, Meaning> table = {
      {"add", {2, [](Real a, Real b, Real) { return a + b; }, [](Int a, Int b, Int) { return a + b; }, no}},
      {"sub", {2, [](Real a, Real b, Real) { return a - b; }, [](Int a, Int b, Int) { return a - b; }, no}},
      {"mul", {2, [](Real a, Real b, Real) { return a * b; }, [](Int a, Int b, Int) { return a * b; }, no}},
      {"div", {2, [](Real a, Real b, Real) { return a / b; }, no, no}},
      {"floor_divide",
       {2, [](Real a, Real b, Real) { return python_floor_divide(a, b); },
        [](Int a, Int b, Int) { return divided(a, b); }, no}},
      {"remainder",
       {2, [](Real a, Real b, Real) { return python_remainder(a, b); },
        [](Int a, Int b, Int) { return b == 0 ? Int(0) : a - divided(a, b) * b; }, no}},
      {"fmod",
       {2, [](Real a, Real b, Real) { return std::fmod(a, b); },
        [](Int a, Int b, Int) { return b == 0 ? Int(0) : a % b; }, no}},
      {"pow",
       {2, [](Real a, Real b, Real) { return std::pow(a, b); }, [](Int a, Int b, Int) { return power(a, b); }, no,
        false, 1}},
      {"maximum",
       {2, [](Real a, Real b, Real) { return std::isnan(a) || std::isnan(b) ? Real(kNan)
                                             : a > b                        ? a
                                                                            : b; },
        [](Int a, Int b, Int) { return a > b ? a : b; }, [](Int a, Int b, Int) { return a | b; }}},
      {"minimum",
       {2, [](Real a, Real b, Real) { return std::isnan(a) || std::isnan(b) ? Real(kNan)
                                             : a < b                        ? a
                                                                            : b; },
        [](Int a, Int b, Int) { return a < b ? a : b; }, [](Int a, Int b, Int) { return a & b; }}},
      {"neg", {1, [](Real a, Real, Real) { return -a; }, [](Int a, Int, Int) { return -a; }, no}},
      {"abs", {1, one(std::fabs), [](Int a, Int, Int) { return a < 0 ? -a : a; }, no}},
      {"sign",
       {1, [](Real a, Real, Real) { return a > 0   ? Real(1)
                                           : a < 0 ? Real(-1)
                                                   : a; },
        [](Int a, Int, Int) { return Int((a > 0) - (a < 0)); }, no}},
      {"square", {1, [](Real a, Real, Real) { return a * a; }, [](Int a, Int, Int) { return a * a; }, no}},
      {"reciprocal", {1, [](Real a, Real, Real) { return 1 / a; }, no, no}},
      {"sqrt", {1, one(std::sqrt), no, no}},
      {"rsqrt", {1, [](Real a, Real, Real) { return 1 / std::sqrt(a); }, no, no, false, 2}},
      {"exp", {1, one(std::exp), no, no, false, 1}},
      {"exp2", {1, one(std::exp2), no, no, false, 1}},
      {"expm1", {1, one(std::expm1), no, no, false, 1}},
      {"log", {1, one(std::log), no, no, false, 1}},
      {"log2", {1, one(std::log2), no, no, false, 1}},
      {"log10", {1, one(std::log10), no, no, false, 1}},
      {"log1p", {1, one(std::log1p), no, no, false, 1}},
      {"tanh", {1, one(std::tanh), no, no, false, 2}},
      {"sigmoid", {1, [](Real a, Real, Real) { return 1 / (1 + std::exp(-a)); }, no, no, false, 2}},
      {"erf", {1, one(std::erf), no, no, false, 2}},
      {"erfc", {1, one(std::erfc), no, no, false, 4}},
      {"sin", {1, one(std::sin), no, no, false, 1}},
      {"cos", {1, one(std::cos), no, no, false, 1}},
      {"floor", {1, one(std::floor), same, no}},
      {"ceil", {1, one(std::ceil), same, no}},
      {"trunc", {1, one(std::trunc), same, no}},
      {"round", {1, one(half_even), same, no}},
      {"clamp",
       {1, [](Real a, Real, Real) { return std::isnan(a) ? a
                                           : a < -1      ? Real(-1)
                                           : a > 2       ? Real(2)
                                                         : a; },
        [](Int a, Int, Int) { return a < -1  ? Int(-1)
                                     : a > 2 ? Int(2)
                                             : a; }, no}},
      {"eq", comparison([](Real a, Real b) { return a == b; }, [](Int a, Int b) { return a == b; })},
      {"ne", comparison([](Real a, Real b) { return a != b; }, [](Int a, Int b) { return a != b; })},
      {"lt", comparison([](Real a, Real b) { return a < b; }, [](Int a, Int b) { return a < b; })},
      {"le", comparison([](Real a, Real b) { return a <= b; }, [](Int a, Int b) { return a <= b; })},
      {"gt", comparison([](Real a, Real b) { return a > b; }, [](Int a, Int b) { return a > b; })},
      {"ge", comparison([](Real a, Real b) { return a >= b; }, [](Int a, Int b) { return a >= b; })},
      {"logical_and", logical([](bool a, bool b) { return a && b; })},
      {"logical_or", logical([](bool a, bool b) { return a || b; })},
      {"logical_xor", logical([](bool a, bool b) { return a != b; })},
      {"logical_not",
       {1, [](Real a, Real, Real) { return Real(a == 0); }, [](Int a, Int, Int) { return Int(a == 0); },
        [](Int a, Int, Int) { return Int(a == 0); }, true}},
      {"bitwise_and", {2, refused, [](Int a, Int b, Int) { return a & b; }, [](Int a, Int b, Int) { return a & b; }}},
      {"bitwise_or", {2, refused, [](Int a, Int b, Int) { return a | b; }, [](Int a, Int b, Int) { return a | b; }}},
      {"bitwise_xor", {2, refused, [](Int a, Int b, Int) { return a ^ b; }, [](Int a, Int b, Int) { return a ^ b; }}},
      {"bitwise_not", {1, refused, [](Int a, Int, Int) { return ~a; }, [](Int a, Int, Int) { return Int(!a); }}},
      {"isnan",
       {1, [](Real a, Real, Real) { return Real(a != a); }, [](Int, Int, Int) { return Int(0); },
        [](Int, Int, Int) { return Int(0); }, true}},
      {"isinf",
       {1, [](Real a, Real, Real) { return Real(std::isinf(a)); }, [](Int, Int, Int) { return Int(0); },
        [](Int, Int, Int) { return Int(0); }, true}},
      {"isfinite",
       {1, [](Real a, Real, Real) { return Real(std::isfinite(a)); }, [](Int, Int, Int) { return Int(1); },
        [](Int, Int, Int) { return Int(1); }, true}},
      {"detach", {1, [](Real a, Real, Real) { return a; }, same, same}},
  };
  return table;
}

const std::vector<double>& reals() {
  static const std::vector<double> values = {
      0.0,           -0.0,  1,     -1,    0.5,  -0.5,  1.5,   -1.5,    2.5,      -2.5,      3,          -7,
      0.1,           -0.3,  10.75, 88,    -104, 1e-30, 3.5e4, -6e4,    1e-40,    0x1p-149f, 0x1p-1074L, 0x1p-126f,
      3.4028234e38f, 1e300, kInf,  -kInf, kNan, 65504, 1e-7,  8388609, 0.9999999};
  return values;
}
const std::vector<std::int64_t>& wholes() {
  constexpr std::int64_t k32 = std::int64_t{1} << 31, kMax = std::numeric_limits<std::int64_t>::max();
  static const std::vector<std::int64_t> values = {0,   1,      -1,      2,    -2,  3,    7,         -7,      31,
                                                   100, -12345, k32 - 1, -k32, k32, kMax, -kMax - 1, kMax - 1};
  return values;
}

Array column(DType dtype, std::size_t repeat_each, std::size_t copies) {
  std::vector<Scalar> base;
  if (is_float(dtype)) {
    for (double v : reals()) base.push_back(cast(Scalar::of(v), dtype));
  } else if (dtype == DType::boolean) {
    base = {Scalar::of(false), Scalar::of(true)};
  } else {
    for (std::int64_t v : wholes()) base.push_back(cast(Scalar::of(v), dtype));
  }
  Array out({dtype, {static_cast<std::int64_t>(base.size() * repeat_each * copies)}});
  std::int64_t at = 0;
  for (std::size_t c = 0; c < copies; ++c)
    for (const Scalar& s : base)
      for (std::size_t r = 0; r < repeat_each; ++r) out.set(at++, s);
  return out;
}

std::size_t base_size(DType dtype) {
  return is_float(dtype) ? reals().size() : dtype == DType::boolean ? 2 : wholes().size();
}

// Every pair of edge values for two operands.
std::vector<Array> arguments(DType dtype, int operands) {
  if (operands == 1) return {column(dtype, 1, 1)};
  return {column(dtype, base_size(dtype), 1), column(dtype, 1, base_size(dtype))};
}

Array run(Op op, const std::vector<Array>& arrays, std::vector<AttrInit> attrs = {}) {
  std::vector<Value> parameters;
  std::vector<Operand> operands;
  for (const Array& array : arrays)
    parameters.push_back(parameter(array.type)), operands.emplace_back(parameters.back());
  return interpret(capture("t", parameters, {build(op, operands, std::move(attrs))}), arrays)[0];
}

// The expected element: computed without rounding, then rounded to the compute type and to the dtype.
Scalar rounded(Real value, DType dtype) {
  if (compute_type(dtype) == DType::f64) return Scalar::of(static_cast<double>(value));
  return cast(Scalar::of(static_cast<float>(value)), dtype);
}

bool close(Scalar got, Real exact, DType dtype, double ulp) {
  const Scalar want = rounded(exact, dtype);
  const double g = got.as_double(), w = want.as_double();
  if (std::isnan(g) || std::isnan(w)) return std::isnan(g) && std::isnan(w);
  if (g == w) return true;
  if (std::isinf(g) || std::isinf(w)) return false;
  // Bits of one sign are ordered like integers.
  return (got.bits >> (bits(dtype) - 1)) == (want.bits >> (bits(dtype) - 1)) &&
         std::fabs(static_cast<double>(static_cast<std::int64_t>(got.bits - want.bits))) <= ulp;
}

bool legal(const Meaning& m, DType dtype) {
  return static_cast<bool>(is_float(dtype)           ? m.real != nullptr
                           : dtype == DType::boolean ? m.truth != nullptr
                                                     : m.whole != nullptr);
}

class Elementwise : public ::testing::TestWithParam<DType> {};

TEST_P(Elementwise, MeansWhatThePageSays) {
  const DType dtype = GetParam();
  for (const auto& [op_name, m] : meanings()) {
    const Op op = op_named(op_name).value();
    const std::vector<Array> in = arguments(dtype, m.operands);
    const std::vector<AttrInit> attrs = op_name == "clamp"
                                            ? std::vector<AttrInit>{{"min", dtype == DType::u8 ? 0 : -1}, {"max", 2}}
                                            : std::vector<AttrInit>{};
    if (!legal(m, dtype)) {
      EXPECT_THROW(run(op, in, attrs), UserError) << op_name << " of " << name(dtype);
      continue;
    }
    const Array got = run(op, in, attrs);
    ASSERT_EQ(got.type.dtype, m.is_bool ? DType::boolean : dtype) << op_name;
    for (std::int64_t i = 0; i < got.type.elements(); ++i) {
      const Scalar a = in[0].at(i), b = in[m.operands == 2 ? 1 : 0].at(i);
      bool right = false;
      if (!is_float(dtype)) {
        const Int x = cast(a, DType::i64).i64(), y = cast(b, DType::i64).i64();
        const auto want = static_cast<std::int64_t>((dtype == DType::boolean ? m.truth : m.whole)(x, y, 0));
        right = got.at(i) == cast(Scalar::of(want), got.type.dtype);
      } else if (m.is_bool) {
        right = got.at(i).boolean() == (m.real(a.as_double(), b.as_double(), 0) != 0);
      } else {
        const double slack = m.ulp +
                             (op_name == "floor_divide" && std::fabs(a.as_double() / b.as_double()) > 1e6 ? 1 : 0) +
                             (op_name == "rsqrt" ? 1 : 0);
        right = close(got.at(i), m.real(a.as_double(), b.as_double(), 0), dtype, slack);
      }
      EXPECT_TRUE(right) << op_name << "(" << literal_text(a) << ", " << literal_text(b) << ") of " << name(dtype)
                         << " gave " << literal_text(got.at(i));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, Elementwise,
                         ::testing::Values(DType::boolean, DType::i8, DType::u8, DType::i16, DType::i32, DType::i64,
                                           DType::f16, DType::bf16, DType::f32, DType::f64),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST(Elementwise, EveryRowHasAMeaning) {
  for (int i = 0; i < static_cast<int>(Op::count_); ++i) {
    const OpDef& row = op_def(static_cast<Op>(i));
    if (row.family != Family::elementwise || row.op == Op::where || row.op == Op::cast) continue;  // below
    EXPECT_TRUE(meanings().contains(std::string(row.name))) << row.name;
  }
}

// Small steps that no formula of the table shows.
TEST(Elementwise, WhereTakesOneSideBitForBit) {
  Array c({DType::boolean, {2}}), a({DType::f32, {2}}), b({DType::f32, {2}});
  c.set(0, Scalar::of(true));
  a.set(0, Scalar::of(-0.0f)), a.set(1, Scalar::of(std::nanf("")));
  b.set(0, Scalar::of(std::nanf(""))), b.set(1, Scalar::of(3.0f));
  const Array got = run(Op::where, {c, a, b});
  EXPECT_EQ(got.at(0), Scalar::of(-0.0f));
  EXPECT_EQ(got.at(1), Scalar::of(3.0f));
}

TEST(Elementwise, CastSaturatesRoundsOnceAndWraps) {
  struct Case {
    Scalar from;
    DType to;
    Scalar want;
  };
  const Case cases[] = {
      {Scalar::of(3.9f), DType::i32, Scalar::of(std::int32_t{3})},
      {Scalar::of(-3.9f), DType::i32, Scalar::of(std::int32_t{-3})},
      {Scalar::of(3e9f), DType::i32, Scalar::of(std::numeric_limits<std::int32_t>::max())},
      {Scalar::of(-1e30f), DType::i64, Scalar::of(std::numeric_limits<std::int64_t>::min())},
      {Scalar::of(std::nanf("")), DType::i32, Scalar::of(std::int32_t{0})},
      {Scalar::of(std::nanf("")), DType::boolean, Scalar::of(true)},
      {Scalar::of(-0.0f), DType::boolean, Scalar::of(false)},
      {Scalar::of(std::int64_t{0x1'0000'0005}), DType::i32, Scalar::of(std::int32_t{5})},
      {Scalar::of(300.7f), DType::u8, Scalar{DType::u8, 255}},
      {Scalar::of(-0.9f), DType::u8, Scalar{DType::u8, 0}},
      {Scalar::of(-5.0f), DType::u8, Scalar{DType::u8, 0}},
      {Scalar::of(-1e30f), DType::i8, Scalar{DType::i8, 0x80}},
      {Scalar::of(1e9), DType::i16, Scalar{DType::i16, 0x7fff}},
      {Scalar::of(std::nanf("")), DType::u8, Scalar{DType::u8, 0}},
      {Scalar::of(std::int32_t{-1}), DType::u8, Scalar{DType::u8, 255}},
      {Scalar{DType::u8, 200}, DType::i8, Scalar{DType::i8, 200}},
      {Scalar{DType::i8, 200}, DType::i16, Scalar{DType::i16, 0xffc8}},
      {Scalar{DType::i8, 200}, DType::f32, Scalar::of(-56.0f)},
      {Scalar{DType::u8, 200}, DType::i64, Scalar::of(std::int64_t{200})},
      {Scalar::of(std::int64_t{16777217}), DType::f32, Scalar::of(16777216.0f)},
      {Scalar::of(true), DType::f32, Scalar::of(1.0f)},
      // Just above the middle of 1 and the next f16: through f32 it would fall on the middle and round down.
      {Scalar::of(1 + 0x1p-11 + 0x1p-40), DType::f16, Scalar{DType::f16, 0x3c01}},
      {Scalar::of(70000.0f), DType::f16, Scalar{DType::f16, 0x7c00}},
  };
  for (const Case& c : cases) {
    Array x({c.from.dtype, {}});
    x.set(0, c.from);
    EXPECT_EQ(run(Op::cast, {x}, {{"dtype", c.to}}).at(0), c.want) << literal_text(c.from) << " to " << name(c.to);
  }
}

TEST(Elementwise, PromotesWithinAKind) {
  const auto type = [](DType a, DType b) {
    return build(Op::add, {parameter({a, {3}}), parameter({b, {2, 1}})}).type();
  };
  EXPECT_EQ(type(DType::f16, DType::bf16).dtype, DType::f32);
  EXPECT_EQ(type(DType::f16, DType::f64).dtype, DType::f64);
  EXPECT_EQ(type(DType::i32, DType::i64).dtype, DType::i64);
  EXPECT_EQ(type(DType::u8, DType::i8).dtype, DType::i16);
  EXPECT_EQ(type(DType::f32, DType::f32).shape, Shape({2, 3}));
}

TEST(Elementwise, NumbersAreRoundedToTheComputeType) {
  Array x({DType::f16, {1}});
  x.set(0, cast(Scalar::of(0.0f), DType::f16));
  Value p = parameter(x.type);
  // 0.1 in f32, then once to f16: the number itself is not rounded to f16 first.
  const Array y = interpret(capture("t", {p}, {build(Op::add, {p, 0.1})}), std::vector<Array>{x})[0];
  EXPECT_EQ(y.at(0), cast(Scalar::of(0.1f), DType::f16));
}

}  // namespace
}  // namespace fusejit::ir
