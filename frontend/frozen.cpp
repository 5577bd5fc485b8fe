// Frozen networks: forward is recorded once per input type on a stand-in for x, batch-norm is folded into the
// convolution before it, and everything that depends on parameters alone is computed there and then. A call puts its
// own x in the stand-in's place (frontend/evaluation/frozen_call.h).
#include "fusejit/frozen.h"

#include <algorithm>
#include <map>

#include "frontend/context.h"
#include "frontend/evaluation/evaluation.h"
#include "frontend/evaluation/frozen_call.h"
#include "frontend/evaluation/trace.h"
#include "frontend/parameter_storage.h"
#include "fusejit/autocast.h"
#include "fusejit/module.h"
#include "ir/base/check.h"

namespace fusejit {
namespace {

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
  std::map<std::string, std::shared_ptr<const FrozenGraph>> graphs;
  // What was computed from which leaves, named by address, and the leaves, so that no address is used twice: shared
  // between input types.
  struct Constant {
    Tensor value;
    std::vector<ir::Value> leaves;
  };
  std::map<std::string, Constant> computed;

  std::shared_ptr<const FrozenGraph> graph(const Type& type, const std::optional<Device>& device);
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

std::shared_ptr<const FrozenGraph> Frozen::State::graph(const Type& type, const std::optional<Device>& device) {
  const std::lock_guard lock(mutex);
  std::shared_ptr<const FrozenGraph>& known = graphs[device ? type.str() + " on " + device->str() : type.str()];
  if (known) return known;
  const ir::Value stand_in = ir::parameter(type, "x");
  Tensor y;
  {
    const FrozenScope scope(values);
    const NoGrad off;
    const Autocast cast(autocast.value_or(f32));
    y = (*module)(tensor_of(stand_in, false, 0, device));
  }
  const Trace recorded = trace_of(value_of(y));
  const std::vector<bool> constant_before = constant_entries(recorded, stand_in.get());
  const auto leaf_or = [](const Trace& trace, std::size_t i) {
    return trace.entries()[i].argument ? counted(trace.entries()[i].node) : ir::Value();
  };
  const std::vector<ir::Value> fused = rewritten(recorded, [&](std::size_t i, const std::vector<ir::Value>& copies) {
    const ir::Value leaf = leaf_or(recorded, i);
    return leaf ? leaf : folded(recorded, constant_before, i, copies);
  });
  const Trace whole = trace_of(fused[static_cast<std::size_t>(recorded.number_of(recorded.results()[0].get()))]);
  const std::vector<bool> constant_now = constant_entries(whole, stand_in.get());
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
  Trace trace = trace_of(ready[static_cast<std::size_t>(whole.number_of(whole.results()[0].get()))]);
  fix_arguments(trace, stand_in.get());
  return known = std::make_shared<const FrozenGraph>(stand_in, std::move(trace));
}

Tensor Frozen::operator()(const Tensor& x) const {
  FJ_CHECK(x.defined(), "a frozen network was called with an empty tensor");
  const ir::Value value = value_of(x);
  FrozenCall call{state_->graph(value.type(), x.state()->device), value};
  bool is_there = false;
  if (!x.needs_grad() && !thread_state().recording) {
    const std::lock_guard lock(context().graph_mutex);
    is_there = evaluated(value.get());
  }
  if (is_there) return result_of(std::move(call), x.state()->device);
  const int depth = x.state()->depth + static_cast<int>(call.of->trace.entries().size());
  return tensor_of(written_out(call), x.needs_grad(), depth, x.state()->device);
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
