// What a function records, kept as a graph, so that its gradient can compute it again from what it read.
#include <unordered_map>
#include <unordered_set>

#include "frontend/context.h"
#include "frontend/grad.h"
#include "frontend/record.h"
#include "frontend/state.h"
#include "fusejit/grad.h"
#include "ir/base/check.h"
#include "ir/passes/recompute.h"

namespace fusejit {
namespace {

// A gradient that is given, within a part.
struct Given {
  std::shared_ptr<const CustomNote> note;
  std::vector<const ir::Node*> saved;  // by it; none: its own result
};

// What was recorded between what it reads and its result.
struct Part {
  const ir::Node* result = nullptr;
  std::shared_ptr<const std::vector<ir::Value>> values;  // with what they read, operands before users
  std::unordered_set<const ir::Node*> outside;           // what they read
  std::unordered_map<const ir::Node*, Given> given;
};

// `first`: the serial of whatever is recorded first. What has its value already is not computed again.
Part part_of(const ir::Value& result, std::uint64_t first) {
  Part part{result.get(), {}, {}, {}};
  std::vector<ir::Value> roots{result}, left{result};
  std::unordered_set<const ir::Node*> seen;
  {
    const std::lock_guard lock(context().graph_mutex);
    while (!left.empty()) {
      const ir::Value value = std::move(left.back());
      left.pop_back();
      if (!value || !seen.insert(value.get()).second) continue;
      if (value->serial < first || value->op == ir::Op::parameter || evaluated(value.get())) {
        part.outside.insert(value.get());
        continue;
      }
      for (const ir::Operand& operand : value->operands) left.push_back(operand.value);
      const Attachment* const note = attachment(value.get());
      if (note == nullptr || note->custom == nullptr) continue;
      Given& given = part.given[value.get()];
      given.note = note->custom;
      for (const Tensor& saved : note->custom->saved)
        given.saved.push_back(saved.defined() ? saved.state()->value.get() : nullptr);
      std::vector<ir::Value> more = given.note->inputs;
      for (const Tensor& saved : note->custom->saved)
        if (saved.defined()) more.push_back(saved.state()->value);
      roots.insert(roots.end(), more.begin(), more.end());
      left.insert(left.end(), more.begin(), more.end());
    }
  }
  part.values = std::make_shared<const std::vector<ir::Value>>(ir::needed_values(roots, part.outside));
  return part;
}

// The result once more, in the region at hand, from `read` in place of what is outside, in its order: a part within
// another one is computed again from what that computes again.
ir::Value computed_again(const Part& part, const std::vector<Tensor>& read, std::optional<Device> device) {
  std::unordered_map<const ir::Node*, ir::Value> copies;
  std::size_t next = 0;
  for (const ir::Value& value : *part.values)
    if (part.outside.contains(value.get())) copies.emplace(value.get(), value_of(read[next++]));
  ir::copy_into_region(*part.values, thread_state().region, copies);
  for (const auto& [node, given] : part.given) {
    auto again = std::make_shared<CustomNote>(*given.note);
    for (ir::Value& input : again->inputs) input = copies.at(input.get());
    for (std::size_t i = 0; i < given.saved.size(); ++i)
      if (given.saved[i]) again->saved[i] = tensor_of(copies.at(given.saved[i]), false, 0, device);
    auto note = std::make_shared<Attachment>();
    note->custom = std::move(again);
    copies.at(node)->attachment = std::move(note);
  }
  return copies.at(part.result);
}

}  // namespace

Tensor recomputed(const std::function<Tensor()>& f) {
  FJ_CHECK(f, "recomputed: there is no function");
  const std::uint64_t first = ir::fresh_serial();
  Tensor result = f();
  FJ_CHECK(result.defined(), "recomputed: the function gave an empty result");
  if (!result.needs_grad() || !thread_state().gradients) return result;
  const auto part = std::make_shared<const Part>(part_of(value_of(result), first));
  if (part->outside.contains(part->result)) return result;
  const std::optional<Device> device = result.state()->device;
  std::vector<Tensor> inputs;
  for (const ir::Value& value : *part->values)
    if (part->outside.contains(value.get()))
      inputs.push_back(tensor_of(value, is_float(value.type().dtype), 0, device));
  CustomBackward again = [part, device](const std::vector<Tensor>& saved, const Tensor& g) {
    const Tensor end = tensor_of(computed_again(*part, saved, device), false, 0, device);
    std::vector<bool> leads = leads_to(saved, end, true);
    std::vector<Tensor> inputs, gradients(saved.size());
    for (std::size_t i = 0; i < saved.size(); ++i) {
      leads[i] = leads[i] && is_float(saved[i].dtype());
      if (leads[i]) inputs.push_back(tensor_of(value_of(saved[i]), false, 0, device));
    }
    std::vector<Tensor> found = grad_through({end}, {g}, inputs, true);
    for (std::size_t i = saved.size(); i-- > 0;) {
      if (!leads[i]) continue;
      gradients[i] = std::move(found.back());
      found.pop_back();
    }
    return gradients;
  };
  // A node of its own, which the part does not hold: the rule hangs on it and holds the part.
  ir::Value end = ir::build(ir::Op::detach, {value_of(result)}, std::vector<ir::AttrInit>{}, thread_state().region);
  const Saved made{tensor_of(std::move(end), true, result.state()->depth, device), inputs};
  return with_gradient(made, inputs, std::move(again), part->values);
}

}  // namespace fusejit
