// DType, Shape, Type, Target and Hash: the small values of the public headers.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "fusejit/error.h"
#include "fusejit/target.h"
#include "fusejit/type.h"
#include "ir/base/hash.h"

namespace fusejit {
namespace {

TEST(DType, NamesReadBack) {
  for (int i = 0; i <= static_cast<int>(DType::b1); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_named(name(dtype)), dtype);
  }
  EXPECT_EQ(name(boolean), "bool");
  EXPECT_EQ(name(DType::b1), "b1");
  EXPECT_EQ(dtype_named("float"), std::nullopt);
  EXPECT_EQ(bytes(DType::b1, 17), 3);
}

TEST(DType, Promotes) {
  EXPECT_EQ(promote(f16, bf16), f32);
  EXPECT_EQ(promote(bf16, f32), f32);
  EXPECT_EQ(promote(f64, f16), f64);
  EXPECT_EQ(promote(i32, i64), i64);
  EXPECT_EQ(promote(boolean, boolean), boolean);
  EXPECT_EQ(promote(i32, f32), std::nullopt);
  EXPECT_EQ(promote(boolean, i32), std::nullopt);
  EXPECT_EQ(promote(DType::u32, i32), std::nullopt);
  EXPECT_EQ(promote(DType::u32, DType::u64), DType::u64);
}

// torch.promote_types, row by row.
TEST(DType, PromotesIntegersAsPyTorchDoes) {
  constexpr DType kInts[] = {i8, u8, i16, i32, i64};
  constexpr DType kWanted[5][5] = {{i8, i16, i16, i32, i64},
                                   {i16, u8, i16, i32, i64},
                                   {i16, i16, i16, i32, i64},
                                   {i32, i32, i32, i32, i64},
                                   {i64, i64, i64, i64, i64}};
  for (int a = 0; a < 5; ++a)
    for (int b = 0; b < 5; ++b)
      EXPECT_EQ(promote(kInts[a], kInts[b]), kWanted[a][b]) << name(kInts[a]) << name(kInts[b]);
  EXPECT_EQ(promote(u8, f16), std::nullopt);
  EXPECT_EQ(promote(u8, boolean), std::nullopt);
  EXPECT_EQ(promote(u8, DType::u32), std::nullopt);
}

TEST(Shape, Limits) {
  EXPECT_EQ((Shape{8, 64, 56, 56}.str()), "[8,64,56,56]");
  EXPECT_EQ(Shape{}.str(), "[]");
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_EQ((Shape{3, 0, 5}.elements()), 0);
  EXPECT_THROW((Shape{2, -1}), UserError);
  EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}), UserError);
  EXPECT_EQ((Shape{1 << 20, 1 << 20}.elements()), std::int64_t{1} << 40);
  EXPECT_THROW((Shape{1 << 20, (1 << 20) + 1}), UserError);
  EXPECT_THROW((Shape{INT64_MAX, INT64_MAX}), UserError);
  EXPECT_THROW((Shape{0, INT64_MAX}), UserError);
}

TEST(Shape, Broadcasts) {
  Shape result;
  EXPECT_TRUE(broadcast_shapes({4, 1, 3}, {5, 1}, result));
  EXPECT_EQ(result, (Shape{4, 5, 3}));
  EXPECT_TRUE(broadcast_shapes({}, {2}, result));
  EXPECT_EQ(result, Shape{2});
  EXPECT_TRUE(broadcast_shapes({1}, {0}, result));
  EXPECT_EQ(result, Shape{0});
  EXPECT_FALSE(broadcast_shapes({2}, {0}, result));
  EXPECT_FALSE(broadcast_shapes({2, 3}, {2}, result));
  Shape same{7, 1};
  EXPECT_TRUE(broadcast_shapes(same, {1, 2}, same));  // the result may be an operand
  EXPECT_EQ(same, (Shape{7, 2}));
}

TEST(Type, Text) {
  EXPECT_EQ((Type{f32, {8, 64, 56, 56}, Layout::nhwc}.str()), "f32[8,64,56,56]:nhwc");
  EXPECT_EQ((Type{boolean, {}, Layout::standard}.str()), "bool[]");
  EXPECT_EQ((Type{f16, {3, 2}}.bytes()), 12);
}

TEST(Target, TextReadsBack) {
  for (const char* text : {"x86:avx512,l1=32k,l2=1m,l3=32m,fma=1,tasks=64", "x86:avx2,l1=1k,l2=4k,l3=16k,fma=1,tasks=7",
                           "cuda:sm_90,l1=32k,l2=50m,l3=32m,fma=1,tasks=64", "any,l1=1000,l2=1m,l3=1g,fma=2,tasks=64",
                           "x86:avx512bf16,l1=32k,l2=1m,l3=32m,fma=1,tasks=64,dot2=1",
                           "cuda:sm_90,l1=32k,l2=1m,l3=32m,fma=1,tasks=64,cudnn=2"}) {
    EXPECT_EQ(Target::parse(text).str(), text);
  }
  EXPECT_EQ(Target::parse("x86:avx512").str(), "x86:avx512,l1=32k,l2=1m,l3=32m,fma=1,tasks=64");
  EXPECT_EQ(Target::parse("x86:v2,tasks=3").lanes32(), 4);
  EXPECT_EQ(Target::parse("x86:avx2").lanes32(), 8);
  EXPECT_EQ(Target::parse("x86:avx512").lanes32(), 16);
  EXPECT_EQ(Target::parse("x86:avx512bf16").vector_registers(), 32);
  EXPECT_EQ(Target::parse("x86:avx2").vector_registers(), 16);
  EXPECT_TRUE(Target::parse("x86:avx2").has_fma() && Target::parse("cuda:sm_90").has_fma());
  EXPECT_FALSE(Target::parse("x86:v2").has_fma()) << "what it has rounds twice";
  EXPECT_EQ(Target::parse("cuda:sm_90").cudnn, CudnnMode::off);
  EXPECT_EQ(Target::parse("cuda:sm_90,cudnn=2").cudnn, CudnnMode::compiled);
}

TEST(Target, HostReadsBack) {
  const Target host = Target::host();
  EXPECT_EQ(Target::parse(host.str()), host);
  EXPECT_EQ(Target::parse("host"), host);
  EXPECT_EQ(Target::parse("host,tasks=7").tasks, 7);
  EXPECT_LT(host.l1_bytes, host.l2_bytes);
  const long processors = sysconf(_SC_NPROCESSORS_CONF);
  EXPECT_GE(host.tasks, std::max(32L, 16 * processors));
  EXPECT_LT(host.tasks, std::max(33L, 32 * processors)) << "the next power of two";
  RecordProperty("host", host.str());
}

TEST(Target, Refuses) {
  for (const char* text : {"",
                           "x86",
                           "x86:avx1024",
                           "cuda:sm_",
                           "cuda:sm_x",
                           "cuda:sm_9",
                           "x86:v2,",
                           "x86:v2,l1",
                           "x86:v2,l1=",
                           "x86:v2,l1=k",
                           "x86:v2,l1=0",
                           "x86:v2,l1=99999999999999999999g",
                           "x86:v2,l4=1",
                           "x86:v2,tasks=0",
                           "x86:v2,tasks=1k",
                           "x86:v2,l1=-1",
                           "x86:v2 ,l1=1",
                           "x86:v2,dot2=2",
                           "cuda:sm_90,cudnn=3",
                           "x86:avx2,winograd=3"}) {
    EXPECT_THROW(Target::parse(text), UserError) << text;
  }
}

TEST(Hash, IsTheSameEverywhere) {
  // Fixed values: a change would make every stored key unreadable.
  EXPECT_EQ(ir::hash_text("").hex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_NE(ir::hash_text("a"), ir::hash_text("b"));
  EXPECT_NE(ir::mix(1, 2), ir::mix(2, 1));
}

}  // namespace
}  // namespace fusejit
