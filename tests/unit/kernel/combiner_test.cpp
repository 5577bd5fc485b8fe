// The table of combiners: what each starts from changes nothing, in every dtype that it takes.
#include "ir/kernel/combiner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/kernel/interp/scalar.h"

namespace fusejit::ir {
namespace {

constexpr Combiner kAll[] = {Combiner::add,     Combiner::mul,         Combiner::maximum,
                             Combiner::minimum, Combiner::logical_and, Combiner::logical_or,
                             Combiner::argmax,  Combiner::argmin,      Combiner::welford};
constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::i32, DType::i64, DType::u32, DType::u64, DType::boolean};

TEST(Combiner, IsReadBackFromItsName) {
  for (const Combiner combiner : kAll) EXPECT_EQ(combiner_named(name(combiner)), combiner);
  EXPECT_EQ(combiner_named("median"), std::nullopt);
}

TEST(Combiner, IdentityChangesNothing) {
  int tried = 0;
  for (const Combiner combiner : kAll) {
    for (const DType dtype : kDTypes) {
      if (components(combiner) != 1 || !combines(combiner, {{dtype}})) continue;
      const ScalarFn combine = combiner_function(combiner, dtype);
      const Scalar start = identity(combiner, 0, dtype);
      EXPECT_EQ(start.dtype, dtype);
      for (const double x : {0.0, 1.0, 3.0, 100.0, -1.0, -7.0}) {
        if (x < 0 && (is_unsigned(dtype) || dtype == DType::boolean)) continue;
        const Scalar value = cast(Scalar::of(x), dtype);
        EXPECT_EQ(combine(start.bits, value.bits, 0), value.bits) << name(combiner) << " " << name(dtype) << " " << x;
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 100);
}

TEST(Combiner, FirstElementBeatsTheIdentityOfArgmax) {
  for (const Combiner combiner : {Combiner::argmax, Combiner::argmin}) {
    for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64}) {
      const DType types[] = {dtype, DType::i64};
      ASSERT_TRUE(combines(combiner, types));
      // Even the end of the range, at place 5.
      for (const Scalar x : {identity(combiner, 0, dtype), cast(Scalar::of(2.0), dtype)}) {
        Word state[] = {identity(combiner, 0, dtype).bits, identity(combiner, 1, DType::i64).bits};
        const Word element[] = {x.bits, 5};
        combine(combiner, types, state, element);
        EXPECT_EQ(state[0], x.bits) << name(combiner) << " " << name(dtype);
        EXPECT_EQ(state[1], 5u) << name(combiner) << " " << name(dtype);
      }
    }
  }
}

TEST(Combiner, TakesItsDtypesOnly) {
  EXPECT_TRUE(combines(Combiner::add, {{DType::u32}}));
  EXPECT_FALSE(combines(Combiner::add, {{DType::boolean}}));
  EXPECT_FALSE(combines(Combiner::add, {{DType::bf16}}));
  EXPECT_TRUE(combines(Combiner::logical_or, {{DType::boolean}}));
  EXPECT_FALSE(combines(Combiner::logical_or, {{DType::i32}}));
  const DType mixed[] = {DType::f32, DType::f32, DType::f64}, same[] = {DType::f64, DType::f64, DType::f64};
  EXPECT_FALSE(combines(Combiner::welford, mixed));
  EXPECT_TRUE(combines(Combiner::welford, same));
  EXPECT_FALSE(combines(Combiner::argmax, {{DType::f32}}));
}

}  // namespace
}  // namespace fusejit::ir
