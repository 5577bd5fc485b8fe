// The lexer that graph, plan and kernel texts share, and the writer that indents them. Names and numbers are those of
// ops.md §1. Errors are ParseError with line and column.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fusejit/error.h"

namespace fusejit::ir {

struct Position {
  int line = 0;  // 0: not from a text
  int column = 0;
};

enum class TokenKind : std::uint8_t {
  name,     // conv2d, f32, nhwc, inf, nan
  percent,  // %x, %12: `text` is the id without the sign. A '%' not followed by a name character is `symbol`
  at,       // @block, @1: `text` is without the sign
  number,   // 3, 0.5, 1e-05, 0x1p-3: unsigned; the sign is a symbol. Scalars read it exactly by read_literal
  symbol,   // one of ( ) { } [ ] , : = + - * / % < . >= == .. ->
  string,   // "printable characters on one line": `text` is what stands between the quotes
  end
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;
  Position at;
};

// One number token read as what it says: `is_integer` if it has no '.', exponent or hex-float form and fits u64.
struct NumberToken {
  bool is_integer = false;
  std::uint64_t integer = 0;
  double real = 0;
};

class Lexer {
 public:
  // `text` must outlive the lexer and its tokens.
  explicit Lexer(std::string_view text);

  const Token& peek() const { return token_; }
  Token take();
  // True and taken if the next token is that symbol or name.
  bool accept(std::string_view symbol_or_name);
  // Takes the token or throws "expected '(' but found ..." at it.
  Token expect(std::string_view symbol_or_name);
  Token expect(TokenKind kind, std::string_view what);
  // Throws ParseError at `token`.
  [[noreturn]] static void fail(const Token& token, const std::string& sentence);
  [[noreturn]] static void fail(Position at, const std::string& sentence);
  static NumberToken number(const Token& token);

 private:
  void advance();
  void string();
  std::string_view text_;
  std::size_t offset_ = 0;
  int line_ = 1;
  std::size_t line_start_ = 0;
  Token token_;
};

// Text with two blanks per level.
class Writer {
 public:
  void line(std::string_view text) { out_.append(static_cast<std::size_t>(level_) * 2, ' ').append(text).append("\n"); }
  void open(std::string_view text) { line(text), ++level_; }
  void close(std::string_view text = "}") { --level_, line(text); }
  void reopen(std::string_view text) { --level_, open(text); }  // "} else {"
  std::string str() && { return std::move(out_); }

 private:
  std::string out_;
  int level_ = 0;
};

}  // namespace fusejit::ir
