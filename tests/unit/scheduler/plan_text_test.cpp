// A plan's text holds all of the plan: what is read back is equal field by field, and what is wrong is refused at its
// place.
#include <gtest/gtest.h>

#include <tuple>

#include "frontend/models/named.h"
#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

void expect_equal(const PlanValue& a, const PlanValue& b) {
  EXPECT_EQ(std::tie(a.dtype, a.bytes, a.label, a.storage, a.index, a.offset, a.data, a.first_step, a.last_step),
            std::tie(b.dtype, b.bytes, b.label, b.storage, b.index, b.offset, b.data, b.first_step, b.last_step))
      << a.label;
}

void expect_equal(const PlanStep& a, const PlanStep& b) {
  EXPECT_TRUE(*a.kernel == *b.kernel) << ir::print(*a.kernel) << ir::print(*b.kernel);
  EXPECT_EQ(std::tie(a.name, a.layer, a.nodes), std::tie(b.name, b.layer, b.nodes));
  EXPECT_EQ(a.schedules, b.schedules) << a.name;
  EXPECT_EQ(std::tie(a.values, a.ops, a.read_bytes, a.written_bytes, a.work_bytes, a.work_offset, a.flop),
            std::tie(b.values, b.ops, b.read_bytes, b.written_bytes, b.work_bytes, b.work_offset, b.flop))
      << a.kernel->name;
}

void expect_equal(const Refusal& a, const Refusal& b) {
  EXPECT_EQ(std::tie(a.code, a.producer, a.consumer, a.sentence, a.bytes),
            std::tie(b.code, b.producer, b.consumer, b.sentence, b.bytes));
}

template <class T>
void expect_all_equal(const std::vector<T>& a, const std::vector<T>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) expect_equal(a[i], b[i]);
}

// Not by operator==, which compares texts: what the text leaves out must not exist.
void expect_text_is_plan(const Plan& plan) {
  verify(plan);
  const std::string text = print(plan);
  const Plan back = parse_plan(text);
  EXPECT_EQ(
      std::tie(plan.name, plan.target, plan.rules, plan.parameters, plan.results, plan.arena_bytes, plan.bound_bytes),
      std::tie(back.name, back.target, back.rules, back.parameters, back.results, back.arena_bytes, back.bound_bytes));
  expect_all_equal(plan.values, back.values);
  expect_all_equal(plan.steps, back.steps);
  expect_all_equal(plan.refusals, back.refusals);
  EXPECT_EQ(print(back), text);
  verify(back);
}

TEST(PlanText, BuiltInModels) {
  for (const models::NamedModel& model : models::named_models()) {
    SCOPED_TRACE(model.example);
    const models::ModelGraph source = models::model_graph(model.example);
    const std::vector<bool> donated(source.donated.begin(), source.donated.end());
    for (const char* target : {"x86:avx512", "x86:avx2"}) {
      expect_text_is_plan(make_plan(source.graph, {Target::parse(target), Rules::all, donated}));
    }
  }
}

TEST(PlanText, ConstantsOfEveryDType) {
  const ir::Graph graph = ir::parse_graph(R"(graph @constants(%x: f32[3]) {
  %a = constant() {shape=[3], dtype=bool, data=[1,0,1]} : bool[3]
  %b = constant() {shape=[2], dtype=i64, data=[-9223372036854775807,9007199254740993]} : i64[2]
  %c = constant() {shape=[5], dtype=f16, data=[65504,-0.0,inf,nan,6e-08]} : f16[5]
  %d = constant() {shape=[3], dtype=bf16, data=[0.1,-inf,1e38]} : bf16[3]
  %e = constant() {shape=[2], dtype=f64, data=[0.1,4.9e-324]} : f64[2]
  %f = constant() {shape=[2], dtype=i32, data=[-2147483648,2147483647]} : i32[2]
  %g = constant() {shape=[3], dtype=f32, data=[0.1,1e-45,-3.4028235e38]} : f32[3]
  %y = mul(%x, %g) : f32[3]
  return %a, %b, %c, %d, %e, %f, %y
})");
  for (const Rules rules : {Rules::all, Rules::none})
    expect_text_is_plan(make_plan(graph, {Target::parse("x86:v2"), rules, {}}));
}

constexpr std::string_view kPlan = R"(plan @p on "x86:avx2,l1=32k,l2=1m,l3=32m,fma=1,tasks=64" rules=all {
  arena 0
  bound 64
  value 0 "%x": f32, 32 bytes, argument 0, until 0
  value 1 "%0 neg": f32, 32 bytes, result 0, steps 0..1
  step 0 kernel 0 @neg(0, 1): reads 32, writes 32, flop 8 computes "%0 neg"
  parameters 0
  return 1
}
kernel @neg(%p0: f32[8] read, %p1: f32[8] write) on x86:avx2 {
  phase {
    for %i0 in 0..8 vector {
      %0 = load %p0[%i0] : f32
      %1 = neg(%0) : f32
      store %p1[%i0], %1
    }
  }
}
)";

// kPlan with its first `what` replaced.
std::string changed(std::string_view what, std::string_view by) {
  std::string text(kPlan);
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

TEST(PlanText, IsCanonical) {
  const std::string text = print(parse_plan(kPlan));
  EXPECT_EQ(text, "; 1 kernels, 1 of them different; moves 64 bytes\n" + std::string(kPlan));
  verify(parse_plan(text));
}

TEST(PlanText, RefusesAtTheRightPlace) {
  const struct {
    std::string_view what, by;
    int line, column;
    std::string_view sentence;
  } table[] = {
      {"plan @p", "graph @p", 1, 1, "expected 'plan' but found 'graph'"},
      {"\"x86:avx2,l1=32k", "\"x86:avx3,l1=32k", 1, 12, "target 'x86:avx3"},
      {"l1=32k,", "", 1, 12, "a plan's target is written in full: x86:avx2,l1=32k"},
      {"rules=all", "rules=some", 1, 64, "rules are all, none, inductor or \"-R5,-R6\", not 'some'"},
      {"rules=all", "rules=\"", 1, 64, "a text in quotes does not end on its line"},
      {"value 1", "value 2", 5, 9, "expected value 1"},
      {"32 bytes", "1152921504606846977 bytes", 4, 22, "1152921504606846977 is more than 1152921504606846976"},
      {"f32, 32", "f33, 32", 4, 17, "'f33' is not a dtype"},
      {"argument 0", "parameter 0", 4, 32, "a storage is argument, donated, result, derived, constant or arena"},
      {"argument 0", "constant [1, 2]", 4, 41, "2 numbers of f32 are not 32 bytes"},
      {"kernel 0 @neg", "kernel 1 @neg", 6, 17, "there is no kernel 1"},
      {"flop 8", "flop 8 of %0", 6, 62, "expected a number"},
      {"@neg(0, 1)", "@neg(0, 2)", 6, 27, "there is no value 2"},
      {"return 1", "return -1", 8, 10, "expected '}' but found '-'"},
      {"return 1", "return 1\n  refused why", 9, 11, "'why' is no code of a refusal"},
      {"%p0: f32[8]", "%p0: f31[8]", 10, 18, "'f31' is not a dtype"},
      {"flop 8", "flop 8 library \"graph g\" (0)", 6, 67, "in the graph: 1:7: "},
  };
  for (const auto& row : table) {
    try {
      parse_plan(changed(row.what, row.by));
      ADD_FAILURE() << "accepted: " << row.by;
    } catch (const ParseError& error) {
      EXPECT_EQ(error.sentence.substr(0, row.sentence.size()), row.sentence) << row.by;
      EXPECT_EQ(error.line, row.line) << row.by;
      EXPECT_EQ(error.column, row.column) << row.by;
    }
  }
}

TEST(PlanText, HoldsTheLayerOfAStep) {
  const std::string text = print(parse_plan(changed("flop 8", "flop 8 of 0 in \"layer1.0\"")));
  EXPECT_EQ(parse_plan(text).steps[0].layer, "layer1.0");
  EXPECT_EQ(print(parse_plan(text)), text);
}

TEST(PlanText, HoldsWhatALibraryMayDo) {
  const std::string text = print(parse_plan(
      changed("flop 8", "flop 8 library \"graph @neg(%p0: f32[8]) { %0 = neg(%p0) : f32[8] return %0 }\" (0, 1)")));
  const Plan plan = parse_plan(text);
  verify(plan);
  ASSERT_TRUE(plan.steps[0].library);
  EXPECT_EQ(plan.steps[0].library->values, (std::vector<int>{0, 1}));
  EXPECT_EQ(plan.steps[0].library->graph.results()[0]->op, ir::Op::neg);
  EXPECT_EQ(print(plan), text);
}

TEST(PlanVerify, NamesTheRule) {
  const struct {
    std::string_view what, by, rule;
  } table[] = {
      {"@neg(0, 1)", "@neg(0)", "P1"},
      {"@neg(0, 1)", "@neg(0, 1, 1)", "P1"},
      {"@neg(0, 1)", "@neg(1, 1)", "P"},
      {"f32, 32 bytes", "f32, 64 bytes", "P1"},
      {"f32, 32 bytes", "i32, 32 bytes", "P1"},
      {"32 bytes, result 0", "32 bytes, arena 0", "P5"},
      {"until 0", "unused", "P3"},
      {"steps 0..1", "steps 0..2", "P3"},
      {"steps 0..1", "steps 1..0", "P3"},
      {"steps 0..1", "until 1", "P3"},
      {"result 0, steps", "argument 0, steps", "P4"},
      {"argument 0", "argument 1", "P5"},
      {"result 0", "result 1", "P5"},
      {"return 1", "return", "P5"},
      {"flop 8", "flop 8, work 64 at 0", "P2"},
      {"result 0, steps 0..1", "derived 0, steps 0..0", "P5"},
      {"flop 8", "flop 8 library \"graph @neg(%p: f32[8]) { %0 = neg(%p) : f32[8] return %0 }\" (0)", "P6"},
      {"flop 8", "flop 8 library \"graph @neg(%p: f32[4]) { %0 = neg(%p) : f32[4] return %0 }\" (0, 1)", "P6"},
      {"flop 8", "flop 8 library \"graph @neg(%p: f32[8]) { return %p }\" (0)", "P6"},
  };
  for (const auto& row : table) {
    try {
      verify(parse_plan(changed(row.what, row.by)));
      ADD_FAILURE() << "accepted: " << row.by;
    } catch (const InternalError& error) {
      EXPECT_NE(std::string(error.what()).find("plan @p: " + std::string(row.rule)), std::string::npos)
          << row.by << ": " << error.what();
    }
  }
}

// Weights that never change are packed once: the step that does it depends on them alone.
TEST(PlanText, WhatIsDerivedFromFixedParameters) {
  const ir::Graph graph = ir::parse_graph(R"(graph @g(%x: f32[2,16,8,8], %w: f32[32,16,3,3]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f32[2,32,8,8]
  return %0
})");
  for (const char* target : {"x86:avx512", "x86:avx2", "x86:v2"}) {
    const Plan plain = make_plan(graph, {Target::parse(target), Rules::all, {}});
    const Plan fixed = make_plan(graph, {Target::parse(target), Rules::all, {}, {}, {false, true}});
    ASSERT_EQ(plain.steps.size(), 2u);
    ASSERT_EQ(fixed.steps.size(), 2u);
    EXPECT_FALSE(plain.is_derivation(0));
    EXPECT_TRUE(fixed.is_derivation(0));
    EXPECT_FALSE(fixed.is_derivation(1));
    EXPECT_EQ(fixed.ledger_bytes(), plain.ledger_bytes() - plain.steps[0].read_bytes - plain.steps[0].written_bytes);
    EXPECT_LT(fixed.arena_bytes, plain.arena_bytes);
    const std::string text = print(fixed);
    EXPECT_NE(text.find("derived 1, steps 0..1"), std::string::npos) << text;
    EXPECT_EQ(print(parse_plan(text)), text);
    // A fixed image alone changes nothing: nothing is computed from it alone.
    EXPECT_EQ(print(make_plan(graph, {Target::parse(target), Rules::all, {}, {}, {true, false}})), print(plain));
    std::string wrong = text;
    wrong.replace(wrong.find("derived 1"), 9, "derived 0");
    try {
      verify(parse_plan(wrong));
      ADD_FAILURE() << "accepted";
    } catch (const InternalError& error) {
      EXPECT_NE(std::string(error.what()).find("P7"), std::string::npos) << error.what();
    }
  }
}

// What a later step overwrites in place cannot be kept for the next run.
TEST(PlanText, WhatIsOverwrittenIsNotDerived) {
  const ir::Graph graph = ir::parse_graph(R"(graph @g(%x: f32[2,32,8,8], %w: f32[2,32,8,16], %k: f32[32,32,3,3]) {
  %0 = max_pool2d(%w) {kernel_size=[1,2], stride=[1,2]} : f32[2,32,8,8]
  %1 = conv2d(%x, %k) {padding=[1,1,1,1]} : f32[2,32,8,8]
  %2 = add(%1, %0) : f32[2,32,8,8]
  %3 = conv2d(%2, %k) {padding=[1,1,1,1]} : f32[2,32,8,8]
  return %3
})");
  const Plan plan = make_plan(graph, {Target::parse("x86:avx2"), Rules::all, {}, {}, {false, true, false}});
  const std::string text = print(plan);
  EXPECT_NE(text.find("update"), std::string::npos) << "nothing is overwritten\n" << text;
  EXPECT_EQ(text.find("derived"), std::string::npos) << text;
}

TEST(PlanVerify, ArenaRangesThatLiveTogetherAreApart) {
  const std::string plan = R"(plan @p on "x86:avx2,l1=32k,l2=1m,l3=32m,fma=1,tasks=64" rules=all {
  arena 128
  bound 64
  value 0 "x": f32, 32 bytes, argument 0, until 0
  value 1 "a": f32, 32 bytes, arena 0, steps 0..1
  value 2 "b": f32, 32 bytes, arena 64, steps 1..2
  value 3 "c": f32, 32 bytes, result 0, steps 2..3
  step 0 kernel 0 @neg(0, 1): reads 32, writes 32, flop 8, work 40 at 64
  step 1 kernel 0 @neg(1, 2): reads 32, writes 32, flop 8
  step 2 kernel 0 @neg(2, 3): reads 32, writes 32, flop 8
  parameters 0
  return 3
}
)" + std::string(kPlan.substr(kPlan.find("kernel @neg")));
  const struct {
    std::string what, by;
    bool ok;
  } table[] = {
      {"arena 64", "arena 64", true},
      {"arena 64", "arena 32", true},
      {"arena 64", "arena 31", false},
      {"arena 64", "arena 0", false},
      {"arena 64", "arena 96", true},
      {"arena 64", "arena 97", false},
      {"arena 64", "arena -1", false},
      {"work 40 at 64", "work 40 at 32", true},
      {"work 40 at 64", "work 40 at 31", false},
      {"work 40 at 64", "work 40 at 88", true},
      {"work 40 at 64", "work 40 at 89", false},
      {"arena 0,", "arena 63,", false},
  };
  for (const auto& row : table) {
    std::string text = plan;
    const Plan changed = parse_plan(text.replace(text.find(row.what), row.what.size(), row.by));
    if (row.ok) {
      EXPECT_NO_THROW(verify(changed)) << row.by;
    } else {
      EXPECT_THROW(verify(changed), InternalError) << row.by;
    }
  }
}

}  // namespace
}  // namespace fusejit::scheduler
