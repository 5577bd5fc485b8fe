// Sets of elements as unions of boxes, against bits.
#include "ir/kernel/cost/elements.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace fusejit::ir {
namespace {

std::set<std::int64_t> values(const Runs& runs) {
  std::set<std::int64_t> all;
  for (const Runs::Run& run : runs.list())
    for (std::int64_t v = run.low; v <= run.high; ++v) all.insert(v);
  return all;
}

TEST(Runs, AreApartAndInOrder) {
  const Runs runs = Runs::of({7, 3, 4, 3, 9, 5});
  EXPECT_EQ(runs.list(), (std::vector<Runs::Run>{{3, 5}, {7, 7}, {9, 9}}));
  EXPECT_EQ(runs.count(), 5);
  EXPECT_EQ(runs.clipped(5, 8).list(), (std::vector<Runs::Run>{{5, 5}, {7, 7}}));
  EXPECT_EQ(runs.united(Runs::between(6, 8)).list(), (std::vector<Runs::Run>{{3, 9}}));
  EXPECT_EQ(runs.united(Runs()), runs);
  EXPECT_TRUE(Runs::between(3, 2).empty());
}

TEST(Runs, PlusMultiples) {
  const Runs taps = Runs::between(0, 2);
  EXPECT_EQ(taps.plus(3, 0, 4, 100), Runs::between(0, 14));
  EXPECT_EQ(taps.plus(4, 0, 2, 100).list(), (std::vector<Runs::Run>{{0, 2}, {4, 6}, {8, 10}}));
  EXPECT_EQ(taps.plus(-4, 0, 1, 100).list(), (std::vector<Runs::Run>{{-4, -2}, {0, 2}}));
  EXPECT_EQ(taps.plus(0, -5, 5, 100), taps);
  EXPECT_EQ(taps.plus(5, 0, 9, 9), Runs::between(0, 47)) << "too many: holes are filled";
  EXPECT_TRUE(taps.plus(1, 1, 0, 100).empty());
  EXPECT_EQ(values(Runs::of({0, 10}).plus(4, 0, 2, 100)), (std::set<std::int64_t>{0, 4, 8, 10, 14, 18}));
}

// Random boxes in three dims, some of them divided as (0, 2), 1 or as all together.
TEST(ElementSet, CountsUnions) {
  std::mt19937 random(5);
  const auto draw = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 2000; ++round) {
    const std::vector<std::int64_t> dims = {1 + draw(5), 1 + draw(6), 1 + draw(7)};
    ElementSet set(dims);
    std::set<std::int64_t> bits;
    for (int boxes = 1 + draw(7); boxes > 0; --boxes) {
      static const std::vector<std::vector<std::vector<std::size_t>>> kDivisions = {
          {{0}, {1}, {2}}, {{0}, {1}, {2}}, {{0, 2}, {1}}, {{0}, {1, 2}}, {{0, 1, 2}}};
      Box box;
      for (const std::vector<std::size_t>& part : kDivisions[static_cast<std::size_t>(draw(5))]) {
        std::int64_t positions = 1;
        for (const std::size_t d : part) positions *= dims[d];
        std::vector<std::int64_t> some;
        for (std::int64_t p = draw(2); p < positions; p += 1 + draw(3)) some.push_back(p);
        box.push_back({part, Runs::of(some)});
      }
      for (std::int64_t e = 0; e < dims[0] * dims[1] * dims[2]; ++e) {
        const std::int64_t at[] = {e / (dims[1] * dims[2]), e / dims[2] % dims[1], e % dims[2]};
        bool inside = true;
        for (const Part& part : box) {
          std::int64_t position = 0;
          for (const std::size_t d : part.dims) position = position * dims[d] + at[d];
          inside = inside && values(part.positions).contains(position);
        }
        if (inside) bits.insert(e);
      }
      set.add(std::move(box));
    }
    ASSERT_EQ(set.count(), static_cast<std::int64_t>(bits.size())) << "round " << round;
  }
}

TEST(ElementSet, OfNoDimsIsOneElement) {
  ElementSet set({});
  EXPECT_EQ(set.count(), 0);
  set.add({}), set.add({});
  EXPECT_EQ(set.count(), 1);
}

// More boxes than are told apart: never less than the union, never more than the array.
TEST(ElementSet, BoundsManyBoxes) {
  ElementSet set({100, 100});
  for (std::int64_t i = 0; i < 100; ++i) set.add({{{0}, Runs::between(i, i)}, {{1}, Runs::between(i, 99)}});
  EXPECT_EQ(set.count(), 5050);
  for (std::int64_t i = 0; i < 100; ++i) set.add({{{0}, Runs::between(i, i)}, {{1}, Runs::of({0, i})}});
  EXPECT_GE(set.count(), 5050 + 99);
  EXPECT_LE(set.count(), 10000);
}

}  // namespace
}  // namespace fusejit::ir
