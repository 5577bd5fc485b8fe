// Graph: an immutable snapshot of what some results need: parameters, nodes in canonical order, results.
//
// capture() keeps what the results need in the order in which it was recorded, and merges equal nodes of one region, so
// dead code and common subexpressions need no passes. parse(print(g)) == g; verify(g) lists the rules that every graph
// obeys.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/base/hash.h"
#include "ir/base/pointer_map.h"
#include "ir/node.h"

namespace fusejit::ir {

// Copies share what they hold.
class Graph {
 public:
  Graph() : held_(nothing()) {}
  const std::string& name() const { return held_->name; }
  const std::vector<Value>& parameters() const { return held_->parameters; }
  // A name of the text: that of the parameter made legal and unique.
  const std::string& parameter_name(std::size_t i) const { return held_->parameter_names[i]; }
  const std::vector<Value>& nodes() const { return held_->nodes; }  // no parameters; operands before users
  const std::vector<Value>& results() const { return held_->results; }
  // Dense index: parameters first, then nodes. InternalError for a foreign node.
  int index_of(const Node* node) const;
  int value_count() const { return static_cast<int>(parameters().size() + nodes().size()); }
  const Value& value(int index) const;
  // The indices of the operands of the value at `index`, -1 for numbers.
  std::span<const int> operands(int index) const {
    const auto i = static_cast<std::size_t>(index);
    return std::span(held_->operands)
        .subspan(held_->first_operand[i], held_->first_operand[i + 1] - held_->first_operand[i]);
  }
  // The very same nodes, parameters and results: one is a copy of the other.
  bool is(const Graph& other) const { return held_ == other.held_; }

  friend Graph capture(std::string name, std::vector<Value> parameters, std::vector<Value> results);
  friend Hash hash(const Graph& graph);

 private:
  struct Held {
    std::string name;
    std::vector<std::string> parameter_names;
    std::vector<Value> parameters, nodes, results;
    PointerMap index;
    std::vector<int> operands;               // of all values, one after the other
    std::vector<std::size_t> first_operand;  // by index, and the end
    Hash hash;                               // taken once, because every run of a graph looks its plan up by it
  };
  static const std::shared_ptr<const Held>& nothing();
  std::shared_ptr<const Held> held_;
};

// `parameters` are the signature, in order; unused ones stay. A result that reaches a parameter outside the list is a
// UserError.
Graph capture(std::string name, std::vector<Value> parameters, std::vector<Value> results);

// Canonical text (ops.md §1) and back; parse throws ParseError (line:column) and UserError (op errors, with position).
std::string print(const Graph& graph);
// One node as its line of the text, without indentation: "%2 = relu(%1) : f32[4,8]".
std::string print_node(const Graph& graph, const Node& node);
Graph parse_graph(std::string_view text);
// Of all that the canonical text says but the names of the graph and its parameters; the same on every machine.
Hash hash(const Graph& graph);
bool operator==(const Graph& a, const Graph& b);

// How many nodes capture() would keep of these: all, unless two are equal.
int count_distinct(const Graph& graph);
// Throws InternalError naming the rule that a pass broke. Rules: see verify.cpp.
void verify(const Graph& graph);

}  // namespace fusejit::ir
