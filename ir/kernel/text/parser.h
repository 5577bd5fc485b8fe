// What the parsers of kernels, fragments and plans share: tokens with lookahead, names in scopes, indices and literals.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/kernel/walk.h"

namespace fusejit::ir {

enum class SymbolKind : std::uint8_t { value, variable, memory };
struct Symbol {
  SymbolKind kind;
  int id;
};

// Names that can be seen. Leaving a scope forgets its names; defining a visible name is an error (V8).
class Scopes {
 public:
  void enter() { marks_.push_back(order_.size()); }
  void leave();
  void define(const Token& name, Symbol symbol);
  Symbol find(const Token& name) const;

 private:
  std::unordered_map<std::string_view, Symbol> visible_;
  std::vector<std::string_view> order_;
  std::vector<std::size_t> marks_;
};

// A number not yet read into a dtype.
struct RawLiteral {
  bool negative = false;
  Token token;
};

class TokenReader {
 public:
  explicit TokenReader(std::string_view text);

  const Token& peek(std::size_t ahead = 0) const { return tokens_[std::min(next_ + ahead, tokens_.size() - 1)]; }
  Token take();
  bool is(std::string_view symbol_or_name, std::size_t ahead = 0) const;
  bool accept(std::string_view symbol_or_name);
  Token expect(std::string_view symbol_or_name);
  Token expect(TokenKind kind, std::string_view what);
  std::int64_t integer(std::string_view what);  // an int literal that fits i64
  DType dtype();
  std::vector<DType> types();  // ":" dtype {"," dtype}
  bool at_literal() const;
  RawLiteral literal();
  static Scalar read(const RawLiteral& literal, DType dtype);

 private:
  std::vector<Token> tokens_;
  std::size_t next_ = 0;
};

// Index expressions, canonical with the ranges of the loops around. Throws ParseError.
class IndexReader {
 public:
  IndexReader(TokenReader& tokens, const Scopes& scopes, const VariableRanges& ranges)
      : tokens_(tokens), scopes_(scopes), ranges_(ranges) {}
  Index read();
  Compare compare();

 private:
  Index sum();
  Index term();
  Index factor();
  TokenReader& tokens_;
  const Scopes& scopes_;
  const VariableRanges& ranges_;
  int depth_ = 0;
};

// One kernel where `tokens` stands; what follows it is left there.
Kernel parse_kernel(TokenReader& tokens);

}  // namespace fusejit::ir
