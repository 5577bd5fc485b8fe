// Prints the largest error of every fragment, with fma and with mul + add (x86:v2): unary f32 over every n-th of the
// 2^32 bit patterns (--step 1: all; --from and --to: a range), f64 and binary functions over random ones.
//
//   bin/fragment_ulp --step 1 --only tanh
#include <fmt/format.h>

#include <random>

#include "bench/command_line/options.h"
#include "tests/support/fragment_eval.h"
#include "tests/support/fragment_table.h"

namespace {

using namespace fusejit;
using test::FunctionCase;

struct Worst {
  double ulp = 0;
  double a = 0, b = 0, got = 0, want = 0;
};

constexpr std::size_t kBlock = 2048;

Worst f32_unary(const FunctionCase& c, const ir::Fragment& fragment, std::uint64_t from, std::uint64_t to,
                std::uint64_t step) {
  test::FragmentEvaluator evaluator(fragment, kBlock);
  float* x = evaluator.argument<float>(0);
  Worst worst;
  for (std::uint64_t start = from; start < to; start += step * kBlock) {
    for (std::size_t i = 0; i < kBlock; ++i) x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(start + i * step));
    evaluator.run();
    const float* y = evaluator.result<float>();
    for (std::size_t i = 0; i < kBlock; ++i) {
      const double want = c.fast_reference(x[i]);
      if (y[i] == static_cast<float>(want)) continue;
      const double ulp = test::ulp_error(y[i], want);
      if (ulp > worst.ulp) worst = {ulp, x[i], 0, y[i], want};
    }
  }
  return worst;
}

// Random arguments: half any bit pattern, half of ordinary size.
template <class T>
T draw(std::mt19937_64& random) {
  using U = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const std::uint64_t bits = random();
  if (bits & 1) return std::bit_cast<T>(static_cast<U>(random()));
  const T mantissa = static_cast<T>(static_cast<std::int64_t>(random())) * static_cast<T>(0x1p-63);
  const T value = std::ldexp(mantissa, static_cast<int>(bits >> 1 & 15) - 3);
  return bits & 64 ? std::nearbyint(value) : value;
}

template <class T>
Worst sampled(const FunctionCase& c, const ir::Fragment& fragment, std::uint64_t count, std::uint64_t seed) {
  using Wide = long double;
  test::FragmentEvaluator evaluator(fragment, kBlock);
  std::mt19937_64 random(seed);
  T* a = evaluator.argument<T>(0);
  T* b = c.arguments > 1 ? evaluator.argument<T>(1) : nullptr;
  Worst worst;
  for (std::uint64_t start = 0; start < count; start += kBlock) {
    for (std::size_t i = 0; i < kBlock; ++i) a[i] = draw<T>(random);
    for (std::size_t i = 0; b && i < kBlock; ++i) b[i] = draw<T>(random);
    evaluator.run();
    const T* y = evaluator.result<T>();
    for (std::size_t i = 0; i < kBlock; ++i) {
      const Wide want = c.reference(a[i], b ? b[i] : 0);
      const double ulp = test::ulp_error(y[i], want);
      if (ulp > worst.ulp) worst = {ulp, a[i], b ? b[i] : 0, y[i], static_cast<double>(want)};
    }
  }
  return worst;
}

void print(const FunctionCase& c, const char* dtype, bool fma, std::size_t definitions, const Worst& w) {
  fmt::print("{:10} {} {:7} {:4} definitions  {:8.3f} ulp at {:a} {:a} ({:.9g} {:.9g}): {:.17g}, not {:.17g}\n",
             ir::name(c.op), dtype, fma ? "fma" : "mul+add", definitions, w.ulp, w.a, w.b, w.a, w.b, w.got, w.want);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t step = 4097, count = 1 << 20, seed = 1;
  std::string only;
  std::string dtype;
  float from = 0, to = 0;
  const auto end = fusejit::bench::read_options(
      argc, argv, "largest errors of the function fragments",
      {{"--step", &step, "f32 unary: every n-th bit pattern"},
       {"--from", &from, "f32 unary: first of a range of one sign"},
       {"--to", &to, "f32 unary: the end of the range, the larger magnitude; 0: all bit patterns"},
       {"--count", &count, "random arguments elsewhere"},
       {"--seed", &seed, "of the random arguments"},
       {"--only", &only, "one function"},
       {"--dtype", &dtype, "f32 or f64"}});
  if (end) return *end;
  const std::uint64_t first = std::bit_cast<std::uint32_t>(from);
  const std::uint64_t past = to != 0 ? std::bit_cast<std::uint32_t>(to) : 1ull << 32;
  for (const FunctionCase& c : test::function_cases()) {
    if (!only.empty() && ir::name(c.op) != only) continue;
    for (const bool fma : {true, false}) {
      if (!c.f32_text.empty() && dtype != "f64") {
        const ir::Fragment f = ir::parse_fragment(c.f32_text, c.arguments, f32, fma);
        print(c, "f32", fma, f.definitions.size(),
              c.fast_reference ? f32_unary(c, f, first, past, step) : sampled<float>(c, f, count, seed));
      }
      if (!c.f64_text.empty() && dtype != "f32") {
        const ir::Fragment f = ir::parse_fragment(c.f64_text, c.arguments, f64, fma);
        print(c, "f64", fma, f.definitions.size(), sampled<double>(c, f, count, seed));
      }
    }
  }
}
