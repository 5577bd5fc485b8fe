// Every kernel through NVRTC, without a device: no spills, few registers, 16-byte accesses; errors that say what
// failed.
#include "codegen/cuda/nvrtc.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "fusejit/error.h"
#include "tests/unit/cuda/kernels.h"

namespace fusejit::test {
namespace {

using codegen::cuda::CudaSource;

class Nvrtc : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!codegen::cuda::nvrtc().available) GTEST_SKIP() << "NVRTC: " << codegen::cuda::nvrtc().why_not;
  }
};
class NvrtcFor : public Nvrtc, public ::testing::WithParamInterface<int> {};

std::vector<CudaSource> all_sources() {
  std::vector<CudaSource> sources;
  for (const std::string& file : cuda_kernel_files()) sources.push_back(codegen::cuda::emit(cuda_kernel(file)));
  return sources;
}

TEST_P(NvrtcFor, EveryKernelCompilesWithoutSpills) {
  const std::vector<CudaSource> sources = all_sources();
  const codegen::cuda::CudaBinary binary = codegen::cuda::compile(codegen::cuda::program(sources), GetParam());
  EXPECT_EQ(binary.cubin.substr(0, 4),
            "\x7f"
            "ELF");
  // The flags of the ELF header name the architecture: in their first byte, since CUDA 13 in the second.
  const auto flag = [&](std::size_t i) { return static_cast<unsigned char>(binary.cubin.at(48 + i)); };
  EXPECT_TRUE(flag(0) == GetParam() || flag(1) == GetParam()) << int{flag(0)} << " " << int{flag(1)};
  std::size_t at = 0;
  for (const CudaSource& source : sources) {
    for (const codegen::cuda::CudaLaunch& launch : source.launches) {
      ASSERT_LT(at, binary.entries.size());
      const codegen::cuda::Resources& r = binary.entries[at++];
      EXPECT_EQ(r.entry, launch.entry);
      EXPECT_EQ(r.spill_bytes, 0) << r.entry;
      EXPECT_EQ(r.stack_bytes, 0) << r.entry;
      EXPECT_GT(r.registers, 0) << r.entry;
      EXPECT_LE(r.registers, 128) << r.entry;
    }
  }
  EXPECT_EQ(at, binary.entries.size());
}
INSTANTIATE_TEST_SUITE_P(All, NvrtcFor, ::testing::Values(80, 90, 100, 120),
                         [](const auto& info) { return "sm_" + std::to_string(info.param); });

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

TEST_F(Nvrtc, NeighbouringElementsAreMovedSixteenBytesAtATime) {
  struct Row {
    const char* file;
    std::size_t loads, stores;  // of 16 bytes, at least
  };
  for (const Row& row : {Row{"toy/a_scale_relu_cuda.kir", 1, 1}, Row{"toy/c_bn_stats_cuda.kir", 2, 2},
                         Row{"toy/j_relu_dropout_grad_cuda.kir", 2, 1}, Row{"cuda/bias_relu_bits.kir", 3, 1},
                         Row{"cuda/maxpool.kir", 1, 1}, Row{"cuda/softmax.kir", 1, 1}, Row{"cuda/bn_train.kir", 5, 3},
                         Row{"cuda/wide_lanes.kir", 4, 8}}) {
    const std::vector<CudaSource> sources = {codegen::cuda::emit(cuda_kernel(row.file))};
    const std::string ptx = codegen::cuda::compile_to_ptx(codegen::cuda::program(sources), 90);
    EXPECT_GE(count_of(ptx, "ld.global.v4") + count_of(ptx, "ld.global.nc.v4") + count_of(ptx, "ld.global.v2.b64") +
                  count_of(ptx, "ld.global.nc.v2.b64"),
              row.loads)
        << row.file;
    EXPECT_GE(count_of(ptx, "st.global.v4") + count_of(ptx, "st.global.v2.b64"), row.stores) << row.file;
  }
}

TEST_F(Nvrtc, OnlyAWrittenFmaIsOne) {
  for (const bool written : {false, true}) {
    const std::string sum = written ? "%3 = fma(%0, %1, %2) : f32" : "%m = mul(%0, %1) : f32 %3 = add(%m, %2) : f32";
    const CudaSource source = codegen::cuda::emit(ir::parse_kernel(
        fmt::format("kernel @k(%x: f32[256] read, %y: f32[256] update) on cuda {{ phase {{ for %g in 0..1 grid.x {{ "
                    "for %t in 0..256 block.x {{ %0 = load %x[%t] : f32 %1 = index(%t) : f32 %2 = load %y[%t] : f32 {} "
                    "store %y[%t], %3 }} }} }} }}",
                    sum)));
    const std::string ptx = codegen::cuda::compile_to_ptx(codegen::cuda::program({&source, 1}), 90);
    EXPECT_EQ(count_of(ptx, "fma.rn.f32"), written ? 1u : 0u);
    EXPECT_EQ(count_of(ptx, "mul.f32") + count_of(ptx, "mul.rn.f32"), written ? 0u : 1u);
  }
}

// Division and root are IEEE's, denormals are kept, and numbers of one width stay of that width.
TEST_F(Nvrtc, ArithmeticIsRoundedAsWritten) {
  const CudaSource source = codegen::cuda::emit(ir::parse_kernel(
      "kernel @k(%x: f32[256] read, %h: f16[256] read, %b: bf16[256] read, %y: f32[256] write, %p: f16[256] write, "
      "%q: bf16[256] write) on cuda { phase { for %g in 0..1 grid.x { for %t in 0..256 block.x { "
      "%0 = load %x[%t] : f32 %1 = load %h[%t] : f16 %2 = cast(%1) : f32 %3 = load %b[%t] : bf16 %4 = cast(%3) : f32 "
      "%5 = div(%0, %2) : f32 %6 = sqrt(%5) : f32 %7 = mul(%6, %4) : f32 %8 = add(%7, 0.1) : f32 "
      "%9 = maximum(%8, 0) : f32 %10 = cast(%9) : f16 %11 = cast(%9) : bf16 "
      "store %y[%t], %9 store %p[%t], %10 store %q[%t], %11 } } } }"));
  const std::string ptx = codegen::cuda::compile_to_ptx(codegen::cuda::program({&source, 1}), 90);
  for (const char* instruction : {"div.rn.f32", "sqrt.rn.f32", "cvt.f32.f16", "cvt.rn.f16.f32", "cvt.rn.bf16.f32"})
    EXPECT_EQ(count_of(ptx, instruction), 1u) << instruction << "\n" << ptx;
  EXPECT_GT(count_of(ptx, "\t.loc\t"), 0u) << "no line numbers";
  for (const char* instruction : {".ftz", ".approx", "fma.", ".f64", "max.f32", ".local"})
    EXPECT_EQ(count_of(ptx, instruction), 0u) << instruction << "\n" << ptx;
}

TEST_F(Nvrtc, ACompileErrorShowsLogLineAndKernel) {
  CudaSource source = codegen::cuda::emit(cuda_kernel("cuda/transpose.kir"));
  const std::size_t at = source.text.find("const int i0");
  ASSERT_NE(at, std::string::npos);
  source.text.insert(at, "undefined_name(3);\n  ");
  try {
    codegen::cuda::compile(codegen::cuda::program({&source, 1}), 90);
    FAIL();
  } catch (const DeviceError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("nvrtcCompileProgram for sm_90"), std::string::npos) << text;
    EXPECT_NE(text.find("identifier \"undefined_name\" is undefined"), std::string::npos) << text;
    EXPECT_NE(text.find("  >   undefined_name(3);"), std::string::npos) << text;
    EXPECT_NE(text.find("// kernel @transpose("), std::string::npos) << text;
    EXPECT_EQ(text.find("struct fj_welford"), std::string::npos) << "the prelude is not part of the message";
  }
}

TEST_F(Nvrtc, AnUnknownArchitectureIsNamed) {
  const CudaSource source = codegen::cuda::emit(cuda_kernel("cuda/transpose.kir"));
  try {
    codegen::cuda::compile(codegen::cuda::program({&source, 1}), 53);
    FAIL();
  } catch (const UnsupportedError& error) {
    EXPECT_NE(std::string(error.what()).find("cannot compile for sm_53"), std::string::npos) << error.what();
  }
}

TEST(NvrtcSearch, TakesTheMajorVersionsThatItKnows) {
  for (const char* major : {"11", "12", "13", "14"}) {
    setenv("FAKE_NVRTC_MAJOR", major, 1);
    const codegen::cuda::NvrtcState state = codegen::cuda::look_for_nvrtc(FUSEJIT_FAKE_NVRTC);
    const bool known = major == std::string_view("12") || major == std::string_view("13");
    EXPECT_EQ(state.available, known) << state.why_not;
    const std::string sentence = fmt::format(" is NVRTC {}.2, 12 or 13 is needed; install the CUDA toolkit", major);
    EXPECT_EQ(state.why_not.find(sentence) == std::string::npos, known) << state.why_not;
  }
  unsetenv("FAKE_NVRTC_MAJOR");
}

TEST(NvrtcSearch, SaysWhatIsMissingAndWhatToDo) {
  const codegen::cuda::NvrtcState none = codegen::cuda::look_for_nvrtc("/no/such/libnvrtc.so");
  EXPECT_FALSE(none.available);
  EXPECT_NE(none.why_not.find("/no/such/libnvrtc.so"), std::string::npos) << none.why_not;
  EXPECT_NE(none.why_not.find("FUSEJIT_NVRTC"), std::string::npos) << none.why_not;
  const codegen::cuda::NvrtcState other = codegen::cuda::look_for_nvrtc("libm.so.6");
  EXPECT_FALSE(other.available);
  EXPECT_NE(other.why_not.find("nvrtcVersion"), std::string::npos) << other.why_not;
}

}  // namespace
}  // namespace fusejit::test
