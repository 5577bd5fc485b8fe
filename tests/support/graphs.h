// Running graphs in tests: arguments drawn or given as lists, results as doubles, gradients against finite differences.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "fusejit/error.h"
#include "ir/graph.h"
#include "ir/interp.h"
#include "ir/passes/grad.h"
#include "ir/passes/passes.h"

namespace fusejit::testing {

using ir::Array;
using ir::Graph;
using ir::Op;
using ir::Value;
using Values = std::vector<Value>;

inline Array array_of(const Type& type, const std::vector<double>& values) {
  Array array(type);
  EXPECT_EQ(static_cast<std::int64_t>(values.size()), type.elements());
  for (std::size_t i = 0; i < values.size(); ++i)
    array.set(static_cast<std::int64_t>(i), ir::cast(ir::Scalar::of(values[i]), type.dtype));
  return array;
}

inline std::vector<double> doubles_of(const Array& array) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < array.type.elements(); ++i) values.push_back(array.at(i).as_double());
  return values;
}

// Uniform in [low, high); whole numbers for integer dtypes.
inline Array random_array(const Type& type, std::mt19937_64& random, double low, double high) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < type.elements(); ++i) {
    const double u = low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
    values.push_back(is_float(type.dtype) ? u : std::floor(u));
  }
  return array_of(type, values);
}

// A function of values, and what its arguments are drawn from.
struct FunctionCase {
  std::string name;
  std::vector<Type> inputs;
  std::function<Value(const Values&)> build;
  double low = -2, high = 2;                 // floats
  double integer_low = 0, integer_high = 3;  // ints: classes
};
inline void PrintTo(const FunctionCase& c, std::ostream* out) { *out << c.name; }

inline Type f64_of(std::initializer_list<std::int64_t> dims) { return {f64, Shape(dims)}; }

inline Graph graph_of(const FunctionCase& c) {
  Values parameters;
  for (std::size_t i = 0; i < c.inputs.size(); ++i)
    parameters.push_back(ir::parameter(c.inputs[i], "p" + std::to_string(i)));
  return ir::capture("case", parameters, {c.build(parameters)});
}

inline std::vector<Array> random_arguments(const Graph& graph, const FunctionCase& c, unsigned seed = 7) {
  std::mt19937_64 random(seed);
  std::vector<Array> arguments;
  for (const Value& p : graph.parameters()) {
    const bool real = is_float(p.type().dtype);
    arguments.push_back(random_array(p.type(), random, real ? c.low : c.integer_low, real ? c.high : c.integer_high));
  }
  return arguments;
}

inline std::vector<std::string> float_parameters(const Graph& graph) {
  std::vector<std::string> names;
  for (const Value& p : graph.parameters())
    if (is_float(p.type().dtype)) names.push_back(p->name);
  return names;
}

inline void expect_close(const std::vector<double>& got, const std::vector<double>& want, double tolerance,
                         const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i]) || std::isinf(want[i])) {
      EXPECT_TRUE(got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i])))
          << what << "[" << i << "] = " << got[i] << ", want " << want[i];
      continue;
    }
    EXPECT_LE(std::fabs(got[i] - want[i]), tolerance * (1 + std::fabs(want[i])))
        << what << "[" << i << "] = " << got[i] << ", want " << want[i];
  }
}

// Two graphs with one signature compute the same.
inline void expect_same_results(const Graph& a, const Graph& b, const std::vector<Array>& arguments, double tolerance) {
  const std::vector<Array> left = ir::interpret(a, arguments), right = ir::interpret(b, arguments);
  ASSERT_EQ(left.size(), right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    EXPECT_EQ(left[i].type.str(), right[i].type.str()) << "result " << i;
    expect_close(doubles_of(left[i]), doubles_of(right[i]), tolerance, "result " + std::to_string(i));
  }
}

// Gradients with respect to every float parameter, times a random cotangent, against central differences.
inline void check_gradient(const FunctionCase& c, double tolerance = 1e-6) {
  SCOPED_TRACE(c.name);
  const Graph graph = graph_of(c);
  const std::vector<std::string> names = float_parameters(graph);
  const Graph derived = ir::differentiate(graph, names);
  ir::verify(derived);
  const std::vector<Array> arguments = random_arguments(derived, c);
  const std::vector<Array> results = ir::interpret(derived, arguments);
  std::vector<Array> moved(arguments.begin(),
                           arguments.begin() + static_cast<std::ptrdiff_t>(graph.parameters().size()));
  const std::vector<double> cotangent = doubles_of(arguments.back());
  const auto loss = [&] {
    const std::vector<double> y = doubles_of(ir::interpret(graph, moved)[0]);
    double total = 0;
    for (std::size_t i = 0; i < y.size(); ++i) total += y[i] * cotangent[i];
    return total;
  };
  std::size_t result = 1;
  for (std::size_t p = 0; p < moved.size(); ++p) {
    if (!is_float(moved[p].type.dtype)) continue;
    std::vector<double> numeric;
    for (std::int64_t i = 0; i < moved[p].type.elements(); ++i) {
      const double x = moved[p].at(i).as_double(), step = 1e-5;
      moved[p].set(i, ir::Scalar::of(x + step));
      const double above = loss();
      moved[p].set(i, ir::Scalar::of(x - step));
      const double below = loss();
      moved[p].set(i, ir::Scalar::of(x));
      numeric.push_back((above - below) / (2 * step));
    }
    ASSERT_LT(result, results.size());
    expect_close(doubles_of(results[result++]), numeric, tolerance, "gradient of p" + std::to_string(p));
  }
}

// The gradient with respect to one operand, as a function of the operands and of the cotangent: to check it once more.
inline FunctionCase derivative_of(const FunctionCase& c, std::size_t operand) {
  FunctionCase second = c;
  Values probe;
  for (const Type& type : c.inputs) probe.push_back(ir::parameter(type));
  second.name += "_derivative" + std::to_string(operand);
  second.inputs.push_back(c.build(probe).type());
  second.build = [=, first = c.build](const Values& p) {
    return ir::gradient({first(Values(p.begin(), p.end() - 1))}, {p.back()}, {p[operand]})[0];
  };
  return second;
}

// Value and gradient mean the same before and after composites are expanded, and whichever of the two came first.
inline void check_expansion(const FunctionCase& c, double tolerance = 1e-11, bool differentiable = true) {
  SCOPED_TRACE(c.name);
  const Graph graph = graph_of(c);
  const Graph expanded = ir::expand(graph);
  ir::verify(expanded);
  for (const Value& node : expanded.nodes())
    EXPECT_NE(ir::op_def(node->op).family, ir::Family::composite) << ir::print(expanded);
  expect_same_results(expanded, graph, random_arguments(graph, c), tolerance);
  if (!differentiable) return;
  const std::vector<std::string> names = float_parameters(graph);
  const Graph derived = ir::differentiate(graph, names);
  const std::vector<Array> arguments = random_arguments(derived, c);
  expect_same_results(ir::expand(derived), derived, arguments, tolerance);
  expect_same_results(ir::differentiate(expanded, names), derived, arguments, tolerance);
}

// One op over parameters of the given types.
inline Value op_over(Op op, const std::vector<Type>& types, std::vector<ir::AttrInit> attrs = {}) {
  std::vector<ir::Operand> operands;
  for (const Type& type : types) operands.push_back(ir::parameter(type));
  return ir::build(op, std::move(operands), std::move(attrs));
}

// Runs a graph text on lists of numbers.
inline std::vector<std::vector<double>> run_text(const std::string& text,
                                                 const std::vector<std::vector<double>>& inputs) {
  const Graph graph = ir::parse_graph(text);
  std::vector<Array> arguments;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    arguments.push_back(array_of(graph.parameters()[i].type(), inputs[i]));
  std::vector<std::vector<double>> results;
  for (const Array& result : ir::interpret(graph, arguments)) results.push_back(doubles_of(result));
  return results;
}

}  // namespace fusejit::testing
