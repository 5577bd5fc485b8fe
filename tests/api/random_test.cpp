// The distributions of fusejit/random.h on every kind of engine: moments, ends, that one seed gives one result.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "tests/api/engines.h"
#include "tests/support/error_of.h"

namespace fusejit {
namespace {

using testing::error_of;

class Random : public ::testing::TestWithParam<testing::EngineCase> {
 protected:
  void SetUp() override {
    if (const std::string why = testing::select_engine(GetParam()); !why.empty()) GTEST_SKIP() << why;
    manual_seed(7);
  }
  void TearDown() override { set_options({}); }

 private:
  testing::Strictly strictly_;
};
INSTANTIATE_TEST_SUITE_P(Engines, Random, ::testing::ValuesIn(testing::kEachKindOfEngine), testing::name_of);

double moment(const std::vector<double>& values, int power) {
  double sum = 0;
  for (const double v : values) sum += std::pow(v, power);
  return sum / static_cast<double>(values.size());
}

// Five standard errors: sqrt(1/n), sqrt(2/n), sqrt(15/n), sqrt(96/n) for the first four moments of a normal.
TEST_P(Random, NormalMoments) {
  constexpr std::int64_t kCount = 20000;
  for (const DType dtype : {f32, f64, f16}) {
    const std::vector<double> values = randn({kCount / 4, 4}, dtype).to_vector<double>();
    const double error = 5 / std::sqrt(static_cast<double>(kCount));
    EXPECT_NEAR(moment(values, 1), 0, error);
    EXPECT_NEAR(moment(values, 2), 1, error * std::sqrt(2));
    EXPECT_NEAR(moment(values, 3), 0, error * std::sqrt(15));
    EXPECT_NEAR(moment(values, 4), 3, error * std::sqrt(96));
    // How many are beyond one and two deviations: 0.3173 and 0.0455.
    const auto beyond = [&](double d) {
      return static_cast<double>(
                 std::count_if(values.begin(), values.end(), [d](double v) { return std::abs(v) > d; })) /
             kCount;
    };
    EXPECT_NEAR(beyond(1), 0.3173, 5 * std::sqrt(0.3173 * 0.6827 / kCount));
    EXPECT_NEAR(beyond(2), 0.0455, 5 * std::sqrt(0.0455 * 0.9545 / kCount));
  }
}

// The third element's first draw is 0 under this seed: without further bits its logarithm would be infinite.
TEST_P(Random, NormalTail) {
  manual_seed(1221189);
  ASSERT_EQ(rand({4}).to_vector<float>()[2], 0);
  for (const DType dtype : {f32, f64}) {
    manual_seed(1221189);
    EXPECT_TRUE(all(isfinite(randn({4}, dtype))).item<bool>());
  }
}

TEST_P(Random, NormalElementsAreIndependent) {
  const std::vector<double> a = randn({10000}).to_vector<double>(), b = randn({10000}).to_vector<double>();
  double next = 0, other = 0;
  for (std::size_t i = 0; i + 1 < a.size(); ++i) next += a[i] * a[i + 1], other += a[i] * b[i];
  EXPECT_NEAR(next / 10000, 0, 5e-2);  // five standard errors
  EXPECT_NEAR(other / 10000, 0, 5e-2);
}

TEST_P(Random, OneSeedOneResult) {
  const auto draws = [] {
    manual_seed(11);
    std::vector<double> all;
    for (const Tensor& t : {randn({5}), normal(1, 2, {3}), randint(100, {4}).to(f64), bernoulli(full({6}, 0.5)),
                            randperm(7).to(f64), randn_like(ones({2}, f64))}) {
      const std::vector<double> values = t.to_vector<double>();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  const std::vector<double> first = draws();
  EXPECT_EQ(first, draws());
  EXPECT_NE(randn({5}).to_vector<double>(), std::vector<double>(first.begin(), first.begin() + 5));
}

TEST_P(Random, NormalOfMeanAndDeviation) {
  const std::vector<double> values = normal(10, 0.5, {10000}, f64).to_vector<double>();
  EXPECT_NEAR(moment(values, 1), 10, 5 * 0.5 / 100);
  EXPECT_NEAR(moment(values, 2) - std::pow(moment(values, 1), 2), 0.25, 0.25 * 5 * std::sqrt(2) / 100);
  const Tensor spread = normal(tensor<float>({0, 100}), from_host(std::vector<float>{0, 1, 2}, {3, 1}));
  EXPECT_EQ(spread.shape(), (Shape{3, 2}));
  const std::vector<float> v = spread.to_vector<float>();
  EXPECT_EQ(v[0], 0);
  EXPECT_EQ(v[1], 100);
  EXPECT_NEAR(v[5], 100, 2 * 8.2);
}

// Every number as often as the others: chi-square with 6 degrees of freedom is above 35 once in 200,000.
TEST_P(Random, WholeNumbers) {
  for (const DType dtype : {i64, i32, f32}) {
    const std::vector<std::int64_t> values = randint(-3, 4, {7000}, dtype).to_vector<std::int64_t>();
    std::vector<double> count(7);
    for (const std::int64_t v : values) {
      ASSERT_TRUE(v >= -3 && v < 4) << v;
      ++count[static_cast<std::size_t>(v + 3)];
    }
    double chi = 0;
    for (const double c : count) chi += (c - 1000) * (c - 1000) / 1000;
    EXPECT_LT(chi, 35);
  }
  EXPECT_EQ(randint(5, 6, {3}).to_vector<int>(), (std::vector<int>{5, 5, 5}));
  EXPECT_EQ(randint(0, 2, {64}, boolean).dtype(), boolean);
}

TEST_P(Random, WholeNumbersOfManyBits) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const auto& [low, high] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {0, (1 << 24) + 1}, {-5, std::int64_t{1} << 40}, {0, kMost}, {-kMost / 2, kMost / 2}}) {
    const std::vector<std::int64_t> values = randint(low, high, {4000}).to_vector<std::int64_t>();
    double mean = 0;
    std::set<std::int64_t> last_bits;
    for (const std::int64_t v : values) {
      ASSERT_TRUE(v >= low && v < high) << v;
      mean += static_cast<double>(v - low) / static_cast<double>(high - low) / 4000;
      last_bits.insert(v & 15);
    }
    EXPECT_NEAR(mean, 0.5, 5 * std::sqrt(1.0 / 12 / 4000)) << low << " " << high;
    EXPECT_EQ(last_bits.size(), 16u);
  }
}

TEST_P(Random, Permutation) {
  std::vector<std::int64_t> order = randperm(100).to_vector<std::int64_t>(),
                            again = randperm(100).to_vector<std::int64_t>();
  EXPECT_NE(order, again);
  std::sort(order.begin(), order.end());
  std::vector<std::int64_t> all(100);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(order, all);
  EXPECT_EQ(randperm(0).shape(), (Shape{0}));
  EXPECT_EQ(randperm(3, i32).dtype(), i32);
}

TEST_P(Random, Bernoulli) {
  const Tensor p = from_host(std::vector<float>{0, 1, 0.25f, NAN}, {4, 1});
  const Tensor draws = bernoulli(expand(p, {4, 10000}));
  const std::vector<float> mean = fusejit::mean(draws, {1}).to_vector<float>();
  EXPECT_EQ(mean[0], 0);
  EXPECT_EQ(mean[1], 1);
  EXPECT_NEAR(mean[2], 0.25, 5 * std::sqrt(0.25 * 0.75 / 10000));
  EXPECT_EQ(mean[3], 0);
  EXPECT_EQ(bernoulli(ones({3}, i64), 1).to_vector<int>(), (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(bernoulli(full({2}, 0.5, f16)).dtype(), f16);
}

// A recorded step draws anew each time, from one seed.
TEST_P(Random, InAStep) {
  nn::Linear net(2, 1);
  optim::SGD opt(net.parameters(), {.lr = 0});
  auto step = train_step(net, opt, [&](Tensor x) { return sum(net(x)) * 0 + sum(randn({4})); });
  const float first = step(ones({1, 2})).item<float>(), second = step(ones({1, 2})).item<float>();
  EXPECT_NE(first, second);
}

TEST(RandomRefuses, WithOneSentence) {
  const struct {
    std::function<void()> action;
    const char* says;
  } mistakes[] = {
      {[] { randn({2}, i64); }, "randn: dtype must be float, it is i64"},
      {[] { randn_like(tensor<int>({1})); }, "randn: dtype must be float, it is i32"},
      {[] { normal(0, -1, {2}); }, "normal: the deviation is -1"},
      {[] { normal(0, NAN, {2}); }, "normal: the deviation is nan"},
      {[] { normal(ones({2}), ones({3})); }, "(mean: f32[2], deviation: f32[3])"},
      {[] { randint(3, 3, {2}); }, "randint: low must be less than high (low: 3, high: 3)"},
      {[] { randint(0, std::int64_t{1} << 31 | 1, {2}, i32); }, "i32 cannot hold the numbers 0 to 2147483648"},
      {[] { randint(0, 3, {2}, boolean); }, "bool cannot hold the numbers 0 to 2"},
      {[] { randint(std::numeric_limits<std::int64_t>::min(), 5, {2}); }, "more than 2^63 numbers"},
      {[] { randperm(-1); }, "randperm: count is -1"},
      {[] { bernoulli(tensor<int>({1})); }, "bernoulli: p must be float (p: i32[1])"},
      {[] { bernoulli(ones({2}), 1.5); }, "bernoulli: p is 1.5"},
  };
  for (const auto& m : mistakes) {
    const std::string sentence = error_of(m.action);
    EXPECT_NE(sentence.find(m.says), std::string::npos) << sentence;
  }
}

}  // namespace
}  // namespace fusejit
