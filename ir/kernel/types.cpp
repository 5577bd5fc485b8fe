#include "ir/kernel/types.h"

#include "ir/base/check.h"

namespace fusejit::ir {
namespace {

// OpDef::kernel_types, or what follows from the dtype rule.
std::string signature(const OpDef& row) {
  if (!row.kernel_types.empty()) return std::string(row.kernel_types);
  return std::string(static_cast<std::size_t>(row.max_operands), 'T') + '>' +
         (row.dtype_rule == DTypeRule::to_bool ? 'b' : 'T');
}

// The dtype that a letter always means.
std::optional<DType> fixed(char letter) {
  switch (letter) {
    case 'b':
      return DType::boolean;
    case 'u':
      return DType::u32;
    case 'i':
      return DType::i64;
    case 'f':
      return DType::f32;
    case 'h':
      return DType::bf16;
    default:
      return std::nullopt;
  }
}

bool is_shared(char letter) { return letter == 'T' || letter == 'U' || letter == 'N'; }

// May T be this dtype?
bool allowed(const OpDef& row, DType t) {
  switch (t) {
    case DType::b1:
      return false;
    case DType::i8:
    case DType::u8:
    case DType::i16:
    case DType::f16:
    case DType::bf16:
      return row.copies_bits;
    case DType::f32:
    case DType::f64:
      return row.dtype_rule != DTypeRule::integral;
    case DType::boolean:
      return row.copies_bits || !row.llvm.boolean.empty();
    case DType::u32:
    case DType::u64:
      return row.copies_bits || !row.llvm.unsigned_int.empty();
    default:
      return row.dtype_rule != DTypeRule::floating;
  }
}

DType unsigned_of_width(DType t) { return t == DType::f64 ? DType::u64 : DType::u32; }

void check_letter(const OpDef& row, char letter, DType t, std::optional<DType>& shared, std::optional<DType>& floating,
                  std::optional<DType>& word) {
  if (const std::optional<DType> exact = fixed(letter)) {
    FJ_CHECK(t == *exact, "{} takes {} where {} stands", row.name, name(*exact), name(t));
  } else if (letter == '*') {
    FJ_CHECK(t != DType::b1, "{} does not take b1, which exists in memory only", row.name);
  } else if (letter == 'F') {
    FJ_CHECK(is_float(t), "{} takes a float where {} stands", row.name, name(t));
    floating = t;
  } else if (letter == 'W') {
    FJ_CHECK(is_unsigned(t), "{} takes u32 or u64 where {} stands", row.name, name(t));
    word = t;
  } else {
    FJ_CHECK(letter == 'T' ? allowed(row, t) : is_unsigned(t), "{} is not defined on {}", row.name, name(t));
    FJ_CHECK(!shared || *shared == t, "{} mixes {} and {}", row.name, name(*shared), name(t));
    shared = t;
  }
}

}  // namespace

std::vector<std::optional<DType>> operand_dtypes(Op op, std::span<const std::optional<DType>> operands,
                                                 std::span<const DType> results) {
  const std::string letters = signature(op_def(op));
  const std::size_t arrow = letters.find('>');
  std::vector<std::optional<DType>> dtypes(operands.begin(), operands.end());
  std::optional<DType> shared;
  for (std::size_t i = 0; i < dtypes.size() && i < arrow; ++i)
    if (is_shared(letters[i]) && !shared) shared = dtypes[i];
  for (std::size_t i = 0; i < results.size() && arrow + 1 + i < letters.size(); ++i)
    if (is_shared(letters[arrow + 1 + i]) && !shared) shared = results[i];
  for (std::size_t i = 0; i < dtypes.size() && i < arrow; ++i) {
    if (dtypes[i]) continue;
    dtypes[i] = is_shared(letters[i]) ? shared : fixed(letters[i]);
    if (letters[i] == 'W' && !results.empty()) dtypes[i] = unsigned_of_width(results[0]);
  }
  return dtypes;
}

void check_dtypes(Op op, std::span<const DType> operands, std::span<const DType> results) {
  const OpDef& row = op_def(op);
  const std::string letters = signature(row);
  const std::size_t arrow = letters.find('>');
  FJ_CHECK(row.family == Family::kernel || row.family == Family::elementwise, "{} is not an op of kernels", row.name);
  FJ_CHECK(row.attrs.empty() || !row.kernel_types.empty(), "{} has attributes and is expanded before", row.name);
  FJ_CHECK(operands.size() == arrow, "{} takes {} operands, not {}", row.name, arrow, operands.size());
  FJ_CHECK(results.size() == letters.size() - arrow - 1, "{} has {} results, not {}", row.name,
           letters.size() - arrow - 1, results.size());
  std::optional<DType> shared, floating, word;
  for (std::size_t i = 0; i < operands.size(); ++i) check_letter(row, letters[i], operands[i], shared, floating, word);
  for (std::size_t i = 0; i < results.size(); ++i)
    check_letter(row, letters[arrow + 1 + i], results[i], shared, floating, word);
  FJ_CHECK(!floating || !word || *word == unsigned_of_width(*floating), "{} between {} and {}", row.name,
           name(*floating), name(*word));
}

bool last_operand_is_shift_count(Op op) {
  const std::string letters = signature(op_def(op));
  return letters.find("N>") != std::string::npos;
}

}  // namespace fusejit::ir
