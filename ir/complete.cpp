// complete_attrs: attributes as a caller or a text gives them -> every attribute of the row, in row order.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "ir/base/check.h"
#include "ir/base/limits.h"
#include "ir/base/number.h"
#include "ir/node.h"

namespace fusejit::ir {
namespace {

constexpr std::int64_t kMaxListEntry = std::int64_t{1} << 40;

using Operands = std::span<const Operand>;

[[noreturn]] void fail(const OpDef& row, Operands operands, const std::string& sentence) {
  InferContext{row.op, operands, Attrs()}.fail(sentence);
}

std::string_view kind_text(AttrKind kind) {
  constexpr std::string_view kText[] = {"an integer",     "a number", "true or false",
                                        "a name",         "a dtype",  "a list of integers",
                                        "a list of dims", "a dim",    "a list of numbers"};
  return kText[static_cast<int>(kind)];
}

void set_number(Attr& attr, double value) {
  attr.number = std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;  // equal bits for every NaN
  attr.integer = std::abs(value) < 9e15 && std::trunc(value) == value ? static_cast<std::int64_t>(value) : 0;
}

Attr number_attr(double value) {
  Attr attr;
  set_number(attr, value);
  return attr;
}

std::vector<std::int64_t> read_ints(std::string_view text) {
  std::vector<std::int64_t> out;
  const char* at = text.data() + 1;
  const char* const end = text.data() + text.size() - 1;
  while (at < end) {
    std::int64_t v = 0;
    at = std::from_chars(at, end, v).ptr + 1;
    out.push_back(v);
  }
  return out;
}

std::int64_t base_rank(const AttrDef& def, Operands operands, std::span<const AttrDef> schema,
                       const std::vector<Attr>& values) {
  if (def.base == DimBase::shape) {
    for (std::size_t i = 0; i < schema.size(); ++i)
      if (schema[i].name == "shape") return static_cast<std::int64_t>(values[i].ints.size());
  }
  const std::int64_t rank = operands[0].value.type().shape.rank();
  if (def.base == DimBase::rank_plus_one) return rank + 1;
  return def.base == DimBase::at_least_one ? std::max<std::int64_t>(rank, 1) : rank;
}

std::vector<std::int64_t> every_dim(const Shape& shape, bool only_unit) {
  std::vector<std::int64_t> out;
  for (int d = 0; d < shape.rank(); ++d)
    if (!only_unit || shape[d] == 1) out.push_back(d);
  return out;
}

Attr fallback(const OpDef& row, std::size_t index, Operands operands, const std::vector<Attr>& values) {
  const AttrDef& def = row.attrs[index];
  const std::string_view text = def.fallback;
  if (text.empty()) fail(row, operands, fmt::format("attribute '{}' must be given", def.name));
  if (text[0] == '=') {
    for (std::size_t i = 0; i < index; ++i)
      if (row.attrs[i].name == text.substr(1)) return values[i];
  }
  Attr out;
  switch (def.kind) {
    case AttrKind::integer:
    case AttrKind::dim:
      std::from_chars(text.data(), text.data() + text.size(), out.integer);
      break;
    case AttrKind::number:
      set_number(out, read_double(text).value());
      break;
    case AttrKind::flag:
      out.integer = text == "true";
      break;
    case AttrKind::name:
      out.name = text;
      break;
    case AttrKind::dtype:
      out.dtype = dtype_named(text).value();
      break;
    case AttrKind::dims:
      if (text[0] != '[')
        out.ints = every_dim(operands[0].value.type().shape, text == "unit");
      else
        out.ints = read_ints(text);
      break;
    case AttrKind::ints:
      out.ints = read_ints(text);
      break;
    case AttrKind::numbers:
      break;
  }
  return out;
}

// What was given as a value of the attribute's kind, or nothing.
std::optional<Attr> converted(const AttrInit& given, AttrKind kind) {
  const bool integer = given.given == AttrKind::integer;
  Attr out;
  switch (kind) {
    case AttrKind::integer:
    case AttrKind::dim:
      if (!integer) return std::nullopt;
      out.integer = given.value.integer;
      return out;
    case AttrKind::number:
      if (integer) {
        out.number = static_cast<double>(given.value.integer), out.integer = given.value.integer;
        return out;
      }
      return given.given == AttrKind::number ? std::optional(number_attr(given.value.number)) : std::nullopt;
    case AttrKind::flag:
      if (given.given == AttrKind::flag) return given.value;
      if (given.given != AttrKind::name || (given.value.name != "true" && given.value.name != "false"))
        return std::nullopt;
      out.integer = given.value.name == "true";
      return out;
    case AttrKind::dtype: {
      if (given.given == AttrKind::dtype && is_tensor_dtype(given.value.dtype)) return given.value;
      if (given.given != AttrKind::name) return std::nullopt;
      const auto dtype = dtype_named(given.value.name);
      if (!dtype || !is_tensor_dtype(*dtype)) return std::nullopt;
      out.dtype = *dtype;
      return out;
    }
    case AttrKind::name:
      return given.given == AttrKind::name ? std::optional(given.value) : std::nullopt;
    case AttrKind::ints:
    case AttrKind::dims:
      return given.given == AttrKind::ints ? std::optional(given.value) : std::nullopt;
    case AttrKind::numbers:
      if (given.given == AttrKind::numbers) {
        out = given.value;
        for (double& v : out.numbers)
          if (std::isnan(v)) v = std::numeric_limits<double>::quiet_NaN();
        return out;
      }
      if (given.given != AttrKind::ints) return std::nullopt;
      out.numbers.assign(given.value.ints.begin(), given.value.ints.end());
      if (std::any_of(given.value.ints.begin(), given.value.ints.end(), is_beyond_f64)) out.ints = given.value.ints;
      return out;
  }
  return std::nullopt;
}

void normalise_dim(const OpDef& row, Operands operands, std::int64_t rank, std::int64_t& dim) {
  if (dim < -rank || dim >= rank) fail(row, operands, fmt::format("dim {} is out of range for rank {}", dim, rank));
  if (dim < 0) dim += rank;
}

void check_values(const OpDef& row, Operands operands, std::vector<Attr>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const AttrDef& def = row.attrs[i];
    Attr& value = values[i];
    if (value.ints.size() > kMaxListNumbers || value.numbers.size() > kMaxListNumbers)
      fail(row, operands, fmt::format("attribute '{}' has more than {} numbers", def.name, kMaxListNumbers));
    if (def.kind == AttrKind::dim)
      normalise_dim(row, operands, base_rank(def, operands, row.attrs, values), value.integer);
    if (def.kind == AttrKind::ints)
      for (std::int64_t v : value.ints)
        if (v > kMaxListEntry || v < -kMaxListEntry)
          fail(row, operands, fmt::format("attribute '{}' holds {}, which is beyond 2^40", def.name, v));
    if (def.kind != AttrKind::dims) continue;
    const std::int64_t rank = base_rank(def, operands, row.attrs, values);
    if (value.ints.size() > static_cast<std::size_t>(rank))
      fail(row, operands, fmt::format("attribute '{}' has {} dims, the rank is {}", def.name, value.ints.size(), rank));
    unsigned seen = 0;
    for (std::int64_t& d : value.ints) {
      normalise_dim(row, operands, rank, d);
      if (seen >> d & 1) fail(row, operands, fmt::format("dim {} is given twice", d));
      seen |= 1u << d;
    }
  }
}

}  // namespace

Attrs complete_attrs(const OpDef& row, Operands operands, std::span<const AttrInit> given) {
  if (row.attrs.empty() && given.empty()) return {};
  std::vector<Attr> values(row.attrs.size());
  std::vector<bool> present(row.attrs.size());
  for (const AttrInit& init : given) {
    const auto def =
        std::find_if(row.attrs.begin(), row.attrs.end(), [&](const AttrDef& d) { return d.name == init.name; });
    if (def == row.attrs.end()) fail(row, operands, fmt::format("there is no attribute '{}'", init.name));
    const auto i = static_cast<std::size_t>(def - row.attrs.begin());
    if (present[i]) fail(row, operands, fmt::format("attribute '{}' is given twice", init.name));
    std::optional<Attr> value = converted(init, def->kind);
    if (!value) fail(row, operands, fmt::format("attribute '{}' must be {}", def->name, kind_text(def->kind)));
    values[i] = std::move(*value);
    present[i] = true;
  }
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!present[i]) values[i] = fallback(row, i, operands, values);
  if (row.complete) row.complete(operands, values);
  check_values(row, operands, values);
  return Attrs(row.attrs, std::move(values));
}

Attrs complete_attrs(const OpDef& row, Operands operands, Attrs values) {
  FJ_ASSERT(values.size() == row.attrs.size(), "{} takes {} attributes, {} were given", row.name, row.attrs.size(),
            values.size());
  if (row.attrs.empty()) return values;
  std::vector<Attr> checked;
  for (std::size_t i = 0; i < values.size(); ++i) checked.push_back(values[i]);
  if (row.complete) row.complete(operands, checked);
  check_values(row, operands, checked);
  return Attrs(row.attrs, std::move(checked));
}

}  // namespace fusejit::ir
