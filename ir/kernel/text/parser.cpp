#include "ir/kernel/text/parser.h"

namespace fusejit::ir {
namespace {

std::string shown(const Token& token) {
  if (token.kind == TokenKind::end) return "the end of the text";
  const char* sign = token.kind == TokenKind::percent ? "%" : token.kind == TokenKind::at ? "@" : "";
  return fmt::format("'{}{}'", sign, token.text.substr(0, 40));
}

}  // namespace

void Scopes::leave() {
  for (; order_.size() > marks_.back(); order_.pop_back()) visible_.erase(order_.back());
  marks_.pop_back();
}

void Scopes::define(const Token& name, Symbol symbol) {
  if (!visible_.emplace(name.text, symbol).second)
    Lexer::fail(name, fmt::format("V8: %{} is already defined here", name.text));
  order_.push_back(name.text);
}

Symbol Scopes::find(const Token& name) const {
  const auto it = visible_.find(name.text);
  if (it == visible_.end()) Lexer::fail(name, fmt::format("V8: %{} is not defined here", name.text));
  return it->second;
}

TokenReader::TokenReader(std::string_view text) {
  Lexer lexer(text);
  do tokens_.push_back(lexer.take());
  while (tokens_.back().kind != TokenKind::end);
}

Token TokenReader::take() {
  const Token token = peek();
  next_ = std::min(next_ + 1, tokens_.size() - 1);
  return token;
}

bool TokenReader::is(std::string_view text, std::size_t ahead) const {
  const Token& t = peek(ahead);
  return (t.kind == TokenKind::symbol || t.kind == TokenKind::name) && t.text == text;
}

bool TokenReader::accept(std::string_view text) {
  if (!is(text)) return false;
  take();
  return true;
}

Token TokenReader::expect(std::string_view text) {
  if (!is(text)) Lexer::fail(peek(), fmt::format("expected '{}' but found {}", text, shown(peek())));
  return take();
}

Token TokenReader::expect(TokenKind kind, std::string_view what) {
  if (peek().kind != kind) Lexer::fail(peek(), fmt::format("expected {} but found {}", what, shown(peek())));
  return take();
}

std::int64_t TokenReader::integer(std::string_view what) {
  const Token token = expect(TokenKind::number, what);
  const NumberToken number = Lexer::number(token);
  if (!number.is_integer || number.integer > static_cast<std::uint64_t>(INT64_MAX))
    Lexer::fail(token, fmt::format("expected {} but found '{}'", what, token.text));
  return static_cast<std::int64_t>(number.integer);
}

DType TokenReader::dtype() {
  const Token token = expect(TokenKind::name, "a dtype");
  const std::optional<DType> dtype = dtype_named(token.text);
  if (!dtype) Lexer::fail(token, fmt::format("'{}' is not a dtype", token.text));
  return *dtype;
}

std::vector<DType> TokenReader::types() {
  std::vector<DType> list;
  expect(":");
  do list.push_back(dtype());
  while (accept(","));
  return list;
}

bool TokenReader::at_literal() const { return peek().kind == TokenKind::number || is("-") || is("inf") || is("nan"); }

RawLiteral TokenReader::literal() {
  RawLiteral raw;
  raw.negative = accept("-");
  if (peek().kind != TokenKind::number && (raw.negative ? !is("inf") && !is("nan") : !at_literal()))
    Lexer::fail(peek(), fmt::format("expected a number but found {}", shown(peek())));
  raw.token = take();
  return raw;
}

Scalar TokenReader::read(const RawLiteral& raw, DType dtype) {
  const std::string text = (raw.negative ? "-" : "") + std::string(raw.token.text);
  const std::optional<Scalar> scalar = read_literal(text, dtype);
  if (!scalar) Lexer::fail(raw.token, fmt::format("V6: {} is not a literal of {}", text.substr(0, 60), name(dtype)));
  return *scalar;
}

Index IndexReader::read() {
  const Token start = tokens_.peek();
  try {
    return sum().simplify(ranges_);
  } catch (const ParseError&) {
    throw;
  } catch (const UserError& error) {
    Lexer::fail(start, error.what());
  }
}

Compare IndexReader::compare() {
  const Token start = tokens_.peek();
  Compare compare;
  const Index left = read();
  if (tokens_.accept(">=")) {
    compare.kind = CompareKind::ge;
  } else if (tokens_.accept("==")) {
    compare.kind = CompareKind::eq;
  } else {
    tokens_.expect("<");
  }
  const Index right = read();
  try {
    const Index difference = (left - right).simplify(ranges_);
    compare.right = -difference.constant();
    compare.left = difference - Index(difference.constant());
  } catch (const ParseError&) {
    throw;
  } catch (const UserError& error) {
    Lexer::fail(start, error.what());
  }
  return compare;
}

Index IndexReader::sum() {
  if (++depth_ > kMaxNesting) Lexer::fail(tokens_.peek(), fmt::format("more than {} nested parentheses", kMaxNesting));
  const bool negative = tokens_.accept("-");
  Index total = negative ? term() * -1 : term();
  for (;;) {
    if (tokens_.accept("+")) {
      total = total + term();
    } else if (tokens_.accept("-")) {
      total = total - term();
    } else {
      --depth_;
      return total;
    }
  }
}

Index IndexReader::term() {
  Index product = factor();
  for (;;) {
    const Token op = tokens_.peek();
    if (tokens_.accept("*")) {
      const Index right = factor();
      if (!product.is_constant() && !right.is_constant())
        Lexer::fail(op, "only one factor of a product may vary in an index expression");
      product = right.is_constant() ? product * right.constant() : right * product.constant();
    } else if (tokens_.accept("/") || tokens_.accept("%")) {
      const Token at = tokens_.peek();
      const std::int64_t divisor = tokens_.integer("a positive integer");
      if (divisor == 0) Lexer::fail(at, "an index expression is divided by zero");
      product = op.text == "/" ? product / divisor : product % divisor;
    } else {
      return product;
    }
  }
}

Index IndexReader::factor() {
  const Token token = tokens_.peek();
  if (tokens_.accept("(")) {
    Index inner = sum();
    tokens_.expect(")");
    return inner;
  }
  if (token.kind == TokenKind::number) {
    const std::int64_t number = tokens_.integer("an integer");
    return Index(0) + Index(number);  // checked against the range
  }
  if (token.kind != TokenKind::percent) Lexer::fail(token, fmt::format("expected an index but found {}", shown(token)));
  const Symbol symbol = scopes_.find(tokens_.take());
  if (symbol.kind == SymbolKind::memory) Lexer::fail(token, fmt::format("%{} is memory, not an index", token.text));
  return symbol.kind == SymbolKind::variable ? Index::variable(symbol.id) : Index::value(symbol.id);
}

}  // namespace fusejit::ir
