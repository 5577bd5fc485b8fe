// Which cells of an image the results of a pool or resize read, along one image axis: what a row's `span` says. `in`
// are the cells, `out` the results, of an op and of its gradient alike. The interpreter asks with numbers, lowering
// with index expressions (I is std::int64_t or Index): the formulas are the same.
#pragma once

#include <cstdint>
#include <numeric>
#include <variant>

#include "ir/ops/geometry/window.h"

namespace fusejit::ir {

// Cells cut into `out` parts of as equal a size as possible, which may share a cell: part o is
// ⌊o·in/out⌋ ... ⌈(o+1)·in/out⌉-1. Seen from the cells it is the same with in and out exchanged.
struct PartsAxis {
  std::int64_t in = 1, out = 1;

  bool is_even() const { return in % out == 0; }
  PartsAxis transposed() const { return {out, in}; }
  // Without common factors, which would hide that a quotient is simple.
  template <class I>
  I first(const I& o) const {
    return floor_divide(o * (in / common()), out / common());
  }
  template <class I>
  I end(const I& o) const {
    return ceil_divide((o + I(1)) * (in / common()), out / common());
  }
  // Cells of the largest part.
  std::int64_t most() const;

 private:
  std::int64_t common() const { return std::gcd(in, out); }
};

// Result o is cell ⌊o·in/out⌋.
struct NearestAxis {
  std::int64_t in = 1, out = 1;

  template <class I>
  I cell(const I& o) const {
    return PartsAxis{in, out}.first(o);
  }
  // Results that are this cell: [first_result, first_result of the next cell).
  template <class I>
  I first_result(const I& c) const {
    const std::int64_t common = std::gcd(in, out);
    return ceil_divide(c * (out / common), in / common);
  }
  std::int64_t most_results() const { return (out + in - 1) / in; }
};

// Result o lies at (o * step + offset) / unit among the cells, exactly: in whole numbers, no rounding decides between
// two cells. In front of the first cell and behind the last one it is that cell.
struct LinearAxis {
  std::int64_t in = 1, out = 1;
  std::int64_t step = 0, offset = 0, unit = 1;

  template <class I>
  I place(const I& o) const {
    return o * step + I(offset);
  }
  std::int64_t last_place() const { return (in - 1) * unit; }  // of a cell
  bool is_copy() const { return unit == 1 || in == 1; }        // every result is a cell
  // Results closer than a cell, (c - 1) * unit < place < (c + 1) * unit: from the first on, at most so many. Where
  // those are all, `first_result` is not asked.
  std::int64_t most_results() const { return step == 0 ? out : std::min(out, (2 * unit - 1) / step + 1); }
  template <class I>
  I first_result(const I& c) const {
    return floor_divide((c - I(1)) * unit - I(offset), step) + I(1);
  }
  static LinearAxis of(std::int64_t in, std::int64_t out, bool align_corners);
};

struct ImageSpan : std::variant<WindowAxis, PartsAxis, NearestAxis, LinearAxis> {
  using variant::variant;
};
// Of a node whose row has it.
ImageSpan span_of(const Node& node, int axis);
inline WindowAxis pool_window(const Node& node, int axis) { return std::get<WindowAxis>(span_of(node, axis)); }

}  // namespace fusejit::ir
