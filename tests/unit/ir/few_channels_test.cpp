// passes/few_channels: before and after, what must stay, and that the wider convolutions mean the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tuple>

#include "ir/interp.h"
#include "ir/passes/passes.h"

namespace fusejit::ir {
namespace {

constexpr const char* kWithLibrary = "cuda:sm_90,cudnn=1";

// A convolution of [2,channels,h,w] by [4,channels,r,s] and its gradient by w.
struct Stem {
  std::string dtype = "f32";
  int channels = 3, h = 9, w = 9, r = 3, s = 3, stride = 1;
  std::array<int, 4> padding{};
};
Graph graph_of(const Stem& a) {
  const int p = (a.h + a.padding[0] + a.padding[2] - a.r) / a.stride + 1,
            q = (a.w + a.padding[1] + a.padding[3] - a.s) / a.stride + 1;
  const std::string x = fmt::format("{}[2,{},{},{}]", a.dtype, a.channels, a.h, a.w),
                    w = fmt::format("{}[4,{},{},{}]", a.dtype, a.channels, a.r, a.s),
                    y = fmt::format("{}[2,4,{},{}]", a.dtype, p, q),
                    how = fmt::format("stride=[{0},{0}], padding=[{1},{2},{3},{4}]", a.stride, a.padding[0],
                                      a.padding[1], a.padding[2], a.padding[3]);
  return parse_graph(
      fmt::format("graph @g(%x: {0}, %w: {1}, %dy: {2}) {{ %0 = conv2d(%x, %w) {{{3}}} : {2} "
                  "%1 = conv2d_weight_grad(%x, %dy) {{kernel_size=[{4},{5}], {3}}} : {1} "
                  "return %0, %1 }}",
                  x, w, y, how, a.r, a.s));
}
Graph widened(const Graph& graph, const char* target = kWithLibrary) {
  return widen_few_channels(graph, Target::parse(target));
}

TEST(FewChannels, AnImageIsPaddedOnceForItsConvolutionAndTheGradient) {
  EXPECT_EQ(print(widened(graph_of({.dtype = "bf16"}))),
            print(parse_graph("graph @g(%x: bf16[2,3,9,9], %w: bf16[4,3,3,3], %dy: bf16[2,4,7,7]) { "
                              "%0 = pad(%x) {low=[0,0,0,0], high=[0,5,0,0]} : bf16[2,8,9,9] "
                              "%1 = pad(%w) {low=[0,0,0,0], high=[0,5,0,0]} : bf16[4,8,3,3] "
                              "%2 = conv2d(%0, %1) : bf16[2,4,7,7] "
                              "%3 = conv2d_weight_grad(%0, %dy) {kernel_size=[3,3]} : bf16[4,8,3,3] "
                              "%4 = slice(%3) {starts=[0,0,0,0], stops=[4,3,3,3], steps=[1,1,1,1]} : bf16[4,3,3,3] "
                              "return %2, %4 }")));
}

TEST(FewChannels, AStrideOfTwoAndFourOutputsBecomeChannels) {
  const std::string text = print(
      widened(graph_of({.dtype = "bf16", .h = 224, .w = 224, .r = 7, .s = 7, .stride = 2, .padding = {3, 3, 3, 3}})));
  EXPECT_NE(
      text.find("conv2d(%4, %13) {stride=[1,1], padding=[0,0,0,0], dilation=[1,1], groups=1} : bf16[2,16,112,28]"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("bf16[2,64,115,29]"), std::string::npos) << text;
  EXPECT_NE(text.find("conv2d_weight_grad(%4, %20) {kernel_size=[4,2], stride=[1,1]"), std::string::npos) << text;
}

TEST(FewChannels, RowsOfAnyOtherNumberOfOutputsAreBlocksOfTwo) {
  const std::string text = print(
      widened(graph_of({.dtype = "bf16", .h = 224, .w = 220, .r = 7, .s = 7, .stride = 2, .padding = {3, 3, 3, 3}})));
  EXPECT_NE(text.find("bf16[2,16,115,113]"), std::string::npos) << text;
  EXPECT_NE(text.find("conv2d_weight_grad(%4, %dy) {kernel_size=[4,4], stride=[1,1]"), std::string::npos) << text;
}

// In f64 of small whole numbers, where every order of sums gives the same.
TEST(FewChannels, MeansTheSame) {
  const Stem stems[] = {
      {.channels = 3, .h = 12, .w = 10, .r = 7, .s = 7, .stride = 2, .padding = {3, 3, 3, 3}},
      {.channels = 3, .h = 9, .w = 16, .r = 7, .s = 7, .stride = 2, .padding = {3, 3, 3, 3}},
      {.channels = 3, .h = 7, .w = 7, .r = 3, .s = 3, .stride = 2, .padding = {1, 1, 1, 1}},
      {.channels = 2, .h = 8, .w = 24, .r = 5, .s = 11, .stride = 2, .padding = {2, 0, 1, 1}},
      {.channels = 3, .h = 12, .w = 12, .r = 3, .s = 3, .stride = 2, .padding = {1, 1, 1, 1}},
      {.channels = 1, .h = 11, .w = 14, .r = 4, .s = 5, .stride = 2, .padding = {0, 2, 1, 3}},
      {.channels = 2, .h = 8, .w = 9, .r = 2, .s = 2, .stride = 2},
      {.channels = 3, .h = 9, .w = 8, .r = 3, .s = 5, .stride = 1, .padding = {0, 1, 2, 0}},
  };
  int in_blocks = 0, of_four = 0;
  for (const Stem& stem : stems) {
    const Graph before = graph_of(stem), after = widened(before);
    EXPECT_FALSE(after.is(before)) << print(before);
    in_blocks += print(after).find("permute") != std::string::npos;
    of_four += print(after).find("concat") != std::string::npos;
    std::vector<Array> arguments;
    int number = 0;
    for (const Value& parameter : before.parameters()) {
      Array array(parameter.type());
      for (std::int64_t i = 0; i < array.type.elements(); ++i)
        array.set(i, cast(Scalar::of((number++ * 7) % 11 - 5.0), array.type.dtype));
      arguments.push_back(std::move(array));
    }
    const std::vector<Array> want = interpret(before, arguments), got = interpret(after, arguments);
    for (std::size_t r = 0; r < want.size(); ++r) {
      for (std::int64_t i = 0; i < want[r].type.elements(); ++i)
        ASSERT_EQ(got[r].at(i).as_double(), want[r].at(i).as_double()) << print(after);
    }
  }
  EXPECT_EQ(in_blocks, 6);
  EXPECT_EQ(of_four, 4);
}

// f32 that may not be rounded to TF32 is convolved by kernels of our own (Target::strict_f32).
TEST(SuitsLibrary, StrictF32IsNotForTheLibrary) {
  const Graph f32 = graph_of({.channels = 8}), bf16 = graph_of({.dtype = "bf16", .channels = 8});
  for (const auto& [target, of_f32, of_bf16] : {std::tuple("cuda:sm_90,cudnn=1", true, true),
                                                {"cuda:sm_90,cudnn=1,strict=1", false, true},
                                                {"cuda:sm_90", false, false}}) {
    EXPECT_EQ(suits_library(*f32.nodes()[0], Target::parse(target)), of_f32) << target;
    EXPECT_EQ(suits_library(*bf16.nodes()[0], Target::parse(target)), of_bf16) << target;
    EXPECT_EQ(Target::parse(Target::parse(target).str()), Target::parse(target));
  }
}

TEST(FewChannels, NotWhereItCostsMoreOrNoLibraryIsAsked) {
  for (const Stem& stem : {Stem{.dtype = "bf16", .channels = 1}, Stem{.dtype = "bf16", .channels = 2},
                           Stem{.dtype = "bf16", .channels = 8}, Stem{.channels = 1}, Stem{.dtype = "f64"}}) {
    const Graph graph = graph_of(stem);
    EXPECT_EQ(print(widened(graph)), print(graph));
  }
  // The last row is read by no window: the image would have to be cut.
  const Graph odd = graph_of({.channels = 4, .h = 9, .w = 9, .r = 2, .s = 2, .stride = 2});
  EXPECT_EQ(print(widened(odd)), print(odd));
  const Graph graph = graph_of({.dtype = "bf16"});
  EXPECT_EQ(print(widened(graph, "cuda:sm_90")), print(graph));
  EXPECT_EQ(print(widened(graph, "x86:avx512")), print(graph));
}

}  // namespace
}  // namespace fusejit::ir
