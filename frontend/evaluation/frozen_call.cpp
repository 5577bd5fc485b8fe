#include "frontend/evaluation/frozen_call.h"

#include <mutex>
#include <utility>

#include "frontend/context.h"
#include "frontend/evaluation/engine.h"
#include "frontend/evaluation/work.h"
#include "runtime/process/fork.h"

namespace fusejit {
namespace {

// The buffers that the call reads, in the order of the graph's parameters; none where a plan that is running may
// overwrite one of them.
std::vector<runtime::Buffer> arguments_of(const FrozenCall& call) {
  std::vector<runtime::Buffer> arguments;
  const Trace& trace = call.of->trace;
  arguments.reserve(trace.arguments().size());
  for (const int a : trace.arguments()) {
    const ir::Node* node = trace.entries()[static_cast<std::size_t>(a)].node;
    if (node == call.of->stand_in.get()) node = call.input.get();
    if (const Attachment* note = attachment(node); note && note->donated_to_run) return {};
    arguments.push_back(argument_buffer(node));
  }
  return arguments;
}

}  // namespace

FrozenGraph::FrozenGraph(ir::Value stand_in, Trace trace)
    : stand_in(std::move(stand_in)),
      trace(std::move(trace)),
      graph(std::make_shared<const ir::Graph>(this->trace.graph("main"))) {}

std::vector<ir::Value> rewritten(const Trace& trace,
                                 const std::function<ir::Value(std::size_t, const std::vector<ir::Value>&)>& replace) {
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

ir::Value written_out(const FrozenCall& call) {
  const Trace& trace = call.of->trace;
  const std::vector<ir::Value> made = rewritten(trace, [&](std::size_t i, const std::vector<ir::Value>&) {
    const Trace::Entry& e = trace.entries()[i];
    return e.node == call.of->stand_in.get() ? call.input : e.argument ? counted(e.node) : ir::Value();
  });
  return made[static_cast<std::size_t>(trace.number_of(trace.results()[0].get()))];
}

const ir::Value& source_of(const ir::Node* deferred) {
  Attachment& note = *attachment(deferred);
  if (!note.source) note.source = written_out(*note.call);
  return note.source;
}

Tensor result_of(FrozenCall call, std::optional<Device> device) {
  const Trace& trace = call.of->trace;
  const int depth = static_cast<int>(trace.entries().size());
  ir::Value value = ir::parameter(trace.results()[0].type());
  auto note = std::make_shared<Attachment>();
  note->call = std::make_shared<const FrozenCall>(std::move(call));
  value->attachment = std::move(note);
  return tensor_of(std::move(value), false, depth, device);
}

bool evaluate_call(const Tensor& tensor) {
  if (thread_state().recording) return false;
  const runtime::UnforkedRun unforked;
  ir::Value value;
  std::shared_ptr<const FrozenCall> call;
  std::vector<runtime::Buffer> arguments;
  {
    const std::lock_guard lock(context().graph_mutex);
    value = tensor.state()->value;
    const Attachment* note = attachment(value.get());
    if (!note || !note->call || note->source || note->evaluated() || !context().pending.empty()) return false;
    call = note->call;
    arguments = arguments_of(*call);
  }
  if (arguments.empty()) return false;
  const std::shared_ptr<Engine> engine = default_engine();
  const Device device = tensor.state()->device.value_or(Device());
  std::vector<runtime::Buffer> results = engine->session(device).run(*call->of->graph, arguments, {});
  {
    const std::lock_guard lock(engine->mutex);
    ++engine->evaluations, ++engine->hits;
    engine->ran_last = device;
  }
  ++thread_state().moment;
  ir::Value source;  // released after the lock, as `call` is
  const std::lock_guard lock(context().graph_mutex);
  tensor.state()->depth = 0;
  Attachment& note = *attachment(value.get());
  if (note.evaluated()) return true;  // another thread was faster
  note.buffer = results[0];
  note.call.reset();
  source = std::exchange(note.source, {});
  return true;
}

}  // namespace fusejit
