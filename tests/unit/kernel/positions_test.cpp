// Whether the positions that an argmax chooses among ascend: a loop in, yes or no out.
#include "ir/kernel/positions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/kernel/walk.h"

namespace fusejit::ir {
namespace {

// Of the outermost argmax of a kernel that has one, with this inside of a loop over %i.
bool ascend(const std::string& reduction, const std::string& combiner = "argmax") {
  std::string text = fmt::format(
      "kernel @k(%x: f32[9,9] read, %y: i32[3] write) on any {{ phase {{ for %i in 0..3 {{ {} store %y[%i], %p }} }} "
      "}}",
      reduction);
  for (std::size_t at = text.find("COMB"); at != std::string::npos; at = text.find("COMB"))
    text.replace(at, 4, combiner);
  const Kernel kernel = parse_kernel(text);
  const ForStmt* outermost = nullptr;
  for_each_stmt(kernel.phases[0].body, [&](const Stmt& s) {
    const auto* loop = std::get_if<ForStmt>(&s.node);
    if (outermost == nullptr && loop != nullptr && !loop->combiners.empty()) outermost = loop;
  });
  return positions_ascend(*outermost);
}

std::string flat(const char* bounds, const char* position) {
  return fmt::format(
      "%v, %p = for %r in {} reduce COMB : f32, i32 {{ %0 = load %x[%i, %r] : f32  %1 = index({}) : i32  yield %0, %1 "
      "}}",
      bounds, position);
}

std::string nested(const char* outer, const char* inner, const char* position) {
  return fmt::format(
      "%v, %p = for %r in {} reduce COMB : f32, i32 {{ %a, %b = for %s in {} reduce COMB : f32, i32 {{ %0 = load "
      "%x[%r, "
      "%s] : f32  %1 = index({}) : i32  yield %0, %1 }} yield %a, %b }}",
      outer, inner, position);
}

TEST(Positions, AscendWithTheLoop) {
  EXPECT_TRUE(ascend(flat("0..3", "%r")));
  EXPECT_TRUE(ascend(flat("1..4 unroll", "%i*9 + %r*2 - 5"), "argmin"));
  EXPECT_FALSE(ascend(flat("0..3", "%i*9 - %r")));
  EXPECT_FALSE(ascend(flat("0..3", "%i")));
  EXPECT_FALSE(ascend(flat("0..3", "%r / 2")));
  EXPECT_FALSE(ascend(flat("0..3", "%r*4 + %r % 2")));
}

TEST(Positions, OfAWindowAscendRowByRow) {
  EXPECT_TRUE(ascend(nested("0..3 unroll", "0..3 unroll", "%r*9 + %s + %i")));
  EXPECT_TRUE(ascend(nested("0..3", "0..3", "%r*3 + %s")));
  EXPECT_FALSE(ascend(nested("0..3", "0..4", "%r*3 + %s")));  // a row's last is the next one's first
  EXPECT_FALSE(ascend(nested("0..3", "0..3", "%r - %s*2")));
  EXPECT_FALSE(ascend(nested("0..3", "0..3", "%r + %s*3")));
}

TEST(Positions, MayBeMissingWhereALoopMayHaveNoTurn) {
  EXPECT_FALSE(ascend(flat("0..%i", "%r")));
  EXPECT_FALSE(ascend(flat("max(0, 1 - %i)..3", "%r")));
  EXPECT_FALSE(ascend(nested("0..3", "max(0, 1 - %r)..3", "%r*9 + %s")));
}

}  // namespace
}  // namespace fusejit::ir
