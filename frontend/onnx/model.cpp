// onnx::Model: the module. Loading checks what can be checked without shapes, gives the initializers their roles, and
// records the model once on inputs without values where the file says enough about them; each call records it again.
#include <algorithm>
#include <unordered_map>

#include "frontend/context.h"
#include "frontend/evaluation/evaluation.h"
#include "frontend/nn/shapes_only.h"
#include "frontend/onnx/replay.h"
#include "fusejit/grad.h"
#include "ir/base/check.h"
#include "ir/origin.h"

namespace fusejit::onnx {
namespace {

// What an initializer is to the module.
enum class Role { constant, state, trained };

std::vector<Role> roles_of(const Graph& graph) {
  std::vector<bool> is_number(graph.names.size()), is_statistic(graph.names.size());
  const auto mark = [](const Node& node, const std::vector<int>& inputs, std::vector<bool>& marks) {
    for (const int input : inputs) {
      if (input >= static_cast<int>(node.inputs.size())) continue;
      const int value = node.inputs[static_cast<std::size_t>(input)];
      if (value >= 0) marks[static_cast<std::size_t>(value)] = true;
    }
  };
  for (const Node& node : graph.nodes) {
    if (!node.row) continue;
    mark(node, node.row->numbers, is_number);
    mark(node, node.row->statistics, is_statistic);
  }
  std::vector<Role> roles;
  for (const Initializer& initializer : graph.initializers) {
    const auto value = static_cast<std::size_t>(initializer.value);
    const bool is_constant = !initializer.tensor.defined() || !is_float(initializer.tensor.dtype()) || is_number[value];
    const bool is_state = is_statistic[value] || (!is_constant && initializer.tensor.rank() == 0);
    roles.push_back(is_constant ? Role::constant : is_state ? Role::state : Role::trained);
  }
  return roles;
}

Port port_of(const Graph& graph, const Declared& declared) {
  Port port{graph.names[static_cast<std::size_t>(declared.value)], declared.dtype.value_or(f32), {}};
  if (!declared.shape) return port;
  port.shape.emplace();
  for (const Extent& extent : *declared.shape) port.shape->push_back(extent.size);
  return port;
}

std::string text_of(const Declared& declared) {
  std::string text = declared.dtype ? std::string(name(*declared.dtype)) : declared.dtype_name;
  if (!declared.shape) return text;
  std::vector<std::string> extents;
  for (const Extent& extent : *declared.shape)
    extents.push_back(extent.size >= 0        ? std::to_string(extent.size)
                      : extent.symbol.empty() ? "?"
                                              : printable(extent.symbol));
  return fmt::format("{}[{}]", text, fmt::join(extents, ","));
}

// Other floats go along, and i64 in place of i32 and the other way round: narrower integers would wrap elsewhere.
bool is_of_kind(DType given, DType declared) {
  if (is_narrow_int(given) || is_narrow_int(declared)) return given == declared;
  return is_float(declared) ? is_float(given) : is_int(declared) ? is_int(given) : given == declared;
}

}  // namespace

struct Model::State {
  Graph graph;
  std::vector<Value> constants;                           // by number of the value; empty for others
  std::vector<std::pair<int, nn::Parameter>> parameters;  // likewise
  std::vector<Port> inputs, results;

  std::vector<Value> values() const {
    std::vector<Value> values = constants;
    for (const auto& [value, parameter] : parameters)
      values[static_cast<std::size_t>(value)] = {parameter.value(), false};
    return values;
  }
  void check_inputs(const std::vector<Tensor>& given) const;
  void try_out(Problems& problems) const;
};

void Model::State::check_inputs(const std::vector<Tensor>& given) const {
  FJ_CHECK(given.size() == graph.inputs.size(), "{}: {} inputs are given, the model has {}", graph.source, given.size(),
           graph.inputs.size());
  std::unordered_map<std::string, std::int64_t> symbols;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Declared& declared = graph.inputs[i];
    FJ_CHECK(given[i].defined(), "{}: input '{}' is an empty tensor", graph.source, printable(inputs[i].name));
    bool fits = is_of_kind(given[i].dtype(), inputs[i].dtype) &&
                (!declared.shape || static_cast<int>(declared.shape->size()) == given[i].rank());
    for (int axis = 0; fits && declared.shape && axis < given[i].rank(); ++axis) {
      const Extent& extent = (*declared.shape)[static_cast<std::size_t>(axis)];
      const std::int64_t size = given[i].shape()[axis];
      fits = extent.size < 0 || extent.size == size;
      if (extent.size < 0 && !extent.symbol.empty()) fits = symbols.emplace(extent.symbol, size).first->second == size;
    }
    FJ_CHECK(fits, "{}: input '{}' is {}, the model says {}", graph.source, printable(inputs[i].name),
             given[i].type().str(), text_of(declared));
  }
}

// Where only the batch is open. It is recorded for a batch of 2, unless the model says which. Not so long that a part
// would have to be computed in between: there are no values.
void Model::State::try_out(Problems& problems) const {
  constexpr std::size_t kOpsANode = 16;
  if (graph.nodes.size() * kOpsANode >= static_cast<std::size_t>(context().trace_limit)) return;
  std::vector<Value> values = this->values();
  for (const Declared& input : graph.inputs) {
    if (!input.dtype || !input.shape) return;
    Dims dims;
    for (const Extent& extent : *input.shape) {
      if (extent.size < 0 && !dims.empty()) return;
      dims.push_back(extent.size < 0 ? 2 : extent.size);
    }
    values[static_cast<std::size_t>(input.value)] = {nn::without_value({*input.dtype, Shape(dims), Layout::standard}),
                                                     false};
  }
  const NoGrad off;
  replay(graph, std::move(values), {.training = false, .device = default_device(), .keep = {}}, problems);
}

Model::Model(std::shared_ptr<State> state) : state_(state) {
  Graph& graph = state->graph;
  state->constants.resize(graph.names.size());
  const std::vector<Role> roles = roles_of(graph);
  for (std::size_t i = 0; i < roles.size(); ++i) {
    const auto& [value, tensor, problem] = graph.initializers[i];
    if (roles[i] == Role::constant) {
      const bool is_known = tensor.defined() && tensor.elements() <= kMostKnown;
      state->constants[static_cast<std::size_t>(value)] = {tensor, is_known};
      continue;
    }
    const std::string& name = graph.names[static_cast<std::size_t>(value)];
    const Tensor placed = copy_on(tensor, default_device());
    state->parameters.emplace_back(value,
                                   roles[i] == Role::trained ? parameter(name, placed) : this->state(name, placed));
  }
  graph.initializers.clear();
  for (const Declared& input : graph.inputs) state->inputs.push_back(port_of(graph, input));
  for (const Declared& result : graph.results) state->results.push_back(port_of(graph, result));
}

std::vector<Tensor> Model::run(const std::vector<Tensor>& inputs) const {
  state_->check_inputs(inputs);
  std::vector<Value> values = state_->values();
  Replay how{.training = is_training(), .device = {}, .keep = {}};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    values[static_cast<std::size_t>(state_->graph.inputs[i].value)] = {inputs[i], false};
    if (!how.device || inputs[i].rank() > 0) how.device = inputs[i].device();
  }
  if (!how.device) how.device = default_device();
  how.keep = [&](int value, const Tensor& next) {
    for (const auto& [kept, parameter] : state_->parameters) {
      if (kept != value) continue;
      Tensor leaf = next;
      leaf.requires_grad(false);
      parameter.set(leaf);
    }
  };
  Problems problems(state_->graph);
  std::vector<Tensor> results = replay(state_->graph, std::move(values), how, problems);
  problems.throw_if_any();
  return results;
}

Tensor Model::forward(const Tensor& x) const {
  FJ_CHECK(inputs().size() == 1 && results().size() == 1,
           "{}: the model has {} inputs and {} results: run() takes and gives all of them", state_->graph.source,
           inputs().size(), results().size());
  return run({x})[0];
}

const std::vector<Port>& Model::inputs() const { return state_->inputs; }
const std::vector<Port>& Model::results() const { return state_->results; }

Model load(const std::string& path) {
  const auto state = std::make_shared<Model::State>();
  state->graph = read_model(path);
  Problems problems(state->graph);
  check(state->graph, problems);
  Model model(state);
  state->try_out(problems);
  problems.throw_if_any();
  for (Node& node : state->graph.nodes) {
    if (!node.name.empty()) node.place = ir::kept_name(printable(node.name));
  }
  return model;
}

}  // namespace fusejit::onnx
