#include "codegen/cuda/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>

#include "ir/kernel/interp/scalar.h"

namespace fusejit::codegen::cuda {
namespace {

std::string float_literal(ir::Scalar value) {
  const bool wide = value.dtype == DType::f64;
  const double number = value.as_double();
  const std::string_view type = wide ? "double" : "float";
  if (std::isnan(number)) return fmt::format("fj_nan<{}>()", type);
  if (std::isinf(number)) return fmt::format("({}fj_infinity<{}>())", number < 0 ? "-" : "", type);
  std::string text = ir::literal_text(value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  if (!wide) text += "f";
  return text[0] == '-' ? "(" + text + ")" : text;
}

// The least value of a signed type has no literal of that type.
std::string integer_literal(std::int64_t value, std::int64_t least, std::string_view suffix) {
  if (value == least) return fmt::format("({}{} - 1{})", value + 1, suffix, suffix);
  return value < 0 ? fmt::format("({}{})", value, suffix) : fmt::format("{}{}", value, suffix);
}

}  // namespace

std::string_view type_name(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return "bool";
    case DType::b1:
      return "unsigned char";
    case DType::i8:
      return "signed char";
    case DType::u8:
      return "unsigned char";
    case DType::i16:
      return "short";
    case DType::f16:
      return "fj_f16";
    case DType::bf16:
      return "fj_bf16";
    case DType::f32:
      return "float";
    case DType::f64:
      return "double";
    case DType::i32:
      return "int";
    case DType::i64:
      return "long long";
    case DType::u32:
      return "unsigned";
    case DType::u64:
      return "unsigned long long";
  }
  return "";
}

std::string literal(ir::Scalar value) {
  switch (value.dtype) {
    case DType::boolean:
    case DType::b1:
      return value.boolean() ? "true" : "false";
    case DType::f16:
    case DType::bf16:
      return fmt::format("{}{{{:#06x}}}", type_name(value.dtype), value.bits);
    case DType::i8:
    case DType::u8:
    case DType::i16:  // a number of its own would be an int
      return fmt::format("static_cast<{}>({})", type_name(value.dtype), value.integer());
    case DType::f32:
    case DType::f64:
      return float_literal(value);
    case DType::i32:
      return integer_literal(value.i32(), INT32_MIN, "");
    case DType::i64:
      return integer_literal(value.i64(), INT64_MIN, "LL");
    case DType::u32:
      return fmt::format("{}u", value.bits);
    case DType::u64:
      return fmt::format("{}ull", value.bits);
  }
  return "";
}

std::string spelled(ir::Op op, DType operand, DType result, std::span<const std::string> operands) {
  const ir::CudaSpelling& row = ir::op_def(op).cuda;
  const std::string_view pattern = is_float(operand) ? row.floating : row.integral;
  std::string text;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '$') {
      text += operands[static_cast<std::size_t>(pattern[++i] - '0')];
    } else if (pattern.substr(i, 3) == "{f}") {
      if (operand == DType::f32) text += "f";
      i += 2;
    } else if (pattern.substr(i, 3) == "{T}") {
      text += type_name(result);
      i += 2;
    } else {
      text += pattern[i];
    }
  }
  return text;
}

std::string_view combiner_name(ir::Combiner combiner) {
  static constexpr std::array<std::string_view, 9> kNames = {
      "fj_sum", "fj_product", "fj_largest", "fj_smallest", "fj_all", "fj_any", "fj_argmax", "fj_argmin", "fj_welford"};
  return kNames[static_cast<std::size_t>(combiner)];
}

std::string combination(ir::Combiner combiner, DType dtype, std::span<const std::string> into,
                        std::span<const std::string> from) {
  if (is_float(dtype) && combiner == ir::Combiner::add) return fmt::format("{} += {};", into[0], from[0]);
  if (is_float(dtype) && combiner == ir::Combiner::mul) return fmt::format("{} *= {};", into[0], from[0]);
  return fmt::format("{}::combine({}, {});", combiner_name(combiner), fmt::join(into, ", "), fmt::join(from, ", "));
}

}  // namespace fusejit::codegen::cuda
