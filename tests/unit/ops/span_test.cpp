// What pools and resizes read, against a search through all cells; numbers and index expressions say the same.
#include "ir/ops/geometry/span.h"

#include <gtest/gtest.h>

#include "ir/node.h"

namespace fusejit::ir {
namespace {

// The formula of an index expression at o.
template <class F>
std::int64_t at(F formula, std::int64_t o) {
  const Index index = formula(Index::variable(0));
  return index.evaluate([o](const IndexAtom&) { return o; });
}

TEST(WindowAxis, TapsAndWindowsAreThoseThatASearchFinds) {
  int windows = 0;
  for (const std::int64_t in : {1, 4, 9})
    for (const std::int64_t kernel : {1, 2, 3, 5})
      for (const std::int64_t stride : {1, 2, 3})
        for (const std::int64_t padding : {0, 1, 2})
          for (const std::int64_t dilation : {1, 2}) {
            WindowAxis w{in, 0, kernel, stride, padding, dilation};
            w.out = (in + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
            if (in + 2 * padding < dilation * (kernel - 1) + 1) continue;
            ++windows;
            bool inside = true;
            for (std::int64_t o = 0; o < w.out; ++o) {
              std::int64_t first = kernel, end = 0;
              for (std::int64_t tap = 0; tap < kernel; ++tap) {
                const bool sees = w.input(o, tap) >= 0 && w.input(o, tap) < in;
                inside = inside && sees;
                if (sees) first = std::min(first, tap), end = tap + 1;
              }
              const WindowAxis::Taps taps = w.taps(o);
              EXPECT_EQ(taps.count(), std::max<std::int64_t>(0, end - first));
              if (taps.count() > 0) {
                EXPECT_EQ(taps.first, first);
              }
              EXPECT_EQ(at([&](const Index& i) { return w.first_tap(i); }, o), w.first_tap(o));
              EXPECT_EQ(at([&](const Index& i) { return w.end_tap(i); }, o), w.end_tap(o));
            }
            EXPECT_EQ(w.inside(), inside);
            for (std::int64_t cell = 0; cell < in; ++cell) {
              std::int64_t first = 1000, end = -1000;
              for (std::int64_t o = -10; o < 20; ++o)
                if (w.input(o, 0) <= cell && cell <= w.input(o, kernel - 1)) first = std::min(first, o), end = o + 1;
              if (first == 1000) continue;
              EXPECT_EQ(w.first_window(cell), first);
              EXPECT_EQ(w.end_window(cell), end);
              EXPECT_LE(end - first, w.most_windows());
              EXPECT_EQ(at([&](const Index& i) { return w.first_window(i); }, cell), first);
            }
          }
  EXPECT_GT(windows, 100);
}

TEST(PartsAxis, CoversEveryCellAndIsItsOwnTranspose) {
  for (std::int64_t in = 1; in < 12; ++in)
    for (std::int64_t out = 1; out < 12; ++out) {
      const PartsAxis parts{in, out}, cells = parts.transposed();
      std::int64_t most = 0;
      for (std::int64_t o = 0; o < out; ++o) {
        EXPECT_EQ(parts.first(o), o * in / out);
        EXPECT_EQ(parts.end(o), ((o + 1) * in + out - 1) / out);
        most = std::max(most, parts.end(o) - parts.first(o));
        EXPECT_EQ(at([&](const Index& i) { return parts.end(i); }, o), parts.end(o));
        for (std::int64_t c = 0; c < in; ++c)
          EXPECT_EQ(parts.first(o) <= c && c < parts.end(o), cells.first(c) <= o && o < cells.end(c));
      }
      EXPECT_EQ(parts.most(), most);
    }
}

TEST(NearestAxis, ResultsOfACellAreThoseThatReadIt) {
  for (std::int64_t in = 1; in < 12; ++in)
    for (std::int64_t out = 1; out < 30; ++out) {
      const NearestAxis nearest{in, out};
      for (std::int64_t o = 0; o < out; ++o) {
        const std::int64_t cell = nearest.cell(o);
        EXPECT_EQ(cell, o * in / out);
        EXPECT_LE(nearest.first_result(cell), o);
        EXPECT_LT(o, nearest.first_result(cell + 1));
        EXPECT_LE(nearest.first_result(cell + 1) - nearest.first_result(cell), nearest.most_results());
      }
    }
}

TEST(LinearAxis, PlacesAreThoseOfTheRealFormula) {
  for (const bool corners : {false, true})
    for (std::int64_t in = 1; in < 9; ++in)
      for (std::int64_t out = 1; out < 20; ++out) {
        const LinearAxis linear = LinearAxis::of(in, out, corners);
        for (std::int64_t o = 0; o < out; ++o) {
          const double i = static_cast<double>(in), n = static_cast<double>(out), x = static_cast<double>(o);
          const double want = !corners ? (x + 0.5) * i / n - 0.5 : out > 1 ? x * (i - 1) / (n - 1) : 0;
          EXPECT_NEAR(static_cast<double>(linear.place(o)) / static_cast<double>(linear.unit), want, 1e-12);
          for (std::int64_t c = 0; c < in && linear.most_results() < out; ++c) {
            const bool close = std::abs(linear.place(o) - c * linear.unit) < linear.unit;
            const std::int64_t first = linear.first_result(c);
            if (close) {
              EXPECT_TRUE(first <= o && o < first + linear.most_results());
            }
          }
        }
      }
}

TEST(Span, OfAGradientIsThatOfItsOp) {
  const Value x = parameter({DType::f32, {1, 1, 9, 7}}, "x");
  const Value y = build(Op::adaptive_avg_pool2d, {x}, {{"output_size", {4, 7}}});
  const Value dx = build(Op::adaptive_avg_pool2d_grad, {y}, {{"input_size", {9, 7}}});
  for (const Value& v : {y, dx}) {
    const auto rows = std::get<PartsAxis>(span_of(*v, 0));
    EXPECT_EQ(rows.in, 9);
    EXPECT_EQ(rows.out, 4);
  }
  for (int i = 0; i < static_cast<int>(Op::count_); ++i) {
    const OpDef& row = op_def(static_cast<Op>(i));
    EXPECT_EQ(row.span != nullptr,
              row.name.find("pool2d") != row.name.npos || row.name.find("upsample") != row.name.npos)
        << row.name;
  }
}

}  // namespace
}  // namespace fusejit::ir
