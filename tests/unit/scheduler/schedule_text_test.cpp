// A schedule as a value: its text, what its parser refuses and where, and every rule of its check.
#include <gtest/gtest.h>

#include "fusejit/error.h"
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

const ir::Contraction kConvolution = convolution("16,64,56,56", "64,64,3,3");

TEST(Contraction, SaysWhatIsComputed) {
  EXPECT_EQ(str(kConvolution),
            "out[n, k, p, q] += a[n, c, p + r, q + s] * b[k, c, r, s]; n 16, p 54, q 54, k 64 | r 3, s 3, c 64");
  EXPECT_EQ(kConvolution.terms(), 3 * 3 * 64);
  EXPECT_EQ(kConvolution.outputs(), 16 * 64 * 54 * 54);
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
        "schedule { vector k 4 x 1 tile q 8 unroll c 4 within task grid.y k/64, grid.x n*p*q/96, block.x k inner "
        "block.y "
        "n*p*q stride 8, n*p*q, r, s, c pack b 64 flush c 32 }"})
    EXPECT_EQ(print(parse_schedule(text)), text);
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
    for (const Schedule& schedule : candidates(kConvolution, Target::parse(target), fused))
      EXPECT_EQ(check(kConvolution, schedule, Target::parse(target), false), "") << print(schedule);
  }
}

struct Illegal {
  const char* schedule;
  const char* sentence;  // a part of it
  bool sums = false;
};

TEST(ScheduleCheck, NamesTheRuleThatIsBroken) {
  const Illegal cases[] = {
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
      {"vector k 16 x 2 task grid.x n outer k inner p, q, r, s, c", "there is no grid on a processor"},
      {"vector k 16 x 2 outer q/5, q, k, n inner p, r, s, c", "leaves a part in every block of 5 q", true},
  };
  const Target target = Target::parse("x86:avx512");
  for (const Illegal& c : cases) {
    const Schedule schedule = parse_schedule("schedule { " + std::string(c.schedule) + " }");
    EXPECT_NE(check(kConvolution, schedule, target, c.sums).find(c.sentence), std::string::npos)
        << c.schedule << ": " << check(kConvolution, schedule, target, c.sums);
  }
}

}  // namespace
}  // namespace fusejit::scheduler
