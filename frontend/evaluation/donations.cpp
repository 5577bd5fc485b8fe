#include "frontend/evaluation/donations.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace fusejit {
namespace {

// The custom gradient of an inner value of the trace, or null.
const CustomNote* custom_note(const Trace::Entry& entry) {
  const Attachment* note = entry.argument ? nullptr : attachment(entry.node);
  return note ? note->custom.get() : nullptr;
}

}  // namespace

std::vector<Gift> given_arguments(const Trace& trace, std::span<const Tensor> wanted_tensors,
                                  std::span<const Donation> donations, std::vector<std::string>& lines) {
  const auto& entries = trace.entries();
  std::vector<Gift> gifts(trace.arguments().size());
  if (donations.empty()) return gifts;
  std::vector<int> explained(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) explained[i] = entries[i].held;
  std::unordered_set<const ir::Node*> wanted;
  for (const Tensor& tensor : wanted_tensors) {
    const ir::Node* node = tensor.state()->value.get();
    wanted.insert(node);
    const auto number = static_cast<std::size_t>(trace.number_of(node));
    if (entries[number].node == node) ++explained[number];
  }
  const auto explain = [&](const ir::Node* node) {
    const int number = trace.number_of(node);
    if (number >= 0 && entries[static_cast<std::size_t>(number)].node == node)
      ++explained[static_cast<std::size_t>(number)];
  };
  // What custom gradients of inner values hold goes with the trace.
  std::unordered_map<std::shared_ptr<TensorState>, long> saved;  // with the number of handles
  std::unordered_set<const std::vector<ir::Value>*> kept;
  for (const Trace::Entry& entry : entries) {
    const CustomNote* note = custom_note(entry);
    if (!note) continue;
    for (const ir::Value& input : note->inputs) explain(input.get());
    if (note->kept && kept.insert(note->kept.get()).second)
      for (const ir::Value& value : *note->kept) explain(value.get());
    for (const Tensor& tensor : note->saved) {
      if (tensor.defined()) ++saved.try_emplace(tensor.state(), 1).first->second;  // from 1: the map's own
    }
  }
  for (const auto& [state, handles] : saved) {
    if (state.use_count() == handles) explain(state->value.get());
  }
  std::unordered_map<const ir::Node*, const Donation*> given;
  for (const Donation& donation : donations) {
    const ir::Node* node = donation.value.state()->value.get();
    const int number = trace.number_of(node);
    if (number < 0) continue;
    const Trace::Entry& entry = entries[static_cast<std::size_t>(number)];
    if (!entry.argument || entry.node != node) continue;
    given[node] = &donation;
    ++explained[static_cast<std::size_t>(number)];
  }
  std::vector<char> needed(entries.size());
  std::vector<std::size_t> open;
  const auto need = [&](const ir::Value& value) {
    const int number = value ? trace.number_of(value.get()) : -1;
    if (number >= 0 && !std::exchange(needed[static_cast<std::size_t>(number)], 1))
      open.push_back(static_cast<std::size_t>(number));
  };
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].argument && entries[i].node->references.load() > explained[i]) needed[i] = 1, open.push_back(i);
  }
  for (const Trace::Leaf& leaf : trace.leaves()) {  // those that are wanted have their value afterwards
    if (!wanted.contains(leaf.node) && leaf.node->references.load() > leaf.held)
      needed[static_cast<std::size_t>(leaf.number)] = 1, open.push_back(static_cast<std::size_t>(leaf.number));
  }
  while (!open.empty()) {
    const Trace::Entry& entry = entries[open.back()];
    open.pop_back();
    if (entry.argument) continue;
    for (const ir::Operand& operand : entry.node->operands) need(operand.value);
    if (const CustomNote* note = custom_note(entry)) {
      for (const ir::Value& input : note->inputs) need(input);
      for (const Tensor& tensor : note->saved) need(tensor.defined() ? tensor.state()->value : ir::Value());
    }
  }
  for (std::size_t a = 0; a < gifts.size(); ++a) {
    const auto number = static_cast<std::size_t>(trace.arguments()[a]);
    const ir::Node* node = entries[number].node;
    const auto found = given.find(node);
    if (found == given.end()) continue;
    const Donation& donation = *found->second;
    const auto held = saved.find(donation.value.state());
    const long own = held == saved.end() ? 0 : held->second;
    const bool other_handle = donation.value.state().use_count() > donation.owners + own ||
                              node->references.load() > explained[number] || needed[number] != 0;
    const bool is_result = std::any_of(trace.results().begin(), trace.results().end(), [&](const ir::Value& r) {
      return trace.number_of(r.get()) == trace.arguments()[a];
    });
    if (other_handle) {
      lines.push_back(
          fmt::format("{} is not donated, because another handle still needs its old value", donation.name));
    }
    if (is_result) continue;
    const runtime::Buffer& buffer = attachment(node)->buffer;
    if (!other_handle && buffer.exclusive()) {
      gifts[a] = Gift::whole;
    } else if (buffer.device().is_cpu()) {
      gifts[a] = Gift::copy;
    }
  }
  return gifts;
}

}  // namespace fusejit
