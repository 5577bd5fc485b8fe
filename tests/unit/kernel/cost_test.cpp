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

// Each text reads %x or writes %y: elements are counted, not the boxes around them.
TEST(Cost, ElementsWithHoles) {
  const auto touched = [](const std::string& dims, const std::string& body) {
    const bool reads = body.find("%x[") != std::string::npos;
    const KernelCost c = cost(parse_kernel("kernel @t(%x: f32[" + dims + "] read, %y: f32[" + dims +
                                           "] write) on x86:avx2 { phase { " + body + " } }"));
    return (reads ? read_bytes(c, 0) : written_bytes(c, 1)) / 4;
  };
  // Rows 0, 3, 6 and 9 of columns 0, 2, .. 8; then rows 1, 4 and 7 of the same; then rows 0 .. 9 of column 0.
  EXPECT_EQ(touched("10,9",
                    "for %i in 0..4 { for %j in 0..5 { store %y[%i*3, %j*2], 1 } }"
                    "for %i in 0..3 { for %j in 0..5 { store %y[%i*3 + 1, %j*2], 1 } }"
                    "for %i in 0..10 { store %y[%i, 0], 1 }"),
            7 * 5 + 3);
  // A diagonal, and one beside it.
  EXPECT_EQ(touched("8,8", "for %i in 0..7 { store %y[%i, %i], 1 store %y[%i, %i + 1], 1 }"), 14);
  // One condition about two dims: blocks of channels, of which the last is not full.
  EXPECT_EQ(touched("4,8", "for %i in 0..4 { for %j in 0..8 { if %i*8 + %j < 30 { store %y[%i, %j], 1 } } }"), 30);
  // A loop that ends earlier in the last task: rows 0, 3, 6.
  EXPECT_EQ(touched("12", "for %t in 0..2 { for %i in 0..min(2, -%t*2 + 3) { store %y[%t*6 + %i*3], 1 } }"), 3);
  // Every other row but the first, which a condition leaves out.
  EXPECT_EQ(touched("16", "for %i in 0..8 { if %i >= 1 { store %y[%i*2], 1 } }"), 7);
  // The lanes of four rows of which rows of three are made: quotients and remainders of one number.
  EXPECT_EQ(touched("4,3", "for %i in 0..12 { store %y[%i / 3, %i % 3], 1 }"), 12);
  EXPECT_EQ(touched("4,3", "for %i in 0..6 { store %y[(%i*2) / 3, (%i*2) % 3], 1 }"), 6);
  // Strides of more runs than are kept apart: how many there are is known.
  EXPECT_EQ(touched("20000", "for %i in 0..10000 { store %y[%i*2], 1 }"), 10000);
  EXPECT_EQ(touched("20000", "for %i in 0..10000 { store %y[%i*2], 1 } for %i in 0..10000 { store %y[%i*2 + 1], 1 }"),
            20000);
  // More iterations than are walked: a bound for each dim.
  EXPECT_EQ(touched("512,64", "for %i in 0..32768 { if %i < 31999 { store %y[%i / 64, %i % 64], 1 } }"), 32000);
}

// Elements that data names are counted as if they were apart: of two gathers, of a gather and a plain read.
TEST(Cost, WhatDataNamesIsAnUpperBound) {
  const auto read = [](const std::string& body) {
    return read_bytes(
               cost(parse_kernel("kernel @t(%x: f32[10000] read, %n: i64[128] read, %y: f32[128] write) on x86:avx2 { "
                                 "phase { " +
                                 body + " } }")),
               0) /
           4;
  };
  const std::string gather =
      "%k = load %n[%i] : i64 if %k >= 0 and %k < 10000 { %a = load %x[%k] : f32 store %y[%i], %a }";
  EXPECT_EQ(read("for %i in 0..100 { " + gather + " }"), 100);
  EXPECT_EQ(read("for %i in 0..96 { " + gather + " } for %i in 96..100 { " + gather + " }"), 100);
  EXPECT_EQ(read("for %i in 0..100 { " + gather + " } for %i in 0..50 { %b = load %x[%i*2] : f32 store %y[%i], %b }"),
            150);
  EXPECT_EQ(read("for %i in 0..100 { %k = load %n[%i] : i64 if %k >= 0 and %k < 10000 { %a = load %x[%k] : f32 "
                 "%b = load %x[%k] : f32 %c = add(%a, %b) : f32 store %y[%i], %c } }"),
            100);
}

}  // namespace
}  // namespace fusejit::ir
