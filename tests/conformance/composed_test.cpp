// The graphs that the functions of fusejit/composed.h record, and those of their gradients, on every engine.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "fusejit/grad.h"
#include "fusejit/io.h"
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

}  // namespace
}  // namespace fusejit
