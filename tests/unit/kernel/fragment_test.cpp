// Every function fragment against the library in a wider type: dense samples and edges, with fma and with mul + add.
// bench/fragment_ulp measures all 2^32 arguments with the same code.
#include <gtest/gtest.h>

#include <random>

#include "ir/base/check.h"
#include "tests/support/fragment_eval.h"
#include "tests/support/fragment_table.h"

namespace fusejit {
namespace {

using test::FunctionCase;

// The row's bound; 0 stands for correctly rounded.
double bound(ir::Op op) { return ir::op_def(op).ulp > 0 ? ir::op_def(op).ulp : 0.5; }

template <class T>
std::vector<T> edges() {
  using L = std::numeric_limits<T>;
  std::vector<T> list = {
      0, L::denorm_min(), L::min() - L::denorm_min(), L::min(), L::max(), L::infinity(), L::quiet_NaN()};
  for (const double v : {1e-30,
                         1e-9,
                         1e-4,
                         0.25,
                         0.5,
                         0.75,
                         1.0,
                         1.5,
                         2.0,
                         3.0,
                         4.0,
                         5.5,
                         7.0,
                         9.02,
                         10.0,
                         17.5,
                         27.0,
                         88.0,
                         89.0,
                         104.0,
                         127.0,
                         128.0,
                         149.0,
                         150.0,
                         200.0,
                         709.0,
                         710.0,
                         745.0,
                         746.0,
                         1023.0,
                         1024.0,
                         1074.0,
                         1075.0,
                         3.14159265358979,
                         1.5707963267948966,
                         6381956970095103.0,
                         1e10,
                         1e22,
                         1e30}) {
    const T t = static_cast<T>(v);
    list.insert(list.end(), {t, std::nextafter(t, T(0)), std::nextafter(t, L::infinity())});
  }
  const std::size_t positive = list.size();
  for (std::size_t i = 0; i < positive; ++i) list.push_back(-list[i]);
  return list;
}

// Bit patterns in even steps, then edges.
template <class T>
std::vector<T> unary_arguments(std::size_t count) {
  using U = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const U step = static_cast<U>(~U{0} / count) | 1;
  std::vector<T> list = edges<T>();
  for (std::size_t i = 0; i < count; ++i) list.push_back(std::bit_cast<T>(static_cast<U>(i * step)));
  std::mt19937_64 random(7);
  for (std::size_t i = 0; i < count / 4; ++i)
    list.push_back(static_cast<T>(std::ldexp(static_cast<double>(random()), -60) - 8));
  return list;
}

template <class T>
void binary_arguments(std::size_t count, std::vector<T>& a, std::vector<T>& b) {
  for (const T x : edges<T>())
    for (const T y : edges<T>()) a.push_back(x), b.push_back(y);
  std::mt19937_64 random(9);
  using U = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const auto draw = [&] {
    const std::uint64_t kind = random() % 4;
    if (kind == 0) return std::bit_cast<T>(static_cast<U>(random()));
    if (kind == 1) return static_cast<T>(static_cast<std::int64_t>(random() % 41) - 20);
    return static_cast<T>(std::ldexp(static_cast<double>(static_cast<std::int64_t>(random())), -58));
  };
  for (std::size_t i = 0; i < count; ++i) a.push_back(draw()), b.push_back(draw());
}

// The fragment's values, in blocks that stay in cache.
template <class T>
std::vector<T> evaluate(const ir::Fragment& fragment, const std::vector<T>& a, const std::vector<T>& b = {}) {
  constexpr std::size_t kBlock = 1024;
  test::FragmentEvaluator evaluator(fragment, kBlock);
  std::vector<T> result(a.size());
  for (std::size_t start = 0; start < a.size(); start += kBlock) {
    const std::size_t n = std::min(kBlock, a.size() - start);
    std::copy_n(a.begin() + static_cast<std::ptrdiff_t>(start), n, evaluator.argument<T>(0));
    if (!b.empty()) std::copy_n(b.begin() + static_cast<std::ptrdiff_t>(start), n, evaluator.argument<T>(1));
    evaluator.run();
    std::copy_n(evaluator.result<T>(), n, result.begin() + static_cast<std::ptrdiff_t>(start));
  }
  return result;
}

template <class T>
void check(const FunctionCase& c, std::string_view text, bool fma) {
  const ir::Fragment fragment = ir::parse_fragment(text, c.arguments, sizeof(T) == 4 ? f32 : f64, fma);
  std::vector<T> a, b;
  if (c.arguments == 1) a = unary_arguments<T>(sizeof(T) == 4 ? 1 << 17 : 1 << 15);
  if (c.arguments == 2) binary_arguments<T>(20000, a, b);
  const std::vector<T> got = evaluate(fragment, a, b);
  int failures = 0;
  for (std::size_t i = 0; i < a.size() && failures < 5; ++i) {
    const T second = c.arguments == 2 ? b[i] : 0;
    const long double want = c.reference(a[i], second);
    const double ulp = test::ulp_error(got[i], want);
    if (ulp <= bound(c.op) * 1.0001) continue;
    ++failures;
    ADD_FAILURE() << ir::name(c.op) << (fma ? " fma " : " mul+add ") << a[i] << ", " << second << ": " << got[i]
                  << ", not " << want << ", " << ulp << " ulp";
  }
}

TEST(Fragment, F32WithinBound) {
  for (const FunctionCase& c : test::function_cases())
    for (const bool fma : {true, false}) check<float>(c, c.f32_text, fma);
}

TEST(Fragment, F64WithinBound) {
  for (const FunctionCase& c : test::function_cases())
    for (const bool fma : {true, false}) check<double>(c, c.f64_text, fma);
}

template <class T>
void exact_powers(std::string_view text, double limit) {
  std::vector<T> a, b;
  std::vector<double> want;
  for (int base = -40; base <= 40; ++base) {
    double power = 1;
    for (int exponent = 0; std::fabs(power) <= limit && exponent < 60; ++exponent, power *= base)
      a.push_back(static_cast<T>(base)), b.push_back(static_cast<T>(exponent)), want.push_back(power);
  }
  for (const bool fma : {true, false}) {
    const ir::Fragment fragment = ir::parse_fragment(text, 2, sizeof(T) == 4 ? f32 : f64, fma);
    const std::vector<T> got = evaluate(fragment, a, b);
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(got[i], want[i]) << a[i] << " ** " << b[i];
  }
}

TEST(Fragment, PowersOfIntegersAreExact) {
  exact_powers<float>(ir::fragments::kPowF32, 0x1p24);
  exact_powers<double>(ir::fragments::kPowF64, 0x1p53);
}

TEST(Fragment, ValuesStayInRange) {
  for (const bool fma : {true, false}) {
    for (const ir::Op op : {ir::Op::tanh, ir::Op::erf, ir::Op::sigmoid, ir::Op::sin, ir::Op::cos}) {
      const ir::Fragment& fragment = ir::fragment(op, f32, fma);
      const std::vector<float> x = unary_arguments<float>(1 << 16);
      const std::vector<float> y = evaluate(fragment, x);
      for (std::size_t i = 0; i < x.size(); ++i) {
        ASSERT_TRUE(!std::isfinite(x[i]) || std::fabs(y[i]) <= 1) << ir::name(op) << x[i];
      }
    }
  }
}

TEST(Fragment, RowsHoldTheTexts) {
  for (const FunctionCase& c : test::function_cases()) {
    EXPECT_EQ(ir::op_def(c.op).fragment_f32, c.f32_text) << ir::name(c.op);
    EXPECT_EQ(ir::op_def(c.op).fragment_f64, c.f64_text) << ir::name(c.op);
    EXPECT_EQ(ir::op_def(c.op).max_operands, c.arguments) << ir::name(c.op);
  }
}

TEST(Fragment, WithoutFmaEachBecomesMulAndAdd) {
  const ir::Fragment fused = ir::parse_fragment("%r = fma(%a, 2, %c) : f32 yield %r", 3, f32, true);
  ASSERT_EQ(fused.definitions.size(), 1u);
  const ir::Fragment split = ir::parse_fragment("%r = fma(%a, 2, %c) : f32 yield %r", 3, f32, false);
  ASSERT_EQ(split.definitions.size(), 2u);
  EXPECT_EQ(split.definitions[0].op, ir::Op::mul);
  EXPECT_EQ(split.definitions[0].args[1], ir::Arg(ir::Scalar::of(2.0f)));
  EXPECT_EQ(split.definitions[1].op, ir::Op::add);
  EXPECT_EQ(split.definitions[1].args[0].value, split.definitions[0].results[0]);
  EXPECT_EQ(split.definitions[1].args[1].value, 2);
  EXPECT_EQ(split.result.value, split.definitions[1].results[0]);
}

TEST(Fragment, NumbersTakeTheDtypeOfTheirNeighbours) {
  const ir::Fragment f = ir::parse_fragment(
      "%c = lt(%x, 0.1) : bool  %u = bits(%x) : u32  %v = bitwise_and(%u, 4286578688) : u32  %w = where(%c, -1, %v) : "
      "u32 "
      "%y = where(%c, 1, inf) : f32  yield %y",
      1, f32, true);
  EXPECT_EQ(f.definitions[0].args[1].literal, ir::Scalar::of(0.1f));
  EXPECT_EQ(f.definitions[2].args[1].literal, ir::Scalar::of(4286578688u));
  EXPECT_EQ(f.definitions[3].args[1].literal, ir::Scalar::of(~0u));
  EXPECT_EQ(f.definitions[4].args[2].literal, ir::Scalar::of(HUGE_VALF));
}

TEST(Fragment, BadTextsAreRefused) {
  for (const char* text : {"", "yield %r", "%r = nothing(%x) : f32 yield %r", "%r = add(%x, 1) : f33 yield %r",
                           "%r = add(%x, %q) : f32 yield %r", "%x = add(%x, 1) : f32 yield %x", "%r = add(%x 1) : f32",
                           "%r = add(%x, 1) : f32 yield %r %r"})
    EXPECT_THROW(ir::parse_fragment(text, 1, f32, true), ParseError) << text;
}

TEST(Fragment, ReadOnceAndShared) {
  EXPECT_EQ(&ir::fragment(ir::Op::exp, f32, true), &ir::fragment(ir::Op::exp, f32, true));
  EXPECT_NE(&ir::fragment(ir::Op::exp, f32, true), &ir::fragment(ir::Op::exp, f32, false));
  EXPECT_THROW(ir::fragment(ir::Op::add, f32, true), InternalError);
}

}  // namespace
}  // namespace fusejit
