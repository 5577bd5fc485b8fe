#include "frontend/donations.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace fusejit {

std::vector<char> donated_arguments(const Trace& trace, std::span<const Tensor> wanted_tensors,
                                    std::span<const Donation> donations, std::vector<std::string>& lines) {
  const auto& entries = trace.entries();
  std::vector<char> donated(trace.arguments().size());
  if (donations.empty()) return donated;
  std::vector<int> explained(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) explained[i] = entries[i].held;
  std::unordered_set<const ir::Node*> wanted;
  for (const Tensor& tensor : wanted_tensors) {
    const ir::Node* node = tensor.state()->value.get();
    wanted.insert(node);
    const auto number = static_cast<std::size_t>(trace.number_of(node));
    if (entries[number].node == node) ++explained[number];
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
  for (const Trace::Leaf& leaf : trace.leaves()) {  // those that are wanted have their value afterwards
    if (!wanted.contains(leaf.node) && leaf.node->references.load() > leaf.held)
      needed[static_cast<std::size_t>(leaf.number)] = 1;
  }
  for (std::size_t i = entries.size(); i-- > 0;) {
    const Trace::Entry& entry = entries[i];
    if (entry.argument) continue;
    if (entry.node->references.load() > explained[i]) needed[i] = 1;
    if (!needed[i]) continue;
    for (const ir::Operand& operand : entry.node->operands) {
      if (operand.value) needed[static_cast<std::size_t>(trace.number_of(operand.value.get()))] = 1;
    }
  }
  for (std::size_t a = 0; a < donated.size(); ++a) {
    const auto number = static_cast<std::size_t>(trace.arguments()[a]);
    const ir::Node* node = entries[number].node;
    const auto found = given.find(node);
    if (found == given.end()) continue;
    const Donation& donation = *found->second;
    const bool other_handle = donation.value.state().use_count() > donation.owners ||
                              node->references.load() > explained[number] || needed[number] != 0;
    const bool is_result = std::any_of(trace.results().begin(), trace.results().end(), [&](const ir::Value& r) {
      return trace.number_of(r.get()) == trace.arguments()[a];
    });
    if (other_handle) {
      lines.push_back(
          fmt::format("{} is not donated, because another handle still needs its old value", donation.name));
    } else if (!is_result && attachment(node)->buffer.exclusive()) {
      donated[a] = 1;
    }
  }
  return donated;
}

}  // namespace fusejit
