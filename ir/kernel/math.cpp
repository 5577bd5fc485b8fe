#include "ir/kernel/math.h"

#include <array>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "ir/base/check.h"

namespace fusejit::ir {
namespace {

// An argument as written: a value, or a number whose dtype is known only beside the other operands.
struct Operand {
  ValueId value = -1;
  bool negative = false;
  Token number;
};

class FragmentReader {
 public:
  FragmentReader(std::string_view text, int arguments, DType compute, bool has_fma) : lexer_(text), has_fma_(has_fma) {
    constexpr std::array<std::string_view, 3> kSeveral = {"a", "b", "c"};
    fragment_.arguments = arguments;
    for (int i = 0; i < arguments; ++i) names_[arguments == 1 ? "x" : kSeveral[i]] = new_value(compute);
  }

  Fragment read() && {
    while (!lexer_.accept("yield")) definition();
    const Token result = lexer_.expect(TokenKind::percent, "a value");
    fragment_.result = value_named(result);
    lexer_.expect(TokenKind::end, "the end of the fragment");
    return std::move(fragment_);
  }

 private:
  ValueId new_value(DType dtype) {
    fragment_.values.push_back(dtype);
    return static_cast<ValueId>(fragment_.values.size()) - 1;
  }

  ValueId value_named(const Token& token) const {
    const auto found = names_.find(token.text);
    if (found == names_.end()) Lexer::fail(token, fmt::format("%{} is not defined", token.text));
    return found->second;
  }

  DType type() {
    lexer_.expect(":");
    const Token token = lexer_.expect(TokenKind::name, "a dtype");
    const std::optional<DType> dtype = dtype_named(token.text);
    if (!dtype) Lexer::fail(token, fmt::format("'{}' is no dtype", token.text));
    return *dtype;
  }

  Operand operand() {
    Operand operand;
    if (lexer_.peek().kind == TokenKind::percent) {
      operand.value = value_named(lexer_.take());
      return operand;
    }
    operand.negative = lexer_.accept("-");
    operand.number = lexer_.take();
    return operand;
  }

  std::vector<Operand> operands() {
    std::vector<Operand> list;
    lexer_.expect("(");
    do list.push_back(operand());
    while (lexer_.accept(","));
    lexer_.expect(")");
    return list;
  }

  // A number takes the dtype of the first operand that is a value (the condition of a where aside), else of the result.
  DType number_type(Op op, const std::vector<Operand>& list, DType result) const {
    for (std::size_t i = op == Op::where ? 1 : 0; i < list.size(); ++i)
      if (list[i].value >= 0) return fragment_.values[static_cast<std::size_t>(list[i].value)];
    return result;
  }

  static Scalar literal(const Operand& operand, DType dtype) {
    const Token& token = operand.number;
    if (token.kind == TokenKind::name && (token.text == "inf" || token.text == "nan")) {
      const double value = token.text == "inf" ? HUGE_VAL : std::bit_cast<double>(0x7ff8000000000000u);
      return cast(Scalar::of(operand.negative ? -value : value), dtype);
    }
    if (token.kind != TokenKind::number) Lexer::fail(token, fmt::format("expected a number, not '{}'", token.text));
    const NumberToken number = Lexer::number(token);
    if (is_float(dtype)) return cast(Scalar::of(operand.negative ? -number.real : number.real), dtype);
    if (!number.is_integer) Lexer::fail(token, fmt::format("{} is no integer", token.text));
    return cast(Scalar::of(operand.negative ? 0 - number.integer : number.integer), dtype);
  }

  void definition() {
    const Token name = lexer_.expect(TokenKind::percent, "a definition or 'yield'");
    lexer_.expect("=");
    const Token op_token = lexer_.expect(TokenKind::name, "an op");
    const std::optional<Op> op = op_named(op_token.text);
    if (!op) Lexer::fail(op_token, fmt::format("'{}' is no op", op_token.text));
    const std::vector<Operand> list = operands();
    const DType result = type();
    const DType number = number_type(*op, list, result);
    std::vector<Arg> args;
    for (const Operand& o : list) args.push_back(o.value >= 0 ? Arg(o.value) : Arg(literal(o, number)));
    const ValueId value = define(*op, std::move(args), result);
    if (!names_.emplace(name.text, value).second) Lexer::fail(name, fmt::format("%{} is defined twice", name.text));
  }

  ValueId define(Op op, std::vector<Arg> args, DType result) {
    if (op == Op::fma && !has_fma_) {
      const Arg addend = args.back();
      args.pop_back();
      return define(Op::add, {define(Op::mul, std::move(args), result), addend}, result);
    }
    const ValueId value = new_value(result);
    fragment_.definitions.push_back({{value}, op, std::move(args), {}});
    return value;
  }

  Lexer lexer_;
  bool has_fma_;
  std::unordered_map<std::string_view, ValueId> names_;
  Fragment fragment_;
};

std::string_view text_of(Op op, DType compute) {
  const OpDef& row = op_def(op);
  return compute == f32 ? row.fragment_f32 : compute == f64 ? row.fragment_f64 : std::string_view();
}

}  // namespace

Fragment parse_fragment(std::string_view text, int arguments, DType compute, bool has_fma) {
  return FragmentReader(text, arguments, compute, has_fma).read();
}

bool has_fragment(Op op, DType compute) { return !text_of(op, compute).empty(); }

const Fragment& fragment(Op op, DType compute, bool has_fma) {
  struct Entry {
    std::once_flag read;
    Fragment fragment;
  };
  // Every slot is written once and never changes: not a state that anyone could see change. Never destroyed: threads
  // may compile until the process is gone.
  static auto& entries = *new std::array<Entry, static_cast<std::size_t>(Op::count_) * 4>;
  const std::string_view text = text_of(op, compute);
  FJ_ASSERT(!text.empty(), "op {} has no fragment for {}", name(op), name(compute));
  Entry& entry = entries[static_cast<std::size_t>(op) * 4 + (compute == f64 ? 2 : 0) + (has_fma ? 1 : 0)];
  std::call_once(entry.read, [&] {
    try {
      entry.fragment = parse_fragment(text, op_def(op).max_operands, compute, has_fma);
    } catch (const ParseError& error) {
      throw InternalError(fmt::format("fragment of {} for {}: {}", name(op), name(compute), error.what()));
    }
  });
  return entry.fragment;
}

}  // namespace fusejit::ir
