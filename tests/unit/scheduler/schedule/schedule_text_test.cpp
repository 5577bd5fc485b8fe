// A schedule as a value: its text, what its parser refuses and where, and every rule of its check.
#include <gtest/gtest.h>

#include "fusejit/error.h"
#include "ir/kernel/text/parser.h"
#include "ir/node.h"
#include "scheduler/choose/choose.h"
#include "scheduler/schedule/schedule.h"

namespace fusejit::scheduler {
namespace {

ir::Contraction convolution(const std::string& x, const std::string& w, std::vector<ir::AttrInit> attrs = {}) {
  const auto type = [](const std::string& dims) {
    std::vector<std::int64_t> extents;
    for (std::size_t at = 0; at < dims.size();
         at = dims.find(',', at) == std::string::npos ? dims.size() : dims.find(',', at) + 1)
      extents.push_back(std::stoll(dims.substr(at)));
    return Type{DType::f32, Shape(extents)};
  };
  const ir::Value y = ir::build(ir::Op::conv2d, {ir::parameter(type(x)), ir::parameter(type(w))}, std::move(attrs));
  return ir::contractions_of(*y).at(0);
}

const ir::Contraction kAnyConvolution = convolution("16,64,56,56", "64,64,3,3");

TEST(Contraction, SaysWhatIsComputed) {
  EXPECT_EQ(str(kAnyConvolution),
            "out[n, k, p, q] += a[n, c, p + r, q + s] * b[k, c, r, s]; n 16, p 54, q 54, k 64 | r 3, s 3, c 64");
  EXPECT_EQ(kAnyConvolution.terms(), 3 * 3 * 64);
  EXPECT_EQ(kAnyConvolution.outputs(), 16 * 64 * 54 * 54);
}

TEST(Contraction, OfAStridedInputGradientAreItsPhases) {
  const ir::Value dy = ir::parameter({DType::f32, Shape{2, 8, 5, 5}}),
                  w = ir::parameter({DType::f32, Shape{8, 4, 3, 3}});
  const std::vector<std::int64_t> size{11, 11}, stride{2, 2};
  const ir::Value dx = ir::build(ir::Op::conv2d_input_grad, {dy, w}, {{"input_size", size}, {"stride", stride}});
  const std::vector<ir::Contraction> phases = ir::contractions_of(*dx);
  ASSERT_EQ(phases.size(), 4u);
  std::int64_t outputs = 0;
  for (const ir::Contraction& phase : phases) outputs += phase.outputs();
  EXPECT_EQ(outputs, dx.type().shape.elements());
  EXPECT_EQ(str(phases[1]),
            "out[n, k, p*2, q*2 + 1] += a[n, c, p + r - 1, q + s] * b[c, k, -r*2 + 2, -s*2 + 1]; "
            "n 2, p 6, q 5, k 4 | r 2, s 1, c 8");
}

TEST(ScheduleText, IsReadBack) {
  for (const char* text :
       {"schedule { vector k 16 x 2 tile q 14 unroll c 4 task n, p/4 outer k inner p, q, r, s, c pack b 32 }",
        "schedule { vector k 16 x 2 tile c 12 task n/2, k outer n, p/4, r, s, c inner p, q combine c fetch p 4 }",
        "schedule { vector k 8 x 1 tile s*c 14 outer k, r, s*c inner n, p, q combine k }",
        "schedule { vector k 4 x 1 tile q 8 unroll c 4 within registers 128 task grid.y k/64, grid.x n*p*q/96, block.x "
        "k inner "
        "block.y "
        "n*p*q stride 8, n*p*q, r, s, c pack b 64 flush c 32 }",
        "schedule { vector k 16 x 2 tile q 14 unroll c 8 dot c task n inner p, q, r, s, c pack b 32 store stream }",
        "schedule { vector k 16 x 2 tile c 8 task n, k outer p/4, c inner p, q panel a n, b p combine c }",
        "schedule { vector k 16 x 2 tile c 8 task n outer p/4, k, c inner p, q panel a p tiles, b k combine c }",
        "schedule { vector k 16 x 2 tile c 8 task n, k outer p/4, c inner p, q panel b p combine c fetch b p 4 }"})
    EXPECT_EQ(print(parse_schedule(text)), text);
}

TEST(ScheduleText, OnManyLinesIsTheSame) {
  const ScheduledWork one{
      Work::contraction, str(kAnyConvolution),
      parse_schedule("schedule { vector k 16 x 2 tile q 14 unroll c 2 dot c task n, p/4 outer k inner p, q, r, s, c "
                     "panel a task, b k combine k flush c 32 fetch p 1 store stream }")};
  const std::string text = print_lines(one);
  EXPECT_EQ(
      text,
      "contraction \"" + one.work +
          "\"\nschedule {\n  vector k 16 x 2\n  tile q 14\n  unroll c 2\n  dot c\n  task n, p/4\n  outer k\n"
          "  inner p, q, r, s, c\n  panel a task, b k\n  combine k\n  flush c 32\n  fetch p 1\n  store stream\n}\n");
  ir::TokenReader tokens(text);
  EXPECT_EQ(parse_scheduled_work(tokens), one);
}

TEST(ScheduleText, RefusesAtTheRightPlace) {
  const auto message = [](const char* text) -> std::string {
    try {
      parse_schedule(text);
    } catch (const ParseError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message("schedule { vector k 16 x 2 tile q }").find("1:35"), std::string::npos);
  EXPECT_NE(message("schedule { task p/0 }").find("from 1 to"), std::string::npos);
  EXPECT_NE(message("schedule { vector k 128 x 2 }").find("at most 64 lanes"), std::string::npos);
  EXPECT_NE(message("schedule { task grid.w k }").find("no axis"), std::string::npos);
  EXPECT_NE(message("schedule { inner c outer k }"), "");  // lines have an order
  EXPECT_NE(message("schedule { inner c } more"), "");
}

TEST(ScheduleCheck, TheChosenOnesAreLegal) {
  for (const char* target : {"x86:avx512", "x86:avx2", "x86:v2", "cuda:sm_90"}) {
    FusedWork fused;
    fused.lanes = 4;
    for (const Schedule& schedule : candidates(kAnyConvolution, Target::parse(target), fused))
      EXPECT_EQ(check(kAnyConvolution, schedule, Target::parse(target), false), "") << print(schedule);
  }
}

// One image of rows that parts do not share evenly, and an odd number of channels, so that neither do threads: nothing
// proves an index that has both.
TEST(ScheduleCheck, TheChosenOnesForOddWeightGradientsAreLegal) {
  const struct {
    Shape x, dy;
    std::vector<std::int64_t> kernel;
  } cases[] = {{{1, 29, 18, 21}, {1, 3, 17, 20}, {2, 2}},
               {{1, 29, 18, 1}, {1, 3, 17, 1}, {2, 1}},
               {{2, 15, 19, 9}, {2, 7, 17, 7}, {3, 3}}};
  for (const auto& c : cases) {
    const ir::Value dw =
        ir::build(ir::Op::conv2d_weight_grad, {ir::parameter({DType::f32, c.x}), ir::parameter({DType::f32, c.dy})},
                  {{"kernel_size", c.kernel}});
    const ir::Contraction contraction = ir::contractions_of(*dw).at(0);
    const Target target = Target::parse("cuda:sm_90");
    for (const Schedule& schedule : candidates(contraction, target, {}))
      EXPECT_EQ(check(contraction, schedule, target, false), "") << print(schedule) << " for " << str(contraction);
  }
}

struct IllegalText {
  const char* schedule;
  const char* sentence;  // a part of it
  bool sums = false;
};

void expect_broken(const ir::Contraction& contraction, const IllegalText& c, const char* target) {
  const Schedule schedule = parse_schedule("schedule { " + std::string(c.schedule) + " }");
  const std::string said = check(contraction, schedule, Target::parse(target), c.sums);
  EXPECT_NE(said.find(c.sentence), std::string::npos) << c.schedule << ": " << said;
  EXPECT_NE(said, "") << c.schedule;
}

TEST(ScheduleCheck, NamesTheRuleThatIsBroken) {
  std::string loops = "vector k 16 x 2 inner c/2";
  for (int i = 0; i < 32; ++i) loops += ", c/2";
  const IllegalText cases[] = {
      {"vector k 16 x 2 inner z", "there is no dim 'z'"},
      {"vector c 16 x 2", "lanes run along c, which is summed up"},
      {"vector q 16 x 2", "which the second operand does not have"},
      {"vector k 12 x 2", "only powers of two"},
      {"vector k 16 x 8 tile q 2", "8 vectors of 16 lanes, but k has 64 elements"},
      {"vector k 16 x 2 tile c 4", "it can be unrolled, not tiled"},
      {"vector k 16 x 2 unroll q 4", "it can be tiled, not unrolled"},
      {"vector k 16 x 2 tile q 20 task n, p outer k inner q, r, s, c", "needs 43 registers, there are 32"},
      {"vector k 16 x 2 tile q 14 task n outer k inner q, r, s, c", "no loop goes over the 54 elements of p"},
      {"vector k 16 x 2 tile q 14 task n, p outer k inner q, q, r, s, c", "nothing of q is left"},
      {"vector k 16 x 2 tile q 14 task n, p, q/20 outer k inner q, r, s, c", "no multiple of the 14"},
      {"vector k 16 x 2 task n, p/4, p/3, p outer k inner q, r, s, c", "do not fill"},
      {"vector k 16 x 2 task n, p, q, k inner r, s, c", "4 task loops; at most 3"},
      {"vector k 16 x 2 task n outer k inner p, r, q, s, c", "stands inside of a sum"},
      {"vector k 16 x 2 task n, c/8 outer k inner p, q, r, s, c", "nothing combines the partial results"},
      {"vector k 16 x 2 task n, c/8 outer k inner p, q, r, s, c combine c", "no results lie along it"},
      {"vector k 16 x 2 task n, c/8 outer k inner p, q, r, s, c combine k", "not summed up in the same kernel", true},
      {"vector k 16 x 2 task n outer k inner p, q, r, s, c flush r 32", "of the innermost loop"},
      {"vector k 16 x 2 task n outer k inner p, q, r, s, c fetch c 1", "fetched ahead along a parallel dim"},
      {"vector k 16 x 2 task n, p outer k inner q, r, s, c flush q 32", "of the innermost loop"},
      {"vector k 16 x 2 task n, p outer k inner q, r, s, c flush c 32", "unrolled terms of the innermost loop"},
      {"vector k 16 x 3 unroll r 3, s 3, c 3 within task n, p, q outer k inner c", "81 vectors of the second operand"},
      {"vector k 16 x 2 unroll c 4 task n, c/48 outer k inner p, q, r, s, c combine k flush c 32", "cuts the 32 terms"},
      {"vector k 16 x 2 task n outer k inner p, q stride 2, q, r, s, c", "threads share inner loops of a device"},
      {"vector k 16 x 2 task n outer k inner p, block.x q, r, s, c", "threads share inner loops of a device"},
      {"vector k 16 x 2 unroll r 2 task n outer k inner p, q, s*r, c",
       "no last tile of fewer r than the 2 in registers"},
      {"vector k 16 x 2 task grid.x n outer k inner p, q, r, s, c", "there is no grid on a processor"},
      {"vector k 16 x 2 registers 128 task n outer k inner p, q, r, s, c", "of a device's threads, not of a processor"},
      {"vector k 16 x 2 outer q/5, q, k, n inner p, r, s, c", "leaves a part in every block of 5 q", true},
      {"vector k 16 x 2 outer p*q/9, c/8, k, p*q, n inner r, s, c combine k",
       "the loop c/8 adds to partial results that the loop p*q/9 cuts across its dims"},
      {"vector k 16 x 2 tile q 1099511627776, p 16777216", "a tile of 1099511627776 q; at most 64"},
      {"vector k 16 x 2 tile p*q 2916 task n outer k inner r, s, c", "a tile of 2916 p*q; at most 64"},
      {"vector k 16 x 2 unroll c 32, s 3", "more than 64 terms without a loop"},
      {"vector k 16 x 2 pack b 1056", "blocks of 1056 are more than 64 vectors"},
      {"vector k 16 x 2 inner n*n", "the loop n*n names a dim twice"},
      {"vector k 16 x 2 task n outer k inner p, q, r, s, c panel maxima p", "is for a pooling gradient"},
      {loops.c_str(), "33 loops; at most 32"},
      {"vector k 16 x 2 tile p*q 12 task n outer k inner r, s, c", "no loop goes over the 54 elements of p"},
      {"vector k 16 x 2 tile q 5 task n, q outer k inner p, r, s, c", "5 of q a task, which do not fill 54"},
      {"vector k 16 x 2 task n outer k inner p, q, r, s, c pack b 64 fetch k 32", "whole packed blocks of 32"},
      {"vector k 16 x 2 task n outer k inner p, q, r, s, c pack b 32 fetch k 16", "whole packed blocks of 32"},
      {"vector k 16 x 2 tile p*q 9 task n outer p*q, k inner r, s, c pack b 32 fetch k 32", "a tile along single dims"},
      {"vector k 16 x 2 task n outer k inner p, q, r, s, c fetch k 32", "fetched ahead along a parallel dim"},
      {"vector k 16 x 2 task n, c/8 outer k inner p, q, r, s, c combine p*k", "along k, or along other dims"},
      {"vector k 16 x 2 task n, c/8 outer k inner p, q, r, s, c combine p*p", "combined along p twice"},
  };
  for (const IllegalText& c : cases) expect_broken(kAnyConvolution, c, "x86:avx512");
}

// Every second row of this gradient is touched by no window: its phase has no terms.
TEST(ScheduleCheck, NothingIsPackedForNoTerms) {
  const std::vector<ir::Contraction> phases = ir::contractions_of(
      *ir::build(ir::Op::conv2d_input_grad,
                 {ir::parameter({DType::f32, {1, 8, 4, 4}}), ir::parameter({DType::f32, {8, 16, 3, 1}})},
                 {{"input_size", {9, 4}}, {"stride", {2, 1}}, {"padding", {1, 0, 1, 0}}, {"dilation", {2, 1}}}));
  const auto without = std::find_if(phases.begin(), phases.end(), [](const auto& c) { return c.terms() == 0; });
  ASSERT_NE(without, phases.end());
  const std::string loops = "vector k 16 x 1 task n outer p, q, k";
  EXPECT_EQ(check(*without, parse_schedule("schedule { " + loops + " }"), Target::parse("x86:avx512"), false), "");
  expect_broken(*without, {(loops + " pack b 16").c_str(), "there is nothing to pack"}, "x86:avx512");
}

// A panel of whole rows of a long signal, and of as many samples as a task has room for.
TEST(ScheduleCheck, PanelsFitIntoScratch) {
  const ir::Value x = ir::parameter({DType::f32, {4, 64, 1, 160000}, Layout::nhwc});
  const ir::Contraction signal = ir::contractions_of(
      *ir::build(ir::Op::conv2d_weight_grad, {x, x}, {{"kernel_size", {1, 3}}, {"padding", {0, 1, 0, 1}}}))[0];
  const IllegalText rows{"vector k 16 x 2 tile c 13 task n, k outer s, c inner q panel b task combine c*s",
                         "panels take up to 20482048 bytes a task; at most 12582912"};
  expect_broken(signal, rows, "x86:avx512");
  EXPECT_EQ(check(signal,
                  parse_schedule("schedule { vector k 16 x 2 tile c 13 task n, k outer q/16000, s, c inner q panel b q "
                                 "combine c*s }"),
                  Target::parse("x86:avx512"), false),
            "");
}

TEST(ScheduleCheck, NamesTheRuleThatThreadsBreak) {
  const IllegalText cases[] = {
      {"vector k 4 x 1 task grid.y n, block.x k inner p, q, r, s, c", "no loop is bound to grid.x"},
      {"vector k 4 x 1 task grid.x n, grid.y p, block.x k inner q, r, s, c", "p is bound to grid.y: outermost first"},
      {"vector k 4 x 1 task grid.x n, block.x k, block.x p inner q, r, s, c", "on an axis that has another one"},
      {"vector k 4 x 1 task grid.x n, block.y p*q, block.x k inner r, s, c", "a block of 46656 threads; at most 1024"},
      {"vector k 4 x 1 task grid.y k*n, grid.x p inner q, r, s, c", "so its loop is not k*n"},
      {"vector k 4 x 1 tile q 6 task grid.y n, grid.x q, block.x k inner p, r, s, c", "hold 6 elements each"},
      {"vector k 4 x 1 task grid.x n, block.x k outer c/8 inner p, q, r, s, c combine n*p*q*k", "added to once"},
      {"vector k 4 x 1 task grid.x n, block.x k inner p, q, r, block.y c stride 8, c, s",
       "not the first over the terms"},
      {"vector k 4 x 1 task grid.x n, block.x k inner p, q, block.y c stride 8, c, r, s", "of one partial result"},
      {"vector k 4 x 1 task grid.x n, block.x k inner p, q, block.y c stride 6, c, r, s combine n*p*q*k",
       "6 threads do not meet in a tree"},
      {"vector k 4 x 1 task grid.x n, block.x k inner p/5, p, block.y q stride 8, q, r, s, c",
       "threads share the loop q stride 8 inside of p"},
      {"vector k 4 x 1 task grid.x n, block.x k inner p, block.y q stride 8, q, r, s, c",
       "in one loop over n*p*q, not in n", true},
      {"vector k 4 x 1 task grid.x n*p*q/36, block.x k inner n*p*q/6, block.y n*p*q stride 2, n*p*q, r, s, c",
       "begins outside of it", true},
      {"vector k 4 x 1 task grid.x n*p*q/37, block.y n*p*q, block.x k inner r, s, c", "leave a sum each", true},
      {"vector k 4 x 1 task grid.x n, grid.y k/24, block.x k inner p, q, r, s, c", "outermost first"},
      {"vector k 4 x 1 task grid.y k/24, grid.x n, block.x k inner p, q, r, s, c pack b 16",
       "threads take 24 k side by side, which reach beyond the last block of 16"},
      {"vector k 4 x 1 task grid.y c/8, grid.x n, block.x k inner p, q, r, s, c combine n*p*k", "q is there 0 times"},
      {"vector k 4 x 1 task grid.y c/8, grid.x n*p*q, block.x k inner r, s, c combine n*p*q*k*k", "k is there 2 times"},
      {"vector k 4 x 1 task grid.x n, block.x k inner p, q, r, s, c store stream", "a device decides itself"},
      {"vector k 4 x 1 task block.x k, block.y n*p*q inner r, s, c", "no loop is bound to grid.x"},
      {"vector k 4 x 1 registers 15 task grid.x n, block.x k inner p, q, r, s, c", "16 to 255 registers, not 15"},
      {"vector k 4 x 1 registers 256 task grid.x n, block.x k inner p, q, r, s, c", "16 to 255 registers, not 256"},
      {"vector k 4 x 1 registers 128 task grid.x n*p, block.y q, block.x k inner r, s, c",
       "864 threads of 128 registers each are more than a multiprocessor has"},
      {"vector k 4 x 1 task grid.x n, block.x k outer block.y q stride 2, q inner p, r, s, c",
       "threads share inner loops of a device, and not the loop q stride 2"},
      {"vector k 4 x 1 tile q 2 task grid.x n*p, block.x k inner q, block.y r*s stride 4, r*s, c combine n*p*q*k",
       "each holds a tile that is no list of combinations"},
  };
  for (const IllegalText& c : cases) expect_broken(kAnyConvolution, c, "cuda:sm_90");

  const ir::Contraction groups = convolution("2,12,9,9", "18,4,2,2", {{"groups", 3}});  // of 6 outputs each
  const IllegalText of_groups[] = {
      {"vector k 2 x 1 task grid.x n, block.x k inner g/2, g, p, q, r, s, c", "threads along g have nothing to do"},
      {"vector k 2 x 1 task grid.x c/2, block.x k inner g, n, p, q, r, s, c combine k*n*p*q*g",
       "g and k are one index of the result"},
  };
  for (const IllegalText& c : of_groups) expect_broken(groups, c, "cuda:sm_90");
  expect_broken(groups, {"vector k 2 x 1 task g outer k/4, k inner n, p, q, r, s, c", "and they lie between lanes"},
                "x86:avx512");
}

// The list of combinations is what their loop goes over.
TEST(ScheduleCheck, AllCombinationsInOneTileHaveALoopToo) {
  const ir::Contraction small = convolution("16,64,4,4", "64,64,3,3");
  const auto broken = [&](const std::string& inner) {
    return check(small, parse_schedule("schedule { vector k 16 x 2 tile p*q 4 task n outer k inner " + inner + " }"),
                 Target::parse("x86:avx512"), false);
  };
  EXPECT_EQ(broken("r, s, c"), "no loop goes over the 2 elements of p");
  EXPECT_EQ(broken("p*q, r, s, c"), "");
}

TEST(ScheduleCheck, AllowsOneUnevenDimOfAnIndex) {
  const ir::Contraction c = convolution("2,6,9,9", "8,6,3,3");  // windows that never leave the image
  const Target target = Target::parse("cuda:sm_90");
  const auto broken = [&](const char* text) { return check(c, parse_schedule(text), target, false); };
  EXPECT_EQ(broken("schedule { vector k 4 x 1 task grid.x p/3, block.y p, block.x k inner n, q, r, s, c }"), "");
  EXPECT_NE(broken("schedule { vector k 4 x 1 task grid.y r/2, grid.x p/3, block.y p, block.x k inner n, q, r, s, c "
                   "combine n*p*q*k }")
                .find("threads along p and r have nothing to do, and they are one index"),
            std::string::npos);
}

TEST(ScheduleCheck, PairsAreOfBf16AndSideBySide) {
  ir::Contraction bf16 = kAnyConvolution;
  bf16.a.dtype = bf16.b.dtype = DType::bf16;
  ir::Contraction odd = bf16;
  odd.dims.back().extent = 63;
  const std::string by_channels =
      "schedule { vector k 16 x 2 tile q 8 unroll c 4 dot c task n outer k inner p, q, r, s, c pack b 32 }";
  const auto broken = [](const ir::Contraction& c, const std::string& text, const char* target = "x86:avx512bf16") {
    return check(c, parse_schedule(text), Target::parse(target), false);
  };
  EXPECT_EQ(broken(bf16, by_channels), "");
  EXPECT_EQ(broken(bf16, by_channels, "x86:avx512"), "there is no dot2 on x86:avx512");
  EXPECT_EQ(broken(kAnyConvolution, by_channels), "dot2 multiplies bf16, not f32 and f32");
  EXPECT_EQ(broken(odd, by_channels), "pairs of c, of which there are 63 and 4 are unrolled");
  EXPECT_EQ(broken(bf16, "schedule { vector k 16 x 2 tile q 8 dot c task n outer k inner p, q, r, s, c pack b 32 }"),
            "pairs of c, of which there are 64 and 1 are unrolled");
  EXPECT_EQ(broken(bf16, "schedule { vector k 16 x 2 tile q 8 unroll c 4 dot c task n outer k inner p, q, r, s, c }"),
            "pairs of c do not lie side by side: the second operand is packed, and its last dim is c");
  EXPECT_EQ(broken(bf16, "schedule { vector k 16 x 2 tile q 9 dot q task n outer k inner p, q, r, s, c pack b 32 }"),
            "q is a parallel dim: its terms are not added up");
}

TEST(ScheduleCheck, PairsOfTapsMoveByPairs) {
  ir::Contraction even = kAnyConvolution, odd = kAnyConvolution;
  even.a.dtype = even.b.dtype = odd.a.dtype = odd.b.dtype = DType::bf16;
  const auto broken = [](const ir::Contraction& c, const std::string& text) {
    return check(c, parse_schedule("schedule { vector k 16 x 2 tile q 8 " + text + " }"),
                 Target::parse("x86:avx512bf16"), false);
  };
  for (ir::DimSum& sum : even.a.index)
    for (ir::DimSum::Term& term : sum.terms)
      if (sum.terms.size() > 1 && !even.dims[static_cast<std::size_t>(term.dim)].reduced) term.coefficient = 2;
  const std::string loops = "task n outer k inner p, q, r, s, c ";
  EXPECT_EQ(broken(even, "unroll s 2 dot s " + loops + "panel a task pack b 32"), "");
  EXPECT_EQ(broken(odd, "unroll s 2 dot s " + loops + "panel a task pack b 32"),
            "a window over pairs of s moves by whole pairs, not by 1");
  EXPECT_EQ(broken(even, "unroll s 2 dot s " + loops + "panel a task"),
            "pairs of s, taps of a window, are packed in the second operand");
  EXPECT_EQ(broken(even, "dot s " + loops + "panel a task pack b 32"), "pairs of s, of which 1 are unrolled");
  EXPECT_EQ(broken(even, "unroll s 2 dot s " + loops + "pack b 32"),
            "pairs of s, of which there are 3 and 2 are unrolled");
}

TEST(ScheduleCheck, AMatrixUnitMultipliesTilesOfAPanel) {
  ir::Contraction bf16 = kAnyConvolution;
  bf16.a.dtype = bf16.b.dtype = DType::bf16;
  const auto broken = [&](const std::string& text, const char* target = "x86:amx") {
    return check(bf16, parse_schedule("schedule { " + text + " }"), Target::parse(target), false);
  };
  const std::string vector = "vector k 16 x 2 ", tile = "tile q 9 ", run = "unroll c 32 dot c 32 ", task = "task n ",
                    outer = "outer k ", loops = "inner p, q, r, s, c ", laid_out = "panel a task pack b 32";
  EXPECT_EQ(broken(vector + tile + run + task + outer + loops + laid_out), "");
  EXPECT_EQ(broken(vector + tile + run + task + outer + loops + laid_out, "x86:avx512bf16"),
            "there is no matrix unit on x86:avx512bf16");
  EXPECT_EQ(broken(vector + tile + "unroll c 64 dot c 64 " + task + outer + "inner p, q, r, s " + laid_out),
            "a row of a matrix unit has 4 to 32 terms, an even number, not 64");
  EXPECT_EQ(broken(vector + tile + "unroll c 16 dot c 32 " + task + outer + loops + laid_out),
            "a matrix unit takes 32 c together, and nothing else is unrolled");
  EXPECT_EQ(broken(vector + tile + run + task + outer + loops + "pack b 32"),
            "a matrix unit multiplies a panel of a, unless that has single taps and no padding");
  EXPECT_EQ(broken("vector k 8 x 4 " + tile + run + task + outer + loops + laid_out),
            "a matrix unit has 16 outputs at a time");
  EXPECT_EQ(broken(vector + tile + run + task + outer + loops + "panel a task pack b 64"),
            "a matrix unit reads packed blocks of the 32 outputs that are at hand");
  EXPECT_EQ(broken(vector + "tile n 1, p 1, q 9 " + run + task + outer + loops + laid_out),
            "the rows of a matrix unit are a tile along one dim, or along two");
  EXPECT_EQ(broken(vector + "tile q 1 " + run + task + outer + loops + laid_out),
            "a tile of a matrix unit has two rows at least");
  EXPECT_EQ(broken(vector + tile + run + task + outer + "inner p/2, p, q, r, s, c " + laid_out),
            "loops inside of a matrix unit's block are over all that is left of single dims");
  EXPECT_EQ(broken(vector + tile + run + task + outer + loops + laid_out + " fetch p 1"),
            "products in a matrix unit have no tiles in their panel, no within, flush or fetch");
}

TEST(ScheduleCheck, RowsOfAMatrixUnitMayBePixelsOfSeveralRows) {
  const auto convolution = [](std::int64_t stride, std::int64_t padding) {
    const ir::Value x = ir::parameter({DType::bf16, Shape{4, 64, 14, 14}}),
                    weight = ir::parameter({DType::bf16, Shape{64, 64, 1, 1}});
    const std::vector<std::int64_t> strides{stride, stride}, pads(4, padding);
    return ir::contractions_of(*ir::build(ir::Op::conv2d, {x, weight}, {{"stride", strides}, {"padding", pads}})).at(0);
  };
  const auto broken = [&](const std::string& text, const ir::Contraction& of) {
    return check(of, parse_schedule("schedule { vector k 16 x 2 " + text + " pack b 32 }"), Target::parse("x86:amx"),
                 false);
  };
  const std::string run = " unroll c 32 dot c 32 task n outer k inner p, c";
  EXPECT_EQ(broken("tile p 2, q 14" + run, convolution(1, 0)), "");
  EXPECT_EQ(broken("tile p 3, q 14" + run, convolution(1, 0)), "");  // and two rows
  EXPECT_EQ(broken("tile q 7 unroll c 32 dot c 32 task n outer k inner p, q, c", convolution(2, 0)), "");
  EXPECT_EQ(broken("tile p 2, q 14" + run + " panel a task", convolution(1, 0)), "");
  EXPECT_EQ(broken("tile p 2, q 7" + run, convolution(2, 0)), "");
  EXPECT_EQ(broken("tile p 2, q 16" + run + " panel a task", convolution(1, 1)), "");
  EXPECT_EQ(broken("tile p 2, q 7 unroll c 32 dot c 32 task n outer k inner p, q, c", convolution(1, 0)),
            "rows of a matrix unit along p and q are not several whole rows of pixels");
  EXPECT_EQ(broken("tile n 2, q 14 unroll c 32 dot c 32 outer k inner n, p, c", convolution(1, 0)),
            "rows of a matrix unit along n and q are not several whole rows of pixels");
  EXPECT_EQ(broken("tile p 2, q 16" + run, convolution(1, 1)),
            "a matrix unit multiplies a panel of a, unless that has single taps and no padding");
}

TEST(ScheduleCheck, RowsOfAMatrixUnitMayBeTapsOfFewChannels) {
  const auto convolution = [](std::int64_t channels, std::int64_t dilation) {
    const ir::Value x = ir::parameter({DType::bf16, Shape{4, channels, 20, 20}}),
                    weight = ir::parameter({DType::bf16, Shape{64, channels, 7, 7}});
    const std::vector<std::int64_t> dilations{dilation, dilation};
    return ir::contractions_of(*ir::build(ir::Op::conv2d, {x, weight}, {{"dilation", dilations}})).at(0);
  };
  const auto broken = [&](const std::string& text, const ir::Contraction& of) {
    return check(of, parse_schedule("schedule { vector k 16 x 2 tile q 7 " + text + " panel a task pack b 32 }"),
                 Target::parse("x86:amx"), false);
  };
  const ir::Contraction image = convolution(3, 1);
  const std::string run = "unroll s 7, c 4 dot c 28 ", tasks = "task n outer k ", inner = "inner p, q, r";
  EXPECT_EQ(broken(run + tasks + inner, image), "");
  EXPECT_EQ(broken("unroll s 7, c 4 dot c 24 " + tasks + inner, image),
            "a matrix unit takes 24 c together, or all of it for a few of the dim before");
  EXPECT_EQ(broken("unroll r 7, c 4 dot c 28 " + tasks + "inner p, q, s", image),
            "a matrix unit takes 28 c together, or all of it for a few of the dim before");
  EXPECT_EQ(broken("unroll s 7, c 2 dot c 14 " + tasks + inner + ", c", image),
            "a matrix unit takes 14 c together, or all of it for a few of the dim before");
  EXPECT_EQ(broken("unroll s 4, c 4 dot c 16 " + tasks + inner + ", s", image),
            "a matrix unit adds up all of s in one loop, 4 at a time");
  EXPECT_EQ(broken(run + "task n, q/7 outer k inner p, q, r", image),
            "a panel for runs of s has whole rows, and q is cut");
  EXPECT_EQ(broken(run + tasks + "inner p, q, r", convolution(3, 2)), "s moves by 2, so its elements are no run");
  EXPECT_EQ(broken("unroll s 7, c 6 dot c 42 " + tasks + inner, convolution(6, 1)),
            "a row of a matrix unit has 4 to 32 terms, an even number, not 42");
  EXPECT_EQ(broken("unroll c 4 dot c 4 " + tasks + inner + ", s", image), "");  // the fourth is 0
}

TEST(ScheduleCheck, WeightsInAMatrixUnitAreSumsOfPairsOfImages) {
  const ir::Value x = ir::parameter({DType::bf16, Shape{8, 32, 14, 14}}),
                  dy = ir::parameter({DType::bf16, Shape{8, 64, 14, 14}});
  const std::vector<std::int64_t> kernel{3, 3}, padding{1, 1, 1, 1};
  const auto gradient = [&](std::int64_t stride, const ir::Value& of) {
    const std::vector<std::int64_t> strides{stride, stride};
    return ir::contractions_of(*ir::build(ir::Op::conv2d_weight_grad, {x, of},
                                          {{"kernel_size", kernel}, {"padding", padding}, {"stride", strides}}))
        .at(0);
  };
  const auto broken = [&](const std::string& text, const ir::Contraction& of) {
    return check(of, parse_schedule("schedule { vector k 16 x 2 " + text + " }"), Target::parse("x86:amx"), false);
  };
  const ir::Contraction plain = gradient(1, dy),
                        strided = gradient(2, ir::parameter({DType::bf16, Shape{8, 64, 7, 7}}));
  const std::string tile = "tile c 32 ", run = "unroll q 2, n 8 dot n 16 ", loops = "outer p/2, k, r, s inner p, q ",
                    panels = "panel a p, b p combine c";
  EXPECT_EQ(broken(tile + run + loops + panels, plain), "");
  EXPECT_EQ(broken("tile c 14 " + run + "outer p/2, k, r, s, c inner p, q " + panels, plain),
            "the 32 c of a task are no whole tiles of a matrix unit");
  EXPECT_EQ(broken(tile + "unroll q 2, n 4 dot n 8 " + "outer p/2, k, r, s inner p, q, n " + panels, plain),
            "a run of a matrix unit is of all n of some q");
  EXPECT_EQ(
      broken(tile + "unroll q 7, n 2 dot n 14 " + "outer n, k, r, s inner p, q panel a n, b n combine c", strided),
      "q moves by 2, so its elements are no run");
  EXPECT_EQ(broken(tile + "unroll n 8 dot n 8 outer p, k, r, s inner q " + panels, strided), "");
  EXPECT_EQ(broken(tile + run + "outer p/5, k, r, s inner p, q panel a p, b p combine c", plain),
            "p is cut into parts of one size for a matrix unit, by itself");
}

TEST(ScheduleCheck, PanelsAreBuiltInALoopOfATask) {
  const auto broken = [](const std::string& text) {
    return check(kAnyConvolution, parse_schedule("schedule { vector k 16 x 2 tile q 9 " + text + " }"),
                 Target::parse("x86:avx512"), false);
  };
  EXPECT_EQ(broken("task n, p/9 outer k inner p, q, r, s, c panel a task, b k"), "");
  EXPECT_EQ(broken("task n, p/9 outer k inner p, q, r, s, c panel a q"),
            "a panel is built in every task or inside of an outer loop, and none is over q");
  EXPECT_EQ(broken("task n, p/9 outer k inner p, q, r, s, c panel b k pack b 32"),
            "the second operand is packed, or a panel, not both");
  EXPECT_EQ(broken("task n, p/9 outer k inner p, q, r, s, c panel b k fetch b p 9"),
            "the next panel of b is fetched where there are panels of b, and of partial results");
}

TEST(ScheduleCheck, PanelsOfTilesAreReadByThoseTiles) {
  const ir::Value x = ir::parameter({DType::f32, Shape{8, 32, 14, 14}}),
                  dy = ir::parameter({DType::f32, Shape{8, 64, 14, 14}});
  const std::vector<std::int64_t> kernel{3, 3}, padding{1, 1, 1, 1};
  const ir::Value dw = ir::build(ir::Op::conv2d_weight_grad, {x, dy}, {{"kernel_size", kernel}, {"padding", padding}});
  const ir::Contraction gradient = ir::contractions_of(*dw).at(0);
  const auto broken = [&](const std::string& text) {
    return check(gradient, parse_schedule("schedule { vector k 16 x 2 " + text + " }"), Target::parse("x86:avx512"),
                 false);
  };
  EXPECT_EQ(broken("tile c 6 task n outer k, c, r, s inner p, q panel a task tiles combine c"), "");
  EXPECT_EQ(broken("tile c 6 task n outer k, r, s, c inner p, q panel b task combine c"), "");
  EXPECT_EQ(broken("tile c 6 task n outer k, c/8, r, s, c inner p, q panel a task tiles combine c"),
            "a panel of tiles of 6 is not read by tiles that begin at every 8");
  const std::string other = "a panel of tiles is one of the first operand, for a tile over one dim";
  EXPECT_EQ(broken("tile s*c 12 task n outer k, r, s*c inner p, q panel a task tiles combine c"), other);
  EXPECT_EQ(broken("task n outer k, c, r, s inner p, q panel a task tiles combine c"), other);
  EXPECT_EQ(broken("tile s 3 task n outer k, c, r, s inner p, q panel a task tiles combine c"),
            "a panel of tiles has one element of the first operand for each s");
}

}  // namespace
}  // namespace fusejit::scheduler
