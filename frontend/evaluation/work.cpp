#include "frontend/evaluation/work.h"

#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "frontend/context.h"
#include "ir/base/check.h"
#include "ir/base/hash.h"
#include "runtime/profiler.h"

namespace fusejit {

namespace {

// What has to wait for `later` may be on top of what has not: that is computed for its sake, though nobody asks for it.
void collect_pending(Work& work, const Device& device) {
  auto& pending = context().pending;
  std::erase_if(pending, [](const std::weak_ptr<TensorState>& weak) {
    const std::shared_ptr<TensorState> state = weak.lock();
    return !state || evaluated(state->value.get());
  });
  std::unordered_set<const ir::Node*> wanted;
  for (const Tensor& tensor : work.wanted) wanted.insert(tensor.state()->value.get());
  std::vector<Tensor>& open = work.open;
  for (const std::weak_ptr<TensorState>& weak : pending) {
    const std::shared_ptr<TensorState> state = weak.lock();
    if (state && (!state->device || *state->device == device)) open.emplace_back(state);
  }
  for (std::size_t i = 0; i < open.size(); ++i) {
    const TensorState& state = *open[i].state();
    if (work.trace.shares(state.value, work.later)) {
      if (!wanted.insert(state.value.get()).second) continue;
      work.trace.add_result(state.value);
      work.wanted.push_back(open[i]);
    } else if (!work.later.results().empty()) {
      for (ir::Value& leaf : work.trace.open_leaves(state.value, work.later))
        open.push_back(tensor_of(std::move(leaf), false, 0, state.device));
    }
  }
}

// This and the rest are called under graph_mutex.
void trace(Work& work, std::span<const Tensor> wanted, const Device& device, std::span<const Tensor> later) {
  for (const Tensor& tensor : wanted) {
    const ir::Value& value = tensor.state()->value;
    if (evaluated(value.get())) continue;
    if (std::any_of(work.wanted.begin(), work.wanted.end(),
                    [&](const Tensor& t) { return t.state() == tensor.state(); }))
      continue;
    work.trace.add_result(value);
    work.wanted.push_back(tensor);
  }
  if (work.wanted.empty()) return;
  for (const Tensor& tensor : later) work.later.add_result(tensor.state()->value);
  collect_pending(work, device);
}

Attachment* argument(const Work& work, std::size_t a) {
  return attachment(work.trace.entries()[static_cast<std::size_t>(work.trace.arguments()[a])].node);
}

// An argument was donated to a run that is under way.
bool reads_donated(const Work& work) {
  for (std::size_t a = 0; a < work.trace.arguments().size(); ++a) {
    if (const Attachment* note = argument(work, a); note && note->donated_to_run) return true;
  }
  return false;
}

void bind_arguments(Work& work, std::span<const Donation> donations, std::vector<std::string>& lines) {
  work.arguments.resize(work.trace.arguments().size());
  for (const int number : work.trace.arguments())
    argument_buffer(work.trace.entries()[static_cast<std::size_t>(number)].node);
  work.gifts = given_arguments(work.trace, work.wanted, donations, lines);  // before buffers have a second handle
  for (std::size_t a = 0; a < work.arguments.size(); ++a) {
    work.arguments[a] = argument(work, a)->buffer;
    argument(work, a)->donated_to_run = work.gifts[a] == Gift::whole;
  }
}

}  // namespace

// Host numbers are computed where the rest is.
std::vector<Part> parts_of(std::span<const Tensor> wanted) {
  std::vector<Part> parts;
  std::vector<Tensor> numbers;
  for (const Tensor& tensor : wanted) {
    const std::optional<Device>& device = tensor.state()->device;
    if (!device) {
      numbers.push_back(tensor);
      continue;
    }
    auto part = std::find_if(parts.begin(), parts.end(), [&](const Part& p) { return p.device == *device; });
    if (part == parts.end()) part = parts.insert(part, Part{*device, {}});
    part->wanted.push_back(tensor);
  }
  if (parts.empty()) parts.push_back({});
  for (Tensor& number : numbers) parts[0].wanted.push_back(std::move(number));
  return parts;
}

runtime::Buffer argument_buffer(const ir::Node* node) {
  Attachment* note = attachment(node);
  FJ_CHECK(note && note->evaluated(), "a value is needed that no longer exists");
  if (!note->buffer) {
    note->buffer = runtime::Buffer::allocate(node->type);
    ir::store_element(note->buffer.data(), node->type.dtype, 0, *note->number);
  }
  if (note->borrowed && note->checksum != 0 && context().check_borrowed) {
    const auto now = ir::hash_bytes(note->buffer.data(), static_cast<std::size_t>(note->buffer.bytes())).low | 1;
    FJ_CHECK(now == note->checksum, "borrowed memory of a tensor {} was changed by its owner while it was in use",
             node->type.str());
  }
  return note->buffer;
}

void give_back(const Work& work) {
  for (std::size_t a = 0; a < work.gifts.size(); ++a) {
    if (work.gifts[a] == Gift::whole) argument(work, a)->donated_to_run = false;
  }
  context().given_back.notify_all();
}

Work prepare(const Part& part, std::span<const Tensor> later, std::span<const Donation> donations,
             std::vector<std::string>& lines) {
  for (;;) {
    Work work;
    const runtime::ProfileScope scope("trace", "trace");
    std::unique_lock lock(context().graph_mutex);
    trace(work, part.wanted, part.device, later);
    if (!reads_donated(work)) {
      if (!work.wanted.empty()) bind_arguments(work, donations, lines);
      return work;
    }
    context().given_back.wait(lock, [&] { return !reads_donated(work); });
  }  // traced anew: what was being computed is there now
}

}  // namespace fusejit
