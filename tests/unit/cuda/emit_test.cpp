// What the CUDA text looks like, which phases share a launch, and what is refused.
#include "codegen/cuda/emit.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>

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

// Three texts to read; FUSEJIT_BLESS=1 writes them anew.
TEST(CudaEmit, GoldenTexts) {
  for (const char* stem : {"bn_stats", "bias_relu_bits", "shared_panels"}) {
    const std::string file = std::string(stem) == "bn_stats" ? "c_bn_stats_cuda.kir" : fmt::format("cuda/{}.kir", stem);
    const std::string text = emit(cuda_kernel(file)).text;
    const std::string path = fmt::format("{}/tests/kernels/cuda/{}.cu", FUSEJIT_SOURCE_DIR, stem);
    if (std::getenv("FUSEJIT_BLESS") != nullptr) std::ofstream(path) << text;
    EXPECT_EQ(text, kernel_text(fmt::format("cuda/{}.cu", stem)));
  }
}

// A panel is copied when all threads have multiplied the one before, and multiplied when all have copied: two barriers
// in the innermost loop around panels, and none in the loops around that.
TEST(CudaEmit, ThreadsMeetTwiceAPanel) {
  const std::string once = emit(cuda_kernel("cuda/shared_panels.kir")).text;
  EXPECT_EQ(count(once, "__syncthreads();"), 2u) << once;
  std::string text = kernel_text("cuda/shared_panels.kir");
  const std::string loop = "for %c in 0..2 {";
  text.replace(text.find(loop), loop.size(), "for %again in 0..3 { for %c in 0..2 {");
  const std::string end = "    for %row in 0..4 block.y { for %out in 0..2 block.x { for %l in 0..4 vector { for %i";
  text.insert(text.find(end), "}\n");
  const std::string twice = emit(ir::parse_kernel(text)).text;
  EXPECT_EQ(count(twice, "__syncthreads();"), 2u) << twice;
  // A thread's own elements alone are its registers.
  EXPECT_NE(once.find("float l0[8] = {};"), std::string::npos) << once;
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
           {1 << 20, "p0 + (i0*p0_s0 + i1*4)"}, {(1 << 21) + 1, "p0 + (i0*1024LL + i1*4LL)"}, {1 << 22, "i0*1024LL"}}) {
    const CudaSource source = emit(ir::parse_kernel(
        fmt::format("kernel @k(%x: u32[{0},1024] read align 16, %y: u32[{0},1024] write align 16) on cuda {{ phase {{ "
                    "for %g in 0..{0} grid.x {{ for %t in 0..256 block.x {{ for %l in 0..4 vector {{ "
                    "%0 = load %x[%g, %t*4 + %l] : u32 store %y[%g, %t*4 + %l], %0 }} }} }} }} }}",
                    rows)));
    EXPECT_NE(source.text.find(text), std::string::npos) << source.text;
  }
}

// What is divided: a quotient's name, where its last variable is defined, and no division in the loops below.
TEST(CudaEmit, QuotientsStandWhereTheirVariablesDo) {
  const std::string text =
      emit(ir::parse_kernel("kernel @k(%x: f32[8,8,40] read, %n: i32[256] read, %y: f32[256] write) on cuda { phase { "
                            "for %g in 0..1 grid.x { for %t in 0..256 block.x { %k = load %n[%t] : i32 "
                            "%s = for %a in 0..5 reduce add : f32 { %r = for %b in 0..8 reduce add : f32 { "
                            "%0 = load %x[(%t / 32), %b, (%t + %a) % 40] : f32 "
                            "%1 = load %x[(%t / 32), (%t / 4) % 8, %k % 40] : f32 "
                            "%2 = add(%0, %1) : f32 yield %2 } yield %r } store %y[%t], %s } } } }"))
          .text;
  const std::size_t body = text.find("extern");
  const auto at = [&](const std::string& line) { return text.find("\n" + line + "\n", body); };
  const std::size_t thread = at("  const int i1 = threadIdx.x;"), outer = text.find("  for (int i2 = 0;", body),
                    inner = text.find("    for (int i3 = 0;", body);
  ASSERT_NE(inner, std::string::npos) << text;
  for (const char* line : {"  const int q0 = i1 / 32u;", "  const int q2 = (i1 / 4) % 8u;"}) {
    EXPECT_NE(at(line), std::string::npos) << line << text;
    EXPECT_TRUE(thread < at(line) && at(line) < outer) << line << text;
  }
  const std::size_t sum = at("    const int q1 = (i1 + i2) % 40u;");
  EXPECT_TRUE(outer < sum && sum < inner) << text;
  EXPECT_EQ(count(text.substr(inner), " / ") + count(text.substr(inner), " % "), 0u) << text;
  EXPECT_EQ(count(text.substr(inner), "fj_floor_mod"), 1u) << "of a loaded number" << text;
  EXPECT_NE(text.find("p0[i3*p0_s1 + q0*p0_s0 + q1]", inner), std::string::npos) << text;
}

// What is divided more than once, and compared, is added up once.
TEST(CudaEmit, SumsThatAreDividedHaveNames) {
  const std::string text =
      emit(ir::parse_kernel(
               "kernel @k(%x: f32[10,10,26] read, %y: f32[2600] write) on cuda { phase { for %g in 0..11 grid.x "
               "{ for %t in 0..256 block.x { if %g*256 + %t < 2600 { "
               "%0 = load %x[(%g*256 + %t) % 10, ((%g*256 + %t) / 10) % 10, (%g*256 + %t) / 100] : f32 "
               "store %y[%g*256 + %t], %0 } } } } }"))
          .text;
  EXPECT_NE(text.find("\n  const int i1 = threadIdx.x;\n  const int m0 = i0*256 + i1;\n"), std::string::npos) << text;
  EXPECT_EQ(count(text, " = m0 / 100u;\n"), 1u) << text;
  EXPECT_EQ(count(text, " = m0 % 10u;\n"), 1u) << text;
  EXPECT_EQ(count(text, " = (m0 / 10) % 10u;\n"), 1u) << text;
  EXPECT_EQ(count(text, "  if (m0 < 2600) {\n"), 1u) << text;
}

// One constant for each stride that is used, and none for a number that happens to be written as a product.
TEST(CudaEmit, StridesHaveNames) {
  const std::string text =
      emit(ir::parse_kernel("kernel @k(%x: f32[4,6,8,16] read, %y: f32[4,1,96] write) on cuda { phase { for %g in 0..4 "
                            "grid.x { for %t in 0..12 block.x { for %a in 0..8 { %0 = load %x[%g, 2, %a, %t] : f32 "
                            "store %y[%g, 0, %a*12 + %t], %0 } } } } }"))
          .text;
  EXPECT_NE(text.find("\n  constexpr int p0_s0 = 768, p0_s2 = 16;  // p0[4, 6, 8, 16]\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  constexpr int p1_s0 = 96;  // p1[4, 1, 96]\n"), std::string::npos) << text;
  EXPECT_NE(text.find("= p0[i0*p0_s0 + i1 + i2*p0_s2 + 256];"), std::string::npos) << text;
  EXPECT_NE(text.find("p1[i0*p1_s0 + i1 + i2*12] ="), std::string::npos) << text;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  return std::regex_replace(text, std::regex("\\b" + what + "(?=\\b|_s\\d|_bits)"), by);
}

// Names are names: the text is the same but for them. What cannot be one is not taken.
TEST(CudaEmit, ParametersAreCalledAsTheirOwnerSays) {
  using codegen::cuda::ParameterName;
  for (const std::string& file : cuda_kernel_files()) {
    const ir::Kernel kernel = cuda_kernel(file);
    std::vector<ParameterName> names;
    for (std::size_t i = 0; i < kernel.params.size(); ++i) names.push_back({fmt::format("x{}", char('a' + i)), {}});
    std::string text = emit(kernel, "", names).text;
    EXPECT_EQ(count(text.substr(text.find("extern")), " p0"), 0u) << text;
    for (std::size_t i = 0; i < names.size(); ++i) text = replaced(text, names[i].name, fmt::format("p{}", i));
    EXPECT_EQ(text, emit(kernel).text) << file;
  }
  const ir::Kernel kernel = ir::parse_kernel(
      "kernel @k(%x: f32[6,4] read, %y: f32[6,4] write) on cuda { phase { for %g in 0..1 grid.x { for %t in 0..24 "
      "block.x {"
      " %0 = load %x[%t / 4, %t % 4] : f32 store %y[%t / 4, 3 - %t % 4], %0 } } } }");
  for (const char* name : {"", "7", "a b", "t", "v3", "q0", "fj_load", "work", "a-b"}) {
    EXPECT_EQ(emit(kernel, "", std::vector<ParameterName>{{name, {}}}).text, emit(kernel).text) << name;
    EXPECT_EQ(count(emit(kernel, "", std::vector<ParameterName>{{"x", {}}, {"x", {}}}).text, "float* __restrict__ p1"),
              1u);
  }
  const std::string text =
      emit(kernel, "", std::vector<ParameterName>{{"x", {"row", "col"}}, {"y", {"row", "col"}}}).text;
  for (const char* line : {"  const int row = i1 / 4u;", "  const int col = i1 % 4u;",
                           "  constexpr int y_row = 4;  // y[6, 4]", "  y[row*y_row - col + 3] = v0;"})
    EXPECT_NE(text.find(std::string("\n") + line + "\n"), std::string::npos) << line << text;
}

// As many blocks of whole warps as a phase's registers leave room for, and no more than a multiprocessor has places
// for.
TEST(CudaEmit, BoundsAreThoseOfThePhasesRegisters) {
  const auto bounds = [](int threads, const std::string& registers) {
    const std::string text = emit(ir::parse_kernel(fmt::format("kernel @k(%y: f32[{0}] write) on cuda {{ phase {1} {{ "
                                                               "for %g in 0..1 grid.x {{ for %t in 0..{0} block.x {{ "
                                                               "store %y[%t], 1 }} }} }} }}",
                                                               threads, registers)))
                                 .text;
    const std::string name = "__launch_bounds__";
    const std::size_t at = text.find(name) + name.size();
    return text.substr(at, text.find(' ', text.find(')', at)) - at);
  };
  for (const auto& [threads, wanted] : std::map<int, std::string>{
           {8, "(8, 16)"}, {32, "(32, 16)"}, {36, "(36, 8)"}, {100, "(100, 4)"}, {128, "(128, 4)"}, {512, "(512, 1)"}})
    EXPECT_EQ(bounds(threads, "registers 128"), wanted);
  EXPECT_EQ(bounds(256, "registers 80"), "(256, 3)");
  EXPECT_EQ(bounds(256, ""), "(256)");
}

// What the text says, and nothing else: lowering knows how many loads a thread has registers for.
TEST(CudaEmit, LoopsHaveTheCopiesThatTheTextSays) {
  const auto text = [](const std::string& copies) {
    return emit(ir::parse_kernel(fmt::format(
                    "kernel @k(%x: f32[6,128] read, %y: f32[128] write) on cuda {{ phase {{ for %g in 0..1 grid.x {{ "
                    "for %t in 0..128 block.x {{ %s = for %c in 0..6 {} reduce add : f32 {{ %0 = load %x[%c, %t] : f32 "
                    "yield %0 }} store %y[%t], %s }} }} }} }}",
                    copies)))
        .text;
  };
  EXPECT_NE(text("unroll 4").find("#pragma unroll 4\n  for (int i2 = 0; i2 < 6; ++i2) {"), std::string::npos)
      << text("unroll 4");
  EXPECT_NE(text("unroll").find("#pragma unroll\n  for (int i2"), std::string::npos) << text("unroll");
  EXPECT_EQ(count(text(""), "#pragma"), 0u) << text("");
}

// One instruction on the word in place of two; where no loop is bound by them, registers count more.
TEST(CudaEmit, LanesOfBf16WidenByTheWordInLoops) {
  const auto text = [](const char* type, int lanes, bool loop) {
    return emit(ir::parse_kernel(
                    fmt::format("kernel @k(%x: {0}[6,1024] read align 16, %y: f32[1024] write align 16) on cuda {{ "
                                "phase {{ for %g in 0..1 grid.x {{ for %t in 0..128 block.x {{ for %l in 0..{1} vector "
                                "{{ {2}%0 = load %x[{3}, %t*{1} + %l] : {0} %1 = cast(%0) : f32 {4}"
                                "store %y[%t*{1} + %l], {5} }} }} }} }} }}",
                                type, lanes, loop ? "%s = for %c in 0..6 reduce add : f32 { " : "", loop ? "%c" : "0",
                                loop ? "yield %1 } " : "", loop ? "%s" : "%1")))
        .text;
  };
  const auto words = [&](const char* type, int lanes, bool loop) {
    return count(text(type, lanes, loop), "= fj_widen(");
  };
  EXPECT_EQ(words("bf16", 4, true), 1u) << text("bf16", 4, true);
  EXPECT_EQ(words("bf16", 4, false), 0u) << text("bf16", 4, false);
  EXPECT_EQ(words("f16", 4, true), 0u);
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
