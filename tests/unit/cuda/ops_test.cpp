// Every row of the op table that kernels may hold, on every dtype, and every cast: CUDA text on the CPU against the
// interpreter, on ordinary and special values; and all of it through NVRTC.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codegen/cuda/nvrtc.h"
#include "tests/support/cuda_shim/shim.h"
#include "tests/support/op_kernels.h"
#include "tests/unit/cuda/kernels.h"

namespace fusejit::test {
namespace {

TEST(CudaOps, EveryRowOnEveryDType) {
  const std::vector<OpKernel> ops = op_kernels();
  std::size_t pieces = 0;
  std::vector<codegen::cuda::CudaSource> sources;
  for (const OpKernel& op : ops) {
    pieces += static_cast<std::size_t>(op.pieces);
    sources.push_back(codegen::cuda::emit(op.kernel, fmt::format("ops{}", sources.size())));
  }
  EXPECT_GT(pieces, 350u);
  Shim shim(sources);
  shim.open();
  for (std::size_t k = 0; k < ops.size(); ++k) {
    for (const Values values : {Values::ordinary, Values::special}) {
      Operands expected = random_operands(ops[k].kernel, values, 11);
      run_interpreted(ops[k].kernel, expected);
      for (const ir::TaskOrder order : {ir::TaskOrder::ascending, ir::TaskOrder::descending, ir::TaskOrder::shuffled}) {
        Operands actual = random_operands(ops[k].kernel, values, 11);
        shim.run(k, actual, order);
        const std::string found =
            difference_in_ulp(ops[k].kernel, expected, actual, [&](std::size_t i) { return ops[k].ulps[i]; });
        EXPECT_EQ(found, "") << ops[k].labels[found.empty() ? 0 : std::stoul(found.substr(7))];
      }
    }
  }
  // CUDA's own front end takes the same text: the rows that are not arithmetic alone in one program.
  if (!codegen::cuda::nvrtc().available) GTEST_SKIP() << "NVRTC: " << codegen::cuda::nvrtc().why_not;
  EXPECT_NE(codegen::cuda::compile_to_ptx(codegen::cuda::program(sources), 90), "");
}

// All values of the 16-bit types widened, and f32 around every rounding boundary of theirs narrowed.
TEST(CudaOps, WidensAndRoundsEverySixteenBitValue) {
  for (DType half : {DType::f16, DType::bf16}) {
    const ir::Kernel kernel = ir::parse_kernel(fmt::format(
        "kernel @half(%x: {0}[65536] read align 16, %w: f32[65536] write align 16, %e: f32[65536] read align 16, "
        "%y: {0}[65536] write align 16) on cuda {{ phase {{ for %i in 0..256 grid.x {{ for %t in 0..32 block.x {{ "
        "for %l in 0..8 vector {{ %0 = load %x[%i*256 + %t*8 + %l] : {0}  %1 = cast(%0) : f32  "
        "store %w[%i*256 + %t*8 + %l], %1  %2 = load %e[%i*256 + %t*8 + %l] : f32  %3 = cast(%2) : {0}  "
        "store %y[%i*256 + %t*8 + %l], %3 }} }} }} }} }}",
        name(half)));
    Shim shim({codegen::cuda::emit(kernel)});
    shim.open();
    for (int step : {-1, 0, 1}) {
      const auto operands = [&] {
        Operands o = random_operands(kernel, Values::ordinary, 1);
        for (std::int64_t i = 0; i < 65536; ++i) {
          const ir::Scalar value{half, static_cast<std::uint64_t>(i)};
          ir::store_element(o.buffers[0].data(), half, i, value);
          // Half way to the next value, one unit below, at and above.
          const std::uint64_t middle = half == DType::bf16 ? (static_cast<std::uint64_t>(i) << 16) + 0x8000
                                                           : ir::cast(value, DType::f32).bits + 0x1000;
          ir::store_element(o.buffers[2].data(), DType::f32, i,
                            {DType::f32, (middle + static_cast<std::uint64_t>(step)) & 0xffffffff});
        }
        return o;
      };
      Operands expected = operands(), actual = operands();
      run_interpreted(kernel, expected);
      shim.run(0, actual, ir::TaskOrder::ascending);
      EXPECT_EQ(difference(kernel, expected, actual), "") << name(half);
    }
  }
}

// And f64, once, however narrow what they become.
TEST(CudaOps, RoundsWideValuesOnce) {
  for (DType half : {DType::f16, DType::bf16}) {
    const ir::Kernel kernel = ir::parse_kernel(fmt::format(
        "kernel @wide(%x: f64[65536] read align 16, %y: {0}[65536] write align 16) on cuda {{ phase {{ for "
        "%i in 0..512 grid.x {{ for %t in 0..32 block.x {{ for %l in 0..4 vector {{ %0 = load "
        "%x[%i*128 + %t*4 + %l] : f64  %1 = cast(%0) : {0}  store %y[%i*128 + %t*4 + %l], %1 }} }} }} }} }}",
        name(half)));
    Shim shim({codegen::cuda::emit(kernel)});
    shim.open();
    for (int step : {-1, 0, 1}) {
      Operands expected = random_operands(kernel, Values::ordinary, 1),
               actual = random_operands(kernel, Values::ordinary, 1);
      for (Operands* o : {&expected, &actual}) {
        for (std::uint64_t i = 0; i < 65536; ++i)
          static_cast<double*>(o->buffers[0].data())[i] = half_way(half, i, step);
      }
      run_interpreted(kernel, expected);
      shim.run(0, actual, ir::TaskOrder::ascending);
      EXPECT_EQ(difference(kernel, expected, actual), "") << name(half) << ", step " << step;
    }
  }
}

}  // namespace
}  // namespace fusejit::test
