// R6: which operands of anchors are computed in panels, and which are stored.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "ir/kernel/kernel.h"
#include "ir/passes/grad.h"
#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

// The schedules whose first operand is in a panel, and the values that are stored and read again.
struct Found {
  int panels = 0, temporaries = 0;
  friend bool operator==(const Found&, const Found&) = default;
};

Found found_in(const ir::Graph& graph, const char* target) {
  const Plan plan = make_plan(graph, {Target::parse(target), Rules::all, {}});
  Found found;
  for (const PlanStep& step : plan.steps) {
    for (const ScheduledWork& one : step.schedules) found.panels += !one.schedule.panel_a.empty();
    for (const std::string& op : step.ops) found.temporaries += op.ends_with(" maximum");
  }
  return found;
}

// Two convolutions with `between` from %0, [2,16,12,12], to %x, and `results`.
ir::Graph two(const std::string& between, const std::string& results = "%y", const std::string& second = "") {
  return ir::parse_graph(R"(graph @two(%image: f32[2,8,12,12]:nhwc, %w: f32[16,8,3,3], %v: f32[32,16,3,3],
           %a: f32[16], %b: f32[16], %m: f32[16], %s: f32[16], %side: f32[2,16,12,12]:nhwc, %u: f32[2304,10],
           %c: f32[32], %d: f32[32]) {
  %0 = conv2d(%image, %w) {padding=[1,1,1,1]} : f32[2,16,12,12]:nhwc
)" + between + (second.empty() ? "  %y = conv2d(%x, %v) {padding=[1,1,1,1]} : f32[2,32,12,12]:nhwc\n" : second) +
                         "  return " + results + "\n}");
}

constexpr const char* kNormalised = R"(  %1 = batch_norm_train(%0, %a, %b) : f32[2,16,12,12]:nhwc
  %x = relu(%1) : f32[2,16,12,12]:nhwc
)";

TEST(Prologue, NormalisedActivationsAreComputedWhereTheyAreRead) {
  for (const char* target : {"x86:v2", "x86:avx2", "x86:avx512", "cuda:sm_90"}) {
    EXPECT_EQ(found_in(two(kNormalised), target), (Found{1, 0})) << target;
    // Read by the convolution, by its weight gradient, and where the gradient goes through relu.
    const ir::Graph step = ir::differentiate(two(kNormalised), {"w", "v", "a", "b"});
    // On a device both operands are in panels where one is computed: the image beside the first one's gradient too.
    const int beside = Target::parse(target).isa == Isa::cuda ? 1 : 0;
    EXPECT_EQ(found_in(step, target), (Found{2 + beside, 0})) << target;
  }
}

// Both gradients of a convolution compute the gradient that they read through its normalisation: no kernel of its own
// stores that. In pairs of bf16 it is stored.
TEST(Prologue, GradientsOfNormalisationsAreComputedWhereTheyAreRead) {
  const ir::Graph forward = two(kNormalised, "%y", R"(  %2 = conv2d(%x, %v) {padding=[1,1,1,1]} : f32[2,32,12,12]:nhwc
  %y = relu(%2) : f32[2,32,12,12]:nhwc
)");
  std::string narrow = ir::print(forward);
  for (std::size_t at = 0; (at = narrow.find("f32", at)) != std::string::npos;) narrow.replace(at, 3, "bf16");
  const auto gradient = [](const ir::Graph& graph) { return ir::differentiate(graph, {"image", "w", "v", "a", "b"}); };
  const ir::Graph step = gradient(forward);
  const auto own_kernels = [](const ir::Graph& graph, const char* target) {
    const Plan plan = make_plan(graph, {Target::parse(target), Rules::all, {}});
    return std::count_if(plan.steps.begin(), plan.steps.end(), [](const PlanStep& each) {
      return each.name.ends_with("bn_grad") && each.name.find("conv2d") == std::string::npos;
    });
  };
  for (const char* target : {"x86:v2", "x86:avx2", "x86:avx512", "x86:avx512,winograd=1"})
    EXPECT_EQ(own_kernels(step, target), 0) << target;
  EXPECT_EQ(own_kernels(step, "cuda:sm_90"), 1) << "that of the image has eight outputs, for which no block copies";
  EXPECT_EQ(own_kernels(step, "cuda:sm_90,cudnn=1"), 2) << "calls read their operands";
  EXPECT_EQ(own_kernels(gradient(ir::parse_graph(narrow)), "x86:avx512bf16,dot2=1"), 1);
}

// Each of the four phases of a 3x3 gradient of stride two would compute it from two tensors, and the weights' gradient.
TEST(Prologue, WhatFourPhasesWouldComputeIsStored) {
  const ir::Graph forward =
      two(kNormalised, "%y", R"(  %2 = conv2d(%x, %v) {padding=[1,1,1,1], stride=[2,2]} : f32[2,32,6,6]:nhwc
  %3 = batch_norm_train(%2, %c, %d) : f32[2,32,6,6]:nhwc
  %y = relu(%3) : f32[2,32,6,6]:nhwc
)");
  const ir::Graph step = ir::differentiate(forward, {"image", "w", "v", "a", "b"});
  for (const char* target : {"x86:avx2", "x86:avx512"}) {
    const Plan plan = make_plan(step, {Target::parse(target), Rules::all, {}});
    EXPECT_EQ(
        std::count_if(plan.steps.begin(), plan.steps.end(), [](const PlanStep& one) { return one.name == "bn_grad"; }),
        1)
        << target << ": of the second, and not of the first, whose convolution has a stride of one";
  }
}

TEST(Prologue, WhatAnEpilogueCanStoreIsStored) {
  const char* const constant_statistics = R"(  %1 = batch_norm(%0, %m, %s, %a, %b) : f32[2,16,12,12]:nhwc
  %x = relu(%1) : f32[2,16,12,12]:nhwc
)";
  EXPECT_EQ(found_in(two(constant_statistics), "x86:avx2"), (Found{0, 1}));
  const char* const joined = R"(  %1 = add(%0, %side) : f32[2,16,12,12]:nhwc
  %x = relu(%1) : f32[2,16,12,12]:nhwc
)";
  EXPECT_EQ(found_in(two(joined), "x86:avx2"), (Found{0, 1}));
}

TEST(Prologue, WhatComesFromOutsideIsComputedWhereItIsRead) {
  EXPECT_EQ(found_in(two("  %x = relu(%side) : f32[2,16,12,12]:nhwc\n", "%y"), "x86:avx2"), (Found{1, 0}));
}

// A training step on a batch of bytes: the convolution and its weight's gradient convert and normalise in their panels,
// though there are but three channels. No kernel of its own does it and nothing stores floats of the batch: there are
// as many kernels as on floats that were normalised before, and two readers of bytes where there would be of floats.
TEST(Prologue, ABatchOfBytesIsNormalisedWhereItIsRead) {
  const auto step = [](const std::string& x, const std::string& before, const std::string& image) {
    const ir::Graph forward = ir::parse_graph("graph @step(%x: " + x + R"(,
    %m: f32[3,1,1], %s: f32[3,1,1], %n: f32[], %w: f32[16,3,3,3], %b: f32[16]) {
)" + before + "  %c = conv2d(" + image + R"(, %w) {padding=[1,1,1,1]} : f32[4,16,32,32]:nhwc
  %d = bias_add(%c, %b) : f32[4,16,32,32]:nhwc
  %y = relu(%d) : f32[4,16,32,32]:nhwc
  return %y
})");
    return ir::differentiate(forward, {"w", "b"});
  };
  const auto normalised = [](const std::string& first) {
    return first + R"(  %1 = div(%0, %n) : f32[4,3,32,32]
  %2 = sub(%1, %m) : f32[4,3,32,32]
  %3 = div(%2, %s) : f32[4,3,32,32]
)";
  };
  const std::string pixels = "  %p = permute(%x) {dims=[0,3,1,2]} : u8[4,3,32,32]\n";
  const std::string cast = "  %0 = cast(%x) {dtype=f32} : f32[4,3,32,32]\n",
                    cast_pixels = pixels + "  %0 = cast(%p) {dtype=f32} : f32[4,3,32,32]\n";
  const struct {
    const char* type;
    std::string first;
  } batches[] = {{"u8[4,3,32,32]", cast}, {"u8[4,3,32,32]:nhwc", cast}, {"u8[4,32,32,3]", cast_pixels}};
  constexpr std::int64_t kElements = 4 * 3 * 32 * 32;
  for (const char* target : {"x86:v2", "x86:avx2", "x86:avx512"}) {
    const auto plan = [&](const ir::Graph& graph) { return make_plan(graph, {Target::parse(target), Rules::all, {}}); };
    const Plan plain = plan(step("f32[4,3,32,32]", "", "%x"));
    const Plan of_floats = plan(step("f32[4,3,32,32]", normalised("  %0 = relu(%x) : f32[4,3,32,32]\n"), "%3"));
    for (const auto& batch : batches) {
      const Plan of_bytes = plan(step(batch.type, normalised(batch.first), "%3"));
      EXPECT_EQ(of_bytes.steps.size(), plain.steps.size()) << target << ' ' << batch.type;
      EXPECT_EQ(of_floats.ledger_bytes() - of_bytes.ledger_bytes(), 2 * 3 * kElements) << target << ' ' << batch.type;
      EXPECT_LT(of_bytes.ledger_bytes(), plain.ledger_bytes()) << target << ' ' << batch.type;
      for (const PlanValue& value : of_bytes.values)
        EXPECT_NE(value.bytes, 4 * kElements) << target << ' ' << batch.type << ": " << value.label << " as floats";
    }
  }
}

// Matrix products compute their first operand where few panels hold the same rows of it: not where weights are larger
// than L2 and tasks share out their outputs, nor on a device where more than four blocks do.
TEST(Prologue, ProductsComputeTheirFirstOperand) {
  const auto kernels = [](const std::string& image, const std::string& view, int terms, int outputs,
                          const char* target) {
    const ir::Graph graph = ir::parse_graph(
        fmt::format("graph @product(%x: f32[{0}], %w: f32[{1},{2}]) {{\n  %0 = relu(%x) : f32[{0}]\n"
                    "  %1 = {3} : f32[4096,{2}]\n  %y = linear(%1, %w) : f32[4096,{1}]\n  return %y\n}}",
                    image, outputs, terms, view));
    const Plan plan = make_plan(graph, {Target::parse(target), Rules::all, {}});
    return std::count_if(plan.steps.begin(), plan.steps.end(),
                         [](const PlanStep& step) { return !step.name.ends_with("_pack"); });
  };
  for (const char* target : {"x86:v2", "x86:avx2", "x86:avx512", "x86:amx", "cuda:sm_90"}) {
    EXPECT_EQ(kernels("4096,64", "neg(%0)", 64, 64, target), 1) << target;
    EXPECT_EQ(kernels("64,4096", "permute(%0) {dims=[1,0]}", 64, 64, target), 1) << target;
    EXPECT_EQ(kernels("4096,1024", "neg(%0)", 1024, 2048, target), 2) << target;
    // A flattened image: other dims than the matrix's.
    EXPECT_EQ(kernels("4096,16,2,2", "reshape(%0) {shape=[4096,64]}", 64, 64, target), 2) << target;
  }
}

TEST(Prologue, WhatIsStoredForOthersIsReadFromThere) {
  EXPECT_EQ(found_in(two(kNormalised, "%x, %y"), "x86:avx2"), (Found{0, 1})) << "a result";
  const std::string product = R"(  %f = reshape(%x) {shape=[2,2304]} : f32[2,2304]
  %z = matmul(%f, %u) : f32[2,10]
  %y = conv2d(%x, %v) {padding=[1,1,1,1]} : f32[2,32,12,12]:nhwc
)";
  EXPECT_EQ(found_in(two(kNormalised, "%y, %z", product), "x86:avx2"), (Found{0, 1})) << "a product takes no panel";
  EXPECT_EQ(found_in(two(kNormalised), "cuda:sm_90,cudnn=1"), (Found{0, 1})) << "a call reads its operands";
}

TEST(Prologue, WhatMovesMoreThanItSavesIsStored) {
  // Three readers of two tensors, or one tensor that is written once.
  const std::string join = R"(  %1 = batch_norm_train(%0, %a, %b) : f32[2,16,12,12]:nhwc
  %2 = add(%1, %side) : f32[2,16,12,12]:nhwc
  %x = relu(%2) : f32[2,16,12,12]:nhwc
)";
  const std::string readers = R"(  %3 = conv2d(%x, %v) {padding=[1,1,1,1]} : f32[2,32,12,12]:nhwc
  %4 = conv2d(%x, %v) {padding=[1,1,1,1], stride=[2,2]} : f32[2,32,6,6]:nhwc
  %y = conv2d(%x, %v) : f32[2,32,10,10]:nhwc
)";
  EXPECT_EQ(found_in(two(join), "x86:avx2"), (Found{1, 0}));
  EXPECT_EQ(found_in(two(join, "%3, %4, %y", readers), "x86:avx2"), (Found{0, 1}));
}

TEST(Prologue, LongExpressionsAreComputedOnce) {
  std::string chain = "  %1 = batch_norm_train(%0, %a, %b) : f32[2,16,12,12]:nhwc\n";
  for (int i = 1; i <= 16; ++i)
    chain += "  %" + std::to_string(i + 1) + " = mul(%" + std::to_string(i) + ", %" + std::to_string(i) +
             ") : f32[2,16,12,12]:nhwc\n";
  EXPECT_EQ(found_in(two(chain + "  %x = relu(%17) : f32[2,16,12,12]:nhwc\n"), "x86:avx2"), (Found{0, 1}));
}

// Blocks of outputs that are tasks of their own would each compute the panel.
TEST(Prologue, OneImageThatTasksShareOutByOutputsIsStored) {
  const ir::Graph graph = ir::parse_graph(R"(graph @one(%image: f32[1,512,7,7]:nhwc, %w: f32[512,512,1,1]) {
  %x = relu(%image) : f32[1,512,7,7]:nhwc
  %y = conv2d(%x, %w) : f32[1,512,7,7]:nhwc
  return %y
})");
  EXPECT_EQ(found_in(graph, "x86:avx512,tasks=64"), (Found{0, 1}));
  EXPECT_EQ(found_in(graph, "x86:avx512,tasks=1"), (Found{1, 0}));
}

// Loops and prefetches of relu and a 3x3 convolution, or of its weight gradient, on images of `size` x `size`.
std::string loops_of(int size, bool gradient, const char* target) {
  const std::string image = fmt::format("f32[2,16,{0},{0}]:nhwc", size);
  const std::string anchor = gradient
                                 ? "conv2d_weight_grad(%x, %g) {kernel_size=[3,3], padding=[1,1,1,1]} : f32[16,16,3,3]"
                                 : "conv2d(%x, %w) {padding=[1,1,1,1]} : " + image;
  const ir::Graph graph = ir::parse_graph(fmt::format(
      "graph @one(%image: {0}, %g: {0}, %w: f32[16,16,3,3]) {{ %x = relu(%image) : {0} %y = {1} return %y }}", image,
      anchor));
  const Plan plan = make_plan(graph, {Target::parse(target), Rules::all, {}});
  std::istringstream lines(ir::print(*plan.steps.back().kernel));
  std::string found, line;
  while (std::getline(lines, line)) {
    const std::size_t first = line.find_first_not_of(' ');
    if (first != std::string::npos && (line.compare(first, 4, "for ") == 0 || line.compare(first, 3, "if ") == 0 ||
                                       line.compare(first, 8, "prefetch") == 0))
      found += line.substr(first) + '\n';
  }
  return found;
}

// Padding has loops of its own, and none of its rows is multiplied.
TEST(Prologue, PanelsAskNothingOfTheirElements) {
  const std::string loops = loops_of(24, false, "x86:avx512,tasks=1");
  EXPECT_TRUE(loops.starts_with(R"(for %i0 in 0..2 threads {
for %i1 in 0..26 {
for %i2 in 0..16 vector {
for %i3 in 1..25 {
for %i4 in 0..16 vector {
for %i5 in 1..25 {
for %i6 in 0..16 vector {
for %i7 in 0..16 vector {
for %i8 in 0..26 {
for %i9 in 0..16 vector {
)")) << loops;
  EXPECT_EQ(loops.find("if "), std::string::npos) << loops;
  EXPECT_NE(loops.find("in max(0, -%i11 + 1)..min(3, -%i11 + 25)"), std::string::npos) << loops;
}

// Where every tile lies at an edge, its copies leave out the padding of columns too.
TEST(Prologue, TilesAtTheEdgesAreCopies) {
  EXPECT_NE(loops_of(8, false, "x86:avx512,tasks=1").find("if %i13 + %i16 >= 1 and %i13 + %i16 < 9"),
            std::string::npos);
}

TEST(Prologue, PanelsFetchTheNextRows) {
  const std::string loops = loops_of(56, true, "x86:avx512,tasks=1");
  EXPECT_EQ(loops.find("if "), std::string::npos) << loops;
  EXPECT_NE(loops.find("prefetch %p0["), std::string::npos) << loops;
}

}  // namespace
}  // namespace fusejit::scheduler
