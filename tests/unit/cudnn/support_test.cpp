// The table that `supports` reads: what it says, and that cuDNN still says the same.
#include "runtime/cudnn/support/support.h"

#include "tests/unit/cudnn/with_cudnn.h"

namespace fusejit::runtime::cudnn {
namespace {

ConvolutionCall supported_call(DType dtype, Layout layout = Layout::nhwc) {
  ConvolutionCall call;
  call.dtype = dtype;
  call.layout = layout;
  call.x = Shape{8, 64, 14, 14};
  call.w = Shape{128, 64, 3, 3};
  call.padding = {1, 1, 1, 1};
  return call;
}

TEST(Supports, PlainConvolutionsEverywhere) {
  for (const int architecture : {80, 86, 90, 100}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const Layout layout : {Layout::nhwc, Layout::standard}) {
        for (const Direction direction : {Direction::forward, Direction::input_gradient, Direction::weight_gradient}) {
          ConvolutionCall call = supported_call(dtype, layout);
          call.direction = direction;
          const Support support = supports(call, architecture);
          EXPECT_TRUE(support.ok) << call.str() << ": " << support.why;
          EXPECT_EQ(support.tier, Tier::precompiled);
        }
      }
    }
  }
}

TEST(Supports, StatisticsInF32NeedTf32AndAtomics) {
  ConvolutionCall call = supported_call(DType::f32);
  call.sums = Sums::statistics;
  const Support strict = supports(call, 90);
  EXPECT_FALSE(strict.ok);
  EXPECT_NE(strict.why.find("TF32"), std::string::npos) << strict.why;
  EXPECT_FALSE(supports(call, 90, {.tf32 = true, .nondeterministic = false, .winograd = false}).ok)
      << "the engine that takes TF32 sums by atomics";
}

TEST(Supports, OtherActivationsAreCompiledAtRunTime) {
  for (const Activation activation : {Activation::gelu, Activation::silu, Activation::leaky_relu}) {
    ConvolutionCall call = supported_call(DType::f16);
    call.bias = true;
    call.activation = activation;
    EXPECT_TRUE(supports(call, 80).ok) << supports(call, 80).why;
    EXPECT_EQ(supports(call, 80).tier, Tier::runtime_compiled);
    call.layout = Layout::standard;
    EXPECT_FALSE(supports(call, 80).ok);
    EXPECT_NE(supports(call, 80).why.find("nchw"), std::string::npos) << supports(call, 80).why;
  }
}

TEST(Supports, EverySpecialThingAboutAShapeCounts) {
  // The sums of a strided input gradient do not compile, whatever else holds.
  ConvolutionCall call = supported_call(DType::f16);
  call.direction = Direction::input_gradient;
  call.mask = Mask::output;
  call.sums = Sums::gradient;
  EXPECT_TRUE(supports(call, 90).ok) << supports(call, 90).why;
  call.stride = {2, 2};
  EXPECT_FALSE(supports(call, 90).ok);
}

TEST(Supports, SaysWhatWasNotProbed) {
  EXPECT_NE(supports(supported_call(DType::f16), 75).why.find("sm_75"), std::string::npos);
  ConvolutionCall call = supported_call(DType::f16);
  call.prologue = Prologue::affine_relu;
  call.bias = true;
  EXPECT_FALSE(supports(call, 90).ok);
  EXPECT_NE(supports(call, 90).why.find("no engine"), std::string::npos);
}

TEST(SupportTable, IsWhole) {
  for (int p = 0; p < static_cast<int>(patterns().size()); ++p) {
    for (int s = 0; s < static_cast<int>(shape_classes().size()); ++s) {
      const std::string_view row = cells(p, s);
      ASSERT_EQ(row.size(), static_cast<std::size_t>(kColumns));
      for (int c = 0; c < kColumns; ++c) {
        const char cell = row[static_cast<std::size_t>(c)];
        EXPECT_TRUE(cell == 'P' || cell == 'R' || cell == 'S' || cell == '?' ||
                    (cell >= 'a' && static_cast<std::size_t>(cell - 'a') < reasons().size()))
            << cell;
        EXPECT_NO_THROW(sample_call(patterns()[static_cast<std::size_t>(p)], s, column(c)).check());
      }
    }
  }
}

// The architecture's first described device, by name.
std::string device_name(int compute_capability) { return std::string(device_of(compute_capability)->name); }

class SupportTableOnCudnn : public WithCudnn {
 protected:
  void compare(int pattern, int shape_class, int at) {
    const Column where = column(at);
    char expected = cells(pattern, shape_class)[static_cast<std::size_t>(at)];
    if (expected >= 'a' && expected <= 'z') expected = '-';
    const ConvolutionCall call = sample_call(patterns()[static_cast<std::size_t>(pattern)], shape_class, where);
    const Probe found = probe(library_, device(device_name(where.compute_capability)), call,
                              {.tf32 = where.tf32, .nondeterministic = false, .winograd = false});
    EXPECT_EQ(found.cell, expected) << where.name() << ": " << call.str() << ": " << found.refused.why_not();
  }
  void SetUp() override {
    WithCudnn::SetUp();
    if (IsSkipped()) return;
    if (library_->version() != table_version()) {
      GTEST_SKIP() << "cuDNN " << library_->version_text() << " is here, the table is of version " << table_version();
    }
    if (!has_driver_) GTEST_SKIP() << "cuDNN: no libcuda.so.1, so no runtime-compiled engine";
  }
};

TEST_F(SupportTableOnCudnn, EqualsTheProbe) {
  // By default a few cells: every 37th that asks for no compilation, every 331st that does (37 and 331 are prime).
  std::size_t quick = 0, slow = 0, compared = 0;
  for (int p = 0; p < static_cast<int>(patterns().size()); ++p) {
    for (int s = 0; s < static_cast<int>(shape_classes().size()); ++s) {
      for (int c = 0; c < kColumns; ++c) {
        const char cell = cells(p, s)[static_cast<std::size_t>(c)];
        if (cell == '?') continue;
        const bool compiles = cell != 'P' && column(c).layout == Layout::nhwc;
        const bool chosen = compiles ? slow++ % 331 == 0 : quick++ % 37 == 0;
        if (!chosen && !testing::is_nightly()) continue;
        compare(p, s, c);
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 0u);
}

}  // namespace
}  // namespace fusejit::runtime::cudnn
