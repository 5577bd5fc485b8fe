// Bounds from loops and conditions: what V3 proves, what it must not, and that every question ends.
#include "ir/kernel/prove.h"

#include <gtest/gtest.h>

#include "ir/kernel/verify/verify.h"

namespace fusejit::ir {
namespace {

// "" or the rule that the kernel breaks; `x` is the extent of what is read, `body` yields or stores to %y: f32[64].
std::string broken_rule(int x, const std::string& body) {
  const std::string text =
      "kernel @t(%x: f32[" + std::to_string(x) + "] read, %y: f32[64] write) on x86:avx2 {\nphase {\n" + body + "\n} }";
  try {
    verify(parse_kernel(text));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

struct ProveCase {
  const char* name;
  int extent;  // of %x: proven with it, not with one less
  std::string body;
};
void PrintTo(const ProveCase& c, std::ostream* out) { *out << c.name; }

std::string sum_of_two(const std::string& index) {
  return "%s = for %r in 0..2 reduce add : f32 { %a = load %x[" + index + "] : f32 yield %a }";
}

// Each extent is the least for which no access is outside.
const ProveCase kProveCases[] = {
    // Rows of a pooling gradient, cut into tasks of which the last one is short.
    {"quotient_of_a_cut_row", 34,
     "for %t in 0..4 threads { for %i in 0..min(9, 34 - %t*9) { " + sum_of_two("((%t*9 + %i) / 2)*2 + %r") +
         " store %y[%t*9 + %i], %s } }"},
    // The same where the task leaves the quotient: 9 is a multiple of 3.
    {"quotient_without_its_task", 56,
     "for %t in 0..7 threads { for %i in 0..min(9, 57 - %t*9) { " + sum_of_two("%t*9 + (%i / 3)*3 + %r") +
         " store %y[%t*9 + %i], %s } }"},
    // A condition on a fourth of what is divided.
    {"condition_with_another_factor", 4,
     "for %t in 0..5 threads { for %i in 0..10 { if %t*10 + %i < 46 { %a = for %u in 0..4 reduce add : f32 {"
     " %b = load %x[(%t*40 + %i*4 + %u) / 46] : f32 yield %b } store %y[%t*10 + %i], %a } } }"},
    // Windows of 2 at a stride of 3: the floor, not the rational bound.
    {"multiple_of_a_quotient", 17,
     "for %t in 0..4 threads { for %i in 0..min(14, 54 - %t*14) { " + sum_of_two("((%t*14 + %i) / 18)*6 + %r*4") +
         " store %y[%t*14 + %i], %s } }"},
    // Rows of threads, of which the last ones idle: two rows for each of 28, two apart.
    {"multiple_beside_the_quotient", 55,
     "for %t in 0..2 threads { for %i in 0..64 { if %t*64 + %i < 112 { %a = load %x[%t*32 + (%i / 4)*2] : f32"
     " if %t == 0 { store %y[%i], %a } } } }"},
    // The same with a loop inside the row of threads, and rows of the result two apart: what is asked about is even.
    {"even_beside_a_condition", 9,
     "for %g in 0..1 threads { for %t in 0..8 { for %i in 0..2 { if %g*16 + %t + %i*8 < 10 {"
     " %a = load %x[%g*16 + %i*8 + (%t / 2)*2] : f32 store %y[%g*16 + %t + %i*8], %a } } } }"},
    // Taps two apart of a window that is itself a quotient: a bound of the loop holds a quotient of it.
    {"quotient_of_a_quotient_in_a_bound", 4,
     "for %t in 0..4 threads { %s = for %i in max(0, (-((%t + 1) / 3)*3) / 2 + 1)..min(2, (-((%t + 1) / 3)*3) / 2 + 3)"
     " reduce add : f32 { %a = load %x[%i*2 + ((%t + 1) / 3)*3 - 1] : f32 yield %a } store %y[%t], %s }"},
    // Conditions that lead nowhere around a sum that no one needs them for.
    {"a_sum_beside_conditions", 13,
     "for %g in 0..1 threads { for %t in 0..66 threads { for %i in 0..3 unroll { if %g*13 + %i + ((%t / 11)*13 + 5) / "
     "6 < 13"
     " and %i - ((%t / 11)*13) / 6 + ((%t / 11)*13 + 5) / 6 < 3 { %a = load %x[%g*13 + %i + ((%t / 11)*13 + 5) / 6] : "
     "f32"
     " if %t == 0 and %i == 0 { store %y[%g], %a } } } } }"},
};

class Prove : public ::testing::TestWithParam<ProveCase> {};

TEST_P(Prove, ExactlyWhatHolds) {
  const ProveCase& c = GetParam();
  EXPECT_EQ(broken_rule(c.extent, c.body), "");
  EXPECT_NE(broken_rule(c.extent - 1, c.body).find(" V3: "), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Cases, Prove, ::testing::ValuesIn(kProveCases),
                         [](const auto& info) { return info.param.name; });

// The bound of a quotient asks for the bound of its inside, which a condition states by that very quotient.
TEST(Prove, AConditionThatNeedsItself) {
  for (const char* condition : {"(9 - %i) / 2 < 4", "(9 - %i) / 2 < 4 and (9 - %i) % 2 == 0",
                                "((9 - %i) / 2 + 3) / 3 < 4 and (9 - %i) / 2 < 7"}) {
    const std::string error = broken_rule(4, "for %i in 0..20 { if " + std::string(condition) +
                                                 " { %a = load %x[(9 - %i) / 2] : f32 store %y[%i], %a } }");
    EXPECT_NE(error.find(" V3: "), std::string::npos) << condition << ": " << error;
  }
}

// Many loops with two bounds each under many conditions of many quotients: a question ends all the same.
TEST(Prove, EveryQuestionEnds) {
  std::string head, sum = "%i0", tail, conditions;
  for (int l = 0; l < 14; ++l) {
    const std::string own = "%i" + std::to_string(l), outer = l == 0 ? "0" : "%i" + std::to_string(l - 1);
    head += "for " + own + " in max(0, " + outer + " / 3 - 1)..min(9, 11 - " + outer + ") {\n";
    if (l > 0) sum = "(" + sum + " + " + own + "*2) / 3";
    conditions += (l == 0 ? "if " : " and ") + std::string("(") + own + "*3 + " + outer + ") / 2 < 40";
    tail += " }";
  }
  const Kernel kernel =
      parse_kernel("kernel @t(%x: f32[64] read, %y: f32[64] write) on any {\nphase {\n" + head + conditions +
                   " {\n%a = load %x[" + sum + "] : f32 store %y[0], %a }" + tail + "} }");
  int asked = 0;
  for_each_with_path(kernel, [&](const Stmt& stmt, const Path& path, std::size_t) {
    const Place* place = touched(stmt);
    if (!place || place->index[0].is_constant()) return;
    const Facts facts(path);
    for (const Index& question : {place->index[0] * 7 - Index(1'000), place->index[0] * -5 - Index(1)}) {
      int steps = 0;
      EXPECT_FALSE(facts.proves_non_negative(question, &steps));
      EXPECT_GT(steps, 100);
      EXPECT_LE(steps, Facts::kMostSteps);
      ++asked;
    }
  });
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace fusejit::ir
