#include "ir/attrs.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "ir/base/check.h"
#include "ir/base/hash.h"
#include "ir/base/number.h"

namespace fusejit::ir {
namespace {

template <class T, class F>
std::string list_text(const std::vector<T>& values, F&& text) {
  std::string out = "[";
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i) out += ',';
    out += text(values[i]);
  }
  return out += ']';
}

// A number attribute that was written as an integer beyond 2^53 keeps its digits.
std::string number_text(const Attr& attr) {
  return is_beyond_f64(attr.integer) ? std::to_string(attr.integer) : shortest_text(attr.number);
}

std::string numbers_text(const Attr& attr) {
  if (!attr.ints.empty()) return list_text(attr.ints, [](std::int64_t v) { return std::to_string(v); });
  return list_text(attr.numbers, [](double v) { return shortest_text(v); });
}

// `integer` is the number, if they are equal in f64.
std::optional<Scalar> number_as(double number, std::int64_t integer, DType dtype) {
  if (is_float(dtype)) return cast(Scalar::of(number), dtype);
  if (static_cast<double>(integer) != number) {
    if (std::trunc(number) != number || number < -0x1p63 || number >= 0x1p63) return std::nullopt;
    integer = static_cast<std::int64_t>(number);
  }
  return holds(dtype, integer) ? std::optional(cast(Scalar::of(integer), dtype)) : std::nullopt;
}

std::string value_text(const Attr& attr, AttrKind kind) {
  switch (kind) {
    case AttrKind::integer:
    case AttrKind::dim:
      return std::to_string(attr.integer);
    case AttrKind::number:
      return number_text(attr);
    case AttrKind::flag:
      return attr.integer ? "true" : "false";
    case AttrKind::name:
      return attr.name;
    case AttrKind::dtype:
      return std::string(name(attr.dtype));
    case AttrKind::ints:
    case AttrKind::dims:
      return list_text(attr.ints, [](std::int64_t v) { return std::to_string(v); });
    case AttrKind::numbers:
      return numbers_text(attr);
  }
  return "";
}

}  // namespace

bool is_beyond_f64(std::int64_t value) {
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  return value > kExact || value < -kExact;
}

std::optional<Scalar> Attr::in(DType to) const { return number_as(number, integer, to); }

std::optional<Scalar> Attr::element_in(std::size_t i, DType to) const {
  return number_as(numbers[i], ints.empty() ? 0 : ints[i], to);
}

bool operator==(const Attr& a, const Attr& b) {
  const auto same = [](double x, double y) {
    return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
  };
  return a.integer == b.integer && same(a.number, b.number) && a.dtype == b.dtype && a.name == b.name &&
         a.ints == b.ints && std::equal(a.numbers.begin(), a.numbers.end(), b.numbers.begin(), b.numbers.end(), same);
}

const Attr& Attrs::at(std::string_view name) const {
  for (std::size_t i = 0; i < schema_.size(); ++i)
    if (schema_[i].name == name) return values_[i];
  throw InternalError(fmt::format("no attribute '{}'", name));
}

std::string Attrs::str() const {
  if (values_.empty()) return "";
  std::string out = " {";
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (i) out += ", ";
    out.append(schema_[i].name).append("=").append(value_text(values_[i], schema_[i].kind));
  }
  return out += '}';
}

std::uint64_t Attrs::hash() const {
  std::uint64_t h = values_.size();
  for (const Attr& v : values_) {
    h = mix(h, static_cast<std::uint64_t>(v.integer));
    h = mix(h, std::bit_cast<std::uint64_t>(v.number) + static_cast<std::uint64_t>(v.dtype));
    if (!v.name.empty()) h = mix(h, hash_text(v.name).low);
    for (std::int64_t i : v.ints) h = mix(h, static_cast<std::uint64_t>(i));
    h = mix(h, v.ints.size());
    if (!v.numbers.empty()) h = mix(h, hash_bytes(v.numbers.data(), v.numbers.size() * sizeof(double)).low);
  }
  return h;
}

void Attrs::append_words(std::vector<std::uint64_t>& words) const {
  words.push_back(values_.size());
  for (const Attr& v : values_) {
    words.push_back(static_cast<std::uint64_t>(v.integer));
    words.push_back(std::bit_cast<std::uint64_t>(v.number));
    // The lengths of what follows, so that no two lists of values run into one.
    words.push_back(static_cast<std::uint64_t>(v.dtype) | std::uint64_t{v.name.size()} << 8 |
                    std::uint64_t{v.ints.size()} << 24 | std::uint64_t{v.numbers.size()} << 44);
    for (const char c : v.name) words.push_back(static_cast<unsigned char>(c));
    for (const std::int64_t i : v.ints) words.push_back(static_cast<std::uint64_t>(i));
    for (const double number : v.numbers) words.push_back(std::bit_cast<std::uint64_t>(number));
  }
}

AttrInit::AttrInit(std::string_view n, std::int64_t v) : NamedAttr{n, {}, AttrKind::integer} {
  value.integer = v;
  value.number = static_cast<double>(v);
}
AttrInit::AttrInit(std::string_view n, double v) : NamedAttr{n, {}, AttrKind::number} { value.number = v; }
AttrInit::AttrInit(std::string_view n, bool v) : NamedAttr{n, {}, AttrKind::flag} { value.integer = v; }
AttrInit::AttrInit(std::string_view n, DType v) : NamedAttr{n, {}, AttrKind::dtype} { value.dtype = v; }
AttrInit::AttrInit(std::string_view n, std::string_view v) : NamedAttr{n, {}, AttrKind::name} { value.name = v; }
AttrInit::AttrInit(std::string_view n, std::span<const std::int64_t> v) : NamedAttr{n, {}, AttrKind::ints} {
  value.ints.assign(v.begin(), v.end());
}
AttrInit::AttrInit(std::string_view n, std::span<const double> v) : NamedAttr{n, {}, AttrKind::numbers} {
  value.numbers.assign(v.begin(), v.end());
}

}  // namespace fusejit::ir
