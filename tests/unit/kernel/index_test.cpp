// Canonical form of index expressions, their ranges, and the bounds that facts prove.
#include <gtest/gtest.h>

#include <random>

#include "fusejit/error.h"
#include "ir/kernel/builder.h"
#include "ir/kernel/prove.h"

namespace fusejit::ir {
namespace {

const Index i = Index::variable(0), j = Index::variable(1), k = Index::value(0);

RangeOf ranges(std::int64_t i_extent, std::int64_t j_extent) {
  return [=](const IndexAtom& leaf) -> std::optional<Interval> {
    if (leaf.kind == AtomKind::value) return std::nullopt;
    return Interval{0, (leaf.id == 0 ? i_extent : j_extent) - 1};
  };
}

TEST(Index, SumsAreCanonical) {
  EXPECT_EQ(i * 3 + j - i * 2 + Index(4), j + i + Index(4));
  EXPECT_TRUE((i - i).is_constant());
  EXPECT_EQ((j + i).terms()[0].atom.id, 0);
  EXPECT_EQ((k + j).terms()[0].atom.kind, AtomKind::variable);
  EXPECT_EQ((i * 0).terms().size(), 0u);
}

TEST(Index, DivisionsTakeOutWhatTheyCan) {
  EXPECT_EQ((i * 8 + j) / 4, i * 2 + j / 4);
  EXPECT_EQ((i * 8 + j) % 4, j % 4);
  EXPECT_EQ((i + Index(9)) / 4, (i + Index(1)) / 4 + Index(2));
  EXPECT_EQ((i - Index(1)) / 4, (i + Index(3)) / 4 - Index(1));
  EXPECT_EQ(i / 1, i);
  EXPECT_EQ(i % 1, Index(0));
  EXPECT_EQ(i / 4 / 5, i / 20);
  EXPECT_EQ((i / 4 + Index(2)) / 5, (i + Index(8)) / 20);
  EXPECT_EQ(i * 6 / 4, i * 3 / 2);
  EXPECT_EQ(i * 6 % 4, i * 3 % 2 * 2);
  EXPECT_EQ(i / 4 * 4 + i % 4, i);
  EXPECT_EQ((i + j) / 4 * 12 + (i + j) % 4 * 3 + j, i * 3 + j * 4);
  EXPECT_EQ(i / 12 % 3 * 12 + i % 12, i % 36);
  EXPECT_EQ(i / 36 * 72 + i / 12 % 3 * 24 + i % 12 * 2, i * 2);
  EXPECT_EQ((i / 4 * 4 + j % 4).terms().size(), 2u) << "digits of two numbers";
  EXPECT_EQ((i / 12 % 3 * 12 + j % 12).terms().size(), 2u) << "digits of two numbers";
  EXPECT_EQ(Index(-7) / 2, Index(-4));
  EXPECT_EQ(Index(-7) % 2, Index(1));
}

TEST(Index, RangesRemoveDivisions) {
  EXPECT_EQ((i / 8).simplify(ranges(8, 4)), Index(0));
  EXPECT_EQ((i % 8).simplify(ranges(8, 4)), i);
  EXPECT_EQ(((i + Index(8)) / 8).simplify(ranges(8, 4)), Index(1));
  EXPECT_EQ(((i * 4 + j) / 4).simplify(ranges(8, 4)), i);
  EXPECT_EQ(((i * 4 + j) / 16).simplify(ranges(8, 4)), i / 4);
  EXPECT_EQ(((i * 4 + j) % 16).simplify(ranges(8, 4)), i % 4 * 4 + j);
  EXPECT_EQ(((i * 4 + j) / 16).simplify(ranges(8, 5)), (i * 4 + j) / 16);
}

TEST(Index, LimitsAreErrors) {
  const std::int64_t big = std::int64_t{1} << 61;
  EXPECT_THROW(i * big * 4, UserError);
  EXPECT_THROW(Index(big) + Index(big), UserError);
  EXPECT_THROW(i / 0, UserError);
  EXPECT_THROW(i % -2, UserError);
  Index nested = i;
  EXPECT_THROW(for (int n = 0; n < 100; ++n) nested = (nested + j) / 3 % 1000, UserError);
}

// Whatever the rules do, the value stays; ranges contain it.
TEST(Index, RandomExpressionsKeepTheirValue) {
  std::mt19937 random(17);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 2000; ++round) {
    struct Pair {
      Index index;
      std::function<std::int64_t(std::int64_t, std::int64_t)> value;
    };
    const std::int64_t i_extent = 1 + pick(20), j_extent = 1 + pick(9);
    std::vector<Pair> pool = {
        {i, [](auto a, auto) { return a; }}, {j, [](auto, auto b) { return b; }}, {Index(pick(20) - 10), {}}};
    pool[2].value = [c = pool[2].index.constant()](auto, auto) { return c; };
    for (int step = 0; step < 8; ++step) {
      const Pair x = pool[static_cast<std::size_t>(pick(static_cast<int>(pool.size())))];
      const Pair y = pool[static_cast<std::size_t>(pick(static_cast<int>(pool.size())))];
      const std::int64_t c = 1 + pick(12);
      switch (pick(4)) {
        case 0:
          pool.push_back({x.index + y.index * c, [=](auto a, auto b) { return x.value(a, b) + y.value(a, b) * c; }});
          break;
        case 1:
          pool.push_back({x.index - y.index, [=](auto a, auto b) { return x.value(a, b) - y.value(a, b); }});
          break;
        case 2:
          pool.push_back({x.index / c, [=](auto a, auto b) {
                            const std::int64_t v = x.value(a, b);
                            return v / c - (v % c < 0 ? 1 : 0);
                          }});
          break;
        default:
          pool.push_back({x.index % c, [=](auto a, auto b) { return (x.value(a, b) % c + c) % c; }});
      }
    }
    const Pair& last = pool.back();
    const Index simple = last.index.simplify(ranges(i_extent, j_extent));
    EXPECT_EQ(simple.simplify(ranges(i_extent, j_extent)), simple);
    const std::optional<Interval> range = simple.interval(ranges(i_extent, j_extent));
    ASSERT_TRUE(range);
    const ForStmt outer{{}, 0, {Index(0)}, {Index(i_extent)}, Binding::none, {}, {}};
    const ForStmt inner{{}, 1, {Index(0)}, {Index(j_extent)}, Binding::none, {}, {}};
    const Facts facts(Path{{&outer, nullptr, false}, {&inner, nullptr, false}});
    const auto low = facts.at_least(last.index), high = facts.at_most(last.index);
    for (std::int64_t a = 0; a < i_extent; ++a)
      for (std::int64_t b = 0; b < j_extent; ++b) {
        const auto leaf = [&](const IndexAtom& atom) { return atom.id == 0 ? a : b; };
        const std::int64_t expected = last.value(a, b);
        ASSERT_EQ(last.index.evaluate(leaf), expected);
        ASSERT_EQ(simple.evaluate(leaf), expected);
        ASSERT_TRUE(range->low <= expected && expected <= range->high);
        ASSERT_TRUE((!low || *low <= expected) && (!high || expected <= *high));
      }
  }
}

// --- text and builder ---

std::string parse_error(const std::string& text) {
  try {
    parse_kernel(text);
  } catch (const ParseError& error) {
    return error.what();
  }
  return "";
}
std::string with(const std::string& body) { return "kernel @t(%y: f32[8] write) on any { phase { " + body + " } }"; }

TEST(ParseKernel, ErrorsSayWhatWasExpected) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "expected 'kernel'"},
      {"kernel @t() on any { phase { } }", "expected a parameter"},
      {"kernel @t(%y: f32[8]) on any { phase { } }", "'read', 'write' or 'update'"},
      {"kernel @t(%y: f31[8] write) on any { phase { } }", "'f31' is not a dtype"},
      {"kernel @t(%y: f32[8] write align 3) on any { phase { } }", "power of two"},
      {"kernel @t(%y: f32[8] write) on arm { phase { } }", "'arm' is not an instruction set"},
      {"kernel @t(%y: f32[99999999999,99999] write) on any { phase { } }", "2^40"},
      {with("store %y[0]"), "expected ','"},
      {with("store %z[0], 1"), "V8: %z is not defined here"},
      {with("store %y[%i*%i], 1"), "V8: %i is not defined here"},
      {with("for %i in 0..8 { store %y[%i*%i], 1 }"), "only one factor"},
      {with("for %i in 0..8 { store %y[%i / 0], 1 }"), "divided by zero"},
      {with("for %i in 0..8 { store %y[%i*4611686018427387904], 1 }"), "62 bits"},
      {with("%a = frobnicate(1) : f32"), "'frobnicate' is not an op"},
      {with("%a = cast(3) : f32"), "nothing says which dtype"},
      {with("store %y[0], 1 store %y[1], -"), "expected a number"},
      {with("%a = if 1 < 2 : f32 { yield 1 }"), "expected 'else'"},
      {with("%a = if 1 < 2 : f32 { } else { yield 1 }"), "yields 0 values"},
      {with("%a = for %i in 0..2 { yield 1 }"), "says 'reduce'"},
      {with("for %i in 0..2 reduce add : f32 { yield 1 }"), "a reduce has results"},
      {with("%a = for %i in 0..2 reduce sum : f32 { yield 1 }"), "'sum' is not a combiner"},
      {with("for %i in 0..2 grid.w { }"), "an axis is x, y or z"},
      {with("%a, %b = index(1) : i32"), "one result"},
      {"kernel @t(%y: f32[8] write) on any { store %y[0], 1 }", "expected 'phase'"},
      {with("store %y[0], 1") + " kernel", "the end of the text"},
  };
  for (const auto& [text, expected] : cases)
    EXPECT_NE(parse_error(text).find(expected), std::string::npos) << text << "\n" << parse_error(text);
}

TEST(ParseKernel, PositionsAreThoseOfTheToken) {
  EXPECT_EQ(parse_error("kernel @t(%y: f32[8] write) on any {\n  phase {\n    store %z[0], 1 } }").substr(0, 5),
            "3:11:");
}

TEST(KernelBuilder, WritesTheTextOfAKernel) {
  KernelBuilder b("scale", Isa::x86_avx512);
  const MemId x = b.buffer(MemKind::read, f32, {100}, 64);
  const ValueId s = b.scalar(f32);
  const MemId y = b.buffer(MemKind::write, f32, {100}, 64);
  b.loop(0, 7, Binding::threads, [&](Index t) {
    b.loop(0, 16, Binding::vector, [&](Index l) {
      b.when({less(t * 16 + l, 100)}, [&] {
        const ValueId v = b.def(Op::mul, {b.load(x, {(t * 16 + l) / 1}), s}, f32);
        const std::vector<ValueId> r = b.choose(
            {equals(t, 0)}, {f32}, [&] { return std::vector<Arg>{v}; },
            [&] { return std::vector<Arg>{KernelBuilder::literal(0.5, f32)}; });
        b.def(Op::add, {v, v}, f32);  // dead
        b.store(y, {t * 16 + l}, r[0]);
      });
    });
  });
  EXPECT_EQ(print(std::move(b).finish()),
            R"(kernel @scale(%p0: f32[100] read align 64, %p1: f32 param, %p2: f32[100] write align 64) on x86:avx512 {
  phase {
    for %i0 in 0..7 threads {
      for %i1 in 0..16 vector {
        if %i0*16 + %i1 < 100 {
          %0 = load %p0[%i0*16 + %i1] : f32
          %1 = mul(%0, %p1) : f32
          %2 = if %i0 == 0 : f32 {
            yield %1
          } else {
            yield 0.5
          }
          store %p2[%i0*16 + %i1], %2
        }
      }
    }
  }
}
)");
}

TEST(KernelBuilder, ReducesInPhases) {
  KernelBuilder b("sum", Isa::any);
  const MemId x = b.buffer(MemKind::read, f32, {8, 4});
  const MemId y = b.buffer(MemKind::write, f32, {});
  const MemId w = b.work(f32, {8});
  b.loop(0, 8, Binding::none, [&](Index i) {
    const auto sum = b.reduce({Index(0)}, {Index(4)}, Binding::unroll, {Combiner::add}, {f32}, [&](Index j) {
      return std::vector<Arg>{b.load(x, {i, j})};
    });
    b.store(w, {i}, sum[0]);
  });
  b.next_phase();
  const auto total = b.reduce({Index(0)}, {Index(8)}, Binding::none, {Combiner::add}, {f32},
                              [&](Index i) { return std::vector<Arg>{b.load(w, {i})}; });
  b.store(y, {}, total[0]);
  const Kernel kernel = std::move(b).finish();
  EXPECT_EQ(kernel.phases.size(), 2u);
  EXPECT_TRUE(parse_kernel(print(kernel)) == kernel);
}

TEST(KernelBuilder, ErrorsCarryPositionsOfTheCanonicalText) {
  KernelBuilder b("bad", Isa::any);
  const MemId y = b.buffer(MemKind::write, f32, {4});
  b.loop(0, 5, Binding::none, [&](Index i) { b.store(y, {i}, KernelBuilder::literal(1, f32)); });
  try {
    std::move(b).finish();
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 8), "4:7: V3:") << error.what();
    EXPECT_NE(std::string(error.what()).find("kernel @bad"), std::string::npos) << "the text goes with the error";
  }
}

}  // namespace
}  // namespace fusejit::ir
