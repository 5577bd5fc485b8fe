#include "ir/passes/grad.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ir/base/check.h"
#include "ir/infer.h"
#include "ir/ops/compose.h"
#include "ir/passes/recompute.h"

namespace fusejit::ir {
namespace {

// What the sweep visits: a value, or a custom rule, which stands between its outputs and its inputs.
struct Item {
  Value value;
  const CustomRule* rule = nullptr;
  const void* key() const { return rule ? static_cast<const void*>(rule) : value.get(); }
};

class Sweep {
 public:
  Sweep(const std::vector<Value>& results, const std::vector<Value>& wrt, std::span<const CustomRule> rules);

  // A cotangent flows in at `value` from the consumer with that serial number; graph order is the order of serials.
  void add(const Value& value, const Value& cotangent, std::uint64_t consumer);
  void run();
  // The sum that arrived, or empty.
  Value cotangent(const Value& value) const;

 private:
  std::vector<Item> dependencies(const Item& item) const;
  void order(const std::vector<Value>& results);
  void mark(const std::vector<Value>& wrt);
  bool needs(const Value& value) const { return value && needed_.contains(value.get()); }
  void pass_through(const Value& y);
  void pass_through(const CustomRule& rule);

  std::unordered_map<const Node*, const CustomRule*> rule_of_;
  std::vector<Item> items_;                 // operands before users
  std::unordered_set<const void*> needed_;  // leads to a value that is differentiated
  struct Arrival {
    std::uint64_t consumer;
    Value cotangent;
  };
  std::unordered_map<const Node*, std::vector<Arrival>> arrived_;
  std::unordered_map<const Node*, Value> total_;
};

Sweep::Sweep(const std::vector<Value>& results, const std::vector<Value>& wrt, std::span<const CustomRule> rules) {
  for (const CustomRule& rule : rules)
    for (const Value& output : rule.outputs) {
      FJ_CHECK(std::find(rule.inputs.begin(), rule.inputs.end(), output) == rule.inputs.end(),
               "custom gradient: an output is one of the inputs ({})", output.type().str());
      rule_of_.emplace(output.get(), &rule);
    }
  order(results);
  mark(wrt);
}

std::vector<Item> Sweep::dependencies(const Item& item) const {
  std::vector<Item> found;
  if (item.rule) {
    for (const Value& input : item.rule->inputs) found.push_back({input});
  } else if (const auto rule = rule_of_.find(item.value.get()); rule != rule_of_.end()) {
    found.push_back({Value(), rule->second});
  } else {
    for (const Operand& operand : item.value->operands)
      if (operand.value) found.push_back({operand.value});
  }
  return found;
}

void Sweep::order(const std::vector<Value>& results) {
  struct Frame {
    Item item;
    std::vector<Item> next;
    std::size_t entered = 0;
  };
  enum class State : std::uint8_t { fresh, open, done };
  std::unordered_map<const void*, State> states;
  std::vector<Frame> stack;
  const auto enter = [&](const Item& item) {
    State& state = states[item.key()];
    FJ_CHECK(state != State::open, "custom gradient: an input depends on an output of the same function");
    if (state == State::done) return;
    state = State::open;
    stack.push_back({item, dependencies(item)});
  };
  for (const Value& result : results) {
    enter({result});
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.entered < top.next.size()) {
        const Item next = top.next[top.entered++];
        enter(next);
        continue;
      }
      states[top.item.key()] = State::done;
      items_.push_back(std::move(top.item));
      stack.pop_back();
    }
  }
}

void Sweep::mark(const std::vector<Value>& wrt) {
  std::unordered_set<const Node*> asked;
  for (const Value& value : wrt) asked.insert(value.get());
  for (const Item& item : items_) {
    bool needed = !item.rule && asked.contains(item.value.get());
    const bool carries =
        item.rule || rule_of_.contains(item.value.get()) ||
        (is_float(item.value.type().dtype) && item.value->op != Op::parameter && !op_def(item.value->op).no_gradient);
    if (!needed && carries)
      for (const Item& dependency : dependencies(item)) needed |= needed_.contains(dependency.key());
    if (needed) needed_.insert(item.key());
  }
}

void Sweep::add(const Value& value, const Value& cotangent, std::uint64_t consumer) {
  if (!cotangent || !needs(value)) return;
  FJ_ASSERT(cotangent.type().dtype == value.type().dtype && cotangent.type().shape == value.type().shape,
            "a cotangent of type {} arrived at a value of type {}", cotangent.type().str(), value.type().str());
  arrived_[value.get()].push_back({consumer, cotangent});
}

void Sweep::run() {
  for (auto item = items_.rbegin(); item != items_.rend(); ++item) {
    if (item->rule) {
      if (needed_.contains(item->rule)) pass_through(*item->rule);
      continue;
    }
    const auto arrived = arrived_.find(item->value.get());
    if (arrived == arrived_.end()) continue;
    const OriginScope scope(origin_of_gradient(*item->value));
    // Added in the order of the consumers (ops.md §12).
    std::vector<Arrival>& terms = arrived->second;
    std::stable_sort(terms.begin(), terms.end(),
                     [](const Arrival& a, const Arrival& b) { return a.consumer < b.consumer; });
    Value sum = terms[0].cotangent;
    for (std::size_t i = 1; i < terms.size(); ++i) sum = build(Op::add, {sum, terms[i].cotangent});
    arrived_.erase(arrived);
    total_.emplace(item->value.get(), sum);
    if (!rule_of_.contains(item->value.get())) pass_through(item->value);
  }
}

// Rows of element-wise ops answer in the broadcast shape and the promoted dtype: the sum over what was broadcast, in
// the operand's type (ops.md §2).
Value fitted(const Value& g, const Type& type) { return compose::cast_to(compose::sum_to(g, type.shape), type.dtype); }

// Operand by operand, so that what is computed for the weights says so.
std::vector<Value> anchor_cotangents(const OpDef& row, const GradContext& context) {
  std::vector<Value> found(context.wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!context.wants(i)) continue;
    Origin origin = current_origin();
    if (operand_name(row, i) == "w") origin.role = Role::weight_gradient;
    const OriginScope scope(origin);
    GradContext alone{context.y, context.dy, std::vector<bool>(found.size())};
    alone.wanted[i] = true;
    found[i] = row.grad(alone)[i];
  }
  return found;
}

// The cotangents of y's operands by the rule of its row, or through its expansion.
std::vector<Value> operand_cotangents(const GradContext& context) {
  const OpDef& row = op_def(context.y->op);
  if (row.grad) {
    std::vector<Value> found = row.is_contraction() ? anchor_cotangents(row, context) : row.grad(context);
    for (std::size_t i = 0; row.family == Family::elementwise && i < found.size(); ++i)
      if (found[i] && context.wants(i)) found[i] = fitted(found[i], context.x(i).type());
    return found;
  }
  FJ_ASSERT(row.expand, "{} has neither a gradient nor an expansion", row.name);
  const Node& y = *context.y;
  const Value expansion = row.expand(y.operands, y.attrs, y.type);
  FJ_ASSERT(expansion, "{} has no gradient and is primitive as it stands", row.name);
  // The operands are where this derivative ends, also where one of them depends on another.
  std::vector<Value> wanted;
  CustomRule leaves;
  for (std::size_t i = 0; i < y.operands.size(); ++i) {
    if (!context.wants(i)) continue;
    const bool is_known = std::find(wanted.begin(), wanted.end(), context.x(i)) != wanted.end();
    if (!is_known) wanted.push_back(context.x(i));
  }
  leaves.outputs = wanted;
  std::vector<Value> found = gradient({expansion}, {context.dy}, wanted, std::span(&leaves, 1));
  // An operand used twice has got the sum of both uses.
  std::vector<Value> cotangents(y.operands.size());
  for (std::size_t i = 0; i < y.operands.size(); ++i)
    for (std::size_t k = 0; k < wanted.size() && context.wants(i); ++k)
      if (wanted[k] == context.x(i)) cotangents[i] = std::exchange(found[k], Value());
  return cotangents;
}

void Sweep::pass_through(const Value& y) {
  GradContext context{y, total_.at(y.get()), {}};
  bool any = false;
  for (const Operand& operand : y->operands) {
    context.wanted.push_back(needs(operand.value));
    any |= context.wanted.back();
  }
  if (!any || op_def(y->op).no_gradient) return;
  std::vector<Value> cotangents = operand_cotangents(context);
  FJ_ASSERT(cotangents.size() <= y->operands.size(), "{} gives {} cotangents for {} operands", name(y->op),
            cotangents.size(), y->operands.size());
  if (y->region != 0) {
    // What the rule computes from recomputed values belongs to the recomputation: it must not merge with the forward.
    std::vector<Value> boundary{y, context.dy};
    for (const Operand& operand : y->operands) boundary.push_back(operand.value);
    cotangents = recompute_in_region(cotangents, y->region, boundary);
  }
  for (std::size_t i = 0; i < cotangents.size(); ++i) add(context.x(i), cotangents[i], y->serial);
}

void Sweep::pass_through(const CustomRule& rule) {
  std::vector<Value> cotangents;
  bool any = false;
  for (const Value& output : rule.outputs) {
    cotangents.push_back(cotangent(output));
    any |= static_cast<bool>(cotangents.back());
  }
  if (!any || !rule.backward) return;
  const OriginScope scope(Origin{rule.outputs[0]->origin.module});
  const std::vector<Value> found = rule.backward(cotangents);
  FJ_CHECK(found.size() == rule.inputs.size(), "custom gradient: {} gradients were returned for {} inputs",
           found.size(), rule.inputs.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Value &input = rule.inputs[i], &g = found[i];
    FJ_CHECK(!g || (g.type().dtype == input.type().dtype && g.type().shape == input.type().shape),
             "custom gradient: the gradient of input {} has the type {}, the input has {}", i, g.type().str(),
             input.type().str());
    add(input, g, rule.outputs[0]->serial);
  }
}

Value Sweep::cotangent(const Value& value) const {
  const auto found = total_.find(value.get());
  return found == total_.end() ? Value() : found->second;
}

Value zeros(const Type& type) {
  return build(Op::full, {}, {{"shape", type.shape.dims()}, {"value", 0}, {"dtype", type.dtype}});
}

// The same values with their bytes in `layout`.
Value in_layout(const Value& value, Layout layout) {
  if (value.type().layout == layout) return value;
  const Value cast = build(Op::cast, {value}, {{"dtype", value.type().dtype}});
  return build_in(layout, Op::cast, {value}, cast->attrs);
}

}  // namespace

std::vector<Value> gradient(const std::vector<Value>& results, const std::vector<Value>& cotangents,
                            const std::vector<Value>& wrt, std::span<const CustomRule> rules) {
  FJ_CHECK(results.size() == cotangents.size(), "gradient: {} cotangents were given for {} results", cotangents.size(),
           results.size());
  for (const Value& value : wrt)
    FJ_CHECK(is_float(value.type().dtype), "gradient: only floating-point values have a gradient, this one is {}",
             value.type().str());
  Sweep sweep(results, wrt, rules);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Value& g = cotangents[i];
    if (!g) continue;
    FJ_CHECK(is_float(results[i].type().dtype), "gradient: result {} is {} and takes no cotangent", i,
             results[i].type().str());
    FJ_CHECK(g.type().dtype == results[i].type().dtype && g.type().shape == results[i].type().shape,
             "gradient: the cotangent of result {} has the type {}, the result has {}", i, g.type().str(),
             results[i].type().str());
    sweep.add(results[i], g, std::numeric_limits<std::uint64_t>::max());
  }
  sweep.run();
  std::vector<Value> found;
  for (const Value& value : wrt) {
    const Value g = sweep.cotangent(value);
    found.push_back(g ? g : zeros(value.type()));
  }
  return found;
}

Graph differentiate(const Graph& graph, const std::vector<std::string>& wrt) {
  std::unordered_map<std::string_view, const Value*> named;
  for (std::size_t i = 0; i < graph.parameters().size(); ++i)
    named.emplace(graph.parameter_name(i), &graph.parameters()[i]);
  std::vector<Value> asked;
  for (const std::string& name : wrt) {
    const auto found = named.find(name);
    FJ_CHECK(found != named.end(), "gradient: the graph has no parameter named {}", name);
    FJ_CHECK(std::find(asked.begin(), asked.end(), *found->second) == asked.end(), "gradient: {} is named twice", name);
    asked.push_back(*found->second);
  }
  std::vector<Value> parameters = graph.parameters(), results = graph.results(), cotangents;
  for (std::size_t i = 0; i < graph.results().size(); ++i) {
    const std::string name = fmt::format("d_out{}", i);
    FJ_CHECK(!named.contains(name), "gradient: a parameter is called {}, the name of the cotangent of result {}", name,
             i);
    const Type& type = graph.results()[i].type();
    cotangents.push_back(is_float(type.dtype) ? parameter(type, name) : Value());
    if (cotangents.back()) parameters.push_back(cotangents.back());
  }
  const std::vector<Value> found = gradient(graph.results(), cotangents, asked);
  for (std::size_t i = 0; i < found.size(); ++i) results.push_back(in_layout(found[i], asked[i].type().layout));
  return capture(graph.name(), std::move(parameters), std::move(results));
}

}  // namespace fusejit::ir
