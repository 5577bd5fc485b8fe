// Index: an affine index expression of a kernel in canonical form: sum of coef * atom + constant (kernel-ir.md §6).
// An atom is a loop variable, a loaded integer, or (E / c) or (E % c) of a canonical E. Arithmetic is exact; a result
// beyond 62 bits is a UserError.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "ir/base/inline_vector.h"

namespace fusejit::ir {

enum class AtomKind : std::uint8_t { variable, value, quotient, remainder };

class Index;
struct IndexAtom {
  AtomKind kind = AtomKind::variable;
  int id = -1;                         // variable: VarId, value: ValueId
  std::shared_ptr<const Index> inner;  // quotient, remainder
  std::int64_t divisor = 0;
  friend bool operator==(const IndexAtom& a, const IndexAtom& b);
};
struct IndexTerm {
  std::int64_t coefficient = 0;
  IndexAtom atom;
  friend bool operator==(const IndexTerm&, const IndexTerm&) = default;
};

// What is known of a variable: lo <= v <= hi. Missing for values.
struct Interval {
  std::int64_t low;
  std::int64_t high;
};
using RangeOf = std::function<std::optional<Interval>(const IndexAtom& variable_or_value)>;

// Towards minus infinity, b > 0.
inline std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

class Index {
 public:
  Index() = default;
  Index(std::int64_t constant) : constant_(constant) {}  // implicit on purpose: index arithmetic mixes integers
  static Index variable(int var);
  static Index value(int value);
  static Index of(const IndexAtom& atom);

  using Terms = InlineVector<IndexTerm, 3>;  // few have more
  const Terms& terms() const { return terms_; }
  std::int64_t constant() const { return constant_; }
  bool is_constant() const { return terms_.empty(); }
  // Variables, values, quotients and remainders of the whole expression as it is written.
  int atoms() const;
  // Coefficient of a plain variable, 0 if absent.
  std::int64_t coefficient_of(int var) const;
  // The sum without the term of this atom.
  Index without(const IndexAtom& atom) const;
  // The sum with factor * value + constant in place of `term`, which is one of terms().
  Index replaced(const IndexTerm& term, const Index& value, std::int64_t factor, std::int64_t constant) const;
  // True if the variable occurs anywhere, inside / and % too.
  bool mentions(int var) const;
  void for_each_leaf(const std::function<void(const IndexAtom&)>& visit) const;
  // Every variable and value replaced by an expression (canonical again).
  Index substitute(const std::function<std::optional<Index>(const IndexAtom& leaf)>& replacement) const;
  // The rules of §6 that need ranges; the other rules hold at all times.
  Index simplify(const RangeOf& ranges) const;
  // Bounds of the value where every leaf has a range.
  std::optional<Interval> interval(const RangeOf& ranges) const;
  // The value for given leaves.
  std::int64_t evaluate(const std::function<std::int64_t(const IndexAtom&)>& leaf) const;

  friend Index operator+(const Index& a, const Index& b);
  friend Index operator-(const Index& a, const Index& b);
  friend Index operator*(const Index& a, std::int64_t factor);
  friend Index operator/(const Index& a, std::int64_t divisor);  // floor; divisor > 0
  friend Index operator%(const Index& a, std::int64_t divisor);  // non-negative; divisor > 0
  friend bool operator==(const Index&, const Index&) = default;

 private:
  friend class IndexSum;  // index.cpp
  Terms terms_;
  std::int64_t constant_ = 0;
};

}  // namespace fusejit::ir
