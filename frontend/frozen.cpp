// Frozen networks: forward is recorded once per input type on a stand-in for x, batch-norm is folded into the
// convolution before it, and everything that depends on parameters alone is computed there and then. A call puts its
// own x in the stand-in's place.
#include "fusejit/frozen.h"

#include <algorithm>
#include <map>

#include "frontend/context.h"
#include "frontend/evaluation/evaluation.h"
#include "frontend/evaluation/trace.h"
#include "frontend/parameter_storage.h"
#include "fusejit/autocast.h"
#include "fusejit/module.h"
#include "ir/base/check.h"

namespace fusejit {
namespace {

// The network for one type of x: `trace` computes its only result from `stand_in` and from leaves.
struct Entry {
  ir::Value stand_in;
  Trace trace;
};

// Marks this thread as tracing with the frozen values.
class FrozenScope {
 public:
  explicit FrozenScope(const StandIns& values) : before_(thread_state().recording), values_(values) {
    recording_.frozen = true;
    recording_.name = "freeze";
    thread_state().recording = &recording_;
  }
  ~FrozenScope() { thread_state().recording = before_; }
  FrozenScope(const FrozenScope&) = delete;
  FrozenScope& operator=(const FrozenScope&) = delete;

 private:
  Recording recording_;
  Recording* before_;
  StandInScope values_;
};

// The trace's values again with other operands: `replace` may give another value for an entry, else it is copied.
template <class Replace>
std::vector<ir::Value> rewritten(const Trace& trace, Replace replace) {
  std::vector<ir::Value> copies;
  copies.reserve(trace.entries().size());
  for (std::size_t i = 0; i < trace.entries().size(); ++i) {
    const ir::Node& node = *trace.entries()[i].node;
    if (ir::Value other = replace(i, copies)) {
      copies.push_back(std::move(other));
      continue;
    }
    std::vector<ir::Operand> operands = node.operands;
    bool as_before = true;  // as in the copies of a call: nothing is inferred and checked again
    for (ir::Operand& operand : operands) {
      if (!operand.value) continue;
      const ir::Value& copy = copies[static_cast<std::size_t>(trace.number_of(operand.value.get()))];
      as_before = as_before && copy.type() == operand.value.type();
      operand.value = copy;
    }
    copies.push_back(as_before ? ir::rebuild(node, std::move(operands))
                     : node.type.shape.rank() == 4
                         ? ir::build_in(node.type.layout, node.op, std::move(operands), node.attrs)
                         : ir::build(node.op, std::move(operands), node.attrs));
  }
  return copies;
}

ir::Value counted(const ir::Node* node) {
  ++node->references;
  return ir::Value(const_cast<ir::Node*>(node));
}

Trace trace_of(const ir::Value& result) {
  Trace trace;
  const std::lock_guard lock(context().graph_mutex);
  trace.add_result(result);
  return trace;
}

// Which entries depend on parameters alone.
std::vector<bool> constant_entries(const Trace& trace, const ir::Node* stand_in) {
  std::vector<bool> constant(trace.entries().size());
  for (std::size_t i = 0; i < constant.size(); ++i) {
    const Trace::Entry& entry = trace.entries()[i];
    constant[i] =
        entry.argument
            ? entry.node != stand_in
            : std::all_of(entry.node->operands.begin(), entry.node->operands.end(), [&](const ir::Operand& o) {
                return !o.value || constant[static_cast<std::size_t>(trace.number_of(o.value.get()))];
              });
  }
  return constant;
}

// Nobody writes to what a frozen network holds, so what kernels want packed is packed once.
void fix_arguments(const Trace& trace, const ir::Node* stand_in) {
  const std::lock_guard lock(context().graph_mutex);
  for (const int a : trace.arguments()) {
    const ir::Node* node = trace.entries()[static_cast<std::size_t>(a)].node;
    const Attachment* note = node == stand_in ? nullptr : attachment(node);
    if (note && note->buffer && !note->borrowed) note->buffer.fix();
  }
}

ir::Value per_channel(const ir::Operand& operand, const Type& like) {
  if (operand.value) return operand.value;
  return ir::build(ir::Op::full, {}, {{"shape", like.shape.dims()}, {"value", operand.number}, {"dtype", like.dtype}});
}

// batch_norm(conv2d(x, w) [+ bias], mean, var, weight, bias) as one convolution with other weights and a bias, or
// empty.
ir::Value folded(const Trace& trace, const std::vector<bool>& constant, std::size_t i,
                 const std::vector<ir::Value>& copies) {
  using namespace ir::expr;
  const auto number = [&](const ir::Operand& o) { return static_cast<std::size_t>(trace.number_of(o.value.get())); };
  const auto copy = [&](const ir::Operand& o) { return o.value ? ir::Operand(copies[number(o)]) : o; };
  const ir::Node& norm = *trace.entries()[i].node;
  if (norm.op != ir::Op::batch_norm || trace.entries()[i].argument) return {};
  for (std::size_t k = 1; k < norm.operands.size(); ++k) {
    if (norm.operands[k].value && !constant[number(norm.operands[k])]) return {};
  }
  std::size_t source = number(norm.operands[0]);
  ir::Operand bias(0.0);
  const auto is_inner = [&](std::size_t n, ir::Op op) {
    const Trace::Entry& entry = trace.entries()[n];
    return !entry.argument && entry.uses == 1 && entry.node->op == op;
  };
  if (is_inner(source, ir::Op::bias_add) && constant[number(trace.entries()[source].node->operands[1])]) {
    bias = copy(trace.entries()[source].node->operands[1]);
    source = number(trace.entries()[source].node->operands[0]);
  }
  if (!is_inner(source, ir::Op::conv2d)) return {};
  const ir::Node& conv = *trace.entries()[source].node;
  if (!constant[number(conv.operands[1])]) return {};

  const ir::Value mean = copy(norm.operands[1]).value, var = copy(norm.operands[2]).value,
                  w = copy(conv.operands[1]).value;
  const ir::Value scale =
      per_channel(copy(norm.operands[3]), var.type()) / ir::build(ir::Op::sqrt, {var + norm.attrs.number("eps")});
  const ir::Value shift = copy(norm.operands[4]) - (mean - bias) * scale;
  const std::int64_t column[] = {w.type().shape[0], 1, 1, 1};
  const ir::Value factor = ir::build(ir::Op::reshape, {scale}, {{"shape", std::span<const std::int64_t>(column)}});
  const ir::Value weights = ir::build(ir::Op::cast, {w * factor}, {{"dtype", w.type().dtype}});
  const ir::Value y = ir::build_in(conv.type.layout, ir::Op::conv2d, {copy(conv.operands[0]), weights}, conv.attrs);
  return ir::build_in(norm.type.layout, ir::Op::bias_add, {y, shift}, ir::Attrs());
}

}  // namespace

struct Frozen::State {
  std::shared_ptr<nn::Module> module;
  std::optional<DType> autocast;  // of where it was frozen, whatever it is called in
  StandIns values;
  std::mutex mutex;  // of the rest
  std::map<std::string, std::shared_ptr<const Entry>> entries;
  // What was computed from which leaves, named by address, and the leaves, so that no address is used twice: shared
  // between input types.
  struct Constant {
    Tensor value;
    std::vector<ir::Value> leaves;
  };
  std::map<std::string, Constant> computed;

  std::shared_ptr<const Entry> entry(const Type& type, const std::optional<Device>& device);
  Tensor constant(const ir::Value& value, const std::optional<Device>& device);
};

// The value of something that depends on parameters alone.
Tensor Frozen::State::constant(const ir::Value& value, const std::optional<Device>& device) {
  const Trace trace = trace_of(value);
  std::string key = trace.key().hex();
  std::vector<ir::Value> leaves;
  for (const int a : trace.arguments()) {
    leaves.push_back(counted(trace.entries()[static_cast<std::size_t>(a)].node));
    key += fmt::format(" {}", static_cast<const void*>(leaves.back().get()));
  }
  if (const auto known = computed.find(key); known != computed.end()) return known->second.value;
  Tensor result = tensor_of(value, false, 0, device).eval();
  computed.emplace(std::move(key), Constant{result, std::move(leaves)});
  return result;
}

std::shared_ptr<const Entry> Frozen::State::entry(const Type& type, const std::optional<Device>& device) {
  const std::lock_guard lock(mutex);
  std::shared_ptr<const Entry>& known = entries[device ? type.str() + " on " + device->str() : type.str()];
  if (known) return known;
  auto entry = std::make_shared<Entry>();
  entry->stand_in = ir::parameter(type, "x");
  Tensor y;
  {
    const FrozenScope scope(values);
    const NoGrad off;
    const Autocast cast(autocast.value_or(f32));
    y = (*module)(tensor_of(entry->stand_in, false, 0, device));
  }
  const Trace recorded = trace_of(value_of(y));
  const std::vector<bool> constant_before = constant_entries(recorded, entry->stand_in.get());
  const auto leaf_or = [](const Trace& trace, std::size_t i) {
    return trace.entries()[i].argument ? counted(trace.entries()[i].node) : ir::Value();
  };
  const std::vector<ir::Value> fused = rewritten(recorded, [&](std::size_t i, const std::vector<ir::Value>& copies) {
    const ir::Value leaf = leaf_or(recorded, i);
    return leaf ? leaf : folded(recorded, constant_before, i, copies);
  });
  const Trace whole = trace_of(fused[static_cast<std::size_t>(recorded.number_of(recorded.results()[0].get()))]);
  const std::vector<bool> constant_now = constant_entries(whole, entry->stand_in.get());
  // Constants that something else uses are computed; those inside a larger constant are not.
  std::vector<bool> used(whole.entries().size());
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (constant_now[i] || whole.entries()[i].argument) continue;
    for (const ir::Operand& o : whole.entries()[i].node->operands) {
      if (o.value) used[static_cast<std::size_t>(whole.number_of(o.value.get()))] = true;
    }
  }
  const std::vector<ir::Value> ready = rewritten(whole, [&](std::size_t i, const std::vector<ir::Value>&) {
    const bool compute = constant_now[i] && used[i] && !whole.entries()[i].argument;
    return compute ? value_of(constant(counted(whole.entries()[i].node), device)) : leaf_or(whole, i);
  });
  entry->trace = trace_of(ready[static_cast<std::size_t>(whole.number_of(whole.results()[0].get()))]);
  fix_arguments(entry->trace, entry->stand_in.get());
  return known = std::move(entry);
}

Tensor Frozen::operator()(const Tensor& x) const {
  FJ_CHECK(x.defined(), "a frozen network was called with an empty tensor");
  const ir::Value value = value_of(x);
  const std::shared_ptr<const Entry> entry = state_->entry(value.type(), x.state()->device);
  const std::vector<ir::Value> made = rewritten(entry->trace, [&](std::size_t i, const std::vector<ir::Value>&) {
    const Trace::Entry& e = entry->trace.entries()[i];
    return e.node == entry->stand_in.get() ? value : e.argument ? counted(e.node) : ir::Value();
  });
  const ir::Value& result = made[static_cast<std::size_t>(entry->trace.number_of(entry->trace.results()[0].get()))];
  return tensor_of(result, x.needs_grad(), x.state()->depth + static_cast<int>(made.size()), x.state()->device);
}

void Frozen::compile(const Input& input) const {
  const auto& values = state_->values;
  const Device device = values.empty() ? default_device() : values.begin()->second.device();
  (*this)(zeros(input.shape, input.dtype).to(device).eval()).eval();
}

namespace nn {

Frozen Module::freeze() const {
  auto state = std::make_shared<Frozen::State>();
  state->module = share();
  state->autocast = thread_state().autocast;
  for (const auto& [name, parameter] : named_values()) {
    state->values.emplace(parameter.storage().get(), fusejit::tensor_of(buffer_of(parameter.value())));
  }
  return Frozen(std::move(state));
}

}  // namespace nn
}  // namespace fusejit
