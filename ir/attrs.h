// Attributes of a node: values in the order of the row's schema, every one present (defaults filled in).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fusejit/dtype.h"
#include "ir/base/scalar.h"

namespace fusejit::ir {

enum class AttrKind : std::uint8_t {
  integer,  // 3
  number,   // 0.1, inf
  flag,     // true, false
  name,     // mean; a dtype is its name
  dtype,    // f32
  ints,     // [1,1]: windows, strides, shapes
  dims,     // [0,2,3]: negative ones count from the end when read; stored non-negative, in the order given
  dim,      // 1: one dim, likewise
  numbers   // [0.5,1]
};

// What dims count in, of the first operand or of the `shape` attribute.
enum class DimBase : std::uint8_t {
  rank,           // of operand 0
  rank_plus_one,  // unsqueeze
  at_least_one,   // flatten: a 0-d operand counts as [1]
  shape           // iota: rank of the attribute `shape`
};

// One attribute of a row. `fallback` is the text of the default; empty: the attribute must be given. Three words stand
// for what the operands say: "=kernel_size" is a copy of that attribute (given earlier in the row), "all" every dim of
// operand 0, "unit" every dim of size 1.
struct AttrDef {
  std::string_view name;
  AttrKind kind;
  std::string_view fallback = "";
  DimBase base = DimBase::rank;
};

// One attribute's value; which member counts follows from the row's AttrKind.
struct Attr {
  std::int64_t integer = 0;        // integer, flag, dim; number: exact, where the number is an integer
  double number = 0;               // number
  DType dtype = DType::f32;        // dtype
  std::string name;                // name
  std::vector<std::int64_t> ints;  // ints, dims; numbers: exact, where all are integers and one is beyond 2^53
  std::vector<double> numbers;     // numbers
  // The number, or number i of the list, in `dtype`: floats round once, others are exact or nothing.
  std::optional<Scalar> in(DType dtype) const;
  std::optional<Scalar> element_in(std::size_t i, DType dtype) const;
  friend bool operator==(const Attr& a, const Attr& b);  // numbers compare by bits: nan equals nan, -0 differs from 0
};

// f64 does not hold every integer of this size.
bool is_beyond_f64(std::int64_t value);

class Attrs {
 public:
  Attrs() = default;
  Attrs(std::span<const AttrDef> schema, std::vector<Attr> values) : schema_(schema), values_(std::move(values)) {}

  std::size_t size() const { return values_.size(); }
  const Attr& operator[](std::size_t i) const { return values_[i]; }
  std::span<const AttrDef> schema() const { return schema_; }
  // By name; an unknown name is an InternalError.
  std::int64_t integer(std::string_view name) const { return at(name).integer; }
  double number(std::string_view name) const { return at(name).number; }
  // The number in a dtype that infer has found to hold it.
  Scalar number_in(std::string_view name, DType dtype) const { return at(name).in(dtype).value(); }
  bool flag(std::string_view name) const { return at(name).integer != 0; }
  DType dtype(std::string_view name) const { return at(name).dtype; }
  const std::string& word(std::string_view name) const { return at(name).name; }
  std::span<const std::int64_t> ints(std::string_view name) const { return at(name).ints; }
  std::span<const double> numbers(std::string_view name) const { return at(name).numbers; }
  // " {stride=[1,1], padding=[0,0,0,0]}" or "" without attributes.
  std::string str() const;
  std::uint64_t hash() const;
  // Appends every value, so that equal words mean equal attributes of one row: what keys are hashed from.
  void append_words(std::vector<std::uint64_t>& words) const;
  friend bool operator==(const Attrs& a, const Attrs& b) { return a.values_ == b.values_; }

 private:
  const Attr& at(std::string_view name) const;
  std::span<const AttrDef> schema_;
  std::vector<Attr> values_;
};

// Attributes as a caller gives them: any order, defaults left out. `{{"stride", {2, 2}}, {"eps", 1e-3}}`.
// An integer may stand for a number, a word for a flag or a dtype; build() reports what does not fit the row.
struct NamedAttr {
  std::string_view name;
  Attr value;
  AttrKind given = AttrKind::integer;
};
struct AttrInit : NamedAttr {
  AttrInit(std::string_view n, std::int64_t v);
  AttrInit(std::string_view n, int v) : AttrInit(n, static_cast<std::int64_t>(v)) {}
  AttrInit(std::string_view n, double v);
  AttrInit(std::string_view n, bool v);
  AttrInit(std::string_view n, DType v);
  AttrInit(std::string_view n, std::string_view v);
  AttrInit(std::string_view n, const char* v) : AttrInit(n, std::string_view(v)) {}
  AttrInit(std::string_view n, std::span<const std::int64_t> v);
  AttrInit(std::string_view n, std::initializer_list<std::int64_t> v)
      : AttrInit(n, std::span<const std::int64_t>(v.begin(), v.size())) {}
  AttrInit(std::string_view n, std::span<const double> v);
};

struct Operand;  // ir/node.h
struct OpDef;    // ir/op.h
// The row's attributes in row order, defaults filled in, dims made non-negative. Throws UserError.
Attrs complete_attrs(const OpDef& row, std::span<const Operand> operands, std::span<const AttrInit> given);
// The same of values already in row order: checks counts and ranges of dims.
Attrs complete_attrs(const OpDef& row, std::span<const Operand> operands, Attrs values);

}  // namespace fusejit::ir
