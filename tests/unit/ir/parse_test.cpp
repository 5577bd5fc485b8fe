// Graph texts: what is read, what is written back, and that no bytes do more harm than a ParseError.
#include <gtest/gtest.h>

#include "ir/graph.h"

namespace fusejit::ir {
namespace {

const char* const kStep = R"(graph @step(%x: f32[4,3,8,8], %w: f32[8,3,3,3], %b: f32[8], %g: f32[4,8,8,8], %lr: f32[]) {
  %0 = conv2d(%x, %w) {stride=[1,1], padding=[1,1,1,1], dilation=[1,1], groups=1} : f32[4,8,8,8]
  %1 = bias_add(%0, %b) : f32[4,8,8,8]
  %2 = relu(%1) : f32[4,8,8,8]
  %3 = le(%1, 0) : bool[4,8,8,8]
  %4 = where(%3, 0, %g) : f32[4,8,8,8]
  %5 = conv2d_weight_grad(%x, %4) {kernel_size=[3,3], stride=[1,1], padding=[1,1,1,1], dilation=[1,1], groups=1} : f32[8,3,3,3]
  %6 = mul(%lr, %5) : f32[8,3,3,3]
  %7 = sub(%w, %6) : f32[8,3,3,3]
  return %2, %7
}
)";

TEST(Text, CanonicalTextIsAFixedPoint) { EXPECT_EQ(print(parse_graph(kStep)), kStep); }

struct Pair {
  const char* text;
  const char* canonical;
};
TEST(Text, IsReadFreelyAndWrittenCanonically) {
  const Pair pairs[] = {
      {"graph @g(%x:f32[2])\r\n{%y=relu(%x):f32[2] return %y,%y,%x}",
       "graph @g(%x: f32[2]) {\n  %0 = relu(%x) : f32[2]\n  return %0, %0, %x\n}\n"},
      {"graph @g(%return: f32[2], %f32: f32[2]) { %0 = add(%return, %f32) : f32[2] return %0 } ; a comment \xc3\xa9",
       "graph @g(%return: f32[2], %f32: f32[2]) {\n  %0 = add(%return, %f32) : f32[2]\n  return %0\n}\n"},
      {"graph @g(%x: f32[2]) { %dead = exp(%x) : f32[2] %7 = mul(-0.0, %x) : f32[2] return %7 }",
       "graph @g(%x: f32[2]) {\n  %0 = mul(-0.0, %x) : f32[2]\n  return %0\n}\n"},
      {"graph @g(%x: f32[2,3]) { %0 = sum(%x) {keepdim=true, dim=[-1]} : f32[2,1] return %0 }",
       "graph @g(%x: f32[2,3]) {\n  %0 = sum(%x) {dim=[1], keepdim=true} : f32[2,1]\n  return %0\n}\n"},
      {"graph @g(%x: f32[2,3]) { %0 = sum(%x) : f32[] return %0 }",
       "graph @g(%x: f32[2,3]) {\n  %0 = sum(%x) {dim=[0,1], keepdim=false} : f32[]\n  return %0\n}\n"},
      {"graph @g(%x: f32[2,3]) { %0 = reshape(%x) {shape=[-1]} : f32[6] return %0 }",
       "graph @g(%x: f32[2,3]) {\n  %0 = reshape(%x) {shape=[6]} : f32[6]\n  return %0\n}\n"},
      {"graph @g(%x: f32[1,2,4,4]) { %0 = max_pool2d(%x) {kernel_size=[2,2]} : f32[1,2,2,2] return %0 }",
       "graph @g(%x: f32[1,2,4,4]) {\n  %0 = max_pool2d(%x) {kernel_size=[2,2], stride=[2,2], padding=[0,0,0,0], "
       "dilation=[1,1]} : "
       "f32[1,2,2,2]\n  return %0\n}\n"},
      {"graph @g() { %0 = constant() {shape=[5], data=[0x1p-3, inf, -inf, nan, 1e-5]} : f32[5] return %0 }",
       "graph @g() {\n  %0 = constant() {shape=[5], dtype=f32, data=[0.125,inf,-inf,nan,1e-05]} : f32[5]\n  return "
       "%0\n}\n"},
      {"graph @g() { %0 = full() {shape=[], value=9223372036854775807, dtype=i64} : i64[] return %0 }",
       "graph @g() {\n  %0 = full() {shape=[], value=9223372036854775807, dtype=i64} : i64[]\n  return %0\n}\n"},
      {"graph @g(%x: f32[1,2,3,4]:nhwc) { %0 = neg(%x) @3 : f32[1,2,3,4] %1 = neg(%0) : f32[1,2,3,4]:nhwc return %1 }",
       "graph @g(%x: f32[1,2,3,4]:nhwc) {\n  %0 = neg(%x) @3 : f32[1,2,3,4]\n  %1 = neg(%0) : f32[1,2,3,4]:nhwc\n  "
       "return %1\n}\n"},
      {"graph @g(%x: i64[1]) { %0 = add(%x, -9223372036854775808) : i64[1] return %0 }",
       "graph @g(%x: i64[1]) {\n  %0 = add(%x, -9223372036854775808) : i64[1]\n  return %0\n}\n"},
  };
  for (const Pair& pair : pairs) {
    const Graph g = parse_graph(pair.text);
    verify(g);
    EXPECT_EQ(print(g), pair.canonical);
    EXPECT_EQ(parse_graph(print(g)), g);
  }
}

struct Bad {
  const char* text;
  int line, column;
  const char* sentence;
};
TEST(Text, ErrorsHaveAPlaceAndASentence) {
  const Bad cases[] = {
      {"", 1, 1, "expected 'graph' but found the end of the text"},
      {"graph @g(%x: f32[2]) {\n  return %y\n}", 2, 10, "%y is not defined before its use"},
      {"graph @g(%x: f32[2], %x: f32[2]) { return %x }", 1, 22, "%x is defined twice"},
      {"graph @g(%0: f32[2]) { return %0 }", 1, 10, "expected a name that begins with a letter or '_'"},
      {"graph @g(%x: u32[2]) { return %x }", 1, 14, "'u32' is no dtype of a tensor"},
      {"graph @g(%x: f32[2]:nhwc) { return %x }", 1, 21, "only a type of rank 4 can be nhwc"},
      {"graph @g(%x: f32[1,1,1,1]:nchw) { return %x }", 1, 27, "the only layout that is written is 'nhwc'"},
      {"graph @g(%x: f32[1,2,3,4,5,6,7,8,9]) { return %x }", 1, 14, "a type has at most 8 dims"},
      {"graph @g(%x: f32[2]) { %0 = relu(%x) : f32[3] return %0 }", 1, 40,
       "the result is f32[2], the text says f32[3]"},
      {"graph @g(%x: f32[2]) { %0 = foo(%x) : f32[2] return %0 }", 1, 29, "there is no op 'foo'"},
      {"graph @g(%x: f32[2]) { return 3 }", 1, 31, "expected a value, '%id' but found '3'"},
      {"graph @g(%x: f32[2]) { return %x } graph", 1, 36, "a file holds one graph; text follows it"},
      {"graph @g(%x: i64[2]) { %0 = add(%x, 9223372036854775808) : i64[2] return %0 }", 1, 37,
       "an integer literal must fit 64 bits with sign"},
      {"graph @g(%x: f32[2]) { %0 = neg(%x) @4294967296 : f32[2] return %0 }", 1, 37,
       "a region is an integer of 32 bits"},
  };
  for (const Bad& c : cases) {
    try {
      parse_graph(c.text);
      ADD_FAILURE() << c.text;
    } catch (const ParseError& error) {
      EXPECT_EQ(error.sentence, c.sentence) << c.text;
      EXPECT_EQ(error.line, c.line) << c.text;
      EXPECT_EQ(error.column, c.column) << c.text;
    }
  }
}

// Anything but a graph is a ParseError, never another exception or a crash.
void expect_parse_error_or_graph(const std::string& text) {
  try {
    verify(parse_graph(text));
  } catch (const ParseError&) {
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what() << "\nfor:\n" << text.substr(0, 400);
  }
}

TEST(Text, CutAnywhereIsAnError) {
  const std::string text = kStep;
  for (std::size_t i = 0; i + 2 < text.size(); ++i) EXPECT_THROW(parse_graph(text.substr(0, i)), ParseError) << i;
}

TEST(Text, MutilatedTextsDoNoHarm) {
  const std::string text = kStep;
  std::uint32_t state = 12345;
  const auto random = [&](std::size_t n) { return (state = state * 1664525u + 1013904223u) / 7 % n; };
  const std::string letters = "%@(){}[],:=+-*/<>.0123456789abcdefxyz_ \n;\"\0\xff";
  for (int round = 0; round < 3000; ++round) {
    std::string bad = text;
    for (std::size_t k = 0; k <= random(4); ++k) {
      const std::size_t at = random(bad.size());
      switch (random(4)) {
        case 0:
          bad[at] = letters[random(letters.size())];
          break;
        case 1:
          bad.erase(at, random(20));
          break;
        case 2:
          bad.insert(at, 1, letters[random(letters.size())]);
          break;
        default:
          bad.insert(at, bad.substr(random(bad.size()), random(40)));
      }
    }
    expect_parse_error_or_graph(bad);
  }
}

TEST(Text, HostileNestingAndNumbers) {
  const auto repeat = [](const std::string& s, int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += s;
    return out;
  };
  const std::string head = "graph @g(%x: f32[2]) { %0 = ";
  const std::string bad[] = {
      repeat("(", 1'000'000),
      "graph @g(" + repeat("%x: f32[", 100'000),
      head + "relu(" + repeat("(", 500'000),
      head + "add(%x, " + repeat("9", 100'000) + ") : f32[2] return %0 }",
      head + "add(%x, 1e" + repeat("9", 200) + ") : f32[2] return %0 }",
      head + "relu(%x) {" + repeat("a=[", 100'000),
      head + "sum(%x) {dim=[" + repeat("0,", 200'000) + "0]} : f32[] return %0 }",
      head + "reshape(%x) {shape=[9223372036854775807,9223372036854775807]} : f32[2] return %0 }",
      head + "expand(%x) {shape=[1048576,1048576,2]} : f32[2] return %0 }",
      head + "pad(%x) {low=[9223372036854775807], high=[9223372036854775807]} : f32[2] return %0 }",
      head +
          "slice(%x) {starts=[-9223372036854775808], stops=[9223372036854775807], steps=[9223372036854775807]} : "
          "f32[2] return %0 }",
      head + "unslice(%x) {shape=[1099511627776], starts=[1099511627775], steps=[1099511627776]} : f32[2] return %0 }",
      head + "sum(%x) {dim=[-9223372036854775808]} : f32[] return %0 }",
      "graph @g(%x: f32[1,1,4,4], %w: f32[1,1,2,2]) { %0 = conv2d(%x, %w) {dilation=[1099511627776,1099511627776], "
      "padding=[1099511627776,0,0,0]} : f32[] return %0 }",
      "graph @g(%x: f32[1,1,4,4]) { %0 = max_pool2d(%x) {kernel_size=[1099511627776,1], stride=[0,0]} : f32[] return "
      "%0 }",
      "graph @g(%x: i64[2]) { %0 = one_hot(%x) {num_classes=9223372036854775807} : i64[2] return %0 }",
      "graph @" + repeat("a", 100'000) + "() {}",
      std::string("graph\0@g", 8),
      "\xef\xbb\xbfgraph @g() { return %x }",
  };
  for (const std::string& text : bad) expect_parse_error_or_graph(text);
}

}  // namespace
}  // namespace fusejit::ir
