// Machine code touches nothing but its arguments: each lies between two pages that nobody may touch, at either end.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "tests/unit/codegen/run_kernel.h"

namespace fusejit::test {
namespace {

constexpr std::size_t kPage = 4096;

// `bytes` at the start or at the end of a page between two others.
class Enclosed {
 public:
  Enclosed(std::size_t bytes, bool at_end)
      : pages_(static_cast<std::byte*>(mmap(nullptr, 3 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    EXPECT_LE(bytes, kPage);
    EXPECT_EQ(mprotect(pages_ + kPage, kPage, PROT_READ | PROT_WRITE), 0);
    data_ = pages_ + kPage + (at_end ? kPage - bytes : 0);
  }
  ~Enclosed() { munmap(pages_, 3 * kPage); }
  Enclosed(const Enclosed&) = delete;
  float* data() { return reinterpret_cast<float*>(data_); }

 private:
  std::byte *pages_, *data_;
};

struct BoundsCase {
  const char* name;
  const char* text;  // %x: f32[19] read, %y: f32[19] write; y = x + 1
};

const BoundsCase kBoundsCases[] = {
    {"tail", R"(kernel @k(%x: f32[19] read, %y: f32[19] write) on x86:avx512 {
  phase { for %i in 0..2 { for %l in 0..16 vector { if %i*16 + %l < 19 {
    %0 = load %x[%i*16 + %l] : f32  %1 = add(%0, 1) : f32  store %y[%i*16 + %l], %1 } } } } })"},
    {"front", R"(kernel @k(%x: f32[19] read, %y: f32[19] write) on x86:avx512 {
  phase { for %i in 0..2 { for %l in 0..16 vector { if %i*16 + %l >= 13 {
    %0 = load %x[%i*16 + %l - 13] : f32  %1 = add(%0, 1) : f32  store %y[%i*16 + %l - 13], %1 } } } } })"},
    {"reversed", R"(kernel @k(%x: f32[19] read, %y: f32[19] write) on x86:avx512 {
  phase { for %i in 0..2 { for %l in 0..16 vector { if %i*16 + %l < 19 {
    %0 = load %x[18 - %i*16 - %l] : f32  %1 = add(%0, 1) : f32  store %y[18 - %i*16 - %l], %1 } } } } })"},
    {"one_element", R"(kernel @k(%x: f32[19] read, %y: f32[19] write) on x86:avx512 {
  phase { for %i in 0..24 { for %l in 0..16 vector { if %i + %l < 19 and %l < 1 {
    %0 = load %x[%i] : f32  %1 = add(%0, 1) : f32  if %l == 0 { store %y[%i + %l], %1 } } } } } })"},
};

class Bounds : public ::testing::TestWithParam<std::tuple<BoundsCase, Isa>> {};

TEST_P(Bounds, NothingElseIsTouched) {
  const auto& [c, isa] = GetParam();
  if (!codegen::x86::host_supports(isa)) GTEST_SKIP() << "this processor cannot run " << name(isa);
  const ir::Kernel kernel = ir::parse_kernel(for_isa(c.text, isa));
  ir::verify(kernel);
  const auto compiled = codegen::x86::compile(kernel, Target{.isa = isa});
  for (const bool at_end : {false, true}) {
    Enclosed x(19 * sizeof(float), at_end), y(19 * sizeof(float), at_end);
    for (int i = 0; i < 19; ++i) x.data()[i] = static_cast<float>(i);
    const void* args[] = {x.data(), y.data()};
    for (const codegen::CompiledPhase& phase : compiled->phases) phase.entry(args, nullptr, 0, nullptr, nullptr);
    for (int i = 0; i < 19; ++i) EXPECT_EQ(y.data()[i], static_cast<float>(i + 1));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Bounds,
                         ::testing::Combine(::testing::ValuesIn(kBoundsCases),
                                            ::testing::Values(Isa::x86_avx512, Isa::x86_avx2, Isa::x86_v2)),
                         [](const auto& info) {
                           return fmt::format("{}_{}", std::get<0>(info.param).name,
                                              static_cast<int>(std::get<1>(info.param)));
                         });

}  // namespace
}  // namespace fusejit::test
