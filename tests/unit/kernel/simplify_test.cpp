// What simplify() removes: body before and after, as phases of one kernel.
#include <gtest/gtest.h>

#include "ir/kernel/kernel.h"

namespace fusejit::ir {
namespace {

Kernel kernel_with(const std::string& body) {
  return parse_kernel(
      "kernel @t(%x: f32[64] read, %n: i32[64] read, %s: f32 param, %y: f32[64] write) on x86:avx2 { phase { " + body +
      " } }");
}

struct Case {
  const char* name;
  const char* before;
  const char* after;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
class Simplify : public ::testing::TestWithParam<Case> {};

TEST_P(Simplify, GivesTheSmallerText) {
  const Kernel simple = simplify(kernel_with(GetParam().before));
  EXPECT_EQ(print(simple), print(kernel_with(GetParam().after)));
  EXPECT_NO_THROW(verify(simple));
  EXPECT_EQ(print(simplify(simple)), print(simple));
}

const Case kCases[] = {
    {"dead_value", "%a = load %x[0] : f32 %b = add(%a, 1) : f32 store %y[0], 2", "store %y[0], 2"},
    {"dead_local", "local %a: f32[4] scratch store %a[0], 1 store %y[0], 2", "store %y[0], 2"},
    {"dead_reduction", "%a = for %i in 0..4 reduce add : f32 { yield 1 } store %y[0], 2", "store %y[0], 2"},
    {"reduction_kept_as_loop", "%a = for %i in 0..4 reduce add : f32 { store %y[%i], 1 yield 1 }",
     "for %i in 0..4 { store %y[%i], 1 }"},
    {"empty_loop", "for %i in 0..4 { } store %y[0], 2", "store %y[0], 2"},
    {"no_iteration", "for %i in 4..4 { store %y[%i], 1 } store %y[0], 2", "store %y[0], 2"},
    {"no_iteration_reduces_to_identity", "%a = for %i in 4..4 reduce maximum : f32 { yield 1 } store %y[0], %a",
     "store %y[0], -inf"},
    {"one_iteration", "for %i in 3..4 { store %y[%i*2], 1 }", "store %y[6], 1"},
    {"one_iteration_of_variable", "for %j in 0..8 { for %i in %j..%j + 1 { store %y[%i], 1 } }",
     "for %j in 0..8 { store %y[%j], 1 }"},
    {"one_iteration_of_a_sum", "%a = for %i in 0..1 reduce add : f32 { yield %s } store %y[0], %a",
     "%a = add(0, %s) : f32 store %y[0], %a"},
    {"one_iteration_of_a_maximum", "%a = for %i in 0..1 reduce maximum : f32 { yield %s } store %y[0], %a",
     "store %y[0], %s"},
    {"one_iteration_of_welford_stays",
     "%a, %b, %c = for %i in 0..1 reduce welford : f32, f32, f32 { yield 1, %s, 0 } store %y[0], %b",
     "%a, %b, %c = for %i in 0..1 reduce welford : f32, f32, f32 { yield 1, %s, 0 } store %y[0], %b"},
    {"one_lane_loops_stay", "for %t in 0..1 threads { store %y[%t], 1 }", "for %t in 0..1 threads { store %y[%t], 1 }"},
    {"true_condition", "for %i in 0..8 { if %i < 8 { store %y[%i], 1 } else { store %y[%i], 2 } }",
     "for %i in 0..8 { store %y[%i], 1 }"},
    {"false_condition", "for %i in 0..8 { if %i >= 8 { store %y[%i], 1 } else { store %y[%i], 2 } }",
     "for %i in 0..8 { store %y[%i], 2 }"},
    {"half_of_a_condition", "for %i in 0..8 { if %i >= 0 and %i < 5 { store %y[%i], 1 } }",
     "for %i in 0..8 { if %i < 5 { store %y[%i], 1 } }"},
    {"conditions_that_never_meet",
     "for %i in 0..8 { if %i*2 >= 5 and %i*2 < 6 { store %y[%i], 1 } else { store %y[%i], 2 } }",
     "for %i in 0..8 { store %y[%i], 2 }"},
    {"condition_known_from_outside", "for %i in 0..8 { if %i < 5 { if %i < 6 { store %y[%i], 1 } } }",
     "for %i in 0..8 { if %i < 5 { store %y[%i], 1 } }"},
    {"results_of_a_known_if", "%a = if 3 < 4 : f32 { yield %s } else { yield 2 } store %y[0], %a", "store %y[0], %s"},
    {"folded_values", "%a = add(2, 3) : f32 %b = mul(%a, %s) : f32 %c = add(0.5, %b) : f32 store %y[0], %c",
     "%b = mul(5, %s) : f32 %c = add(0.5, %b) : f32 store %y[0], %c"},
    {"folded_index", "%a = index(3 + 4) : f32 store %y[0], %a", "store %y[0], 7"},
    {"functions_stay", "%a = exp(1) : f32 store %y[0], %a", "%a = exp(1) : f32 store %y[0], %a"},
    {"bounds", "for %i in max(0, 3)..min(8, 64) { store %y[%i], 1 }", "for %i in 3..8 { store %y[%i], 1 }"},
    {"division", "for %i in 0..4 { for %j in 0..8 { store %y[(%i*8 + %j) / 8*8 + (%i*8 + %j) % 8], 1 } }",
     "for %i in 0..4 { for %j in 0..8 { store %y[%i*8 + %j], 1 } }"},
};

INSTANTIATE_TEST_SUITE_P(Rules, Simplify, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fusejit::ir
