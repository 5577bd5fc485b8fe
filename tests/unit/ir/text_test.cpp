// The lexer: tokens with their places, refusals at the right line and column, and no crash on any bytes.
#include "ir/base/text.h"

#include <gtest/gtest.h>

#include <random>

namespace fusejit::ir {
namespace {

// "name:relu symbol:( percent:x ..." of a whole text.
std::string tokens(std::string_view text) {
  static constexpr const char* kKinds[] = {"name", "percent", "at", "number", "symbol", "string", "end"};
  Lexer lexer(text);
  std::string out;
  while (lexer.peek().kind != TokenKind::end) {
    const Token token = lexer.take();
    if (!out.empty()) out += ' ';
    if (token.kind != TokenKind::symbol) out += std::string(kKinds[static_cast<int>(token.kind)]) + ':';
    out += token.text;
  }
  return out;
}

TEST(Lexer, Tokens) {
  const struct {
    const char* text;
    const char* tokens;
  } table[] = {
      {"", ""},
      {" ; only a comment \xff\xc3", ""},
      {"%2 = relu(%x) : f32[8]:nhwc", "percent:2 = name:relu ( percent:x ) : name:f32 [ number:8 ] : name:nhwc"},
      {"graph @step ->", "name:graph at:step ->"},
      {"{a} @3 : f32", "{ name:a } at:3 : name:f32"},
      {"0..16", "number:0 .. number:16"},
      {"0 ..min(3,4)", "number:0 .. name:min ( number:3 , number:4 )"},
      {"0x10..0x1p4", "number:0x10 .. number:0x1p4"},
      {"1.5..2.5", "number:1.5 .. number:2.5"},
      {"%i % 4", "percent:i % number:4"},
      {"(%i + 1)%4", "( percent:i + number:1 ) percent:4"},  // a '%' with a name character after it is an identifier
      {"%i/4-%j*2", "percent:i / number:4 - percent:j * number:2"},
      {"%a>=%b==%c<%d=%e", "percent:a >= percent:b == percent:c < percent:d = percent:e"},
      {"%return %f32 %_ %00", "percent:return percent:f32 percent:_ percent:00"},
      {"1e-05 1E+5 2e3 0.125 0X1.8P-3 007",
       "number:1e-05 number:1E+5 number:2e3 number:0.125 number:0X1.8P-3 number:007"},
      {"grid.x 1. .5", "name:grid . name:x number:1 . . number:5"},  // a number has digits around its '.'
      {"-inf nan", "- name:inf name:nan"},
      {"on \"x86:avx2,l1=32k\" \"\"-> \"; no comment\"",
       "name:on string:x86:avx2,l1=32k string: -> string:; no comment"},
      {"a;b\r\nc\t;\nd", "name:a name:c name:d"},
  };
  for (const auto& row : table) {
    EXPECT_EQ(tokens(row.text), row.tokens) << row.text;
  }
}

struct Refusal {
  std::string text;
  int line;
  int column;
  std::string sentence;
};

TEST(Lexer, Refusals) {
  const std::string long_name(256, 'a');
  const Refusal table[] = {
      {"a\n  $", 2, 3, "unexpected character '$'"},
      {"a\r\n\r\n caf\xc3\xa9", 3, 5, "unexpected byte 0xc3"},
      {"\xef\xbb\xbfgraph", 1, 1, "unexpected byte 0xef"},
      {std::string("a\0b", 3), 1, 2, "unexpected byte 0x00"},
      {"3x", 1, 1, "'3' runs into 'x'"},
      {"%0a", 1, 1, "'%0' runs into 'a'"},
      {"1e+", 1, 1, "'1' runs into 'e'"},
      {"0x", 1, 1, "'0' runs into 'x'"},
      {"a > b", 1, 3, "unexpected character '>'"},
      {"@ x", 1, 1, "unexpected character '@'"},
      {"; \xff\n \xff", 2, 2, "unexpected byte 0xff"},
      {"(" + long_name, 1, 2, "a number or name of more than 255 characters"},
      {"%" + long_name, 1, 1, "a number or name of more than 255 characters"},
      {std::string(5000, '1'), 1, 1, "a number or name of more than 4096 characters"},
  };
  for (const Refusal& row : table) {
    try {
      tokens(row.text);
      ADD_FAILURE() << "accepted: " << row.text;
    } catch (const ParseError& error) {
      EXPECT_EQ(error.line, row.line) << row.text;
      EXPECT_EQ(error.column, row.column) << row.text;
      EXPECT_EQ(error.sentence, row.sentence) << row.text;
    }
  }
  EXPECT_EQ(tokens(std::string(255, 'a')).size(), 5u + 255u);
}

TEST(Lexer, ExpectSaysWhatItFound) {
  const auto sentence = [](std::string_view text, auto parse) -> std::string {
    Lexer lexer(text);
    try {
      parse(lexer);
    } catch (const ParseError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(sentence(" %x", [](Lexer& l) { l.expect("("); }), "1:2: error: expected '(' but found '%x'");
  EXPECT_EQ(sentence("\n", [](Lexer& l) { l.expect("("); }), "2:1: error: expected '(' but found the end of the text");
  EXPECT_EQ(sentence("@a", [](Lexer& l) { l.expect(TokenKind::name, "an op"); }),
            "1:1: error: expected an op but found '@a'");
  EXPECT_EQ(sentence("relu(", [](Lexer& l) { l.expect(TokenKind::name, "an op"), l.expect("("); }), "");
}

TEST(Lexer, AcceptTakesOnlyItsOwn) {
  Lexer lexer("%x x 1");
  EXPECT_FALSE(lexer.accept("x"));  // %x is no name
  EXPECT_EQ(lexer.take().text, "x");
  EXPECT_FALSE(lexer.accept("("));
  EXPECT_TRUE(lexer.accept("x"));
  EXPECT_FALSE(lexer.accept("1"));
  EXPECT_EQ(lexer.take().kind, TokenKind::number);
  EXPECT_EQ(lexer.take().kind, TokenKind::end);
  EXPECT_EQ(lexer.take().kind, TokenKind::end);  // the end stays
  EXPECT_FALSE(lexer.accept(""));
}

TEST(Lexer, Numbers) {
  const auto number = [](std::string_view text) { return Lexer::number(Lexer(text).peek()); };
  EXPECT_TRUE(number("18446744073709551615").is_integer);
  EXPECT_EQ(number("18446744073709551615").integer, UINT64_MAX);
  EXPECT_FALSE(number("18446744073709551616").is_integer);
  EXPECT_EQ(number("18446744073709551616").real, 0x1p64);
  EXPECT_FALSE(number("3.0").is_integer);
  EXPECT_FALSE(number("3e0").is_integer);
  EXPECT_EQ(number("3e0").real, 3.0);
  EXPECT_FALSE(number("0x10").is_integer);
  EXPECT_EQ(number("0x10").real, 16.0);
  EXPECT_EQ(number("0x1.8p-3").real, 0.1875);
  EXPECT_THROW(number("relu"), ParseError);
}

TEST(Writer, Indents) {
  Writer writer;
  writer.open("kernel {");
  writer.open("phase {");
  writer.line("store");
  writer.close();
  writer.close("}");
  EXPECT_EQ(std::move(writer).str(), "kernel {\n  phase {\n    store\n  }\n}\n");
}

}  // namespace
}  // namespace fusejit::ir
