// R8: masks that are stored, one bit an element, in place of reading again what they compare.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "ir/passes/grad.h"
#include "scheduler/make_plan.h"
#include "scheduler/uses.h"

namespace fusejit::scheduler {
namespace {

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

// conv - batch norm - `join` - relu - conv with all gradients. The gradient of the norm reads %0 in any case.
ir::Graph step(const std::string& join, const std::string& channels = "16", const std::string& dtype = "f32") {
  const std::string text =
      R"(graph @step(%image: f32[2,8,12,12]:nhwc, %w: f32[CH,8,3,3], %v: f32[32,CH,3,3], %a: f32[CH],
           %b: f32[CH], %side: f32[2,CH,12,12]:nhwc) {
  %0 = conv2d(%image, %w) {padding=[1,1,1,1]} : f32[2,CH,12,12]:nhwc
)" + join +
      R"(  %x = relu(%j) : f32[2,CH,12,12]:nhwc
  %y = conv2d(%x, %v) {padding=[1,1,1,1]} : f32[2,32,12,12]:nhwc
  %2 = square(%y) : f32[2,32,12,12]:nhwc
  %l = sum(%2) : f32[]
  return %l, %x
})";
  return ir::differentiate(ir::parse_graph(replaced(replaced(text, "CH", channels), "f32", dtype)),
                           {"image", "w", "v", "a", "b", "side"});
}
constexpr const char* kJoin = R"(  %1 = batch_norm_train(%0, %a, %b) : f32[2,CH,12,12]:nhwc
  %j = add(%1, %side) : f32[2,CH,12,12]:nhwc
)";
constexpr const char* kBias = R"(  %1 = reshape(%a) {shape=[1,CH,1,1]} : f32[1,CH,1,1]
  %j = add(%0, %1) : f32[2,CH,12,12]:nhwc
)";
constexpr const char* kNorm = R"(  %j = batch_norm_train(%0, %a, %b) : f32[2,CH,12,12]:nhwc
)";

struct Kept {
  int bits = 0, bytes = 0;
  friend bool operator==(const Kept&, const Kept&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Kept& kept) {
    return out << kept.bits << " of bits, " << kept.bytes << " of bytes";
  }
};
Plan planned(const ir::Graph& graph, const char* target) {
  return make_plan(graph, {Target::parse(target), Rules::all, {}});
}
Kept kept_in(const Plan& plan) {
  Kept kept;
  for (const PlanValue& value : plan.values) {
    kept.bits += value.dtype == DType::b1;
    kept.bytes += value.dtype == DType::boolean;
  }
  return kept;
}
// Steps that read the value which the plan calls so.
std::vector<std::string> readers(const Plan& plan, const std::string& label) {
  std::vector<std::string> names;
  for (const PlanStep& step : plan.steps) {
    for_each_use(step, [&](int value, ir::MemKind kind) {
      if (kind != ir::MemKind::write && plan.values[static_cast<std::size_t>(value)].label == label)
        names.push_back(step.name);
    });
  }
  return names;
}

TEST(KeptMasks, AJoinKeepsItsMaskAndTheGradientReadsNothingElseOfIt) {
  for (const char* target : {"x86:avx2", "x86:avx512", "x86:avx512,winograd=1", "cuda:sm_90"}) {
    const Plan plan = planned(step(kJoin), target);
    EXPECT_EQ(kept_in(plan), (Kept{1, 0})) << target;
    EXPECT_EQ(readers(plan, "%side"), std::vector<std::string>{"bn_add_relu"}) << target << print_outline(plan);
    for (const PlanValue& value : plan.values)
      EXPECT_TRUE(value.dtype != DType::b1 || value.bytes == 2 * 16 * 12 * 12 / 8) << value.bytes;
  }
}

// Eight neighbours are a byte, which one vector stores: four lanes do not, nor does a row of 12 end with a byte.
TEST(KeptMasks, AreBytesWhereNoVectorHasEightNeighbours) {
  EXPECT_EQ(kept_in(planned(step(kJoin), "x86:v2")), (Kept{0, 1}));
  EXPECT_EQ(kept_in(planned(step(kJoin, "12"), "x86:avx512")), (Kept{0, 1}));
  EXPECT_EQ(kept_in(planned(step(kBias, "16", "f64"), "x86:avx512")), (Kept{1, 0}));
  EXPECT_EQ(kept_in(planned(step(kBias, "16", "f64"), "x86:avx2")), (Kept{0, 1}));
}

// Bytes save nothing where the values have but two each, and bits do.
TEST(KeptMasks, AreKeptWhereThatMovesFewerBytes) {
  EXPECT_EQ(kept_in(planned(step(kBias, "16", "bf16"), "x86:avx512")), (Kept{1, 0}));
  EXPECT_EQ(kept_in(planned(step(kBias, "12", "bf16"), "x86:avx512")), (Kept{0, 0}));
}

// Whoever computes the mask reads what is compared for something else.
TEST(KeptMasks, AreNotKeptWhereTheirReadersReadAsMuch) {
  for (const char* target : {"x86:avx2", "x86:avx512", "cuda:sm_90"})
    EXPECT_EQ(kept_in(planned(step(kNorm), target)), (Kept{0, 0})) << target;
}

// The join needs %t for %z; what stores %t stores %u too, which needs %g; and %g would need the mask of the join.
TEST(KeptMasks, AreNotKeptByAKernelThatNeedsTheirReaders) {
  const ir::Graph graph =
      ir::parse_graph(R"(graph @ring(%p: f32[2,16,12,12]:nhwc, %image: f32[2,8,12,12]:nhwc, %w: f32[16,8,3,3],
           %v: f32[16,8,3,3], %a: f32[16], %b: f32[16], %side: f32[2,16,12,12]:nhwc, %other: f32[2,8,12,12]:nhwc) {
  %t = exp(%p) : f32[2,16,12,12]:nhwc
  %c = conv2d(%image, %w) {padding=[1,1,1,1]} : f32[2,16,12,12]:nhwc
  %n = batch_norm_train(%c, %a, %b) : f32[2,16,12,12]:nhwc
  %j = add(%n, %side) : f32[2,16,12,12]:nhwc
  %x = relu(%j) : f32[2,16,12,12]:nhwc
  %f = flip(%t) {dims=[3]} : f32[2,16,12,12]:nhwc
  %z = mul(%x, %f) : f32[2,16,12,12]:nhwc
  %m = le(%j, 0) : bool[2,16,12,12]:nhwc
  %g0 = conv2d(%other, %v) {padding=[1,1,1,1]} : f32[2,16,12,12]:nhwc
  %g = where(%m, 0, %g0) : f32[2,16,12,12]:nhwc
  %h = flip(%g) {dims=[3]} : f32[2,16,12,12]:nhwc
  %u = mul(%p, %h) : f32[2,16,12,12]:nhwc
  return %z, %g, %u, %t
})");
  for (const char* target : {"x86:avx2", "x86:avx512"}) EXPECT_EQ(kept_in(planned(graph, target)), (Kept{0, 0}));
}

TEST(KeptMasks, TheReasonIsSaid) {
  const Plan plan = planned(step(kJoin), "x86:avx512");
  EXPECT_TRUE(std::any_of(plan.refusals.begin(), plan.refusals.end(), [](const Refusal& refusal) {
    return refusal.code == RefusalCode::cheaper_stored && refusal.producer.ends_with(" le") &&
           refusal.sentence.starts_with("576 bytes of it are kept, so that 17408 bytes less are read");
  }));
}

// A mask that a convolution's gradient needs, beside what `more` computes of the same elements; on CUDA, made whole.
Plan kept_beside(const std::string& type, const std::string& more) {
  const std::string text = R"(graph @beside(%p: TYPE, %side: TYPE, %w: f64[16,16,1,1], %q: TYPE) {
)" + more + R"(  %g0 = conv2d(%q, %w) : TYPE
  %m = le(%j, 0) : bool[4,16,8,8]:nhwc
  %g = where(%m, 0, %g0) : TYPE
  return %j, %r, %g
})";
  PlanOptions options{Target::parse("cuda:sm_90"), Rules::all, {}};
  options.fall_back = false;
  return make_plan(ir::parse_graph(replaced(replaced(text, "TYPE", type + "[4,16,8,8]:nhwc"), "f64", type)), options);
}

// Four lanes for moments, one for a thread's few terms: fewer than share a byte.
TEST(KeptMasks, SumsBesideBitsHaveLanesForWholeBytes) {
  for (const char* reduced : {"var(%j) {dim=[0,2,3], correction=1} : f64[16]", "sum(%j) {dim=[1]} : f64[4,8,8]"}) {
    for (const char* type : {"f64", "f32"}) {
      const std::string more = std::string("  %j = add(%p, %side) : TYPE\n  %r = ") + reduced + "\n";
      EXPECT_EQ(kept_in(kept_beside(type, more)), (Kept{1, 0})) << more;
    }
  }
}

// A row of 20 values ends within the access of a thread in bf16, a slice from the second on begins in one.
TEST(KeptMasks, AreBytesWhereEightNeighboursAreNoAlignedAccess) {
  const auto kept = [](const std::string& type, int channels, int first) {
    return kept_in(kept_beside(
        type, fmt::format("  %x = pad(%p) {{low=[0,0,0,0], high=[0,{},0,0]}} : f64[4,{},8,8]:nhwc\n"
                          "  %s = slice(%x) {{starts=[0,{},0,0], stops=[4,{},8,8], steps=[1,1,1,1]}} : TYPE\n"
                          "  %j = add(%s, %side) : TYPE\n  %r = relu(%j) : TYPE\n",
                          channels - 16, channels, first, first + 16)));
  };
  EXPECT_EQ(kept("f32", 20, 0), (Kept{1, 0}));
  EXPECT_EQ(kept("f32", 20, 1), (Kept{0, 1}));
}

// The lanes of a tile are channels of one group: two of them are no byte of bits.
TEST(KeptMasks, GroupsThatEndWithinAByteKeepNoBits) {
  const ir::Graph graph =
      ir::parse_graph(R"(graph @g(%x: bf16[1,20,1,1], %w: bf16[8,5,1,1], %v: bf16[2,8], %z: bf16[1,2]) {
  %0 = conv2d(%x, %w) {groups=4} : bf16[1,8,1,1]
  %1 = matmul(%z, %v) : bf16[1,8]
  %2 = reshape(%1) {shape=[1,8,1,1]} : bf16[1,8,1,1]
  %3 = le(%0, 0) : bool[1,8,1,1]
  %4 = where(%3, 0, %2) : bf16[1,8,1,1]
  return %4
})");
  PlanOptions options{Target::parse("x86:avx2"), Rules::all.without(Rule::reduce), {}};
  options.fall_back = false;
  EXPECT_NO_THROW(make_plan(graph, options));
}

// Its rows are whole bytes, but a tile has a dim for the one channel too.
TEST(KeptMasks, ATileReadsNoBitsOfAnImageOfOneChannel) {
  const ir::Graph graph = ir::parse_graph(R"(graph @f(%x: f64[2,1,1,8], %w: f64[1,1,1,1], %cut: f64[2,1,1,8]) {
  %0 = conv2d(%x, %w) : f64[2,1,1,8]
  %1 = relu(%0) : f64[2,1,1,8]
  %2 = amax(%1) {dim=[2,3], keepdim=true} : f64[2,1,1,1]
  %3 = eq(%1, %2) : bool[2,1,1,8]
  %4 = cast(%3) {dtype=f64} : f64[2,1,1,8]
  %5 = sum(%4) {dim=[2,3], keepdim=true} : f64[2,1,1,1]
  %6 = div(%cut, %5) : f64[2,1,1,8]
  %7 = where(%3, %6, 0) : f64[2,1,1,8]
  %8 = le(%0, 0) : bool[2,1,1,8]
  %9 = where(%8, 0, %7) : f64[2,1,1,8]
  %10 = conv2d_input_grad(%9, %w) {input_size=[1,8]} : f64[2,1,1,8]
  return %10
})");
  PlanOptions options{Target::parse("x86:avx512"), Rules::all, {}};
  options.fall_back = false;
  EXPECT_NO_THROW(make_plan(graph, options));
}

}  // namespace
}  // namespace fusejit::scheduler
