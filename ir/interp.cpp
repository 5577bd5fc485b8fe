#include "ir/interp.h"

#include <algorithm>
#include <optional>

#include "ir/base/check.h"
#include "ir/infer.h"
#include "ir/ops/oracle/oracle.h"
#include "ir/strict.h"

namespace fusejit::ir {
namespace {

// An operand of an element-wise op as the compute type sees it, element by element of the result.
class Source {
 public:
  Source(const Node& node, std::size_t i, const Array* array)
      : dtype_(compute_type(operand_dtype(node, i))), array_(array) {
    const Operand& operand = node.operands[i];
    if (!array) {
      constant_ = cast(operand.is_integer ? Scalar::of(operand.integer) : Scalar::of(operand.number), dtype_);
    } else if (array->type.elements() == 1) {
      constant_ = cast(array->at(0), dtype_);
      array_ = nullptr;
    } else if (array->type.shape != node.type.shape) {
      positions_ = oracle::broadcast_positions(array->type.shape, node.type.shape);
    }
  }
  Scalar at(std::int64_t i) const {
    if (!array_) return constant_;
    return cast(array_->at(positions_.empty() ? i : positions_[static_cast<std::size_t>(i)]), dtype_);
  }

 private:
  DType dtype_;
  const Array* array_;
  Scalar constant_;
  std::vector<std::int64_t> positions_;
};

void evaluate_elementwise(const OpDef& row, const EvalContext& c) {
  const std::int64_t count = c.result.type.elements();
  if (count == 0) return;
  std::vector<Source> sources;
  for (std::size_t i = 0; i < c.operands.size(); ++i) sources.emplace_back(c.node, i, c.operands[i]);
  std::vector<Scalar> arguments(sources.size());
  for (std::int64_t e = 0; e < count; ++e) {
    for (std::size_t i = 0; i < sources.size(); ++i) arguments[i] = sources[i].at(e);
    c.result.set(e, cast(row.eval(arguments, c.node.attrs), c.result.type.dtype));
  }
}

}  // namespace

Array::Array(Type t) : type(t), bytes(static_cast<std::size_t>(t.bytes())) {}

std::vector<Array> interpret(const Graph& graph, std::span<const Array> arguments) {
  const std::size_t parameters = graph.parameters().size();
  FJ_CHECK(arguments.size() == parameters, "graph @{} takes {} arguments, {} were given", graph.name(), parameters,
           arguments.size());
  for (std::size_t i = 0; i < parameters; ++i) {
    const Type& want = graph.parameters()[i].type();
    FJ_CHECK(arguments[i].type.dtype == want.dtype && arguments[i].type.shape == want.shape,
             "argument '{}' is {}, the parameter is {}", graph.parameter_name(i), arguments[i].type.str(), want.str());
  }
  if (is_strict()) verify(graph);
  check_text(graph, parse_graph);
  // Values live until their last user has run.
  std::vector<int> users(static_cast<std::size_t>(graph.value_count()), 0);
  const auto slot = [&](const Value& value) { return static_cast<std::size_t>(graph.index_of(value.get())); };
  for (const Value& node : graph.nodes())
    for (const Operand& operand : node->operands)
      if (operand.value) ++users[slot(operand.value)];
  for (const Value& result : graph.results()) ++users[slot(result)];

  std::vector<std::optional<Array>> values(users.size());
  const auto array = [&](std::size_t i) -> const Array* { return i < parameters ? &arguments[i] : &*values[i]; };
  std::vector<const Array*> operands;
  for (const Value& node : graph.nodes()) {
    operands.clear();
    for (const Operand& operand : node->operands)
      operands.push_back(operand.value ? array(slot(operand.value)) : nullptr);
    Array result(node.type());
    const EvalContext context{*node, operands, result};
    const OpDef& row = op_def(node->op);
    if (row.evaluate)
      row.evaluate(context);
    else
      evaluate_elementwise(row, context);
    values[slot(node)] = std::move(result);
    for (const Operand& operand : node->operands)
      if (operand.value && --users[slot(operand.value)] == 0) values[slot(operand.value)].reset();
  }
  std::vector<Array> results;
  for (const Value& result : graph.results()) {
    results.push_back(*array(slot(result)));
    results.back().type = result.type();
  }
  return results;
}

}  // namespace fusejit::ir
