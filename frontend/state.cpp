#include "frontend/state.h"

#include <mutex>
#include <utility>

#include "frontend/context.h"
#include "frontend/evaluation/evaluation.h"
#include "ir/base/check.h"

namespace fusejit {

const TensorState& state_of(const std::shared_ptr<TensorState>& state) {
  FJ_CHECK(state, "the tensor is empty: it has no value");
  return *state;
}

ir::Value leaf(runtime::Buffer buffer, std::string name) {
  ir::Value value = ir::parameter(buffer.type(), std::move(name));
  auto note = std::make_shared<Attachment>();
  note->buffer = std::move(buffer);
  value->attachment = std::move(note);
  return value;
}

ir::Value leaf(ir::Scalar number) {
  ir::Value value = ir::parameter(Type{number.dtype, {}, Layout::standard});
  auto note = std::make_shared<Attachment>();
  note->number = number;
  value->attachment = std::move(note);
  return value;
}

Tensor as_leaf(const Tensor& tensor, bool needs_grad, const std::shared_ptr<ParameterStorage>& of) {
  const TensorState& state = *tensor.state();
  ir::Value value = value_of(tensor);
  std::shared_ptr<ParameterStorage> owner;  // released after the lock
  std::unique_lock lock(context().graph_mutex);
  Attachment* known = attachment(value.get());
  const bool has_history = value->op != ir::Op::parameter || (known && known->custom);
  if (of && known) owner = known->owner.lock();
  if (of && known && !has_history && !owner) known->owner = of;
  lock.unlock();
  if (has_history || (owner && owner != of)) {
    const ir::Value given = std::exchange(value, ir::parameter(value.type()));
    auto note = std::make_shared<Attachment>();
    lock.lock();
    if (evaluated(given.get())) {
      const Attachment& had = *attachment(given.get());
      note->buffer = had.buffer, note->number = had.number;
      note->borrowed = had.borrowed, note->checksum = had.checksum;
    } else if (given->op != ir::Op::parameter || deferred(given.get())) {
      note->source = given;
    }
    if (of) note->owner = of;
    value->attachment = std::move(note);
    lock.unlock();
  }
  Tensor leaf = tensor_of(std::move(value), needs_grad, state.depth, state.device);
  join_plans(leaf);
  return leaf;
}

Tensor tensor_of(ir::Value value, bool needs_grad, int depth, std::optional<Device> device) {
  auto state = std::make_shared<TensorState>();
  state->type = value.type();
  state->value = std::move(value);
  state->needs_grad = needs_grad;
  state->depth = depth;
  state->recorded = thread_state().moment;
  state->device = device;
  return Tensor(std::move(state));
}

Tensor tensor_of(runtime::Buffer buffer) {
  const Device device = buffer.device();
  return tensor_of(leaf(std::move(buffer)), false, 0, device);
}

Tensor copy_on(const Tensor& tensor, const Device& device) {
  if (tensor.state()->device == device && !tensor.needs_grad()) return tensor;
  return tensor_of(place(buffer_of(tensor), device));
}

ir::Value value_of(const Tensor& tensor) {
  state_of(tensor.state());
  const std::lock_guard lock(context().graph_mutex);
  return tensor.state()->value;
}

}  // namespace fusejit
