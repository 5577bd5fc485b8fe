// What a Tensor handle points to, and what the front end notes on nodes.
//
// Everything a value needs hangs on its node: operands, and for a leaf or an evaluated value the buffer. So lifetimes
// follow from counting alone. TensorState::value, Node::attachment and the members of Attachment are read and written
// under Context::graph_mutex only; values and buffers are never released under it, because a deleter may call us.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fusejit/grad.h"
#include "fusejit/tensor.h"
#include "ir/node.h"
#include "runtime/buffer.h"

namespace fusejit {

struct ParameterStorage;  // frontend/parameter_storage.h
struct FrozenCall;        // frontend/evaluation/frozen_call.h

// What a node carries that is the result of a custom gradient. An empty tensor among `saved` stands for the result
// itself, which would otherwise keep itself alive.
struct CustomNote {
  std::vector<ir::Value> inputs;
  std::vector<Tensor> saved;
  CustomBackward backward;
  std::optional<Device> device;                        // of the result
  std::shared_ptr<const std::vector<ir::Value>> kept;  // by the backward function, beside what is saved
};

// What is known of a node beside its operands.
struct Attachment {
  runtime::Buffer buffer;  // the value, if it is there
  // Of a leaf whose value is still to be computed: what computes it. Gradients end at the leaf; computing looks through
  // it, and once the value is there, what it was computed from is forgotten.
  ir::Value source;
  std::shared_ptr<const FrozenCall> call;  // the source, not written out
  std::optional<ir::Scalar> number;        // a host scalar; its buffer is made when a plan first takes it
  std::uint64_t checksum = 0;              // of borrowed bytes, if they are checked
  bool borrowed = false;
  bool donated_to_run = false;  // to a plan that is running and may overwrite it: who needs it waits until that is over
  std::shared_ptr<const CustomNote> custom;
  std::weak_ptr<ParameterStorage> owner;  // of a leaf: the parameter whose value it is, or was

  Attachment() = default;
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;
  bool evaluated() const { return buffer || number; }
};

inline Attachment* attachment(const ir::Node* node) { return static_cast<Attachment*>(node->attachment.get()); }
inline bool evaluated(const ir::Node* node) { return node->attachment && attachment(node)->evaluated(); }
// A leaf that is still to be computed.
inline bool deferred(const ir::Node* node) {
  return node->attachment && (attachment(node)->source || attachment(node)->call);
}
// What computes it, written out if it is not yet. Caller holds the graph lock.
const ir::Value& source_of(const ir::Node* deferred);

struct TensorState {
  ir::Value value;
  Type type;  // value's, readable without the lock
  std::atomic<bool> needs_grad = false;
  std::atomic<bool> joins_plans =
      false;                     // while its handle is there, the next plan that shares work with it computes it too
  std::int64_t recorded = 0;     // ThreadState::moment
  bool without_history = false;  // detached, or recorded without gradients: marked, it is a leaf
  std::atomic<int> depth = 0;    // recorded operations on the longest way from here to something evaluated
  // Where it lives; nothing for host numbers and what is computed from them alone, which are good on every device.
  std::optional<Device> device;
};

// What a handle points to. UserError for an empty one.
const TensorState& state_of(const std::shared_ptr<TensorState>& state);
// A leaf that holds a buffer or a host scalar.
ir::Value leaf(runtime::Buffer buffer, std::string name = "");
ir::Value leaf(ir::Scalar number);
// The same value as a leaf: without history, computed when it is asked for, or with what shares work with it. Of a
// parameter, which owns it then, not the leaf that is another parameter's value: gradients by the two would be one.
Tensor as_leaf(const Tensor& tensor, bool needs_grad, const std::shared_ptr<ParameterStorage>& of = nullptr);
// A handle on a value.
Tensor tensor_of(ir::Value value, bool needs_grad, int depth, std::optional<Device> device);
Tensor tensor_of(runtime::Buffer buffer);
// The value on a device, without history: itself if it is there, else evaluated and copied.
Tensor copy_on(const Tensor& tensor, const Device& device);
// A copy of the state's value, taken under the lock.
ir::Value value_of(const Tensor& tensor);

}  // namespace fusejit
