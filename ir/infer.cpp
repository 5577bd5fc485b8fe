#include "ir/infer.h"

#include "ir/base/check.h"
#include "ir/base/number.h"

namespace fusejit::ir {
namespace {

std::string operand_text(const Operand& operand) {
  if (!operand.is_number()) return operand.value.type().str();
  return operand.is_integer ? std::to_string(operand.integer) : shortest_text(operand.number);
}

bool takes_part(const OpDef& row, std::size_t i) { return !(row.keeps_dtype >> i & 1); }

// What the rule admits, as the end of a sentence.
std::string_view wanted(DTypeRule rule) {
  switch (rule) {
    case DTypeRule::floating:
      return "must be float";
    case DTypeRule::numeric:
      return "must be int or float";
    case DTypeRule::integral:
      return "must be int or bool";
    case DTypeRule::any:
    case DTypeRule::to_bool:
    case DTypeRule::own:
      return "";
  }
  return "";
}

bool admits(DTypeRule rule, DType dtype) {
  switch (rule) {
    case DTypeRule::floating:
      return is_float(dtype);
    case DTypeRule::numeric:
      return dtype != DType::boolean;
    case DTypeRule::integral:
      return !is_float(dtype);
    case DTypeRule::any:
    case DTypeRule::to_bool:
    case DTypeRule::own:
      return true;
  }
  return true;
}

// The promoted dtype of the operands that take part; nothing if none is a value.
std::optional<DType> promoted(const OpDef& row, std::span<const Operand> operands, const InferContext* context) {
  std::optional<DType> result;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].is_number() || !takes_part(row, i)) continue;
    const DType dtype = operands[i].value.type().dtype;
    const std::optional<DType> wider = result ? promote(*result, dtype) : dtype;
    if (!wider) {
      if (!context) return result;
      context->fail(fmt::format("operands are {} and {}; write cast({}) {{dtype={}}} to bring them to one kind",
                                name(*result), name(dtype), operand_name(row, i), name(*result)));
    }
    result = wider;
  }
  return result;
}

}  // namespace

const Type& InferContext::type(std::size_t operand) const { return operands[operand].value.type(); }

void InferContext::fail(const std::string& sentence) const {
  constexpr std::size_t kShown = 6;
  const OpDef& row = op_def(op);
  std::string list;
  for (std::size_t i = 0; i < operands.size() && i < kShown; ++i)
    list += fmt::format("{}{}: {}", i ? ", " : "", operand_name(row, i), operand_text(operands[i]));
  if (operands.size() > kShown) list += ", ...";
  throw UserError(list.empty() ? fmt::format("{}: {}", row.name, sentence)
                               : fmt::format("{}: {} ({})", row.name, sentence, list));
}

std::string operand_name(const OpDef& row, std::size_t index) {
  if (index < row.operand_names.size()) return std::string(row.operand_names[index]);
  if (row.max_operands == 1) return "x";
  return index < 26 ? std::string(1, static_cast<char>('a' + index)) : fmt::format("operand {}", index);
}

Shape broadcast_all(const InferContext& context) {
  Shape shape;
  for (const Operand& operand : context.operands) {
    if (operand.is_number()) continue;
    Shape next;
    bool fits = false;
    fits = broadcast_shapes(shape, operand.value.type().shape, next);
    if (!fits)
      context.fail(fmt::format("shapes {} and {} do not broadcast", shape.str(), operand.value.type().shape.str()));
    shape = next;
  }
  return shape;
}

Shape shape_from(const InferContext& context, std::span<const std::int64_t> dims) {
  try {
    return Shape(dims);
  } catch (const UserError& error) {
    context.fail(error.what());
  }
}

Type infer_elementwise(const InferContext& context) {
  const OpDef& row = op_def(context.op);
  for (std::size_t i = 0; i < context.operands.size(); ++i)
    if (!context.operands[i].is_number() && takes_part(row, i) && !admits(row.dtype_rule, context.type(i).dtype))
      context.fail(
          fmt::format("{} {}, it is {}", operand_name(row, i), wanted(row.dtype_rule), name(context.type(i).dtype)));
  const std::optional<DType> dtype = promoted(row, context.operands, &context);
  const DType result = row.dtype_rule == DTypeRule::to_bool ? DType::boolean : dtype.value_or(DType::boolean);
  return {result, broadcast_all(context), Layout::standard};
}

std::optional<DType> number_dtype(const OpDef& row, std::span<const Operand> operands) {
  std::optional<DType> dtype = promoted(row, operands, nullptr);
  if (dtype || row.dtype_rule != DTypeRule::to_bool) return dtype;
  for (const Operand& operand : operands)  // logical ops: the other operand's
    if (!operand.is_number()) dtype = operand.value.type().dtype;
  return dtype;
}

DType operand_dtype(const Node& node, std::size_t operand) {
  const OpDef& row = op_def(node.op);
  const Operand& o = node.operands[operand];
  if (!o.is_number() && !takes_part(row, operand)) return o.value.type().dtype;
  if (!takes_part(row, operand) && row.dtype_rule == DTypeRule::own) return DType::boolean;  // a number as condition
  return number_dtype(row, node.operands).value_or(node.type.dtype);
}

}  // namespace fusejit::ir
