#include "fusejit/dtype.h"

#include <array>

namespace fusejit {
namespace {

constexpr std::array<std::string_view, 13> kNames = {"bool", "i8",  "u8",  "i16", "i32", "i64", "f16",
                                                     "bf16", "f32", "f64", "u32", "u64", "b1"};

}  // namespace

std::string_view name(DType dtype) { return kNames[static_cast<std::size_t>(dtype)]; }

std::optional<DType> dtype_named(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::optional<DType> promote(DType a, DType b) {
  if (a == b) return a;
  const bool same_kind = (is_float(a) && is_float(b)) || (is_int(a) && is_int(b)) || (is_unsigned(a) && is_unsigned(b));
  if (!same_kind) return std::nullopt;
  if (bits(a) == bits(b)) return is_float(a) ? DType::f32 : DType::i16;  // f16, bf16; i8, u8: neither holds the other
  return bits(a) > bits(b) ? a : b;
}

}  // namespace fusejit
