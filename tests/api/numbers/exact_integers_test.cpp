// Whole numbers of the C++ API reach the result digit by digit.
#include <limits>

#include "tests/api/engines.h"

namespace fusejit {
namespace {

using testing::EngineCase;

class ExactIntegersOfTheApi : public testing::OnEveryEngine {};

TEST_P(ExactIntegersOfTheApi, Stay) {
  using Values = std::vector<std::int64_t>;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max(), kOdd = (std::int64_t{1} << 53) + 1;
  const std::int64_t given[] = {1, -kMost};
  const Tensor x = from_host(given, {2}, i64);
  EXPECT_EQ(full({2}, kMost, i64).to_vector<std::int64_t>(), (Values{kMost, kMost}));
  EXPECT_EQ((full({2}, kOdd, i64) + x).to_vector<std::int64_t>(), (Values{kOdd + 1, kOdd - kMost}));
  EXPECT_EQ(pad(x, {1}, {1}, kOdd).to_vector<std::int64_t>(), (Values{kOdd, 1, -kMost, kOdd}));
  EXPECT_EQ(pad(x, {1}, {0}, kMost).to_vector<std::int64_t>(), (Values{kMost, 1, -kMost}));
  EXPECT_EQ(clamp(x, -kOdd, kOdd).to_vector<std::int64_t>(), (Values{1, -kOdd}));
  EXPECT_EQ((x + kOdd).to_vector<std::int64_t>(), (Values{kOdd + 1, kOdd - kMost}));
  EXPECT_EQ(scalar(kOdd, i64).item<std::int64_t>(), kOdd);
}

INSTANTIATE_TEST_SUITE_P(Engines, ExactIntegersOfTheApi, ::testing::ValuesIn(testing::kEveryEngine), testing::name_of);

}  // namespace
}  // namespace fusejit
