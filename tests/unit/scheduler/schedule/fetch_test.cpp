// What is fetched ahead, and in which order tasks run so that it is worth while: weights of few pixels, and what an
// epilogue reads.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/kernel/kernel.h"
#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

// The convolution of a plan: its schedule and the text of its kernel.
struct Found {
  std::string schedule, kernel;
};

Found convolution(const std::string& graph, const char* target) {
  const Plan plan = make_plan(ir::parse_graph(graph), {Target::parse(target), Rules::all, {}});
  for (const PlanStep& step : plan.steps)
    if (!step.schedules.empty() && step.schedules[0].kind == Work::contraction)
      return {print(step.schedules[0].schedule), ir::print(*step.kernel)};
  return {};
}

std::string of_images(int images, int size, int channels) {
  return fmt::format(
      "graph @c(%x: f32[{0},{2},{1},{1}]:nhwc, %w: f32[{2},{2},1,1]) {{ %0 = conv2d(%x, %w) : "
      "f32[{0},{2},{1},{1}]:nhwc "
      "return %0 }}",
      images, size, channels);
}

constexpr const char* kTarget = "x86:avx512bf16,l1=48k,l2=1m,l3=32m,fma=2,tasks=64,dot2=1";

TEST(Fetch, WeightsOfOneImageAreStreamedBlockByBlock) {
  const Found one = convolution(of_images(1, 7, 1024), kTarget);
  EXPECT_NE(one.schedule.find("task k, p "), std::string::npos) << one.schedule;
  EXPECT_NE(one.schedule.find("fetch k 32"), std::string::npos) << one.schedule;
  // Seven rows share the 8 lines that four channels of a block have: a channel's two each, of the next block.
  EXPECT_NE(one.kernel.find("prefetch %p0[%i0 + 1, 0, 0, %i3*4 + %i1 % 4, 16] l2"), std::string::npos) << one.kernel;
  EXPECT_EQ(convolution(of_images(16, 7, 1024), kTarget).schedule.find("fetch k"), std::string::npos);
  EXPECT_EQ(convolution(of_images(1, 7, 64), kTarget).schedule.find("fetch k"), std::string::npos);
}

TEST(Fetch, WhatAnEpilogueReadsComesARunForEachBlockOfOutputs) {
  const Found found = convolution(
      "graph @c(%x: f32[4,64,56,56]:nhwc, %w: f32[256,64,1,1], %side: f32[4,256,56,56]:nhwc) {\n"
      "  %0 = conv2d(%x, %w) : f32[4,256,56,56]:nhwc\n  %1 = add(%0, %side) : f32[4,256,56,56]:nhwc\n  return %1\n}",
      kTarget);
  // The rows of a task are those that are fetched, and few pixels leave registers for the epilogue.
  EXPECT_NE(found.schedule.find("tile q 8 unroll c 4 task n, p/2 outer k"), std::string::npos) << found.schedule;
  EXPECT_NE(found.schedule.find("fetch p 2"), std::string::npos) << found.schedule;
  // 8 pixels of 16 vectors, 128 lines, are 16 for each of the 8 blocks: one for each of 16 turns over channels.
  // Block %i2 fetches pixel %i2 of the tile two rows further, all of its outputs.
  EXPECT_NE(found.kernel.find("prefetch %p1[%i0, %i1*2 + %i4 + 2, %i2 + %i5*8, %i6*16] l1"), std::string::npos)
      << found.kernel;
}

// A panel that is computed: what the next task's is made of comes while this one's products are added up, piece by
// piece in the order of memory, and a few vectors of channels are made at a time, whose factors stay in registers.
TEST(Fetch, WhatTheNextPanelIsMadeOfComesBesideProducts) {
  const auto gradient = [](int channels) {
    return convolution(fmt::format("graph @c(%g: f32[4,{0},28,28]:nhwc, %m: f32[1,{0},1,1], %w: f32[{0},64,1,1], "
                                   "%side: f32[4,64,28,28]:nhwc) {{\n"
                                   "  %0 = mul(%g, %m) : f32[4,{0},28,28]:nhwc\n"
                                   "  %1 = conv2d_input_grad(%0, %w) {{input_size=[28,28]}} : f32[4,64,28,28]:nhwc\n"
                                   "  %2 = add(%1, %side) : f32[4,64,28,28]:nhwc\n  return %2\n}}",
                                   channels),
                       kTarget);
  };
  const Found found = gradient(128);
  ASSERT_NE(found.schedule.find("task n, p/7 outer k inner p, q, c panel a task"), std::string::npos) << found.schedule;
  // 7 rows of 28 pixels of 128 channels are 14 elements for each of 2 * 7 * 4 * 32 turns.
  EXPECT_NE(found.kernel.find("prefetch %p1[%i0, %i1*7 + 7, 0, %i7*12544 + %i9*1792 + %i10*448 + %i11*14] l2"),
            std::string::npos)
      << found.kernel;
  EXPECT_NE(found.kernel.find("for %i2 in 0..2 {\n          for %i3 in 0..7 {\n            for %i4 in 0..28 {\n"
                              "              for %i5 in 0..4 unroll {"),
            std::string::npos)
      << found.kernel;
  // Rows of 32 vectors are computed from end to end.
  EXPECT_NE(gradient(512).kernel.find("in 0..28 {\n            for %i4 in 0..32 {"), std::string::npos)
      << gradient(512).kernel;
}

// 56 rows are 14 blocks of 4, not 11 of 5 and one row: what a task has no rows for is not fetched.
TEST(Fetch, TasksOfComputedPanelsHaveAsManyRows) {
  const auto gradient = [](const char* taps) {
    return convolution(fmt::format("graph @c(%g: f32[16,256,56,56]:nhwc, %m: f32[1,256,1,1], %w: f32[256,64,{0}], "
                                   "%side: f32[16,64,56,56]:nhwc) {{\n"
                                   "  %0 = mul(%g, %m) : f32[16,256,56,56]:nhwc\n"
                                   "  %1 = conv2d_input_grad(%0, %w) {{input_size=[56,56]}} : f32[16,64,56,56]:nhwc\n"
                                   "  %2 = add(%1, %side) : f32[16,64,56,56]:nhwc\n  return %2\n}}",
                                   taps),
                       kTarget);
  };
  EXPECT_NE(gradient("1,1").schedule.find("task n, p/4 "), std::string::npos) << gradient("1,1").schedule;
}

std::string weight_gradient(int size, int channels, int outputs) {
  return fmt::format(
      "graph @c(%x: f32[16,{1},{0},{0}]:nhwc, %g: f32[16,{2},{0},{0}]:nhwc) {{ %0 = conv2d_weight_grad(%x, %g) "
      "{{kernel_size=[1,1]}} : f32[{2},{1},1,1] return %0 }}",
      size, channels, outputs);
}

// Lines of the next panel of the second operand are fetched once: 7 rows of 14 pixels with four lines each would be ten
// for each of 43 tiles of channels, a burst, so every step of their products fetches one.
TEST(Fetch, ProductsShareTheLinesOfTheNextPanel) {
  const Found found = convolution(weight_gradient(14, 256, 256), kTarget);
  ASSERT_NE(found.schedule.find("tile c 6 task n/4, k outer n, p/7, c"), std::string::npos) << found.schedule;
  ASSERT_NE(found.schedule.find("panel b p"), std::string::npos) << found.schedule;
  EXPECT_NE(found.schedule.find(" fetch p 7"), std::string::npos) << found.schedule;
  // Tile %i11, of four, that follow each other; row %i15 and column %i16 of the panel. Rows follow each other in
  // memory.
  EXPECT_NE(found.kernel.find("prefetch %p0[%i0*4 + %i5, %i6*7 + 7, (%i15*14 + %i16 + (%i11 % 4)*98) / 4, "
                              "%i1*64 + ((%i15*14 + %i16 + (%i11 % 4)*98) % 4)*16] l2"),
            std::string::npos)
      << found.kernel;
  EXPECT_NE(found.kernel.find("prefetch %p1["), std::string::npos) << "the first operand, by the products";
}

// With 171 tiles three lines are each tile's, before its products.
TEST(Fetch, TilesShareTheLinesOfTheNextPanel) {
  const Found found = convolution(weight_gradient(14, 1024, 1024), kTarget);
  EXPECT_NE(found.kernel.find("for %i14 in 0..3 unroll {\n                  prefetch %p0["), std::string::npos)
      << found.kernel;
  // Neighbouring pixels of the first operand share a set of L1: only the second one's panel is fetched.
  EXPECT_NE(found.schedule.find(" fetch b p 7"), std::string::npos) << found.schedule;
  EXPECT_EQ(found.kernel.find("prefetch %p1["), std::string::npos) << found.kernel;
}

// What a tile of 13 channels reads lies together, pixel after pixel; of 64 channels the last has 12. What the next
// block of pixels reads of both operands comes beside products, a line a step.
TEST(PanelsOfTiles, AreLaidOutAsTheyAreRead) {
  const Found found = convolution(weight_gradient(56, 64, 256), kTarget);
  ASSERT_NE(found.schedule.find("tile c 13 task n outer p/2, k, c inner p, q panel a p tiles"), std::string::npos)
      << found.schedule;
  for (const char* part : {"local %l0: f32[5,1,2,56,13] scratch",
                           "for %i8 in 0..4 {\n              for %i9 in 0..16 vector {\n                if %i9 < 13 {\n"
                           "                  %0 = load %p0[%i0, %i5*2 + %i6, %i7, %i8*13 + %i9] : f32\n"
                           "                  store %l0[%i8, 0, %i6, %i7, %i9], %0",
                           "if %i10 < 12 {\n                %1 = load %p0[%i0, %i5*2 + %i6, %i7, %i10 + 52] : f32\n"
                           "                store %l0[4, 0, %i6, %i7, %i10], %1",
                           "prefetch %p0[%i0, %i5*2 + 2, 0, ", "prefetch %p1[%i0, %i5*2 + 2, 0, ",
                           "load %p1[%i0, %i5*2 + %i16, %i17, ", "load %l0[%i12, 0, %i16, %i17, %i19]"})
    EXPECT_NE(found.kernel.find(part), std::string::npos) << part << "\nis not in\n" << found.kernel;
  EXPECT_EQ(found.kernel.find("] l1"), std::string::npos) << found.kernel;
}

// One task has all that is added up for its outputs: it finishes them, and no partial result goes to memory.
TEST(ResultsOfTasks, AreFinishedThere) {
  const auto weight_gradient = [](int outputs, int images) {
    return convolution(
        fmt::format("graph @g(%x: f32[{1},32,14,14]:nhwc, %y: f32[{1},{0},14,14]:nhwc) {{ %0 = "
                    "conv2d_weight_grad(%x, %y) {{kernel_size=[3,3], padding=[1,1,1,1]}} : f32[{0},32,3,3] "
                    "return %0 }}",
                    outputs, images),
        "x86:avx512,tasks=2");
  };
  const Found whole = weight_gradient(512, 4);
  EXPECT_NE(whole.schedule.find("combine c*r*s"), std::string::npos) << whole.schedule;
  EXPECT_EQ(whole.kernel.find("work "), std::string::npos) << whole.kernel;
  EXPECT_EQ(whole.kernel.find("phase {"), whole.kernel.rfind("phase {")) << whole.kernel;
  const Found parts = weight_gradient(32, 16);
  EXPECT_NE(parts.kernel.find("work "), std::string::npos) << parts.kernel;
}

TEST(Pairs, ThatLieSideBySideAreWords) {
  const auto kernel = [](const std::string& result) {
    return convolution(
               "graph @c(%image: bf16[1,64,24,24]:nhwc, %w: bf16[64,64,3,3]) {\n"
               "  %x = maximum(%image, 0.5) : bf16[1,64,24,24]:nhwc\n  %s = sum(%x) {dim=[2,3]} : bf16[1,64]\n"
               "  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : bf16[1,64,24,24]:nhwc\n"
               "  %1 = add(%0, %x) : bf16[1,64,24,24]:nhwc\n  return %x, " +
                   result + "\n}",
               "x86:avx512bf16,dot2=1")
        .kernel;
  };
  EXPECT_NE(kernel("%0").find(": u32[1,24,24,32] read"), std::string::npos) << kernel("%0");
  EXPECT_EQ(kernel("%1").find(": u32[1,24,24,32] read"), std::string::npos) << "read by elements too: " << kernel("%1");
}

std::string strided_gradient(int size, int stride, const char* rest = "") {
  return fmt::format(
      "graph @c(%g: f32[4,128,{1},{1}]:nhwc, %w: f32[128,64,1,1], %side: f32[4,64,{0},{0}]:nhwc) {{\n"
      "  %0 = conv2d_input_grad(%g, %w) {{input_size=[{0},{0}], stride=[{2},{2}]}} : f32[4,64,{0},{0}]:nhwc\n"
      "  %1 = add(%0, %side) : f32[4,64,{0},{0}]:nhwc\n{3}}}",
      size, (size - 1) / stride + 1, stride, *rest ? rest : "  return %1\n");
}

// Elements that no window of a strided convolution touched lie beside those that one did, and are finished with them.
TEST(Fetch, WhatHasNoProductsComesBesideThoseOfOthers) {
  const auto phases = [](const std::string& graph, const char* target = kTarget) {
    const std::string kernel = convolution(graph, target).kernel;
    std::size_t count = 0;
    for (std::size_t at = 0; (at = kernel.find("phase", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  const Found found = convolution(strided_gradient(56, 2), kTarget);
  EXPECT_EQ(phases(strided_gradient(56, 2)), 1u) << found.kernel;
  // Of the next task's rows, two for each of its own, and all pixels: the second block of outputs fetches second rows.
  // 56 lines for 32 turns.
  EXPECT_NE(found.kernel.find("prefetch %p1[%i0, %i1*4 + %i4*2 + (%i2 + %i6 / 28) % 2 + 4, %i5*14 + (%i6 / 2) % 2 + "
                              "((%i6 / 4) % 7)*2, %i7*16 + (%i6 % 2)*32] l1"),
            std::string::npos)
      << found.kernel;
  EXPECT_EQ(phases(strided_gradient(55, 2)), 4u)
      << "rows and columns of an odd size have one more element with products";
  EXPECT_EQ(phases(strided_gradient(54, 3)), 9u) << "nine copies of the epilogue";
  EXPECT_GE(phases(strided_gradient(56, 2), "cuda:sm_90"), 4u);
  const char* sums = "  %2 = sum(%1) {dim=[0,2,3], keepdim=true} : f32[1,64,1,1]\n  return %1, %2\n";
  EXPECT_EQ(phases(strided_gradient(56, 2, sums)), 2u) << "and one that combines sums";
}

constexpr const char* kWinograd = "x86:avx512bf16,l1=48k,l2=1m,l3=32m,fma=2,tasks=64,dot2=1,winograd=2";

// Images of 16x16 are four patches a row, two rows a task.
TEST(Fetch, WinogradFetchesTheNextPatchAndAPartOfItsResults) {
  const Found found = convolution(
      "graph @c(%x: f32[2,64,16,16]:nhwc, %w: f32[64,64,3,3], %side: f32[2,64,16,16]:nhwc) {\n"
      "  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f32[2,64,16,16]:nhwc\n"
      "  %1 = add(%0, %side) : f32[2,64,16,16]:nhwc\n  return %1\n}",
      kWinograd);
  ASSERT_NE(found.schedule.find("task n, p/8 pack b 32 fetch q 4"), std::string::npos) << found.schedule;
  // Behind patch %i3 of row %i2 lies one in the same row, or the first of the next; row 0 of what it reads is padding.
  EXPECT_NE(found.kernel.find("prefetch %p1[%i0, %i1*8 + %i2*4 + ((%i3 + 1) / 4)*4 - 1, %i6 + ((%i3 + 1) % 4)*4 - 1, "
                              "%i4*16] l1"),
            std::string::npos)
      << found.kernel;
  // 8 rows of 16 results are four for each of 36 points: read and written by this block of 32 outputs.
  for (const char* line : {"prefetch %p2[%i0, %i1*8, %i13*4 + %i14, %i12*32 + %i15*16] l1",
                           "prefetch %p3[%i0, %i1*8, %i13*4 + %i14, %i12*32 + %i15*16] write"})
    EXPECT_NE(found.kernel.find(line), std::string::npos) << found.kernel;
}

// Whole images of a task: the next patch may be in the next image.
TEST(Fetch, WinogradFetchesFromOneImageIntoTheNext) {
  const Found found = convolution(
      "graph @c(%x: f32[32,64,8,8]:nhwc, %g: f32[32,64,8,8]:nhwc) {\n"
      "  %0 = conv2d_weight_grad(%x, %g) {kernel_size=[3,3], padding=[1,1,1,1]} : f32[64,64,3,3]\n  return %0\n}",
      kWinograd);
  ASSERT_NE(found.schedule.find("task n/4 combine c*r*s fetch q 4"), std::string::npos) << found.schedule;
  // Images of 2 x 2 patches: behind patch %i3 of row %i2 of image %i1. Gradients have no padding, and four rows.
  for (const char* line : {"prefetch %p0[%i0*4 + %i1 + (%i2*2 + %i3 + 1) / 4, ((%i2 + (%i3 + 1) / 2) % 2)*4 - 1, %i6 + "
                           "((%i3 + 1) % 2)*4 - 1, %i4*16] l1",
                           "prefetch %p1[%i0*4 + %i8 + (%i9*2 + %i10 + 1) / 4, ((%i9 + (%i10 + 1) / 2) % 2)*4 + 3, "
                           "%i13 + ((%i10 + 1) % 2)*4, %i11*16] l1"})
    EXPECT_NE(found.kernel.find(line), std::string::npos) << found.kernel;
}

// 8 patches of an image are a tile, which takes 16 trips of four channels with each block of 32 outputs: the 128 lines
// of the second block's weights at this point, then of the first one's at the next.
TEST(Fetch, WinogradFetchesTheWeightsThatAreReadNext) {
  PlanOptions options{Target::parse(kWinograd), Rules::all, {}};
  options.reschedule.anchor = [](const auto&, const auto&) {
    return parse_schedule(
        "schedule { algorithm winograd 4 vector k 16 x 2 tile n*p*q 8 unroll c 4 task n outer k/64 pack b 32 "
        "fetch q 4, b }");
  };
  const Plan plan = make_plan(ir::parse_graph("graph @c(%x: f32[2,64,16,8]:nhwc, %w: f32[256,64,3,3]) {\n"
                                              "  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f32[2,256,16,8]:nhwc\n"
                                              "  return %0\n}"),
                              options);
  const std::string kernel = ir::print(*plan.steps.back().kernel);
  EXPECT_NE(kernel.find("for %i14 in 0..8 unroll {\n"
                        "                  prefetch %p0[%i7*2 + (%i9 + 1) % 2, %i8 + (%i9 + 1) / 2, 0, %i13*128 + "
                        "%i14*16] l2\n"),
            std::string::npos)
      << kernel;
}

// A row of windows further, what no window before has looked at, of all channels that are looked through together; and
// the gradient of that window. No matter how the gradient finds its windows.
TEST(Fetch, WindowsOfAPoolAreFetchedARowAhead) {
  const auto kernel = [](const char* ops) {
    const Plan plan = make_plan(
        ir::parse_graph(fmt::format(
            "graph @g(%x: f32[4,32,56,56]:nhwc, %dy: f32[4,32,28,28]:nhwc, %m: f32[1,32,1,1]) {{\n{}}}", ops)),
        {Target::parse("x86:avx512,tasks=4"), Rules::all, {}});
    return ir::print(*plan.steps.back().kernel);
  };
  const std::string pool = kernel(
      "  %0 = sub(%x, %m) : f32[4,32,56,56]:nhwc\n"
      "  %1 = max_pool2d(%0) {kernel_size=[3,3], stride=[2,2], padding=[1,1,1,1]} : f32[4,32,28,28]:nhwc\n"
      "  return %1\n");
  EXPECT_NE(pool.find("for %i19 in 0..2 unroll {\n"
                      "            prefetch %p0[%i0, %i12*2 + 2, %i18*2, %i19*16] l2\n"
                      "            prefetch %p0[%i0, %i12*2 + 2, %i18*2 + 1, %i19*16] l2\n"
                      "            prefetch %p0[%i0, %i12*2 + 3, %i18*2, %i19*16] l2\n"
                      "            prefetch %p0[%i0, %i12*2 + 3, %i18*2 + 1, %i19*16] l2\n"),
            std::string::npos)
      << pool;
  const std::string sums = "  %2 = sum(%1) {dim=[0,2,3]} : f32[32]\n  return %1, %2\n", alone = "  return %1\n";
  const std::string overlap =
      "  %0 = sub(%x, %m) : f32[4,32,56,56]:nhwc\n"
      "  %1 = max_pool2d_grad(%0, %dy) {kernel_size=[3,3], stride=[2,2], padding=[1,1,1,1]} : f32[4,32,56,56]:nhwc\n";
  const std::string tiles =
      "  %0 = sub(%x, %m) : f32[4,32,56,56]:nhwc\n"
      "  %1 = max_pool2d_grad(%0, %dy) {kernel_size=[2,2], stride=[2,2]} : f32[4,32,56,56]:nhwc\n";
  for (const std::string& ops : {overlap + sums, overlap + alone, tiles + sums}) {
    const std::string text = kernel(ops.c_str());
    EXPECT_NE(text.find("prefetch %p0[%i0, "), std::string::npos) << text;
    EXPECT_NE(text.find("prefetch %p1[%i0, "), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace fusejit::scheduler
