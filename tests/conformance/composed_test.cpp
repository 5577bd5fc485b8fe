// The graphs that the functions of fusejit/composed.h record, those of their gradients, and those of the distributions
// of fusejit/random.h, on every engine.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "fusejit/grad.h"
#include "fusejit/io.h"
#include "fusejit/ops.h"
#include "fusejit/random.h"
#include "tests/conformance/engines.h"
#include "tests/support/composed_cases.h"

namespace fusejit {
namespace {

using test::Tensors;

std::string text_of(const Tensors& results) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("composed_" + std::to_string(::getpid()) + ".fj")).string();
  save_graph(path, results);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::filesystem::remove(path);
  return text.str();
}

TEST(ComposedGraphs, AgreeOnEveryEngine) {
  for (const auto& [name, function] : test::composed_cases()) {
    Tensors inputs = test::composed_arrays(name, "in"), wanted, results, cotangents;
    for (Tensor& x : inputs)
      if (is_float(x.dtype())) wanted.push_back(x.requires_grad());
    Tensors all = function(inputs);
    for (const Tensor& y : all) {
      if (!y.needs_grad()) continue;
      results.push_back(y);
      cotangents.push_back(ones(y.shape(), y.dtype()).eval());
    }
    if (!results.empty())
      for (const Tensor& d : grad(results, cotangents, wanted)) all.push_back(d);
    const std::string text = text_of(all);
    EXPECT_EQ(testing::compare_engines(ir::parse_graph(text), 1), "") << name << "\n" << text;
  }
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
    const std::string text = text_of(results);
    EXPECT_EQ(testing::compare_engines(ir::parse_graph(text), 1), "") << name << "\n" << text;
  }
}

}  // namespace
}  // namespace fusejit
