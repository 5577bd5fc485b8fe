// The graphs that the functions of fusejit/composed.h record, with those of their gradients, and those of the
// distributions of fusejit/random.h: on every engine, in every dtype and layout.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "frontend/context.h"
#include "frontend/evaluation/trace.h"
#include "fusejit/nn.h"
#include "fusejit/ops.h"
#include "fusejit/random.h"
#include "fusejit/runtime.h"
#include "ir/base/scalar.h"
#include "tests/api/engines.h"
#include "tests/conformance/engines.h"
#include "tests/support/composed_cases.h"
#include "tests/support/nightly.h"

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

// Floats within so many halves of a last bit of the largest, all others equal.
void expect_close(const Tensor& got, const Tensor& want, double units, const std::string& what) {
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
}

// By day each case in one form, by its number, and edges not at all, which engines of each kind meet in tests/api; at
// night all of them in all forms.
TEST(ComposedGraphs, AgreeOnEveryEngine) {
  const bool nightly = testing::is_nightly();
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

// What the distributions draw, of one dtype, for images in one layout: words and what is chosen by comparing them,
// which is the same everywhere, and what is as near as logarithms, cosines and roundings on the way are.
struct Draws {
  Tensors same, near;
};
// In `dtype`; which ones those are `like` decides.
Draws draws(DType like, DType dtype, Layout layout) {
  manual_seed(7);
  const std::int64_t low = like == boolean || like == u8 ? 0 : -3, high = like == boolean ? 2 : 4;
  // Eighths from 0 to 1, exact in every float; of others whatever they hold.
  const Tensor eighths = reshape(remainder(arange(0, 45), 9).to(f64) / 8, {1, 3, 3, 5});
  const Tensor image = test::in_form(eighths.to(dtype), dtype, layout);
  Draws all{{randint(low, high, {5, 7}, dtype), bernoulli(image, 0.25), randperm(high, dtype)}, {}};
  if (like == i64) all.same.push_back(randint(-5, std::int64_t{1} << 40, {13}, dtype));
  if (!is_float(like)) return all;
  Tensor x = test::in_form(eighths.to(dtype), dtype, layout);
  x.requires_grad();
  const Tensor dropped = dropout(x, 0.3), channels = nn::Dropout2d(0.4)(x);
  for (const Tensor& t : {rand_like(image), bernoulli(image), dropped, grad({dropped}, {image}, {x})[0]})
    all.same.push_back(t);
  all.near = {randn_like(image), normal(3, 2, {5, 7}, dtype), normal(image, image), channels,
              grad({channels}, {image}, {x})[0]};
  return all;
}

constexpr DType kDrawn[] = {f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean};

// By day a third of what each dtype has, in one layout; on engines of each kind all of it is below.
TEST(Distributions, AgreeOnEveryEngine) {
  const bool nightly = testing::is_nightly();
  std::size_t number = 0;
  for (const DType dtype : kDrawn) {
    ++number;
    for (const Layout layout : {Layout::standard, Layout::nhwc}) {
      if (!nightly && (number % 2 == 0) != (layout == Layout::nhwc)) continue;
      const auto agree = [&](const Tensors& all, double allowed) {
        Tensors some;
        for (std::size_t i = 0; i < all.size(); ++i)
          if (nightly || (i + number) % 3 == 0) some.push_back(all[i]);
        if (some.empty()) return;
        const Recorded made = recorded(some);
        EXPECT_EQ(testing::compare_engines(made.graph, made.arguments, {allowed, allowed}), "")
            << name(dtype) << (layout == Layout::nhwc ? ", nhwc\n" : "\n") << ir::print(made.graph);
      };
      const Draws all = draws(dtype, dtype, layout);
      agree(all.same, 0);
      agree(all.near, dtype == f64 ? 1e-12 : dtype == f32 ? 2e-5 : 2 * unit(dtype));
    }
  }
}

// One seed draws the same on every kind of engine, in every dtype and layout, but for rounding.
TEST(Distributions, AreThoseOfF64InEveryForm) {
  for (const testing::EngineCase& engine : testing::kEachKindOfEngine) {
    for (const DType dtype : kDrawn) {
      for (const Layout layout : {Layout::standard, Layout::nhwc}) {
        const std::string what =
            std::string(engine.name) + ", " + std::string(name(dtype)) + (layout == Layout::nhwc ? ", nhwc" : "");
        set_options({.engine = "graph_interpreter"});
        const Draws want = draws(dtype, f64, Layout::standard);
        eval(want.same), eval(want.near);
        if (!testing::select_engine(engine).empty()) break;  // no code generator in this build
        const Draws got = draws(dtype, dtype, layout);
        eval(got.same), eval(got.near);
        for (std::size_t i = 0; i < got.same.size(); ++i) {
          EXPECT_EQ(got.same[i].dtype(), dtype) << what;
          expect_close(got.same[i], want.same[i], 3, what + ", draw " + std::to_string(i));
        }
        for (std::size_t i = 0; i < got.near.size(); ++i) {
          EXPECT_EQ(got.near[i].dtype(), dtype) << what;
          expect_close(got.near[i], want.near[i], bits(dtype) == 16 ? 3 : 40, what + ", near " + std::to_string(i));
        }
      }
    }
  }
  set_options({});
}

}  // namespace
}  // namespace fusejit
