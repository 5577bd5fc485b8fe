#include "ir/base/text.h"

#include <array>

#include "ir/base/check.h"
#include "ir/base/limits.h"
#include "ir/base/number.h"

namespace fusejit::ir {
namespace {

constexpr std::size_t kMaxNumber = 4096;  // more than any f64 needs, printed in full

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex_digit(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_char(char c) { return is_name_start(c) || is_digit(c); }

// How a token is shown in an error.
std::string shown(const Token& token) {
  constexpr std::size_t kLong = 40;
  const std::string_view text = token.text.substr(0, kLong);
  const char* dots = token.text.size() > kLong ? "..." : "";
  switch (token.kind) {
    case TokenKind::end:
      return "the end of the text";
    case TokenKind::percent:
      return fmt::format("'%{}{}'", text, dots);
    case TokenKind::at:
      return fmt::format("'@{}{}'", text, dots);
    default:
      return fmt::format("'{}{}'", text, dots);
  }
}

// The end of the digits that `is_member` accepts from `from` on.
std::size_t skip(std::string_view text, std::size_t from, bool (*is_member)(char)) {
  while (from < text.size() && is_member(text[from])) ++from;
  return from;
}

// The end of the number that starts at `from`. A '.' belongs to it unless another one follows: 0..16 are three tokens.
std::size_t number_end(std::string_view text, std::size_t from) {
  const auto at = [&](std::size_t i) { return i < text.size() ? text[i] : '\0'; };
  const bool hex = at(from) == '0' && (at(from + 1) == 'x' || at(from + 1) == 'X') && is_hex_digit(at(from + 2));
  const auto is_member = hex ? is_hex_digit : is_digit;
  std::size_t end = skip(text, hex ? from + 2 : from, is_member);
  if (at(end) == '.' && is_member(at(end + 1))) end = skip(text, end + 1, is_member);
  const char mark = static_cast<char>(at(end) | 0x20);
  if (mark == (hex ? 'p' : 'e')) {
    std::size_t digits = end + 1;
    if (at(digits) == '+' || at(digits) == '-') ++digits;
    if (is_digit(at(digits))) end = skip(text, digits, is_digit);
  }
  return end;
}

// The length of the symbol at the start of `text`, or 0.
std::size_t symbol_length(std::string_view text) {
  constexpr std::array<std::string_view, 4> kPairs = {">=", "==", "..", "->"};
  for (const std::string_view pair : kPairs) {
    if (text.starts_with(pair)) return 2;
  }
  constexpr std::string_view kSingles = "(){}[],:=+-*/%<.";
  return kSingles.find(text[0]) == std::string_view::npos ? 0 : 1;
}

}  // namespace

Lexer::Lexer(std::string_view text) : text_(text) { advance(); }

Token Lexer::take() {
  const Token taken = token_;
  advance();
  return taken;
}

bool Lexer::accept(std::string_view symbol_or_name) {
  const bool is_it =
      (token_.kind == TokenKind::symbol || token_.kind == TokenKind::name) && token_.text == symbol_or_name;
  if (is_it) advance();
  return is_it;
}

Token Lexer::expect(std::string_view symbol_or_name) {
  const Token token = token_;
  if (!accept(symbol_or_name)) fail(token, fmt::format("expected '{}' but found {}", symbol_or_name, shown(token)));
  return token;
}

Token Lexer::expect(TokenKind kind, std::string_view what) {
  if (token_.kind != kind) fail(token_, fmt::format("expected {} but found {}", what, shown(token_)));
  return take();
}

void Lexer::fail(const Token& token, const std::string& sentence) { fail(token.at, sentence); }
void Lexer::fail(Position at, const std::string& sentence) { throw ParseError(at.line, at.column, sentence); }

NumberToken Lexer::number(const Token& token) {
  NumberToken result;
  const std::optional<std::uint64_t> integer = read_decimal_integer(token.text);
  result.is_integer = integer.has_value();
  result.integer = integer.value_or(0);
  const std::optional<double> real = read_double(token.text);
  if (!real) fail(token, fmt::format("expected a number but found {}", shown(token)));
  result.real = *real;
  return result;
}

void Lexer::advance() {
  while (offset_ < text_.size()) {
    const char c = text_[offset_];
    if (c == '\n') {
      ++line_;
      line_start_ = offset_ + 1;
    } else if (c == ';') {
      offset_ = std::min(text_.find('\n', offset_), text_.size());
      continue;
    } else if (c != ' ' && c != '\t' && c != '\r') {
      break;
    }
    ++offset_;
  }
  token_ = {TokenKind::end, {}, {line_, static_cast<int>(offset_ - line_start_) + 1}};
  if (offset_ == text_.size()) return;

  const char c = text_[offset_];
  const char next = offset_ + 1 < text_.size() ? text_[offset_ + 1] : '\0';
  const bool has_sign = (c == '%' || c == '@') && is_name_char(next);
  const std::size_t start = offset_ + (has_sign ? 1 : 0);
  std::size_t end = 0;
  if (has_sign || is_name_start(c)) {
    end = skip(text_, start, is_name_start(text_[start]) ? is_name_char : is_digit);
    token_.kind = !has_sign ? TokenKind::name : c == '%' ? TokenKind::percent : TokenKind::at;
  } else if (is_digit(c)) {
    end = number_end(text_, start);
    token_.kind = TokenKind::number;
  } else if (c == '"') {
    return string();
  } else {
    end = start + symbol_length(text_.substr(start));
    token_.kind = TokenKind::symbol;
    const bool printable = c > ' ' && c <= '~';
    if (end == start && printable) fail(token_, fmt::format("unexpected character '{}'", c));
    if (end == start) fail(token_, fmt::format("unexpected byte 0x{:02x}", static_cast<unsigned char>(c)));
  }
  token_.text = text_.substr(start, end - start);
  offset_ = end;
  if (token_.kind == TokenKind::symbol) return;
  const std::size_t limit = token_.kind == TokenKind::number ? kMaxNumber : kMaxName;
  if (end - start > limit) fail(token_, fmt::format("a number or name of more than {} characters", limit));
  // 3x, 1e+, %0a: neither a number nor a name.
  if (end < text_.size() && is_name_char(text_[end])) {
    fail(token_, fmt::format("{} runs into '{}'", shown(token_), text_[end]));
  }
}

// At the opening quote.
void Lexer::string() {
  const std::size_t start = offset_ + 1;
  const std::size_t end = skip(text_, start, [](char c) { return c >= ' ' && c <= '~' && c != '"'; });
  if (end == text_.size() || text_[end] != '"') fail(token_, "a text in quotes does not end on its line");
  token_.kind = TokenKind::string;
  token_.text = text_.substr(start, end - start);
  offset_ = end + 1;
}

}  // namespace fusejit::ir
