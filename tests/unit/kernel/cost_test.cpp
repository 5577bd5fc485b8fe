// What the cost model reads off the worked kernels, computed by hand.
#include "ir/kernel/cost/cost.h"

#include <gtest/gtest.h>

#include "tests/unit/kernel/kernels.h"

namespace fusejit::ir {
namespace {

using testing::worked_kernel;

std::int64_t read_bytes(const KernelCost& c, MemId memory, int phase = 0) {
  for (const MemoryTraffic& t : c.traffic)
    if (t.memory == memory && t.phase == phase) return t.read_bytes;
  return -1;
}
std::int64_t written_bytes(const KernelCost& c, MemId memory, int phase = 0) {
  for (const MemoryTraffic& t : c.traffic)
    if (t.memory == memory && t.phase == phase) return t.written_bytes;
  return -1;
}

TEST(Cost, ElementWise) {
  const KernelCost c = cost(worked_kernel("a_scale_relu.kir"));
  EXPECT_EQ(read_bytes(c, 0), 1000003 * 4);
  EXPECT_EQ(written_bytes(c, 1), 1000003 * 4);
  EXPECT_EQ(c.tasks, std::vector<std::int64_t>{64});
  // mul and maximum of each element; the tail's condition is counted exactly.
  EXPECT_EQ(c.flop, 2 * 1000003.0);
}

TEST(Cost, PackedBitsAndHalves) {
  const KernelCost c = cost(worked_kernel("b_bias_relu_bits.kir"));
  EXPECT_EQ(read_bytes(c, 0), 50176 * 64 * 2);
  EXPECT_EQ(read_bytes(c, 1), 64 * 4);
  EXPECT_EQ(written_bytes(c, 3), 50176 * 64 / 8);
}

TEST(Cost, PhasesAndWork) {
  const KernelCost c = cost(worked_kernel("c_bn_train.kir"));
  EXPECT_EQ(c.tasks, (std::vector<std::int64_t>{32, 1, 32}));
  EXPECT_EQ(c.work_bytes, 2 * 32 * 128 * 4);
  EXPECT_EQ(read_bytes(c, 0, 0), 12544 * 128 * 4);
  EXPECT_EQ(read_bytes(c, 0, 1), 128 * 4);  // the first pixel
  EXPECT_EQ(read_bytes(c, 0, 2), 12544 * 128 * 4);
}

TEST(Cost, ConditionsCutTheBox) {
  const KernelCost c = cost(worked_kernel("d_softmax.kir"));
  EXPECT_EQ(read_bytes(c, 0), 4096 * 1000 * 4);
  EXPECT_EQ(written_bytes(c, 1), 4096 * 1000 * 4);
  EXPECT_EQ(c.scratch_bytes, 4032);
}

TEST(Cost, Convolution) {
  const KernelCost c = cost(worked_kernel("f_conv3x3_bn.kir"));
  EXPECT_EQ(c.vector_registers, 31);  // 14 x 2 accumulators, two weights, one pixel
  EXPECT_EQ(read_bytes(c, 0), 16 * 56 * 56 * 64 * 4);
  EXPECT_EQ(read_bytes(c, 3), 9 * 64 * 64 * 4);
  EXPECT_EQ(c.scratch_bytes, 6 * 56 * 64 * 4);
  // Taps inside the image: 56 * 3 - 2 in each direction.
  const double fma = 16.0 * (56 * 3 - 2) * (56 * 3 - 2) * 64 * 64 * 2;
  EXPECT_GT(c.flop, fma);
  EXPECT_LT(c.flop, fma * 1.02);
  EXPECT_LT(c.statements, 20000);
}

TEST(Cost, RegistersOfTiles) {
  EXPECT_EQ(cost(worked_kernel("h_winograd.kir")).vector_registers, 31);
  EXPECT_EQ(cost(worked_kernel("l_conv1x1_widen.kir")).vector_registers, 31);
  EXPECT_EQ(cost(worked_kernel("l_conv1x1_dot.kir")).vector_registers, 31);
  EXPECT_EQ(cost(worked_kernel("g_conv3x3_wgrad.kir")).vector_registers, 8 * 2 + 2 + 1);
  EXPECT_EQ(cost(worked_kernel("a_scale_relu_cuda.kir")).vector_registers, 0);
}

TEST(Cost, SlicesOfABuffer) {
  EXPECT_EQ(written_bytes(cost(worked_kernel("k_put_a.kir")), 1), 6272 * 64 * 4);
  EXPECT_EQ(written_bytes(cost(worked_kernel("k_put_b.kir")), 1), 6272 * 32 * 4);
}

TEST(Cost, StridesCountElementsNotBoxes) {
  const KernelCost c =
      cost(parse_kernel("kernel @t(%x: f32[64] read, %n: i64[8] read, %y: f32[64] write) on x86:avx2 { phase {"
                        " for %i in 0..16 { %a = load %x[%i*4] : f32 store %y[%i], %a }"
                        " for %i in 0..8 { %k = load %n[%i] : i64 if %k >= 0 and %k < 64 { %a = load %x[%k] : f32 "
                        "store %y[%i + 16], %a } }"
                        " for %i in 2..6 { for %j in 0..%i { store %y[%i + %j + 24], 1 } } } }"));
  EXPECT_EQ(read_bytes(c, 1), 8 * 8);
  EXPECT_EQ(written_bytes(c, 2), (16 + 8 + 8) * 4);  // the last box: 2 + 24 .. 5 + 4 + 24
}

TEST(Cost, TriangularLoopsAreEnumerated) {
  const KernelCost c =
      cost(parse_kernel("kernel @t(%s: f32 param, %y: f32[64] write) on x86:avx2 { phase { for %r in 0..3 { for %i in "
                        "0..8 { for %j in 0..%i {"
                        " if %j >= 2 { %a = fma(%s, %s, %s) : f32 store %y[%i*8 + %j], %a } } } } } }"));
  EXPECT_EQ(c.flop, 3 * 2 * (1 + 2 + 3 + 4 + 5));
}

}  // namespace
}  // namespace fusejit::ir
