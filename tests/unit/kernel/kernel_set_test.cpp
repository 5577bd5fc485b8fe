#include "ir/kernel/kernel_set.h"

#include <gtest/gtest.h>

namespace fusejit::ir {
namespace {

struct Wish {
  std::string name = "scaled";
  double factor = 2;
  std::int64_t extent = 32, from = 0;
  Op op = Op::mul;
  bool non_temporal = false, views = false;
};

KernelBuilder written(const Wish& wish) {
  KernelBuilder b(wish.name, Isa::x86_avx2);
  const MemId x = b.buffer(MemKind::read, f32, {64}, 64), y = b.buffer(MemKind::write, f32, {64}, 64);
  b.loop(0, wish.extent / 8, Binding::none, [&](Index i) {
    b.loop(0, 8, Binding::vector, [&](Index lane) {
      const Index at = i * 8 + lane;
      const Arg value = b.load(x, {at + wish.from}, wish.views);
      b.store(y, {at}, b.def(wish.op, {value, KernelBuilder::literal(wish.factor, f32)}, f32), wish.non_temporal);
    });
  });
  return b;
}

TEST(KernelSet, FinishesAKernelOnce) {
  KernelSet set;
  const auto first = set.finish(written({}));
  EXPECT_EQ(set.finish(written({})), first);
  EXPECT_EQ(print(*first), print(written({}).finish()));
}

TEST(KernelSet, TellsKernelsApart) {
  const std::vector<Wish> wishes = {{},          {.name = "other"}, {.factor = 3},         {.extent = 64},
                                    {.from = 1}, {.op = Op::add},   {.non_temporal = true}};
  KernelSet set;
  std::vector<std::shared_ptr<const Kernel>> kernels;
  for (const Wish& wish : wishes) kernels.push_back(set.finish(written(wish)));
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    EXPECT_EQ(print(*kernels[i]), print(written(wishes[i]).finish())) << i;
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(kernels[i], kernels[j]) << i << " and " << j;
  }
  // What no text says, but a guard comes of it.
  EXPECT_NE(words_of(written({.views = true}).written()), words_of(written({}).written()));
}

TEST(KernelSet, VerifiesWhatIsNew) {
  KernelSet set;
  set.finish(written({}));
  EXPECT_THROW(set.finish(written({.from = 40})), InternalError);  // V3
  EXPECT_THROW(set.finish(written({.from = 40})), InternalError);  // and again
}

}  // namespace
}  // namespace fusejit::ir
