// The functions of fusejit/composed.h, the sequences of tensor.h and the operators, on every kind of engine: against
// what PyTorch computes for them and their gradients (tests/reference/composed.npz), at their edges, and what they
// refuse.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "fusejit/nn.h"
#include "tests/api/engines.h"
#include "tests/support/composed_cases.h"
#include "tests/support/error_of.h"

namespace fusejit {
namespace {

using test::composed_arrays;
using test::composed_cases;
using test::Tensors;
using testing::error_of;

constexpr double kInf = std::numeric_limits<double>::infinity();

// f32 arithmetic on numbers of order 1, at most some tens of terms.
void expect_close(const Tensor& got, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(got.shape(), expected.shape()) << what;
  EXPECT_EQ(is_float(got.dtype()) ? f64 : got.dtype(), expected.dtype()) << what;
  const std::vector<double> a = got.to_vector<double>(), b = expected.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isfinite(b[i]) && is_float(got.dtype()))
      EXPECT_NEAR(a[i], b[i], 2e-6 + 4e-6 * std::abs(b[i])) << what << ", element " << i;
    else
      EXPECT_TRUE(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))
          << what << ", element " << i << ": " << a[i] << " in place of " << b[i];
  }
}

class Composed : public ::testing::TestWithParam<testing::EngineCase> {
 protected:
  void SetUp() override {
    if (const std::string why = testing::select_engine(GetParam()); !why.empty()) GTEST_SKIP() << why;
    manual_seed(3);
  }
  void TearDown() override { set_options({}); }

 private:
  testing::Strictly strictly_;
};
INSTANTIATE_TEST_SUITE_P(Engines, Composed, ::testing::ValuesIn(testing::kEachKindOfEngine), testing::name_of);

TEST_P(Composed, IsWhatPyTorchComputes) {
  for (const auto& [name, function] : composed_cases()) {
    Tensors inputs = composed_arrays(name, "in");
    for (Tensor& x : inputs)
      if (is_float(x.dtype())) x.requires_grad();
    const Tensors expected = composed_arrays(name, "out");
    ASSERT_FALSE(expected.empty()) << name << " is not recorded";
    const Tensors results = function(inputs);
    ASSERT_EQ(results.size(), expected.size()) << name;
    for (std::size_t i = 0; i < results.size(); ++i)
      expect_close(results[i], expected[i], name + " out" + std::to_string(i));
    const Tensors cotangents = composed_arrays(name, "d_out"), gradients = composed_arrays(name, "d_in");
    Tensors differentiable, wanted, expected_gradients;
    for (const Tensor& y : results)
      if (is_float(y.dtype()) && !cotangents.empty()) differentiable.push_back(y);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) continue;
      wanted.push_back(inputs[i]);
      expected_gradients.push_back(gradients[i]);
    }
    if (wanted.empty()) continue;
    const Tensors got = grad(differentiable, cotangents, wanted);
    for (std::size_t i = 0; i < got.size(); ++i)
      expect_close(got[i], expected_gradients[i], name + " gradient " + std::to_string(i));
  }
}

TEST(ComposedCases, AreTheRecordedOnes) {
  std::set<std::string> names, known;
  for (const auto& [array, value] : test::recorded_composed()) names.insert(array.substr(0, array.find('.')));
  for (const auto& [name, function] : composed_cases()) known.insert(name);
  EXPECT_EQ(names, known);
}

TEST_P(Composed, SixteenBitsAreComputedWide) {
  // 300^2 is beyond f16, and 2048 + 1 is 2048 there.
  const Tensor x = full({4}, 300, f16);
  EXPECT_EQ(norm(x).item<float>(), 600);
  EXPECT_EQ(norm(x).dtype(), f16);
  EXPECT_EQ(dot(full({2}, 200, f16), full({2}, 160, f16)).item<float>(), 64000);
  EXPECT_EQ(cumsum(concat({full({1}, 2048, f16), ones({3}, f16)}), 0).to_vector<float>().back(),
            2052);  // 2051, rounded
  EXPECT_EQ(einsum("i,i", {x, concat({slice(x, 0, 0, 2), -slice(x, 0, 2)})}).item<float>(), 0);
  EXPECT_NEAR(fusejit::std(concat({x, -x}), {}, 0).item<float>(), 300, 0);
}

TEST_P(Composed, ConcatPromotesAsStackDoes) {
  const Tensor joined = concat({tensor<std::int64_t>({1}), tensor<float>({0.5}), tensor<int>({2}) > 1});
  EXPECT_EQ(joined.dtype(), f32);
  EXPECT_EQ(joined.to_vector<float>(), (std::vector<float>{1, 0.5, 1}));
}

TEST_P(Composed, Empty) {
  const Tensor none = zeros({0, 3});
  EXPECT_EQ(stack({none, none}, 1).shape(), (Shape{0, 2, 3}));
  EXPECT_EQ(split(none, 2).size(), 1u);
  EXPECT_EQ(chunk(none, 4).size(), 4u);
  EXPECT_TRUE(unbind(none).empty());
  EXPECT_EQ(tril(none).shape(), none.shape());
  EXPECT_EQ(diagonal(none).shape(), (Shape{0}));
  EXPECT_EQ(diagonal(ones({3, 3}), 7).shape(), (Shape{0}));
  EXPECT_EQ(diagonal(ones({3, 3}), std::numeric_limits<std::int64_t>::min()).shape(), (Shape{0}));
  EXPECT_EQ(index_select(none, 1, tensor<int>({2, 0})).eval().shape(), (Shape{0, 2}));
  EXPECT_EQ(sort(none, 0).indices.eval().shape(), none.shape());
  EXPECT_EQ(topk(none, 0, 1).values.eval().shape(), (Shape{0, 0}));
  EXPECT_EQ(norm(none, 2, {0}).to_vector<float>(), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(logsumexp(none, {0}).to_vector<double>(), (std::vector<double>(3, -kInf)));
  EXPECT_EQ(cumsum(none, 0).eval().shape(), none.shape());
  EXPECT_EQ(dot(zeros({0}), zeros({0})).item<float>(), 0);
  EXPECT_EQ(einsum("ij,kj->ik", {zeros({2, 0}), zeros({1, 0})}).to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(einsum("ij,jk", {none, zeros({3, 2})}).eval().shape(), (Shape{0, 2}));
  EXPECT_EQ(pixel_shuffle(zeros({0, 4, 2, 2}), 2).eval().shape(), (Shape{0, 1, 4, 4}));
  EXPECT_EQ(conv1d(zeros({0, 1, 4}), ones({2, 1, 3})).eval().shape(), (Shape{0, 2, 2}));
  EXPECT_EQ(arange(3, 3).eval().shape(), (Shape{0}));
  EXPECT_EQ(linspace(0, 1, 0).eval().shape(), (Shape{0}));
}

// Along axis 1 of [2,extent,2]: what std::stable_sort says of numbers with ties, infinities and NaN.
TEST_P(Composed, SortsManyAsStandardLibraryDoes) {
  constexpr std::int64_t kRows = 2, kColumns = 2;
  struct Case {
    std::int64_t extent, count;
    DType dtype;
    bool descending;
  };
  for (const Case& c :
       {Case{257, 257, bf16, true}, Case{300, 270, f32, false}, Case{513, 3, f16, true}, Case{257, 130, i32, true},
        Case{259, 2, boolean, true}, Case{261, 261, u8, false}, Case{257, 257, i8, true}, Case{259, 20, i16, true}}) {
    const std::string what =
        std::to_string(c.extent) + " of " + std::string(name(c.dtype)) + (c.descending ? ", descending" : "");
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < kRows * c.extent * kColumns; ++i) {
      const std::int64_t number = i * 7919 % 1009;
      const bool special = is_float(c.dtype) && number % 29 == 0;
      const double of_special[] = {std::nan(""), kInf, -kInf};
      numbers.push_back(c.dtype == boolean ? static_cast<double>(number % 2)
                        : special          ? of_special[number % 3]
                                           : static_cast<double>(number % 97 - (c.dtype == u8 ? 0 : 48)));
    }
    const Tensor x = from_host(numbers, {kRows, c.extent, kColumns}).to(c.dtype).eval();
    const Sorted got = c.count == c.extent ? sort(x, 1, c.descending) : topk(x, c.count, 1, c.descending);
    const std::vector<std::int64_t> places = got.indices.to_vector<std::int64_t>();
    const std::vector<double> values = got.values.to_vector<double>();
    ASSERT_EQ(got.indices.shape(), (Shape{kRows, c.count, kColumns})) << what;
    EXPECT_EQ(got.values.dtype(), c.dtype) << what;
    for (std::int64_t line = 0; line < kRows * kColumns; ++line) {
      const std::int64_t row = line / kColumns, column = line % kColumns;
      const auto at = [&](std::int64_t i) {
        return numbers[static_cast<std::size_t>((row * c.extent + i) * kColumns + column)];
      };
      const auto below = [](double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); };
      std::vector<std::int64_t> order(static_cast<std::size_t>(c.extent));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
        return c.descending ? below(at(j), at(i)) : below(at(i), at(j));
      });
      for (std::int64_t k = 0; k < c.count; ++k) {
        const auto e = static_cast<std::size_t>((row * c.count + k) * kColumns + column);
        const std::int64_t wanted = order[static_cast<std::size_t>(k)];
        ASSERT_EQ(places[e], wanted) << what << ", place " << k << " of line " << line;
        ASSERT_TRUE(values[e] == at(wanted) || std::isnan(at(wanted))) << what << ", place " << k;
      }
    }
  }
}

// What is sorted is computed, in 16 bits: whether a kernel has rounded it yet or not, each element has one place, and
// the results are in order.
TEST_P(Composed, OrderOfWhatIsComputedIsAPermutation) {
  for (const std::int64_t extent : {60, 300}) {
    for (const DType dtype : {bf16, f16}) {
      const Tensor x = rand({2, extent}, dtype).eval();
      const Sorted order = sort(tanh(x * 3 - 1.3) * 0.7 + x);
      const std::vector<std::int64_t> places = order.indices.to_vector<std::int64_t>();
      const std::vector<float> values = order.values.to_vector<float>();
      for (std::int64_t row = 0; row < 2; ++row) {
        const auto from = static_cast<std::ptrdiff_t>(row * extent);
        EXPECT_EQ(std::set<std::int64_t>(places.begin() + from, places.begin() + from + extent).size(),
                  static_cast<std::size_t>(extent))
            << name(dtype);
        EXPECT_TRUE(std::is_sorted(values.begin() + from, values.begin() + from + extent)) << name(dtype);
      }
    }
  }
}

TEST_P(Composed, LogsumexpAtInfinities) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor x = from_host(std::vector<float>{-inf, -inf, inf, 1, 1e30f, 1e30f}, {3, 2});
  const std::vector<float> y = logsumexp(x, {1}).to_vector<float>();
  EXPECT_EQ(y[0], -inf);
  EXPECT_EQ(y[1], inf);
  EXPECT_EQ(y[2], 1e30f);
}

TEST_P(Composed, DiagonalsBeyondTheMatrix) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const Tensor x = ones({2, 3});
  const std::vector<float> all(6, 1), none(6, 0);
  EXPECT_EQ(tril(x, kMost).to_vector<float>(), all);
  EXPECT_EQ(tril(x, -kMost - 1).to_vector<float>(), none);
  EXPECT_EQ(triu(x, kMost).to_vector<float>(), none);
  EXPECT_EQ(triu(x, -kMost - 1).to_vector<float>(), all);
}

TEST_P(Composed, PlacesOutside) {
  const Tensor x = tensor<float>({1, 2, 3});
  const std::vector<float> y = index_select(x, 0, tensor<int>({3, 0, -1})).to_vector<float>();
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[2]));
  EXPECT_EQ(y[1], 1);
  EXPECT_TRUE(std::isnan(take(x, tensor<int>({-4})).item<float>()));
  EXPECT_EQ(scatter_add(x, 0, tensor<int>({3, 1, -1}), ones({3})).to_vector<float>(), (std::vector<float>{1, 3, 3}));
}

TEST_P(Composed, Operators) {
  const Tensor x = tensor<int>({0, 1, 6}), y = tensor<float>({0, 2, 6});
  using Bools = std::vector<bool>;
  using Ints = std::vector<int>;
  EXPECT_EQ((x == y).to_vector<bool>(), (Bools{true, false, true}));
  EXPECT_EQ((x != 1).to_vector<bool>(), (Bools{true, false, true}));
  EXPECT_EQ((1 == x).to_vector<bool>(), (Bools{false, true, false}));
  EXPECT_EQ((6 != y).to_vector<bool>(), (Bools{true, true, false}));
  EXPECT_EQ((1 < x).to_vector<bool>(), (Bools{false, false, true}));
  EXPECT_EQ((1.5 >= y).to_vector<bool>(), (Bools{true, false, false}));
  EXPECT_EQ((1 <= x).to_vector<bool>(), (Bools{false, true, true}));
  EXPECT_EQ((1 > x).to_vector<bool>(), (Bools{true, false, false}));
  EXPECT_EQ((x & 5).to_vector<int>(), (Ints{0, 1, 4}));
  EXPECT_EQ((x | tensor<int>({8, 1, 1})).to_vector<int>(), (Ints{8, 1, 7}));
  EXPECT_EQ((3 ^ x).to_vector<int>(), (Ints{3, 2, 5}));
  EXPECT_EQ((~x).to_vector<int>(), (Ints{-1, -2, -7}));
  EXPECT_EQ((~(x == 1)).to_vector<bool>(), (Bools{true, false, true}));
  EXPECT_EQ(((x > 0) & (x < 6)).to_vector<bool>(), (Bools{false, true, false}));
  EXPECT_EQ(maximum(2, x).to_vector<int>(), (Ints{2, 2, 6}));
  EXPECT_EQ(minimum(1.5, y).to_vector<float>(), (std::vector<float>{0, 1.5, 1.5}));
  EXPECT_EQ(pow(2, x).to_vector<int>(), (Ints{1, 2, 64}));
  EXPECT_EQ(remainder(x, 4).to_vector<int>(), (Ints{0, 1, 2}));
  EXPECT_EQ(remainder(-7, tensor<int>({3, 4})).to_vector<int>(), (Ints{2, 1}));
  EXPECT_EQ((x % 4).to_vector<int>(), remainder(x, 4).to_vector<int>());
  EXPECT_EQ((-7 % tensor<int>({3, 4}) % tensor<int>({2, 2})).to_vector<int>(), (Ints{0, 1}));
  EXPECT_EQ(floor_divide(-7, tensor<int>({3, 4})).to_vector<int>(), (Ints{-3, -2}));
  EXPECT_EQ(floor_divide(x, 4).to_vector<int>(), (Ints{0, 0, 1}));
  EXPECT_EQ(fmod(-7, tensor<int>({3, 4})).to_vector<int>(), (Ints{-1, -3}));
  EXPECT_EQ(fmod(y, 4).to_vector<float>(), (std::vector<float>{0, 2, 2}));
  EXPECT_NE(error_of<UserError>([&] { y & 1; }).find("bitwise_and"), std::string::npos);
}

TEST_P(Composed, LikeAndSequences) {
  const Tensor x = tensor<int>({1, 2});
  EXPECT_EQ(zeros_like(x).dtype(), i32);
  EXPECT_EQ(ones_like(x, f16).to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(full_like(x, 2.5, f32).to_vector<float>(), (std::vector<float>{2.5, 2.5}));
  EXPECT_EQ(rand_like(ones({2, 3}, f16)).type().str(), "f16[2,3]");
  EXPECT_EQ(arange(0, 5, 2).dtype(), i64);
  EXPECT_EQ(arange(0, 5.0).dtype(), f32);
  EXPECT_EQ(arange(0, 3, 1, f16).to_vector<float>(), (std::vector<float>{0, 1, 2}));
  EXPECT_EQ(arange(5, 0, -2, i32).to_vector<int>(), (std::vector<int>{5, 3, 1}));
  EXPECT_EQ(arange(0, 1, 0.3).elements(), 4);
  // Ends are met, which start + i*step alone would miss.
  EXPECT_EQ(linspace(0, 1, 50, f64).to_vector<double>().back(), 1);
}

TEST(ComposedRefuses, WindowsOfSeveralSizes) {
  EXPECT_EQ(error_of<UnsupportedError>([] {
              adaptive_max_pool2d(ones({1, 3, 4, 4}), {2, 3});
            }),
            "adaptive_max_pool2d: output_size [2,3] does not divide the image into windows of one size "
            "(x: f32[1,3,4,4])");
  EXPECT_EQ(error_of<UnsupportedError>([] {
              nn::AdaptiveMaxPool2d(Pair(8, 4))(ones({1, 3, 4, 4}));
            }).substr(0, 39),
            "adaptive_max_pool2d: output_size [8,4] ");
}

TEST(ComposedRefuses, WithOneSentenceThatHasTheShapes) {
  const Tensor x = ones({2, 3}), i = tensor<int>({0, 1}), images = ones({1, 3, 4, 4}), sequence = ones({1, 2, 5});
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  struct Mistake {
    std::function<void()> action;
    std::vector<std::string> says;
  };
  const Mistake mistakes[] = {
      {[&] { stack({}); }, {"stack", "0 tensors"}},
      {[&] {
         stack({x, ones({3, 2})});
       },
       {"stack", "f32[2,3]", "f32[3,2]"}},
      {[&] {
         stack({x, Tensor()});
       },
       {"stack", "empty"}},
      {[&] { stack({x}, 3); }, {"stack", "dim 3", "f32[2,3]"}},
      {[&] {
         stack({ones({1, 1, 1, 1, 1, 1, 1, 1})});
       },
       {"stack", "8 axes"}},
      {[&] { split(x, 0); }, {"split", "0", "f32[2,3]"}},
      {[&] { split(x, {2}, 1); }, {"split", "[2]", "3", "f32[2,3]"}},
      {[&] {
         split(x, {2, -1, 2}, 1);
       },
       {"split", "[2,-1,2]"}},
      {[&] { chunk(x, 0); }, {"chunk", "0"}},
      {[&] { unbind(x, 2); }, {"unbind", "dim 2"}},
      {[&] { select(x, 1, -4); }, {"select", "no -4 among the 3 of dim 1", "f32[2,3]"}},
      {[&] { x[2]; }, {"select", "no 2 among the 2 of dim 0", "f32[2,3]"}},
      {[&] { x[1][-4]; }, {"select", "no -4 among the 3 of dim 0", "f32[3]"}},
      {[&] { x[0][0][0]; }, {"x[i]", "no axis", "f32[]"}},
      {[&] { Tensor()[0]; }, {"x[i]", "empty"}},
      {[&] { adaptive_max_pool2d(images, 0); }, {"adaptive_max_pool2d", "[0,0]", "at least 1"}},
      {[&] { adaptive_max_pool2d(x, 1); }, {"adaptive_max_pool2d", "rank 4", "f32[2,3]"}},
      {[&] { max_pool2d(images, 7, {.stride = 2, .ceil_mode = true}); }, {"max_pool2d", "f32[1,3,4,4]"}},
      {[&] { avg_pool2d(x, 2, {.ceil_mode = true}); }, {"avg_pool2d", "f32[2,3]"}},
      {[&] {
         max_pool2d(images, Pair(most, 2), {.stride = Pair(most, 1), .dilation = Pair(most, 1), .ceil_mode = true});
       },
       {"max_pool2d", "2^40"}},
      {[&] { avg_pool2d(images, 2, {.stride = 0, .ceil_mode = true}); }, {"avg_pool2d", "stride"}},
      {[&] { diagonal(x, 0, 1, -1); }, {"diagonal", "same axis"}},
      {[&] { tril(ones({3})); }, {"tril", "f32[3]"}},
      {[&] { triu(Tensor()); }, {"triu", "empty"}},
      {[&] { index_select(x, 0, x); }, {"index_select", "f32[2,3]"}},
      {[&] { index_select(x, 2, i); }, {"index_select", "dim 2"}},
      {[&] { take(x, x); }, {"take", "index must be int"}},
      {[&] { masked_fill(x, x, 0); }, {"masked_fill", "bool", "f32[2,3]"}},
      {[&] { masked_fill(x, x > 0, ones({3})); }, {"masked_fill", "f32[3]"}},
      {[&] { scatter_add(x, 0, i, x); }, {"scatter_add", "i32[2]"}},
      {[&] {
         scatter_add(x, 1, ones({2, 4}, i64), x);
       },
       {"scatter_add", "i64[2,4]"}},
      {[&] { sort(ones({})); }, {"sort", "dim -1"}},
      {[&] { topk(x, 4); }, {"topk", "k is 4", "f32[2,3]"}},
      {[&] {
         argsort(ones({1, 1, 1, 1, 1, 1, 1, 1}));
       },
       {"argsort", "8 axes"}},
      {[&] { norm(i); }, {"norm", "float", "i32[2]"}},
      {[&] {
         norm(x, 2, {0, -2});
       },
       {"norm", "twice"}},
      {[&] { norm(zeros({0}), kInf); }, {"norm", "f32[0]"}},
      {[&] { fusejit::std(i); }, {"std", "float"}},
      {[&] { logsumexp(x, {5}); }, {"logsumexp", "dim 5"}},
      {[&] { cumsum(ones({}), 0); }, {"cumsum", "dim 0"}},
      {[&] { outer(x, x); }, {"outer", "f32[2,3]"}},
      {[&] { dot(ones({2}), ones({3})); }, {"dot", "f32[2]", "f32[3]"}},
      {[&] { dot(ones({2}), i); }, {"dot", "i32[2]"}},
      {[&] {
         einsum("ij", {x, x});
       },
       {"einsum", "1 terms for 2 operands", "'ij'"}},
      {[&] { einsum("i", {x}); }, {"einsum", "1 axes", "2", "f32[2,3]"}},
      {[&] { einsum("i...j,", {x}); }, {"einsum", "2 terms"}},
      {[&] { einsum("ij...k", {x}); }, {"einsum", "term 0"}},
      {[&] { einsum("i.j", {x}); }, {"einsum", "'.'"}},
      {[&] { einsum("......", {x}); }, {"einsum", "twice"}},
      {[&] { einsum("ij->ii", {x}); }, {"einsum", "twice"}},
      {[&] { einsum("ij->ik", {x}); }, {"einsum", "no operand"}},
      {[&] { einsum("ij->i->j", {x}); }, {"einsum", "'-'"}},
      {[&] { einsum("ii", {x}); }, {"einsum", "two extents"}},
      {[&] {
         einsum("ij,jk", {x, x});
       },
       {"einsum", "3 and 2", "f32[2,3], f32[2,3]"}},
      {[&] {
         einsum("ij,ij", {x, x.to(f64)});
       },
       {"einsum", "one dtype", "f64[2,3]"}},
      {[&] { einsum("", {}); }, {"einsum", "no operands"}},
      {[&] {
         einsum("abcde,fghij", {ones({1, 1, 1, 1, 1}), ones({1, 1, 1, 1, 1})});
       },
       {"einsum", "10 axes"}},
      {[&] { conv1d(x, x); }, {"conv1d", "rank 3", "f32[2,3]"}},
      {[&] {
         conv1d(sequence, ones({1, 3, 2}));
       },
       {"conv1d", "3 input channels, x has 2", "f32[1,2,5]"}},
      {[&] {
         conv1d(sequence, ones({1, 1, 2}), {.groups = 2});
       },
       {"conv1d", "groups 2"}},
      {[&] {
         conv1d(sequence, ones({1, 2, 2}), {.stride = 0});
       },
       {"conv1d", "stride"}},
      {[&] {
         conv1d(sequence, ones({1, 2, 2}), {.padding = -1});
       },
       {"conv1d", "padding"}},
      {[&] {
         conv1d(sequence, ones({1, 2, 6}));
       },
       {"conv1d", "6 cells"}},
      {[&] {
         conv1d(sequence, ones({1, 2, 2}), {.dilation = most});
       },
       {"conv1d", "2^40"}},
      {[&] {
         conv1d(sequence, ones({1, 2, 2}), {.stride = 2, .padding = "same"});
       },
       {"conv1d", "stride 1"}},
      {[&] {
         conv1d(sequence, ones({1, 2, 2}), ones({2}));
       },
       {"conv1d", "bias", "f32[2]"}},
      {[&] {
         conv1d(sequence.to(i64), ones({1, 2, 2}));
       },
       {"conv1d", "float"}},
      {[&] { pixel_shuffle(images, 2); }, {"pixel_shuffle", "3 channels", "f32[1,3,4,4]"}},
      {[&] { pixel_shuffle(images, 0); }, {"pixel_shuffle", "0"}},
      {[&] { pixel_unshuffle(images, 3); }, {"pixel_unshuffle", "3", "f32[1,3,4,4]"}},
      {[&] { interpolate(images, {}); }, {"interpolate", "exactly one"}},
      {[&] { interpolate(images, {.size = 2, .scale_factor = 2}); }, {"interpolate", "exactly one"}},
      {[&] { interpolate(images, {.size = 2, .mode = "cubic"}); }, {"interpolate", "'cubic'"}},
      {[&] { interpolate(images, {.size = 2, .align_corners = true}); }, {"interpolate", "align_corners"}},
      {[&] { interpolate(images, {.size = 0}); }, {"interpolate", "[0,0]"}},
      {[&] { interpolate(images, {.scale_factor = 0.1}); }, {"interpolate", "0.1"}},
      {[&] { interpolate(x, {.size = 2}); }, {"interpolate", "rank 4"}},
      {[&] { grid_sample(images, x); }, {"grid_sample", "f32[2,3]"}},
      {[&] {
         grid_sample(images, ones({1, 2, 2, 2}), {.mode = "cubic"});
       },
       {"grid_sample", "'cubic'"}},
      {[&] {
         grid_sample(images, ones({1, 2, 2, 2}), {.padding_mode = "wrap"});
       },
       {"grid_sample", "'wrap'"}},
      {[&] { arange(0, 5, 0); }, {"arange", "step 0"}},
      {[&] { arange(0, 5, -1); }, {"arange", "stop 5"}},
      {[&] { arange(0.0, kInf); }, {"arange", "finite"}},
      {[&] { arange(0, 5.5, 1, i64); }, {"arange", "whole"}},
      {[&] { arange(0, std::int64_t{1} << 33, std::int64_t{1} << 31, i32); }, {"arange", "i32"}},
      {[&] { arange(-most, most); }, {"arange", "2^40"}},
      {[&] { arange(0, 2, 1, boolean); }, {"arange", "bool"}},
      {[&] { linspace(0, 1, -1); }, {"linspace", "-1"}},
      {[&] { rand_like(i); }, {"rand", "float"}},
      {[&] { zeros_like(Tensor()); }, {"_like", "empty"}},
  };
  for (const Mistake& m : mistakes) {
    const std::string sentence = error_of<UserError>(m.action);
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
    for (const std::string& words : m.says)
      EXPECT_NE(sentence.find(words), std::string::npos) << "'" << words << "' is not in: '" << sentence << "'";
  }
  EXPECT_NE(error_of<UnsupportedError>([&] { norm(x, 3); }).find("norm: p is 3"), std::string::npos);
}

}  // namespace
}  // namespace fusejit
