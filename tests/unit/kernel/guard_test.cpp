// Loads through views: conditional where their bounds are not proven, as they are where they are.
#include <gtest/gtest.h>

#include "ir/kernel/builder.h"

namespace fusejit::ir {
namespace {

// %y[i] = %x[index(i)] for i in 0..20.
Kernel copy(const std::function<Index(Index)>& index, bool through_views) {
  KernelBuilder builder("copy", Isa::any);
  const MemId x = builder.buffer(MemKind::read, DType::f32, {8});
  const MemId y = builder.buffer(MemKind::write, DType::f32, {20});
  builder.loop(Index(0), Index(20), Binding::none,
               [&](Index i) { builder.store(y, {i}, builder.load(x, {index(i)}, through_views)); });
  return std::move(builder).finish();
}

TEST(GuardViews, WhatIsNotProvenBecomesConditional) {
  EXPECT_EQ(print(copy([](Index i) { return i - Index(3); }, true)),
            R"(kernel @copy(%p0: f32[8] read, %p1: f32[20] write) on any {
  phase {
    for %i0 in 0..20 {
      %0 = if %i0 >= 3 and %i0 < 11 : f32 {
        %1 = load %p0[%i0 - 3] : f32
        yield %1
      } else {
        yield 0
      }
      store %p1[%i0], %0
    }
  }
}
)");
}

TEST(GuardViews, WhatIsProvenStays) {
  const auto half = [](Index i) { return i / 4 + Index(2); };
  EXPECT_EQ(print(copy(half, true)), print(copy(half, false)));
}

// Not a way around V3 for what lowering computes itself.
TEST(GuardViews, OnlyLoadsThroughViews) {
  EXPECT_THROW(copy([](Index i) { return i - Index(3); }, false), InternalError);
}

}  // namespace
}  // namespace fusejit::ir
