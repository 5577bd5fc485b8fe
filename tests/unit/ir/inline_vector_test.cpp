// InlineVector does what std::vector does, with elements that own memory, on both sides of where it begins to allocate.
#include "ir/base/inline_vector.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

namespace fusejit {
namespace {

using Element = std::shared_ptr<int>;
using Short = InlineVector<Element, 3>;
using Long = std::vector<Element>;

void expect_same(const Short& is, const Long& should) {
  ASSERT_EQ(is.size(), should.size());
  EXPECT_EQ(is.empty(), should.empty());
  EXPECT_TRUE(std::equal(is.begin(), is.end(), should.begin()));
}

TEST(InlineVector, DoesWhatAVectorDoes) {
  std::mt19937 random(1);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  std::vector<std::weak_ptr<int>> made;
  {
    Short a, b;
    Long like_a, like_b;
    for (int step = 0; step < 20000; ++step) {
      const Element one = std::make_shared<int>(step);
      made.push_back(one);
      const auto at = static_cast<std::ptrdiff_t>(below(a.size() + 1));
      switch (below(12)) {
        case 0:
        case 1:
        case 2:
          a.push_back(one), like_a.push_back(one);
          break;
        case 3:
          a.insert(a.begin() + at, one), like_a.insert(like_a.begin() + at, one);
          break;
        case 4:
        case 5:
          if (a.empty()) break;
          a.erase(a.begin() + at % std::ssize(like_a)), like_a.erase(like_a.begin() + at % std::ssize(like_a));
          break;
        case 6:
          a.erase(a.begin() + at / 2, a.begin() + at), like_a.erase(like_a.begin() + at / 2, like_a.begin() + at);
          break;
        case 7:
          std::swap(a, b), std::swap(like_a, like_b);
          break;
        case 8:
          b = a, like_b = like_a;
          break;
        case 9:
          b = std::move(a), like_b = std::move(like_a);
          like_a.clear();
          break;
        case 10: {
          const auto odd = [](const Element& e) { return *e % 2 == 1; };
          EXPECT_EQ(erase_if(a, odd), std::erase_if(like_a, odd));
          break;
        }
        default:
          a = Short(b), like_a = Long(like_b);
          if (below(4) == 0) a.reserve(7), b = b;
      }
      expect_same(a, like_a), expect_same(b, like_b);
      EXPECT_EQ(a == b, like_a == like_b);
      if (::testing::Test::HasFailure()) FAIL() << "in step " << step;
    }
  }
  EXPECT_TRUE(std::all_of(made.begin(), made.end(), [](const auto& one) { return one.expired(); })) << "kept alive";
}

// An element of itself is inserted where room is made for it.
TEST(InlineVector, TakesAnElementOfItself) {
  InlineVector<int, 2> v{1, 2};
  v.push_back(v[0]);
  v.insert(v.begin(), v.back());
  EXPECT_EQ(v, (InlineVector<int, 2>{1, 1, 2, 1}));
}

}  // namespace
}  // namespace fusejit
