// The graphs that the functions of fusejit/composed.h record, with those of their gradients, and those of the
// distributions of fusejit/random.h: on every engine, in every dtype and layout.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "frontend/context.h"
#include "frontend/evaluation/trace.h"
#include "fusejit/ops.h"
#include "fusejit/random.h"
#include "fusejit/runtime.h"
#include "ir/base/scalar.h"
#include "tests/conformance/engines.h"
#include "tests/support/composed_cases.h"

namespace fusejit {
namespace {

using test::Tensors;

struct Recorded {
  ir::Graph graph;
  std::vector<runtime::Buffer> arguments;
};

Recorded recorded(const Tensors& results) {
  Trace trace;
  const std::lock_guard lock(context().graph_mutex);
  for (const Tensor& t : results) trace.add_result(t.state()->value);
  Recorded made{trace.graph("main"), {}};
  for (const int argument : trace.arguments()) {
    const Attachment& leaf = *attachment(trace.entries()[static_cast<std::size_t>(argument)].node);
    made.arguments.push_back(leaf.buffer);
    if (leaf.buffer) continue;
    made.arguments.back() = runtime::Buffer::allocate({leaf.number->dtype, Shape{}});
    ir::store_element(made.arguments.back().data(), leaf.number->dtype, 0, *leaf.number);
  }
  return made;
}

struct Form {
  DType dtype;
  Layout layout;
  std::string str() const { return std::string(name(dtype)) + (layout == Layout::nhwc ? ", nhwc" : ""); }
};
constexpr Form kForms[] = {{f32, Layout::standard}, {bf16, Layout::nhwc},     {f16, Layout::standard},
                           {f64, Layout::nhwc},     {bf16, Layout::standard}, {f32, Layout::nhwc},
                           {f64, Layout::standard}, {f16, Layout::nhwc}};

// Half of the distance from 1 to the next number.
double unit(DType dtype) { return dtype == f64 ? 0x1p-53 : dtype == f32 ? 0x1p-24 : dtype == f16 ? 0x1p-11 : 0x1p-8; }

Tensors inputs_of(const std::string& name, const Form& form) {
  Tensors inputs = test::composed_arrays(name, "in");
  for (Tensor& x : inputs) x = test::in_form(x, form.dtype, form.layout);
  return inputs;
}

// By day each case in one form, by its number, and edges not at all, which engines of each kind meet in tests/api; at
// night all of them in all forms.
TEST(ComposedGraphs, AgreeOnEveryEngine) {
  const bool nightly = std::getenv("FUSEJIT_NIGHTLY") != nullptr;
  std::size_t number = 0;
  for (const auto& [name, function] : test::composed_cases()) {
    ++number;
    for (std::size_t i = 0; i < std::size(kForms); ++i) {
      if (!nightly && (i != number % std::size(kForms) || name.starts_with("edge_"))) continue;
      const Form& form = kForms[i];
      const Recorded made = recorded(test::with_gradients(name, inputs_of(name, form)).all());
      // Values of 16 bits in between may be rounded or not.
      const double allowed = form.dtype == f64 ? 1e-12 : form.dtype == f32 ? 2e-5 : 8 * unit(form.dtype);
      EXPECT_EQ(testing::compare_engines(made.graph, made.arguments, {allowed, allowed}), "")
          << name << " of " << form.str() << "\n"
          << ir::print(made.graph);
    }
  }
}

// What is computed does not depend on the dtype and the layout, but for rounding: the values are those of the same
// inputs in f64. The graph interpreter rounds every node, so each composed function has its rounding here: those that
// compute wide round once.
TEST(ComposedGraphs, AreThoseOfF64InEveryForm) {
  set_options({.engine = "graph_interpreter"});
  const auto expect_close = [](const Tensor& got, const Tensor& want, double units, const std::string& what) {
    ASSERT_EQ(got.shape(), want.shape()) << what;
    const std::vector<double> a = got.to_vector<double>(), b = want.to_vector<double>();
    double largest = 0;
    for (const double v : b)
      if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
    for (std::size_t i = 0; i < b.size(); ++i) {
      const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
      const double allowed = units * unit(got.dtype()) * largest;
      EXPECT_TRUE(same || (is_float(got.dtype()) && std::abs(a[i] - b[i]) <= allowed))
          << what << ", element " << i << ": " << a[i] << " in place of " << b[i];
    }
  };
  for (const auto& [name, function] : test::composed_cases()) {
    for (const Form& form : kForms) {
      const std::string what = name + " of " + form.str();
      const Tensors inputs = inputs_of(name, form);
      Tensors wide;
      for (const Tensor& x : inputs) wide.push_back(test::in_form(x, f64, Layout::standard));
      const test::WithGradients got = test::with_gradients(name, inputs), want = test::with_gradients(name, wide);
      ASSERT_EQ(got.results.size(), want.results.size()) << what;
      bool any_float = false;
      for (const Tensor& x : inputs) any_float |= is_float(x.dtype());
      for (std::size_t i = 0; i < got.results.size(); ++i) {
        const Tensor& y = got.results[i];
        if (any_float && is_float(y.dtype())) {
          EXPECT_EQ(y.dtype(), form.dtype) << what;
        }
        expect_close(y, want.results[i], bits(form.dtype) == 16 ? 3 : 40, what + ", result " + std::to_string(i));
      }
      ASSERT_EQ(got.gradients.size(), want.gradients.size()) << what;
      for (std::size_t i = 0; i < got.gradients.size(); ++i) {
        EXPECT_EQ(got.gradients[i].dtype(), form.dtype) << what;
        expect_close(got.gradients[i], want.gradients[i], bits(form.dtype) == 16 ? 6 : 80,
                     what + ", gradient " + std::to_string(i));
      }
    }
  }
  set_options({});
}

// Words and what is chosen by comparing them are the same everywhere; randn is as near as log and cos are.
TEST(ComposedGraphs, OfDistributionsAgreeOnEveryEngine) {
  const Tensor p = full({37}, 0.5).eval();
  const std::pair<const char*, Tensors> cases[] = {
      {"randn", {randn({5, 7}), randn({9}, f64), randn({3, 4}, bf16)}},
      {"normal", {normal(3, 2, {11}), normal(p, square(p))}},
      {"randint", {randint(-3, 7, {40}), randint(0, std::int64_t{1} << 50, {13}), randint(2, {5}, boolean)}},
      {"bernoulli", {bernoulli(p), bernoulli(p, 0.25)}},
  };
  for (const auto& [name, results] : cases) {
    const Recorded made = recorded(results);
    EXPECT_EQ(testing::compare_engines(made.graph, made.arguments), "") << name << "\n" << ir::print(made.graph);
  }
}

}  // namespace
}  // namespace fusejit
