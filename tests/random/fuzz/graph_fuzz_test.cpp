// The graph parser on damaged graphs: it ends with a graph whose text is stable and that verifies, or with a UserError
// or UnsupportedError. Never with anything else, whatever the bytes.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "ir/graph.h"
#include "tests/support/mutate.h"

namespace fusejit::ir {
namespace {

// One line per rule of the text form: layouts, attributes of each kind, numbers, regions, ops of every family.
constexpr std::string_view kGraphs[] = {
    R"(graph @step(%x: f32[4,3,8,8], %w: f32[8,3,3,3], %b: f32[8], %g: f32[4,8,8,8], %lr: f32[]) {
  %0 = conv2d(%x, %w) {stride=[1,1], padding=[1,1,1,1], dilation=[1,1], groups=1} : f32[4,8,8,8]
  %1 = bias_add(%0, %b) : f32[4,8,8,8]
  %2 = relu(%1) : f32[4,8,8,8]
  %3 = le(%1, 0) : bool[4,8,8,8]
  %4 = where(%3, 0, %g) : f32[4,8,8,8]
  %5 = conv2d_weight_grad(%x, %4) {kernel_size=[3,3], padding=[1,1,1,1]} : f32[8,3,3,3]
  %6 = mul(%lr, %5) @2 : f32[8,3,3,3]
  %7 = sub(%w, %6) : f32[8,3,3,3]
  return %2, %7
})",
    R"(graph @views(%x: bf16[2,3,4,5]:nhwc, %i: i64[2,3,4,1], %s: i64[]) { ; a comment
  %p = permute(%x) {dims=[0,2,3,-3]} : bf16[2,4,5,3]
  %q = slice(%p) {starts=[0,1,0,0], stops=[2,4,5,3], steps=[1,2,1,1]} : bf16[2,2,5,3]
  %r = pad(%q) {low=[0,1,0,0], high=[0,0,2,0], value=-inf} : bf16[2,3,7,3]
  %f = full() {shape=[2,3,7,3], value=1e-05, dtype=bf16} : bf16[2,3,7,3]
  %t = concat(%r, %f) {dim=-1} : bf16[2,3,7,6]
  %c = clamp(%t) {min=-0x1p-3, max=6} : bf16[2,3,7,6]
  %m = mean(%c) {dim=[0,2], keepdim=true} : bf16[1,3,1,6]
  %a = argmax(%m) {dim=3} : i64[1,3,1]
  %d = dropout(%c, %s) {p=0.5, stream=3} : bf16[2,3,7,6]
  %k = constant() {shape=[3], dtype=i32, data=[1,-2,3]} : i32[3]
  return %a, %d, %k, %x
})",
};

bool check_graph(const std::string& text) {
  try {
    const Graph graph = parse_graph(text);
    verify(graph);
    const std::string printed = print(graph);
    EXPECT_EQ(print(parse_graph(printed)), printed);
    return true;
  } catch (const UserError&) {
    return false;
  } catch (const UnsupportedError&) {
    return false;
  }
}

TEST(GraphFuzz, SeedsAreAccepted) {
  for (const std::string_view text : kGraphs) EXPECT_TRUE(check_graph(std::string(text))) << text;
}

TEST(GraphFuzz, DamagedGraphs) {
  std::mt19937 random(41);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string damaged = mutated(kGraphs[i % 2], random);
    SCOPED_TRACE(damaged);
    accepted += check_graph(damaged) ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(accepted, 100);
}

TEST(GraphFuzz, EveryPrefix) {
  for (const std::string_view text : kGraphs) {
    for (std::size_t length = 0; length < text.size() - 1; ++length) {
      EXPECT_FALSE(check_graph(std::string(text.substr(0, length))));
    }
  }
}

TEST(GraphFuzz, LongTexts) {
  std::string text = "graph @chain(%x: f32[2]) {\n  %0 = neg(%x) : f32[2]\n";
  constexpr int kNodes = 100000;
  for (int i = 1; i < kNodes; ++i) {
    text += "  %" + std::to_string(i) + " = neg(%" + std::to_string(i - 1) + ") : f32[2]\n";
  }
  EXPECT_TRUE(check_graph(text + "  return %" + std::to_string(kNodes - 1) + "\n}\n"));
  EXPECT_FALSE(check_graph(text + "  return %" + std::to_string(kNodes) + "\n}\n"));
  EXPECT_FALSE(check_graph(text));
  std::string list = "graph @list() { %0 = constant() {shape=[70000], dtype=f32, data=[1";
  for (int i = 1; i < 70000; ++i) list += ",1";
  EXPECT_FALSE(check_graph(list + "]} : f32[70000] return %0 }"));  // 65536 numbers are the limit
}

}  // namespace
}  // namespace fusejit::ir
