// What choosers for processors choose, where scheduler/choose/tuning.h says what was measured: a layer, a target, lines
// of the schedule.
#include "scheduler/choose/choose.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/node.h"

namespace fusejit::scheduler {
namespace {

using Numbers = std::vector<std::int64_t>;

const Target kZen5 = Target::parse("x86:avx512bf16,l1=48k,l2=1m,l3=32m,fma=2,tasks=64,dot2=1"),
             kSapphireRapids = Target::parse("x86:avx512,l1=48k,l2=2m,l3=64m,fma=2,tasks=64"),
             kZen4 = Target::parse("x86:avx512,l1=32k,l2=1m,l3=32m,fma=1,tasks=64"),
             kZen5Winograd = Target::parse("x86:avx512bf16,l1=48k,l2=1m,l3=32m,fma=2,tasks=64,dot2=1,winograd=1"),
             kSapphireRapidsWinograd = Target::parse("x86:avx512,l1=48k,l2=2m,l3=64m,fma=2,tasks=64,winograd=1");

// A convolution of square images with its padding, or its weight gradient.
struct Layer {
  std::int64_t images, channels, size, outputs, kernel, stride = 1, groups = 1;
  DType dtype = DType::f32;

  ir::Contraction forward() const {
    const std::int64_t pad = kernel / 2;
    return of(
        ir::build(ir::Op::conv2d, {input(), value({outputs, channels / groups, kernel, kernel})},
                  {{"padding", Numbers{pad, pad, pad, pad}}, {"stride", Numbers{stride, stride}}, {"groups", groups}}));
  }
  ir::Contraction weight_grad() const {
    const std::int64_t pad = kernel / 2, rows = (size + 2 * pad - kernel) / stride + 1;
    return of(ir::build(ir::Op::conv2d_weight_grad, {input(), value({images, outputs, rows, rows})},
                        {{"kernel_size", Numbers{kernel, kernel}},
                         {"padding", Numbers{pad, pad, pad, pad}},
                         {"stride", Numbers{stride, stride}},
                         {"groups", groups}}));
  }

 private:
  ir::Value value(const Numbers& dims) const { return ir::parameter({dtype, Shape(dims), Layout::nhwc}); }
  static ir::Contraction of(const ir::Value& anchor) { return ir::contractions_of(*anchor).at(0); }
  ir::Value input() const { return value({images, channels, size, size}); }
};

void expect(const ir::Contraction& contraction, const Target& target, const std::string& line,
            const FusedWork& fused = {}) {
  const std::string chosen = print_lines({Work::contraction, "", candidates(contraction, target, fused).front()});
  EXPECT_NE(chosen.find("\n  " + line + "\n"), std::string::npos)
      << line << " is not in\n"
      << chosen << "of " << str(contraction) << "\non " << target.str();
}

// Where there is a matrix unit, bf16 goes through it: rows that are few tiles, sums that stay in L1, long pieces where
// an epilogue reads other tensors, weights that leave L2 shared out before images.
TEST(Chosen, MatrixUnitsHaveRowsOfFewTiles) {
  const Target amx = Target::parse("x86:amx,l1=48k,l2=2m,l3=64m,fma=2,tasks=64");
  const auto layer = [](std::int64_t channels, std::int64_t size, std::int64_t outputs, std::int64_t kernel) {
    return Layer{16, channels, size, outputs, kernel, 1, 1, DType::bf16};
  };
  const ir::Contraction window = layer(64, 56, 64, 3).forward(), single = layer(64, 56, 256, 1).forward();
  expect(window, amx, "tile q 56"), expect(window, amx, "dot c 32"), expect(window, amx, "vector k 16 x 2");
  expect(single, amx, "tile p 2, q 56"), expect(single, amx, "task n, p"),
      expect(single, amx, "vector k 16 x 8", {.elements_read = 2});
  expect(layer(512, 7, 512, 3).forward(), amx, "task k/64, n/8");
  expect(layer(24, 28, 64, 1).forward(), amx, "dot c 24"), expect(layer(64, 17, 64, 3).forward(), amx, "tile q 17");
  const auto images = [](std::int64_t channels, std::int64_t kernel) {
    return Layer{16, channels, 224, 64, kernel, 2, 1, DType::bf16}.forward();
  };
  expect(images(3, 7), amx, "unroll s 7, c 4"), expect(images(3, 7), amx, "dot c 28");
  expect(images(1, 5), amx, "dot c 10"), expect(images(4, 3), amx, "dot c 12"), expect(images(8, 9), amx, "dot c 24");
  const FusedWork in_nhwc{.innermost_of_a = 1, .innermost_of_b = 1}, computed{.computes_a = true, .innermost_of_a = 1};
  expect(layer(512, 7, 2048, 1).forward(), amx, "tile p 7, q 7", in_nhwc);
  expect(layer(128, 28, 512, 1).forward(), amx, "tile p 4, q 28", in_nhwc);
  expect(layer(256, 14, 1024, 1).forward(), amx, "tile q 14", in_nhwc);  // two rows are as many tiles
  expect(layer(512, 7, 2048, 1).forward(), amx, "tile p 7, q 7", computed);
  expect(layer(256, 14, 256, 3).forward(), amx, "tile p 2, q 14");
  expect(layer(1024, 14, 256, 1).forward(), amx, "tile p 2, q 14", in_nhwc);
  expect(layer(256, 28, 256, 3).forward(), amx, "tile q 28");
  const Layer strided{16, 1024, 14, 2048, 1, 2, 1, DType::bf16};
  expect(strided.forward(), amx, "tile p 7, q 7", in_nhwc), expect(strided.forward(), amx, "panel a task", in_nhwc);
  EXPECT_EQ(candidates(layer(256, 14, 64, 1).forward(), amx, in_nhwc).front().panel_a, "");
  EXPECT_EQ(candidates(layer(256, 14, 64, 3).forward(), amx, in_nhwc).front().panel_a, Schedule::kTask);
  EXPECT_EQ(candidates(layer(256, 14, 64, 1).forward(), amx, computed).front().panel_a, Schedule::kTask);
  EXPECT_EQ(candidates(layer(256, 14, 64, 1).forward(), amx, {}).front().panel_a, Schedule::kTask);
  expect(layer(64, 56, 256, 1).weight_grad(), amx, "dot n 28", in_nhwc);
  expect(layer(256, 14, 256, 3).weight_grad(), amx, "unroll q 2, n 16", in_nhwc);
  expect(layer(256, 14, 256, 3).weight_grad(), amx, "task k/128, c/64", in_nhwc);
}

// Weights that L2 does not hold are read for several images at a time; a prologue's panel has fewer shares of the
// outputs, each of which computes it; few tiles stream weights instead.
TEST(Chosen, WeightsThatLeaveL2AreReadForSeveralImages) {
  const auto small = [](std::int64_t images) { return Layer{images, 512, 7, 512, 3}.forward(); };
  expect(small(16), kSapphireRapids, "task k, n/4"), expect(small(16), kZen5, "task k, n/4");
  expect(small(16), kSapphireRapids, "task k/64, n/2", {.computes_a = true});
  expect(small(2), kSapphireRapids, "fetch k 32");
  expect(Layer{16, 128, 28, 128, 3}.forward(), kSapphireRapids, "outer k");
}

// Beside an epilogue that reads tensors they pass for every few rows, which fetch those for the next task: but where L3
// is far.
TEST(Chosen, WeightsThatLeaveL2PassRowsWhoseEpilogueReads) {
  const Layer last{16, 2048, 7, 512, 1};
  const FusedWork reads{.sums = true, .elements_read = 2};
  expect(last.forward(), kZen5, "task k/64, n/2"), expect(last.forward(), kSapphireRapids, "task k/64, n/2");
  expect(last.forward(), kZen5, "task n, p/2", reads), expect(last.forward(), kZen5, "fetch p 2", reads);
  expect(last.forward(), kZen4, "task n, p/2", reads);
  expect(last.forward(), kSapphireRapids, "task k/64, n/2", reads);
}

// What the epilogue reads beside a task's results has a quarter of L2: two rows of 56 pixels of 256 outputs with one
// tensor, one row with two. Never fewer than 28 pixels.
TEST(Chosen, TasksHaveAsManyRowsAsTheirEpilogueHasRoomFor) {
  const auto reads = [](int tensors) { return FusedWork{.sums = true, .elements_read = tensors}; };
  const ir::Contraction wide = Layer{16, 64, 56, 256, 1}.forward(), narrow = Layer{16, 256, 14, 1024, 1}.forward();
  expect(wide, kZen5, "task n, p/2", reads(1)), expect(wide, kZen5, "task n, p", reads(2));
  expect(Layer{16, 128, 28, 512, 1}.forward(), kZen5, "task n, p", reads(3));
  expect(narrow, kZen5, "task n, p/2", reads(2)), expect(narrow, kZen5, "task n, p/2", reads(4));
}

TEST(Chosen, TilesAreAsLongAsTheProcessorLikesThem) {
  const ir::Contraction wide = Layer{16, 512, 14, 1024, 1}.forward(), long_rows = Layer{16, 64, 56, 64, 3}.forward();
  expect(wide, kZen5, "tile q 7"), expect(wide, kSapphireRapids, "tile q 14"), expect(wide, kZen4, "tile q 7");
  expect(long_rows, kZen5, "tile q 8"), expect(long_rows, kSapphireRapids, "tile q 14");
}

// Of rows of four tiles of 14 pixels of pairs, those at the edges would spill as copies: they are read from a panel, or
// tiles are so small that none does.
TEST(Chosen, LongRowsOfPairsHaveSmallTilesAndNoPanel) {
  const auto layer = [](std::int64_t size) { return Layer{1, 64, size, 64, 3, 1, 1, DType::bf16}.forward(); };
  expect(layer(56), kZen5, "tile q 8");
  EXPECT_EQ(candidates(layer(56), kZen5, {}).front().panel_a, "");
  expect(layer(28), kZen5, "tile q 14");
  expect(layer(56), kZen5, "tile q 14", {.computes_a = true});  // in a panel anyway
  expect(layer(56), kZen5, "panel a task", {.computes_a = true});
}

TEST(Chosen, DepthwiseTilesOnNarrowRowsLeaveRegistersForInputs) {
  expect(Layer{16, 192, 28, 192, 3, 1, 192}.forward(), kZen5, "tile q 4");
  expect(Layer{16, 192, 56, 192, 3, 1, 192}.forward(), kZen5, "tile q 8");
  expect(Layer{16, 192, 28, 192, 3, 2, 192}.forward(), kZen5, "tile q 7");
}

TEST(Chosen, ThreeVectorsWhereTheyAreAllOfTheOutputs) {
  expect(Layer{16, 24, 56, 144, 1}.forward(), kZen5, "vector k 16 x 3");
  expect(Layer{16, 24, 56, 192, 1}.forward(), kZen5, "vector k 16 x 2");
}

TEST(Chosen, RowsOfPixelsThatAdjoinAreFetchedATileAhead) {
  expect(Layer{16, 384, 28, 32, 1}.forward(), kZen5, "fetch q 7");
}

TEST(Chosen, PartsOfASumAreOfOneSizeWhereTheyCanBe) {
  const FusedWork computes{.computes_b = true};
  expect(Layer{16, 64, 14, 384, 1}.weight_grad(), kZen5, "task n/4, k", computes);
  expect(Layer{17, 64, 14, 384, 1}.weight_grad(), kZen5, "task n/3, k", computes);
}

TEST(Chosen, FewWeightsOfManyOutputsReadPanelsOfTiles) {
  const std::string tiles = "panel a p tiles";
  const auto layer = [](std::int64_t channels, std::int64_t size, std::int64_t outputs, std::int64_t kernel = 1) {
    return Layer{16, channels, size, outputs, kernel}.weight_grad();
  };
  expect(layer(64, 56, 256), kZen5, tiles), expect(layer(64, 56, 256), kZen5, "outer p/2, k, c");
  expect(layer(128, 28, 512), kZen5, tiles), expect(layer(128, 28, 512), kZen5, "task n/4, k/256");
  expect(layer(64, 56, 64, 3), kZen5, tiles), expect(layer(64, 56, 64, 3), kZen5, "outer n, p/8, k, c, r, s");
  // Each element is multiplied too seldom, weights are too many, another kind of processor, a second panel is needed.
  expect(layer(512, 28, 128), kZen5, "panel b p"), expect(layer(64, 56, 64), kZen5, "panel b p");
  expect(layer(256, 14, 1024), kZen5, "panel b p"), expect(layer(128, 28, 128, 3), kZen5, "panel b p");
  expect(layer(64, 56, 256), kZen4, "panel b p");
  expect(layer(64, 56, 256), kZen5, "panel b p", {.computes_b = true});
  expect(layer(64, 56, 64, 3), kZen5, "panel a p tiles, b k", {.computes_b = true});
  // Of one image there would be one task.
  expect(Layer{1, 64, 56, 256, 1}.weight_grad(), kZen5, "panel b p");
}

// As few large tasks as an eighth of the target's, two for each processor: five would keep one of two waiting for a
// sixth of the time.
TEST(Chosen, WeightGradientsAreFewLargeTasks) {
  const auto on = [](int tasks) {
    return Target::parse(fmt::format("x86:avx512bf16,l1=48k,l2=1m,l3=32m,fma=2,tasks={},dot2=1", tasks));
  };
  const FusedWork activation{.computes_a = true};
  const ir::Contraction layer = Layer{16, 256, 14, 1024, 1}.weight_grad();
  expect(layer, on(32), "task k/512, c/128", activation), expect(layer, on(64), "task k/256, c/128", activation);
  expect(layer, on(128), "task k/256, c/64", activation);
  const ir::Contraction narrow = Layer{16, 960, 7, 160, 1}.weight_grad();
  expect(narrow, on(32), "task k, c/480", activation), expect(narrow, on(64), "task k, c/240", activation);
}

TEST(Chosen, ChannelsThatShareSetsAreTheSecondOperandOfOneTap) {
  const auto first = [](const Layer& layer, const Target& target = kZen5, bool computes_gradient = false) {
    return operands_in_order(layer.weight_grad(), target, computes_gradient).a.operand;
  };
  const Layer layer{16, 1024, 14, 256, 1};
  EXPECT_EQ(first(layer), 1);
  EXPECT_EQ(first({16, 2048, 7, 512, 1}), 1);
  expect(operands_in_order(layer.weight_grad(), kZen5, false), kZen5, "vector c 16 x 4");
  expect(operands_in_order(layer.weight_grad(), kZen5, false), kZen5, "combine c");
  // A panel of the gradient, no or both share sets, no one tap of each pixel, groups, a device.
  EXPECT_EQ(first(layer, kZen5, true), 0);
  EXPECT_EQ(first({16, 512, 28, 128, 1}), 0);
  EXPECT_EQ(first({16, 2048, 7, 1024, 1}), 0);
  EXPECT_EQ(first({16, 1024, 14, 256, 3}), 0);
  EXPECT_EQ(first({16, 1024, 14, 256, 1, 2}), 0);
  EXPECT_EQ(first({16, 1024, 14, 256, 1, 1, 4}), 0);
  EXPECT_EQ(first(layer, Target::parse("cuda:sm_90")), 0);
}

TEST(Contraction, OperandsAreExchangedWhereNoWindowIsInTheWay) {
  const auto after = [](const Layer& layer) {
    const std::optional<ir::Contraction> other = ir::exchanged(layer.weight_grad());
    return other ? str(*other) : "";
  };
  EXPECT_EQ(after({2, 8, 5, 4, 1}),
            "out[k, c, r, s] += a[n, k, p + r, q + s] * b[n, c, p, q]; k 4, r 1, s 1, c 8 | n 2, p 5, q 5");
  EXPECT_EQ(after({2, 8, 5, 4, 3}), "");
  EXPECT_EQ(after({2, 8, 5, 4, 1, 2}), "");
  EXPECT_EQ(after({2, 8, 5, 4, 1, 1, 2}), "");
  EXPECT_FALSE(ir::exchanged(Layer{2, 8, 5, 4, 1}.forward()));
  const ir::Value x = ir::parameter({DType::f32, {2, 8, 5, 5}}), y = ir::parameter({DType::f32, {2, 4, 7, 7}});
  EXPECT_FALSE(ir::exchanged(ir::contractions_of(*ir::build(
      ir::Op::conv2d_weight_grad, {x, y}, {{"kernel_size", Numbers{1, 1}}, {"padding", Numbers{1, 1, 1, 1}}}))[0]));
}

// What a task of single taps touches, and the next one's that comes meanwhile, stays in an eighth of a large L2.
TEST(Chosen, TasksOfSingleTapsAreSmallWhereL3IsFar) {
  const FusedWork sums{.sums = true}, relu{.sums = true, .computes_a = true},
      gradient{.sums = true, .elements_read = 2, .computes_a = true};
  const auto chosen = [](const Layer& layer, const FusedWork& fused, const std::vector<std::string>& lines) {
    for (const std::string& line : lines) expect(layer.forward(), kSapphireRapids, line, fused);
  };
  const Layer wide{16, 64, 56, 256, 1}, narrow{16, 256, 56, 64, 1}, deep{16, 512, 28, 128, 1};
  chosen(wide, relu, {"task n, p/2", "tile q 8", "panel a task", "fetch p 2"});  // 14 and 57 KiB a row
  chosen(wide, sums, {"task n, p/2", "panel a task", "fetch p 2"});              // copied too: it comes line by line
  chosen(wide, gradient, {"task n, p", "panel a task", "fetch p 1"});
  chosen(narrow, sums, {"task n, p/2", "panel a task", "fetch p 2"});
  chosen(narrow, gradient, {"task n, p/2", "tile q 8", "fetch p 2"});
  chosen({16, 256, 14, 1024, 1}, relu, {"task n, p/2", "fetch p 2"});  // a block of three would leave two rows
  // Read as it is, beside sums an eighth of L2 too, without them a quarter.
  chosen(deep, sums, {"task n, p/4", "outer k"});
  chosen(deep, {}, {"task n, p/7", "outer k"});
  chosen(wide, {.sums = true, .computes_a = true, .concatenates = true}, {"task n, p/28", "fetch p 1"});
  // Weights of 2 MiB would pass for each of those tasks, taps of 3x3 read rows twice, and one image is too few tasks.
  chosen({16, 512, 14, 1024, 1}, relu, {"task n"});
  chosen({16, 64, 56, 64, 3}, relu, {"task n, p/28"});
  chosen({1, 64, 28, 256, 1}, {}, {"task p, k"});
  expect(wide.forward(), kZen5, "task n, p/14", relu), expect(wide.forward(), kZen5, "fetch p 1", relu);
}

// As few copies and partial sums as eight tasks allow, or sixteen where that is little more.
TEST(Chosen, SumsOfSingleTapsStayInALargeL2) {
  const FusedWork of_batch_norm{.computes_b = true};
  const ir::Contraction wide = Layer{16, 1024, 14, 256, 1}.weight_grad();
  for (const char* line : {"task n/4, c/512", "outer n, p/7, k, c", "panel a p tiles, b k", "fetch p 7"})
    expect(wide, kSapphireRapids, line, of_batch_norm);
  expect(wide, kZen5, "panel b p", of_batch_norm);
  expect(Layer{16, 1024, 14, 2048, 1, 2}.weight_grad(), kSapphireRapids, "task k/512, c/512");  // no parts of 8 MiB
  expect(Layer{16, 512, 28, 128, 1}.weight_grad(), kSapphireRapids, "task n", of_batch_norm);   // parts of 256 KiB
  expect(Layer{16, 512, 28, 128, 1}.weight_grad(), kSapphireRapids, "panel b p");               // too few outputs
  expect(Layer{16, 576, 14, 96, 1}.weight_grad(), kSapphireRapids, "panel a p tiles, b k", of_batch_norm);
  expect(Layer{16, 384, 14, 64, 1}.weight_grad(), kSapphireRapids, "panel b p", of_batch_norm);
  expect(Layer{16, 256, 28, 256, 3, 2}.weight_grad(), kSapphireRapids, "task k/128, c/64",
         {.computes_a = true, .computes_b = true});
  expect(Layer{16, 1024, 14, 2048, 1, 2}.weight_grad(), Target::parse("x86:avx512,l1=48k,l2=512k,fma=2"),
         "task k/256, c/256");
  // As many as the machine has processors.
  expect(wide, Target::parse("x86:avx512,l1=48k,l2=2m,l3=64m,fma=2,tasks=256"), "task n/2, c/256", of_batch_norm);
}

TEST(Chosen, RowsThatPassByDivideAnImage) {
  expect(Layer{16, 256, 14, 256, 3}.weight_grad(), kZen5, "fetch p 7");
  expect(Layer{16, 128, 28, 128, 3}.weight_grad(), kZen5, "fetch p 2");
}

TEST(Chosen, WeightGradientsOfFewChannelsHaveFourVectors) {
  expect(Layer{16, 3, 224, 64, 7, 2}.weight_grad(), kZen5, "vector k 16 x 4");
  expect(Layer{16, 3, 224, 64, 7, 2}.weight_grad(), kZen5, "tile s*c 6");
  expect(Layer{16, 3, 224, 64, 7, 2}.weight_grad(), kZen4, "vector k 16 x 2");
}

TEST(Chosen, WeightGradientsOfFewChannelsComputeTheirGradientARowAtATime) {
  expect(Layer{16, 3, 224, 64, 7, 2}.weight_grad(), kZen5, "outer p/1, r, s*c");
  expect(Layer{16, 3, 224, 64, 7, 2}.weight_grad(), kZen4, "panel b p", {.computes_b = true});
  expect(Layer{16, 3, 224, 64, 7, 2}.weight_grad(), kZen4, "fetch p 1", {.computes_b = true});
}

// Of 250 rows and 9216 columns, which 128 rows are multiplied with.
TEST(Chosen, ProductsOfWhatTheStepComputesCopyItInTheirTasks) {
  const auto product = [](std::int64_t rows, std::int64_t terms) {
    const ir::Value a = ir::parameter({DType::f32, {rows, terms}}), b = ir::parameter({DType::f32, {terms, 9216}});
    return ir::contractions_of(*ir::build(ir::Op::matmul, {a, b})).at(0);
  };
  expect(product(128, 250), kZen4, "pack b 32");
  expect(product(128, 250), kZen4, "panel b task", {.b_of_step = true});
  expect(product(128, 250), kZen4, "task k", {.b_of_step = true});
  // Too much for a cache beside the products.
  expect(product(128, 4096), kZen4, "pack b 32", {.b_of_step = true});
}

TEST(Chosen, WinogradTakesMoreImagesWhereNoCacheHoldsItsWeights) {
  expect(Layer{16, 512, 7, 512, 3}.forward(), kZen5Winograd, "task n/8, k/128");
  expect(Layer{16, 256, 14, 256, 3}.forward(), kZen5Winograd, "task n");
}

// Sums that come and go in L2; fewer shares of outputs and channels take the operands to the points less often, and
// fewer parts the sums to taps: eight tasks. Where several points meet one of the weights, sums come and go less.
TEST(Chosen, WinogradsWeightsHaveManyOutputsATask) {
  const auto chosen = [](const Layer& layer, const std::string& line) {
    expect(layer.weight_grad(), kZen5Winograd, line);
  };
  chosen({16, 64, 56, 64, 3}, "task n/2"), chosen({16, 64, 56, 64, 3}, "vector k 16 x 4");
  chosen({16, 128, 28, 128, 3}, "task n/4, c/64"), chosen({16, 128, 28, 128, 3}, "tile c 8");  // these leave L2
  chosen({16, 256, 14, 256, 3}, "task k/128, c/64"), chosen({16, 256, 14, 256, 3}, "vector k 16 x 2");
  chosen({16, 128, 56, 128, 3, 2}, "task n/2"), chosen({16, 128, 56, 128, 3, 2}, "outer n");
  chosen({2, 256, 28, 256, 3}, "task k/64, c/128");  // of few images tasks are shares
}

// Weights that L2 does not hold come from an L3 that is far once for many patches, fetched ahead.
TEST(Chosen, WinogradsWeightsPassManyPatchesOnALargeL2) {
  const auto fetches = [](const Layer& layer, const std::string& what) {
    expect(layer.forward(), kSapphireRapidsWinograd, "fetch q 4" + what);
  };
  const auto chosen = [](const Layer& layer, const std::string& line) {
    expect(layer.forward(), kSapphireRapidsWinograd, line);
  };
  const Layer small{16, 64, 56, 64, 3}, middle{16, 256, 14, 256, 3}, last{16, 512, 7, 512, 3};
  chosen(small, "task n, p/4"), fetches(small, "");
  chosen({16, 128, 28, 128, 3}, "task n"), fetches({16, 128, 28, 128, 3}, ", b");
  chosen({16, 64, 112, 128, 3}, "task n, p/4"), fetches({16, 64, 112, 128, 3}, "");  // L2 holds both
  // The patches of two images meet 128 outputs together; those of all, at half as many tasks, take the weights once.
  chosen(middle, "task n/2"), chosen(middle, "outer k/128"), fetches(middle, ", b");
  chosen(last, "task k/128"), chosen(last, "outer k/128"), fetches(last, ", b");
  chosen({1, 256, 14, 256, 3}, "task k/64");
  expect(middle.forward(), Target::parse("x86:avx512,l1=48k,l2=2m,l3=64m,fma=2,tasks=256,winograd=1"),
         "task n/2, k/128");
}

// With 2048 channels a task's patches are as few as scratch holds; a row of 4096 pixels of them is too long for any.
TEST(Chosen, WinogradStaysWithinScratchOrIsNotChosen) {
  expect(Layer{16, 2048, 28, 2048, 3}.forward(), kSapphireRapidsWinograd, "algorithm winograd 4");
  const ir::Value x = ir::parameter({DType::f32, {1, 2048, 8, 4096}, Layout::nhwc}),
                  w = ir::parameter({DType::f32, {64, 2048, 3, 3}, Layout::nhwc});
  const ir::Contraction rows =
      ir::contractions_of(*ir::build(ir::Op::conv2d, {x, w}, {{"padding", Numbers{1, 1, 1, 1}}}))[0];
  EXPECT_EQ(candidates(rows, kSapphireRapidsWinograd, {}).front().winograd, 0);
  // However few tasks a target wants.
  expect(Layer{16, 64, 56, 64, 3}.weight_grad(), Target::parse("x86:avx512,l1=48k,l2=2m,fma=2,tasks=4,winograd=1"),
         "outer n, p/8");
}

// And weight gradients: sums of 64 outputs and 64 channels at all points stay in L2 with the patches at hand.
TEST(Chosen, WinogradsSumsStayWithTheirPatchesInALargeL2) {
  const auto chosen = [](const Layer& layer, const std::string& line) {
    expect(layer.weight_grad(), kSapphireRapidsWinograd, line);
  };
  chosen({16, 64, 56, 64, 3}, "task n/2"), chosen({16, 64, 56, 64, 3}, "outer n, p/8");
  chosen({16, 128, 28, 128, 3}, "task n/8, k/64, c/64"), chosen({16, 128, 28, 128, 3}, "outer n");
  chosen({16, 256, 14, 256, 3}, "task k/64, c/64"), chosen({16, 256, 14, 256, 3}, "outer n/2");
  chosen({16, 512, 7, 512, 3}, "task k/64, c/64"), chosen({16, 512, 7, 512, 3}, "outer n/8");
}

// Those of one tile, or a row of them; blocks of rows leave no block with few.
TEST(Chosen, WinogradTakesThePatchesOfATile) {
  expect(Layer{16, 64, 56, 64, 3}.forward(), kZen5Winograd, "task n, p/4");    // 14 a row
  expect(Layer{16, 128, 28, 128, 3}.forward(), kZen5Winograd, "task n, p/4");  // 7: two rows would be 8 of 7
  expect(Layer{1, 128, 28, 128, 3}.forward(), kZen5Winograd, "task p/4");
  expect(Layer{16, 160, 20, 160, 3}.forward(), kZen5Winograd, "task n");          // 5 x 5 at once, not 3 rows of 5
  expect(Layer{16, 512, 28, 512, 3}.forward(), kZen5Winograd, "task n");          // weights of 36 MiB
  expect(Layer{16, 64, 56, 64, 3}.weight_grad(), kZen5Winograd, "outer n, p/8");  // 7 blocks of two rows, not 4 of 4
}

// Rows longer than L1 has room for are cut, whoever reads them; of one image, rows and then columns are parts of the
// sum.
TEST(Chosen, WeightGradientsCutLongRows) {
  expect(Layer{16, 64, 112, 64, 3}.weight_grad(), kZen4, "outer n, p/1, r, s, c");
  expect(Layer{16, 64, 224, 64, 3}.weight_grad(), kZen4, "outer n, p/1, q/56, r, s, c");
  expect(Layer{1, 64, 256, 64, 3}.weight_grad(), kZen4, "task k, p/64");
  expect(Layer{1, 64, 14, 64, 3}.weight_grad(), kZen4, "task k");  // too few for parts
  const auto signal = [](std::int64_t signals, std::int64_t samples, DType dtype = DType::f32) {
    const ir::Value x = ir::parameter({dtype, {signals, 64, 1, samples}, Layout::nhwc});
    return ir::contractions_of(*ir::build(ir::Op::conv2d_weight_grad, {x, x},
                                          {{"kernel_size", Numbers{1, 9}}, {"padding", Numbers{0, 4, 0, 4}}}))[0];
  };
  expect(signal(1, 65536), kZen4, "task k, q/16384"), expect(signal(1, 65536), kZen4, "outer q/64, s, c");
  // Samples that have no divisor near what L1 has room for.
  expect(signal(1, 15992), kZen4, "task k, q/4002"), expect(signal(1, 15992), kZen4, "outer q/69, s, c");
  expect(signal(16, 4000), kZen5, "outer n, q/400, k, c, s"), expect(signal(16, 4000), kZen5, "panel a q tiles");
  const Target amx = Target::parse("x86:amx,l1=48k,l2=2m,l3=64m,fma=2,tasks=64");
  FusedWork channels_last;
  channels_last.innermost_of_a = channels_last.innermost_of_b = 1;
  expect(signal(16, 16384, DType::bf16), amx, "panel a q, b q", channels_last);
}

// A loop of tasks for every dim would be four, where there are processors enough for that.
TEST(Chosen, MatrixUnitsShareOutThreeDimsAtMost) {
  const Target amx = Target::parse("x86:amx,l1=48k,l2=2m,l3=64m,fma=2,tasks=512");
  FusedWork channels_last;
  channels_last.innermost_of_a = channels_last.innermost_of_b = 1;
  const ir::Contraction weights = Layer{16, 128, 28, 256, 1, 1, 1, DType::bf16}.weight_grad();
  const Schedule chosen = candidates(weights, amx, channels_last).front();
  EXPECT_GT(chosen.matrix, 0) << print(chosen);
  EXPECT_EQ(check(weights, chosen, amx, false), "") << print(chosen);
}

// The gap between taps is longer than what a block of columns reads of a row.
TEST(Chosen, WeightGradientsOfTapsFarApartHaveASchedule) {
  const ir::Value x = ir::parameter({DType::f32, {16, 64, 200, 750}, Layout::nhwc}),
                  dy = ir::parameter({DType::f32, {16, 64, 450, 1000}, Layout::nhwc});
  const ir::Contraction weights = ir::contractions_of(*ir::build(
      ir::Op::conv2d_weight_grad, {x, dy},
      {{"kernel_size", Numbers{3, 3}}, {"padding", Numbers{250, 250, 250, 250}}, {"dilation", Numbers{125, 125}}}))[0];
  EXPECT_EQ(check(weights, candidates(weights, kSapphireRapids, {}).front(), kSapphireRapids, false), "");
}

// Taps far apart, of thousands of channels: no panel is chosen that a task has no scratch for.
TEST(Chosen, PanelsThatDoNotFitAreLeftOut) {
  const ir::Value x = ir::parameter({DType::f32, {1, 2048, 500, 500}, Layout::nhwc}),
                  w = ir::parameter({DType::f32, {64, 2048, 5, 5}, Layout::nhwc});
  const auto y = ir::build(ir::Op::conv2d, {x, w}, {{"dilation", Numbers{16, 16}}});
  for (const Target& target : {kZen4, kZen5, kSapphireRapids}) {
    const ir::Contraction forward = ir::contractions_of(*y)[0];
    const Schedule chosen = candidates(forward, target, {.computes_a = true}).front();
    EXPECT_EQ(check(forward, chosen, target, false), "");
    EXPECT_EQ(chosen.panel_a, "") << print(chosen);
  }
}

}  // namespace
}  // namespace fusejit::scheduler
