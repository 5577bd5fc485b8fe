// What the CUDA text looks like, which phases share a launch, and what is refused.
#include "codegen/cuda/emit.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include "fusejit/error.h"
#include "tests/unit/cuda/kernels.h"

namespace fusejit::test {
namespace {

using codegen::cuda::CudaSource;
using codegen::cuda::emit;

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

// Two texts to read; FUSEJIT_BLESS=1 writes them anew.
TEST(CudaEmit, GoldenTexts) {
  for (const char* stem : {"bn_stats", "bias_relu_bits"}) {
    const std::string file = std::string(stem) == "bn_stats" ? "c_bn_stats_cuda.kir" : fmt::format("cuda/{}.kir", stem);
    const std::string text = emit(cuda_kernel(file)).text;
    const std::string path = fmt::format("{}/tests/kernels/cuda/{}.cu", FUSEJIT_SOURCE_DIR, stem);
    if (std::getenv("FUSEJIT_BLESS") != nullptr) std::ofstream(path) << text;
    EXPECT_EQ(text, kernel_text(fmt::format("cuda/{}.cu", stem)));
  }
}

struct Shape {
  const char* file;
  std::vector<std::array<std::int64_t, 2>> launches;  // blocks, threads
  std::int64_t work_bytes, counter_bytes;
};

TEST(CudaEmit, PhasesOfOneBlockJoinTheLaunchBefore) {
  const Shape shapes[] = {
      {"c_bn_stats_cuda.kir", {{98, 256}}, 2 * 98 * 128 * 4, 4},
      {"cuda/chain.kir", {{24, 256}}, 24 * 16 * 4 + 64 * 4, 4},
      {"cuda/bn_train.kir", {{10, 192}, {10, 180}}, 2 * 1920, 4},
      {"cuda/maxpool.kir", {{12, 20}}, 0, 0},
  };
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(shape.file);
    const CudaSource source = emit(cuda_kernel(shape.file));
    ASSERT_EQ(source.launches.size(), shape.launches.size());
    for (std::size_t i = 0; i < shape.launches.size(); ++i) {
      const codegen::cuda::CudaLaunch& l = source.launches[i];
      EXPECT_EQ(l.grid[0] * l.grid[1] * l.grid[2], shape.launches[i][0]);
      EXPECT_EQ(l.block[0] * l.block[1] * l.block[2], shape.launches[i][1]);
      EXPECT_EQ(l.shared_bytes, 0);
      EXPECT_NE(source.text.find(" " + l.entry + "("), std::string::npos);
    }
    EXPECT_EQ(source.work_bytes, shape.work_bytes);
    EXPECT_EQ(source.counter_bytes, shape.counter_bytes);
  }
}

// Launches that follow each other share one counter, which each leaves zero.
TEST(CudaEmit, OneCounterServesEveryLaunch) {
  const CudaSource source = emit(ir::parse_kernel(
      "kernel @k(%x: f32[64] read, %y: f32[4] update, %z: f32[4] update) on cuda { "
      "phase { for %g in 0..4 grid.x { store %y[%g], 1 } } phase { for %g in 0..1 grid.x { store %y[0], 2 } } "
      "phase { for %g in 0..4 grid.x { store %z[%g], 1 } } phase { for %g in 0..1 grid.x { store %z[0], 2 } } }"));
  EXPECT_EQ(source.launches.size(), 2u);
  EXPECT_EQ(source.counter_bytes, 4);
  EXPECT_EQ(count(source.text, "if (!fj_last_block(t, counter, 4u)) return;"), 2u) << source.text;
}

TEST(CudaEmit, NamesOfEntriesAreIdentifiers) {
  const ir::Kernel kernel = cuda_kernel("cuda/bn_train.kir");
  const CudaSource source = emit(kernel, "a-b.c");
  EXPECT_EQ(source.launches[0].entry, "kernel_a_b_c_launch1");
  EXPECT_EQ(source.launches[1].entry, "kernel_a_b_c_launch2");
}

// Where one thread keeps an element to itself, also from one run of a block loop to the next, or where a reduction's
// own barriers stand between.
TEST(CudaEmit, NoBarrierStandsWhereThreadsDoNotMeet) {
  for (const auto& [file, barriers] :
       std::map<std::string, std::size_t>{{"transpose", 1}, {"softmax", 0}, {"dynamic_shared", 0}, {"two_sums", 0}}) {
    EXPECT_EQ(count(emit(cuda_kernel("cuda/" + file + ".kir")).text, "__syncthreads();"), barriers) << file;
  }
}

// What follows the last reduction serves stores that one thread does: the others leave all of it out.
TEST(CudaEmit, WhatOneThreadStoresItComputesAlone) {
  const std::string text = emit(cuda_kernel("cuda/missing_axes.kir")).text;
  const std::size_t alone = text.find("  if (threadIdx.x == 0 && threadIdx.y == 0) {\n    float v7 = 0.0f;");
  EXPECT_NE(alone, std::string::npos) << text;
  EXPECT_NE(text.find("    p2[i0] = v7;\n  }\n}", alone), std::string::npos) << text;
}

// An array that other threads of the block read before one of them writes it: told that nothing else touches it, a
// compiler could carry those reads across the barrier.
TEST(CudaEmit, ArraysThroughWhichThreadsMeetAreNotRestrict) {
  EXPECT_NE(emit(cuda_kernel("cuda/missing_axes.kir")).text.find("float* p1"), std::string::npos);
  EXPECT_NE(emit(cuda_kernel("toy/j_relu_dropout_grad_cuda.kir")).text.find("float* __restrict__ p4"),
            std::string::npos);
}

TEST(CudaEmit, SharedMemoryBeyondTheStaticLimitIsDynamic) {
  const CudaSource source = emit(cuda_kernel("cuda/dynamic_shared.kir"));
  EXPECT_GT(source.launches[0].shared_bytes, 48 << 10);
  EXPECT_NE(source.text.find("FJ_DYNAMIC_SHARED"), std::string::npos);
}

TEST(CudaEmit, RefusesGridsThatNoDeviceHas) {
  const char* text =
      "kernel @k(%x: f32[70000] write) on cuda { phase { for %i in 0..70000 grid.y { store %x[%i], 1 } } }";
  try {
    emit(ir::parse_kernel(text));
    FAIL();
  } catch (const UnsupportedError& error) {
    EXPECT_NE(std::string(error.what()).find("1 x 70000 x 1 blocks"), std::string::npos) << error.what();
  }
}

TEST(CudaEmit, IndicesBeyondIntAreLong) {
  // 2^31 elements are indices up to 2^31 - 1; one row more is too many.
  for (const auto& [rows, text] : std::map<std::int64_t, std::string>{
           {1 << 20, "p0 + (i0*1024 + i1*4)"}, {(1 << 21) + 1, "p0 + (i0*1024LL + i1*4LL)"}, {1 << 22, "i0*1024LL"}}) {
    const CudaSource source = emit(ir::parse_kernel(
        fmt::format("kernel @k(%x: u32[{0},1024] read align 16, %y: u32[{0},1024] write align 16) on cuda {{ phase {{ "
                    "for %g in 0..{0} grid.x {{ for %t in 0..256 block.x {{ for %l in 0..4 vector {{ "
                    "%0 = load %x[%g, %t*4 + %l] : u32 store %y[%g, %t*4 + %l], %0 }} }} }} }} }}",
                    rows)));
    EXPECT_NE(source.text.find(text), std::string::npos) << source.text;
  }
}

TEST(CudaEmit, NeighbouringLoadsOfAnUnrolledLoopAreOneAccess) {
  const auto source = [](const char* type, int stride, int shift, int align) {
    return emit(ir::parse_kernel(
                    fmt::format("kernel @k(%x: {0}[4096] read align {3}, %y: {0}[256] write) on cuda {{ phase {{ "
                                "for %g in 0..1 grid.x {{ for %t in 0..256 block.x {{ "
                                "%s = for %u in 0..4 unroll reduce maximum : f32 {{ "
                                "%0 = load %x[%t*{1} + %u + {2}] : {0} %1 = cast(%0) : f32 yield %1 }} "
                                "%2 = cast(%s) : {0} store %y[%t], %2 }} }} }} }}",
                                type, stride, shift, align)))
        .text;
  };
  EXPECT_NE(source("f16", 8, 4, 16).find("= fj_load<4>(p0 + (i1*8 + 4));"), std::string::npos)
      << source("f16", 8, 4, 16);
  for (const std::string& text : {source("f16", 6, 4, 16), source("f16", 8, 2, 16), source("f16", 8, 4, 4)}) {
    EXPECT_EQ(text.find("fj_load<"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace fusejit::test
