// Gradients of the functions of fusejit/composed.h against central differences in f64, on every kind of engine.
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "tests/api/engines.h"
#include "tests/api/gradients/numbers.h"
#include "tests/support/composed_cases.h"

namespace fusejit {
namespace {

using test::Tensors;

void expect_right(const char* name, const TensorFunction& f, const std::vector<Tensor>& inputs) {
  const GradcheckResult result = gradcheck(f, inputs);
  EXPECT_TRUE(result) << name << ": " << result.why;
}

class ComposedGradients : public ::testing::TestWithParam<testing::EngineCase> {
 protected:
  void SetUp() override {
    if (const std::string why = testing::select_engine(GetParam()); !why.empty()) GTEST_SKIP() << why;
  }
  void TearDown() override { set_options({}); }

 private:
  testing::Strictly strictly_;
};
INSTANTIATE_TEST_SUITE_P(Engines, ComposedGradients, ::testing::ValuesIn(testing::kEachKindOfEngine), testing::name_of);

// Every recorded case whose inputs are no kinks; sums of its float results. On the interpreter of graphs alone: that
// engines agree on these graphs is conformance's.
TEST(ComposedCases, HaveGradientsThatDifferencesShow) {
  set_options({.engine = "graph_interpreter"});
  const std::set<std::string> kinks{"norm_rows", "std_rows"};  // a row of zeros, a row of equals
  int checked = 0;
  for (const auto& [name, function] : test::composed_cases()) {
    if (name.starts_with("edge_") || kinks.contains(name) || name.find("special") != std::string::npos) continue;
    Tensors given = test::composed_arrays(name, "in"), floats;
    for (const Tensor& x : given)
      if (is_float(x.dtype())) floats.push_back(x.to(f64).eval());
    const Tensors cotangents = test::composed_arrays(name, "d_out");
    if (floats.empty() || cotangents.empty()) continue;
    ++checked;
    expect_right(
        name.c_str(),
        [&, &of = function](const Tensors& in) {
          Tensors all = given;
          std::size_t next = 0;
          for (Tensor& x : all)
            if (is_float(x.dtype())) x = in[next++];
          const Tensors results = of(all);
          Tensor y;
          for (std::size_t i = 0; i < results.size(); ++i) {
            if (!is_float(results[i].dtype())) continue;
            const Tensor part = sum(square(results[i]) * cotangents[i].to(f64));
            y = y.defined() ? y + part : part;
          }
          return y;
        },
        floats);
  }
  EXPECT_GT(checked, 55);
  set_options({});
}

TEST_P(ComposedGradients, Shapes) {
  const std::vector<Tensor> x{numbers({2, 3, 3}, 1)};
  expect_right("stack",
               [](const auto& in) {
                 return stack({in[0], in[0] * in[0], in[1]}, -2);
               },
               {numbers({2, 3}, 1), numbers({2, 3}, 2)});
  expect_right("split",
               [](const auto& in) {
                 return split(in[0], {1, 2}, 1)[1] * sum(split(in[0], 1, 2)[0]);
               },
               {numbers({2, 3, 2}, 3)});
  expect_right(
      "chunk", [](const auto& in) { return chunk(in[0], 2, -1)[0]; }, x);
  expect_right(
      "unbind", [](const auto& in) { return unbind(in[0], 1)[2]; }, x);
  expect_right(
      "diagonal", [](const auto& in) { return square(diagonal(in[0], 1, 2, 0)); }, x);
  expect_right(
      "tril", [](const auto& in) { return square(tril(in[0], -1)) + triu(in[0]); }, x);
  expect_right("pixel_shuffle", [](const auto& in) { return pixel_unshuffle(square(pixel_shuffle(in[0], 2)), 4); },
               {numbers({1, 8, 2, 4}, 4)});
}

TEST_P(ComposedGradients, Places) {
  const std::vector<Tensor> x{numbers({2, 3, 3}, 1)};
  const Tensor places = tensor<int>({2, 0, 2});
  expect_right(
      "index_select", [&](const auto& in) { return square(index_select(in[0], 1, places)); }, x);
  expect_right(
      "take", [&](const auto& in) { return take(in[0], places - 4); }, x);
  expect_right(
      "masked_fill", [&](const auto& in) { return masked_fill(in[0], places == 2, sum(in[0])); }, x);
  expect_right("scatter_add", [&](const auto& in) { return square(scatter_add(in[0], 0, places, in[1])); },
               {numbers({3}, 5), numbers({4}, 6)});
}

TEST_P(ComposedGradients, Sums) {
  const std::vector<Tensor> x{numbers({2, 3, 4}, 1)};
  expect_right(
      "norm",
      [](const auto& in) {
        return norm(in[0], 2, {0, 2});
      },
      x);
  expect_right(
      "norm 1", [](const auto& in) { return norm(in[0], 1, {1}, true); }, x);
  expect_right(
      "norm inf", [](const auto& in) { return norm(in[0], std::numeric_limits<double>::infinity(), {2}); }, x);
  expect_right(
      "std", [](const auto& in) { return fusejit::std(in[0], {-1}); }, x);
  expect_right(
      "logsumexp", [](const auto& in) { return logsumexp(in[0], {1}); }, x);
  expect_right(
      "cumsum", [](const auto& in) { return square(cumsum(in[0], -1)); }, x);
  expect_right("outer", [](const auto& in) { return outer(in[0], in[1]) + dot(in[1], in[1]); },
               {numbers({3}, 7), numbers({4}, 8)});
}

TEST_P(ComposedGradients, Order) {
  const Tensor weights = arange(0, 12).to(f64);
  expect_right("sort", [&](const auto& in) { return sort(in[0], 1, true).values * square(in[0]); },
               {numbers({2, 5, 2}, 1)});
  expect_right("topk", [&](const auto& in) { return square(topk(in[0], 3, -1, false).values); }, {numbers({3, 7}, 2)});
  expect_right("take", [&](const auto& in) { return gather(in[0], 0, argsort(in[1])) * weights; },
               {numbers({12}, 3), numbers({12}, 4)});
}

// So many that they are merged, where a gradient is read from where an element went. Differences of each would be slow.
TEST_P(ComposedGradients, OrderOfMany) {
  constexpr std::int64_t kMany = 300, kFirst = 290;
  Tensor x = numbers({2, kMany}, 1).requires_grad();
  const Sorted order = topk(x, kFirst);
  const Tensor weights = numbers({2, kFirst}, 2);
  const Tensor d = grad(sum(square(order.values) * weights), {x})[0], dd = grad(sum(d * d), {x})[0];
  const std::vector<double> got = d.to_vector<double>(), in = x.to_vector<double>(), w = weights.to_vector<double>();
  const std::vector<std::int64_t> places = order.indices.to_vector<std::int64_t>();
  std::vector<double> wanted(got.size(), 0);
  for (std::size_t row = 0; row < 2; ++row) {
    for (std::size_t k = 0; k < kFirst; ++k) {
      const std::size_t from = row * kMany + static_cast<std::size_t>(places[row * kFirst + k]);
      wanted[from] = 2 * in[from] * w[row * kFirst + k];
    }
  }
  EXPECT_EQ(got, wanted);
  // And once more.
  const std::vector<double> second = dd.to_vector<double>();
  for (std::size_t row = 0; row < 2; ++row) {
    for (std::size_t k = 0; k < kFirst; ++k) {
      const std::size_t from = row * kMany + static_cast<std::size_t>(places[row * kFirst + k]);
      EXPECT_NEAR(second[from], 8 * in[from] * w[row * kFirst + k] * w[row * kFirst + k], 1e-12);
    }
  }
}

TEST_P(ComposedGradients, Einsum) {
  for (const char* equation : {"bij,bjk->kb", "bij,bjk->bijk", "bij,bjk->", "bij,bjk->ik"}) {
    expect_right(equation, [equation](const auto& in) { return einsum(equation, in); },
                 {numbers({2, 3, 4}, 1), numbers({2, 4, 2}, 2)});
  }
  expect_right("iij,...j", [](const auto& in) { return einsum("iij,...j", in); },
               {numbers({3, 3, 2}, 3), numbers({2, 1}, 4)});
}

TEST_P(ComposedGradients, Images) {
  expect_right("conv1d",
               [](const auto& in) { return conv1d(in[0], in[1], in[2], {.stride = 2, .padding = 1, .groups = 2}); },
               {numbers({2, 4, 5}, 1), numbers({2, 2, 3}, 2), numbers({2}, 3)});
  expect_right("interpolate",
               [](const auto& in) { return interpolate(in[0], {.scale_factor = 2, .mode = "bilinear"}); },
               {numbers({1, 2, 2, 3}, 4)});
  for (const char* padding : {"zeros", "border"}) {
    expect_right(padding, [padding](const auto& in) { return grid_sample(in[0], in[1], {.padding_mode = padding}); },
                 {numbers({1, 2, 3, 3}, 5), numbers({1, 2, 3, 2}, 6)});
  }
}

}  // namespace
}  // namespace fusejit
