#include "frontend/nn/family.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "frontend/context.h"
#include "frontend/evaluation/trace.h"
#include "frontend/parameter_storage.h"
#include "ir/base/check.h"

namespace fusejit::nn {
namespace {

Family& representative(Family& family) {
  Family* at = &family;
  while (at->joined) at = at->joined.get();
  return *at;
}

struct Reached {
  std::shared_ptr<ParameterStorage> parameter;
  ir::Value leaf;
  std::string reader;  // the op that reads it
};

// Parameters that the gradient of `loss` flows to, in the order in which they are met, each once.
std::vector<Reached> reached_by_gradient(const Tensor& loss) {
  std::vector<Reached> found;
  std::vector<std::pair<ir::Value, const ir::Node*>> stack{{value_of(loss), nullptr}};  // with who reads it
  NodeNumbers seen;
  int count = 0;
  const std::lock_guard lock(context().graph_mutex);
  while (!stack.empty()) {
    const auto [value, reader] = std::move(stack.back());
    stack.pop_back();
    if (!is_float(value.type().dtype) || value->op == ir::Op::detach || seen.find(value.get()) >= 0) continue;
    seen.add(value.get(), count++);
    const Attachment* note = attachment(value.get());
    if (note) {  // kept whatever it is: nothing is released under the lock
      if (auto owner = note->owner.lock())
        found.push_back({std::move(owner), value, reader ? std::string(ir::name(reader->op)) : "the loss"});
    }
    if (note && note->custom) {
      for (const ir::Value& input : note->custom->inputs) stack.emplace_back(input, value.get());
      continue;
    }
    for (const ir::Operand& operand : value->operands) {
      if (operand.value) stack.emplace_back(operand.value, value.get());
    }
  }
  return found;
}

}  // namespace

void join(const std::shared_ptr<Family>& one, const std::shared_ptr<Family>& other) {
  const std::lock_guard lock(context().graph_mutex);
  Family &first = representative(*one), &second = representative(*other);
  if (&first == &second) return;
  first.trained |= second.trained;
  std::shared_ptr<Family> last = one;
  while (last->joined) last = last->joined;
  second.joined = std::move(last);
}

void mark_trained(const std::vector<Parameter>& parameters) {
  const std::lock_guard lock(context().graph_mutex);
  for (const Parameter& parameter : parameters) representative(*parameter.storage()->family).trained = true;
}

void note_owner(const Parameter& parameter) {
  const Tensor value = parameter.value();
  const std::lock_guard lock(context().graph_mutex);
  Attachment* note = attachment(value.state()->value.get());
  // What several parameters hold is the first one's: copies of a value, such as moving averages, are not used for it.
  if (note && note->owner.expired()) note->owner = parameter.storage();
}

void check_families(const Tensor& loss, const std::vector<Parameter>& trained, const std::string& caller) {
  if (!loss.defined()) return;
  std::unordered_set<const ir::Node*> known;
  for (const Parameter& parameter : trained) known.insert(value_of(parameter.value()).get());
  const std::vector<Reached> reached = reached_by_gradient(loss);
  std::vector<Reached> found;
  {
    const std::lock_guard lock(context().graph_mutex);
    std::copy_if(reached.begin(), reached.end(), std::back_inserter(found), [&](const Reached& r) {
      return r.parameter->trainable && !known.contains(r.leaf.get()) && !representative(*r.parameter->family).trained;
    });
  }
  if (found.empty()) return;
  constexpr std::size_t kNamed = 5;
  std::string names;
  for (std::size_t i = 0; i < std::min(kNamed, found.size()); ++i) {
    names += fmt::format("{}'{}' ({}, read by {})", i == 0 ? "" : ", ", found[i].parameter->name,
                         found[i].leaf.type().str(), found[i].reader);
  }
  if (found.size() > kNamed) names += fmt::format(" and {} more", found.size() - kNamed);
  throw UserError(fmt::format(
      "{}: the loss depends on {} {} that nothing trains: no module that is trained holds {} and no optimiser has {}; "
      "add(\"name\", layer) makes a layer part of a module, and a network that is to stay as it is is called under "
      "NoGrad, or as its freeze() gives it",
      caller, found.size() == 1 ? "parameter" : "parameters", names, found.size() == 1 ? "it" : "them",
      found.size() == 1 ? "it" : "one of them"));
}

}  // namespace fusejit::nn
