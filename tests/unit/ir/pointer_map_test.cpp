#include "ir/base/pointer_map.h"

#include <gtest/gtest.h>

#include <vector>

namespace fusejit::ir {
namespace {

TEST(PointerMap, FindsWhatWasPutIn) {
  const std::vector<int> things(1000);
  PointerMap map;
  EXPECT_EQ(map.find(&things[0]), -1);
  for (int i = 0; i < 1000; i += 2) {
    const auto [number, is_new] = map.insert(&things[static_cast<std::size_t>(i)], i);
    EXPECT_TRUE(is_new);
    EXPECT_EQ(number, i);
  }
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(map.find(&things[static_cast<std::size_t>(i)]), i % 2 == 0 ? i : -1) << i;
}

TEST(PointerMap, KeepsTheFirstNumber) {
  const int thing = 0;
  PointerMap map;
  map.insert(&thing, 1);
  const auto [number, is_new] = map.insert(&thing, 2);
  EXPECT_FALSE(is_new);
  EXPECT_EQ(number, 1);
}

}  // namespace
}  // namespace fusejit::ir
