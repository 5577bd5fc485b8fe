// A model as it stands in the file, checked as far as that goes without shapes: values have numbers, nodes stand in
// order, and each has a row that says what it means.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fusejit/onnx.h"
#include "fusejit/ops.h"

namespace fusejit::onnx {

struct Row;  // rows.h

// Kinds of attributes, by their numbers in the format.
enum class Kind : int { number = 1, integer = 2, text = 3, tensor = 4, numbers = 6, integers = 7 };

struct Attribute {
  std::string name;
  Kind kind = Kind::integer;  // perhaps none of them
  double number = 0;
  std::int64_t integer = 0;
  std::string text;
  std::vector<double> numbers;
  Dims integers;
  Tensor tensor;        // in host memory
  std::string problem;  // why it cannot be meant; empty: it can
};

struct Node {
  std::string name;          // "" where the file has none
  std::string op, domain;    // domain "": ONNX's own
  std::vector<int> inputs;   // values; -1: left out
  std::vector<int> outputs;  // likewise
  std::vector<Attribute> attributes;
  const Row* row = nullptr;     // null: it has no meaning here
  const char* place = nullptr;  // its name, for origins
};

struct Extent {
  std::int64_t size = -1;  // -1: as the call has it
  std::string symbol;      // extents of one symbol are equal
};

struct Declared {
  int value = -1;
  std::optional<DType> dtype;
  std::string dtype_name;  // where we have none of it
  std::optional<std::vector<Extent>> shape;
};

struct Initializer {
  int value = -1;
  Tensor tensor;        // in host memory
  std::string problem;  // why there is none
};

struct Graph {
  std::string source;  // the file, for messages
  int opset = 0;
  std::vector<std::string> names;  // of values, as people may see them
  std::vector<Node> nodes;
  std::vector<Initializer> initializers;
  std::vector<Declared> inputs, results;
};

// The model in a file: FileError, UserError for a damaged one or one that is no model; UnsupportedError for its op set.
// Nodes are as in the file, without rows. frontend/onnx/wire, or what says that this build has none of it.
Graph read_model(const std::string& path);

// What cannot be meant: of each node one reason. Nodes of one op that have the same reason are named once, by the
// first.
class Problems {
 public:
  explicit Problems(const Graph& graph) : graph_(graph) {}
  // wrong: the file or the caller is; else it is right, but not possible yet.
  void add(const Node& node, const std::string& reason, bool wrong);
  void add(const std::string& what, const std::string& reason, bool wrong);
  bool empty() const { return problems_.empty(); }
  // Throws one UserError, or UnsupportedError if nothing is wrong, that lists them.
  void throw_if_any() const;

 private:
  struct Problem {
    std::string what, op, reason;  // op: "" if it is no node
    std::size_t more = 0;          // nodes of this op with this reason, besides the first
  };
  const Graph& graph_;
  std::vector<Problem> problems_;
  bool wrong_ = false;
};

// Finds the rows, and whatever else is to be said about nodes without shapes: op, domain, attributes, numbers of
// operands and results. UserError where values are used before they are there, or are there twice.
void check(Graph& graph, Problems& problems);

// For messages: without bytes that are no text, and not longer than a line.
std::string printable(const std::string& name);

}  // namespace fusejit::onnx
