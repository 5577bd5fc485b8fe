// The lexer on hostile bytes: whatever they are, it ends, with tokens that lie in the text in order or with a
// ParseError at a place of the text.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "ir/base/number.h"
#include "ir/base/scalar.h"
#include "ir/base/text.h"
#include "tests/support/mutate.h"

namespace fusejit::ir {
namespace {

constexpr std::string_view kSeeds[] = {
    "graph @block(%x: f16[8,64,56,56]:nhwc, %b: f16[64]) {\n  %0 = bias_add(%x, %b) @1 : f16[8,64,56,56]:nhwc ; why\r\n"
    "  %1 = clamp(%0) {min=-inf, max=1e-05} : f16[8,64,56,56]:nhwc\n  return %1\n}\n",
    "kernel @scale(%x: f32[1000003] read align 64, %s: f32 param, %y: f32[1000003] write) on x86:avx512 {\n"
    "  phase { for %t in 0..min(977, 62500 - %t*977) threads { if %t % 4 >= 2 and %t == 63 { store %y[%t/4], 0x1.8p-3 "
    "nt } } } }",
    "1..2 0x1p 1e+ %%a @@ .. ... ->> ==> >== 0..16 \"quoted; %x\" \"\" ; \xff\xfe",
};

// Offset of a position, counted the slow way.
std::size_t offset_of(std::string_view text, Position at) {
  std::size_t offset = 0;
  for (int line = 1; line < at.line; ++line) offset = text.find('\n', offset) + 1;
  return offset + static_cast<std::size_t>(at.column) - 1;
}

void check(std::string_view text) {
  std::size_t last = 0;
  std::size_t count = 0;
  try {
    Lexer lexer(text);
    while (lexer.peek().kind != TokenKind::end) {
      const Token token = lexer.take();
      const bool is_string = token.kind == TokenKind::string;
      const std::size_t sign = token.kind == TokenKind::percent || token.kind == TokenKind::at || is_string ? 1 : 0;
      const auto start = static_cast<std::size_t>(token.text.data() - text.data());
      ASSERT_TRUE(!token.text.empty() || is_string);
      ASSERT_EQ(offset_of(text, token.at) + sign, start);
      ASSERT_GE(start - sign, last);
      last = start + token.text.size();
      ASSERT_LE(last, text.size());
      if (token.kind == TokenKind::number) (void)Lexer::number(token);
      ASSERT_LE(++count, text.size());
    }
    ASSERT_EQ(offset_of(text, lexer.peek().at), text.size());
  } catch (const ParseError& error) {
    ASSERT_GE(error.column, 1);
    const std::size_t offset = offset_of(text, {error.line, error.column});
    ASSERT_GE(offset, last);
    ASSERT_LT(offset, text.size());
    for (const char c : error.sentence) ASSERT_TRUE(c >= ' ' && c <= '~') << error.sentence;
  }
}

TEST(LexerFuzz, Mutations) {
  std::mt19937 random(20);
  for (int i = 0; i < 20000; ++i) {
    const std::string text = mutated(kSeeds[i % 3], random);
    SCOPED_TRACE(text);
    check(text);
    if (HasFatalFailure()) return;
  }
}

TEST(LexerFuzz, AnyBytes) {
  std::mt19937 random(21);
  for (int i = 0; i < 20000; ++i) {
    std::string text(i % 64, '\0');
    for (char& c : text) c = static_cast<char>(random() % (i % 2 == 0 ? 256 : 128));
    check(text);
    if (HasFatalFailure()) return;
  }
}

TEST(LexerFuzz, EveryPrefixAndEveryByteAlone) {
  for (const std::string_view seed : kSeeds) {
    for (std::size_t length = 0; length <= seed.size(); ++length) check(seed.substr(0, length));
  }
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(3, static_cast<char>(byte));
    check(text);
    check("a " + text + " b");
  }
}

TEST(LexerFuzz, LongTextsTakeLinearTime) {
  constexpr std::size_t kMany = 1 << 22;
  for (const char c : {' ', '\n', ';', '"', '(', '-', '.', 'a', '0', '%', '>'}) {
    const std::string text(kMany, c);
    try {
      Lexer lexer(text);
      while (lexer.peek().kind != TokenKind::end) lexer.take();
    } catch (const ParseError&) {
    }
  }
}

// Numbers from any characters that numbers are made of: a value or nothing, and a value prints and reads back.
TEST(NumberFuzz, ReadsOrRefuses) {
  constexpr std::string_view kCharacters = "0123456789.eEpPxX+-abcf";
  constexpr DType kDTypes[] = {DType::f16, DType::bf16, DType::f32,     DType::f64, DType::i32, DType::i64,
                               DType::u32, DType::u64,  DType::boolean, DType::i8,  DType::u8,  DType::i16};
  std::mt19937 random(22);
  int read = 0;
  for (int i = 0; i < 200000; ++i) {
    std::string text = i % 3 == 0 ? "0x" : "";
    for (std::size_t n = 1 + random() % 12; n > 0; --n) text += kCharacters[random() % kCharacters.size()];
    for (const DType dtype : kDTypes) {
      const std::optional<Scalar> value = read_literal(text, dtype);
      if (!value) continue;
      ++read;
      const std::optional<Scalar> back = read_literal(literal_text(*value), dtype);
      ASSERT_TRUE(back) << text;
      ASSERT_EQ(back->bits, value->bits) << text << ' ' << literal_text(*value);
    }
  }
  EXPECT_GT(read, 10000);
}

// Two decimals in order are read in order, in every float dtype: no rounding step may swap neighbours.
TEST(NumberFuzz, ReadingIsMonotone) {
  std::mt19937_64 random(23);
  for (int i = 0; i < 20000; ++i) {
    const std::string head = std::to_string(random() % 10) + "." + std::to_string(random());
    const std::string tail = "e" + std::to_string(static_cast<int>(random() % 100) - 50);
    const std::string low = head + "0" + std::to_string(random()) + tail;
    const std::string high = head + "9" + tail;
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
      const double a = read_literal(low, dtype)->as_double();
      const double b = read_literal(high, dtype)->as_double();
      ASSERT_LE(a, b) << low << ' ' << high << ' ' << name(dtype);
      if (dtype == DType::f64) {
        ASSERT_EQ(compare_with(low, std::nextafter(b, 1e300)), -1) << low;
        ASSERT_EQ(compare_with(high, std::nextafter(a, 0.0)), 1) << high;
      }
    }
  }
}

}  // namespace
}  // namespace fusejit::ir
