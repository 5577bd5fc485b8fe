// Reverse-mode differentiation, Graph -> Graph; the rules are in the op rows (ops.md §12).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace fusejit::ir {

// What a row's `grad` sees.
struct GradContext {
  const Value& y;   // the node
  const Value& dy;  // its cotangent, of y's type
  const Operand& operand(std::size_t i) const { return y->operands[i]; }
  const Value& x(std::size_t i) const { return y->operands[i].value; }
  bool wants(std::size_t i) const { return wanted[i]; }  // operand i leads to a value that is differentiated
  std::vector<bool> wanted;
};

// A part of a graph whose derivative the caller gives: what produced `outputs` is not looked at, `backward` is called
// once with their cotangents (empty: zero) and answers with those of `inputs` (empty: none flows).
struct CustomRule {
  std::vector<Value> inputs;
  std::vector<Value> outputs;
  std::function<std::vector<Value>(std::span<const Value> cotangents)> backward;  // none: nothing flows on
};

// Cotangents of `wrt` given those of `results` (an empty Value: zero). Values that no result depends on get zeros.
// Throws UserError for a non-float value, UnsupportedError where a row has no second derivative.
std::vector<Value> gradient(const std::vector<Value>& results, const std::vector<Value>& cotangents,
                            const std::vector<Value>& wrt, std::span<const CustomRule> rules = {});

// The file form (ops.md §13): parameters d_out0... are appended, results d_<name> are appended.
Graph differentiate(const Graph& graph, const std::vector<std::string>& wrt);

}  // namespace fusejit::ir
