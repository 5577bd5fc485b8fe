// A node on values: what a row's function sees while a model is recorded.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "frontend/onnx/graph.h"
#include "frontend/onnx/rows.h"

namespace fusejit::onnx {

// A value of a model that is being recorded. Known: in host memory, of few elements, and independent of what the inputs
// hold: its numbers may be asked for.
struct Value {
  Tensor tensor;
  bool known = false;
};

inline constexpr std::int64_t kMostKnown = 4096;  // elements

// The same value computed there and then by the graph interpreter; it must depend on nothing but host memory.
Tensor folded(const Tensor& tensor);
// A known value: int64s of one axis, or one without axes.
Tensor known_integers(const Dims& numbers);
Tensor known_integer(std::int64_t number);

class Call {
 public:
  // Sets a value that the model keeps, such as a running mean, to another.
  using Keep = std::function<void(int input, const Tensor& next)>;
  Call(const Graph& graph, const Node& node, std::span<const Value> inputs, bool training, std::optional<Device> device,
       const Keep& keep)
      : graph_(graph), node_(node), inputs_(inputs), training_(training), device_(device), keep_(keep) {}

  const Node& node() const { return node_; }
  int opset() const { return graph_.opset; }
  // In training, for ops that have a training form.
  bool is_training() const { return training_; }
  void keep(int input, const Tensor& next) const { keep_(input, next); }

  // Operands. Left out ones are empty tensors, and `otherwise` as numbers; numbers that are not known are a UserError.
  int inputs() const { return static_cast<int>(inputs_.size()); }
  bool has(int input) const { return input < inputs() && at(input).tensor.defined(); }
  bool is_known(int input) const { return has(input) && at(input).known; }
  Tensor tensor(int input) const;
  std::vector<Tensor> tensors() const;
  Dims integers_at(int input) const;
  std::vector<double> numbers_at(int input) const;
  Number number_at(int input, Number otherwise) const;
  // The operand as a number that goes along with the other one and takes its dtype, if it is known, has one element
  // and no more axes. (In a model both are of one dtype, unless to() has made its values other floats.)
  std::optional<Number> number_beside(int input, int other) const;

  // Attributes.
  bool has(std::string_view attribute) const { return find(attribute) != nullptr; }
  double number(std::string_view attribute, double otherwise) const;
  std::int64_t integer(std::string_view attribute, std::int64_t otherwise) const;
  Dims integers(std::string_view attribute, const Dims& otherwise = {}) const;
  std::string text(std::string_view attribute, const char* otherwise) const;
  const Attribute* find(std::string_view attribute) const;

 private:
  const Value& at(int input) const { return inputs_[static_cast<std::size_t>(input)]; }
  const Tensor& known(int input) const;
  const Graph& graph_;
  const Node& node_;
  std::span<const Value> inputs_;
  const bool training_;
  const std::optional<Device> device_;
  const Keep& keep_;
};

// An axis of a tensor of that rank, counted from the front; UserError if there is none.
int axis_of(std::int64_t axis, int rank);
// The elements of x at these places along an axis.
Tensor taken(const Tensor& x, int axis, const Dims& places);

}  // namespace fusejit::onnx
