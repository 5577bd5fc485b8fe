#include "fusejit/module.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "frontend/context.h"
#include "frontend/nn/module_tree.h"
#include "frontend/nn/shapes_only.h"
#include "frontend/parameter_storage.h"
#include "fusejit/grad.h"
#include "ir/base/check.h"
#include "ir/base/placed_error.h"

namespace fusejit::nn {

Parameter::Parameter(std::string name, Tensor value, bool trainable) : storage_(std::make_shared<ParameterStorage>()) {
  FJ_CHECK(value.defined(), "parameter '{}' has no value", name);
  storage_->name = std::move(name);
  storage_->trainable = trainable;
  FJ_CHECK(!trainable || is_float(value.dtype()), "parameter '{}' is {}, only float tensors can be trained",
           storage_->name, value.type().str());
  storage_->family = std::make_shared<Family>();
  storage_->value = as_leaf(value, trainable, storage_);
}

const std::string& Parameter::name() const { return storage_->name; }
bool Parameter::trainable() const { return storage_->trainable; }

Tensor Parameter::value() const {
  if (const StandIns* values = thread_state().stand_ins) {
    if (const auto found = values->find(storage_.get()); found != values->end()) return found->second;
  }
  const std::lock_guard lock(storage_->mutex);
  return storage_->value;
}

void Parameter::set(const Tensor& value) const {
  FJ_CHECK(value.defined(), "parameter '{}' cannot be set to an empty tensor", storage_->name);
  if (const Device home = this->value().device(); value.state()->device && value.device() != home) {
    throw UserError(fmt::format("parameter '{}' is {} on {}, the new value {} is on {}", storage_->name,
                                this->value().type().str(), home.str(), value.type().str(), value.device().str()));
  }
  const Tensor replacement = as_leaf(value, storage_->trainable, storage_);
  // Noted before it is done: where there is no memory for the note, nothing is done.
  if (Recording* recording = thread_state().recording; recording && !recording->frozen) {
    const bool known = std::any_of(recording->before.begin(), recording->before.end(),
                                   [&](const auto& b) { return b.first == storage_; });
    if (!known) recording->before.emplace_back(storage_, this->value());
  }
  Tensor old;  // released after the lock
  {
    const std::lock_guard lock(storage_->mutex);
    old = storage_->value;
    FJ_CHECK(old.dtype() == value.dtype() && old.shape() == value.shape(), "parameter '{}' is {}, the new value is {}",
             storage_->name, old.type().str(), value.type().str());
    storage_->value = replacement;
  }
}

// A module that is being called on this thread, and where it stands in the outermost one: "layer1.0.conv2".
struct ModuleCall {
  ModuleCall(const Module& module, Module::Tree& tree);
  ~ModuleCall() { thread_state().call = outer; }
  ModuleCall(const ModuleCall&) = delete;
  ModuleCall& operator=(const ModuleCall&) = delete;

  const ModuleCall* outer;
  const Module* named;          // this one; where nobody has added it, the nearest around it that `place` names
  const char* place = nullptr;  // kept; null: the outermost
  std::optional<ir::OriginScope> origin;
};

// The name under which a module holds another one, perhaps deep within; empty if it does not.
std::string Module::name_of(const Tree& tree) const {
  for (const auto& [name, child] : tree_->children) {  // as a rule
    if (child.get() == &tree) return name;
  }
  std::vector<std::pair<const Tree*, std::string>> open{{tree_.get(), ""}};
  std::unordered_set<const void*> seen;
  for (std::size_t i = 0; i < open.size(); ++i) {
    const auto [at, prefix] = open[i];
    if (!seen.insert(at).second) continue;
    for (const auto& [name, child] : at->children) {
      if (child.get() == &tree) return prefix + name;
      open.emplace_back(child.get(), prefix + name + ".");
    }
  }
  return "";
}

namespace {

bool is_joined(std::string_view path, std::string_view outer, std::string_view name) {
  return path.size() == outer.size() + 1 + name.size() && path.starts_with(outer) && path[outer.size()] == '.' &&
         path.ends_with(name);
}

}  // namespace

ModuleCall::ModuleCall(const Module& module, Module::Tree& tree) : outer(thread_state().call), named(&module) {
  if (outer) {
    const std::string name = outer->named->name_of(tree);
    const char* const last = tree.last_place;
    if (name.empty()) {
      named = outer->named, place = outer->place;
    } else if (last && (outer->place ? is_joined(last, outer->place, name) : last == name)) {
      place = last;
    } else {
      place = ir::kept_name(outer->place ? fmt::format("{}.{}", outer->place, name) : name);
      tree.last_place = place;
    }
  }
  origin.emplace(ir::Origin{place});
  thread_state().call = this;
}

namespace {

// Throws an error of the same type that begins with the place, unless it has one: the module within has seen to that.
[[noreturn]] void throw_placed(const Error& error) {
  std::size_t& last = thread_state().placed_error;
  if (std::hash<std::string_view>()(error.what()) == last) throw;
  const char* const place = thread_state().call->place;
  if (!place) throw;
  const std::string sentence = fmt::format("in {}: {}", place, error.what());
  last = std::hash<std::string_view>()(sentence);
  ir::throw_with_sentence(error, sentence);
}

}  // namespace

Tensor Module::as_call(const std::function<Tensor()>& f) const {
  const ModuleCall call(*this, *tree_);
  try {
    return tree_->recomputes && tree_->training ? recomputed(f) : f();
  } catch (const Error& error) {
    throw_placed(error);
  }
}

Tensor Module::operator()(const Tensor& x) {
  return as_call([&] { return forward(x); });
}
// As the other one, so that a class that derives from a layer and overrides the form without const is called by it.
Tensor Module::operator()(const Tensor& x) const { return const_cast<Module&>(*this)(x); }

// Each calls the other one: ModuleOf sees to it that a module overrides one of them. The cast takes away what a const
// handle never meant; a forward that changes no member may be called of an object that is declared const.
Tensor Module::forward(const Tensor& x) { return std::as_const(*this).forward(x); }
Tensor Module::forward(const Tensor& x) const { return const_cast<Module*>(this)->forward(x); }

Module::Module() : tree_(std::make_shared<Tree>()) {}

std::mutex& Module::step_mutex() const { return tree_->step_mutex; }

void Module::collect(const Tree& tree, const std::string& prefix, std::vector<std::pair<std::string, Parameter>>& found,
                     int depth) {
  FJ_CHECK(depth < kDeepest, "modules are nested more than {} deep", kDeepest);
  for (const auto& [name, value] : tree.values) found.emplace_back(prefix + name, value);
  for (const auto& [name, child] : tree.children) collect(*child, prefix + name + ".", found, depth + 1);
}

std::vector<std::pair<std::string, Parameter>> Module::named_values() const {
  std::vector<std::pair<std::string, Parameter>> found;
  collect(*tree_, "", found, 0);
  std::unordered_set<std::string_view> names;  // what was added to a module after it was added itself may clash
  for (const auto& [name, value] : found) FJ_CHECK(names.insert(name).second, "two values are called '{}'", name);
  return found;
}

std::vector<std::pair<std::string, Parameter>> Module::named_parameters() const {
  std::vector<std::pair<std::string, Parameter>> found = named_values();
  std::erase_if(found, [](const auto& named) { return !named.second.trainable(); });
  return found;
}

std::vector<Parameter> Module::parameters() const {
  std::vector<Parameter> found;
  for (auto& [name, value] : named_parameters()) found.push_back(value);
  return found;
}

Module& Module::recompute(bool on) {
  tree_->recomputes = on;
  return *this;
}

Module& Module::recompute(const std::string& name, bool on) {
  Tree* tree = tree_.get();
  std::string_view left = name;
  while (!left.empty()) {
    // A name may have dots itself.
    const auto found = std::find_if(tree->children.begin(), tree->children.end(), [&](const auto& child) {
      return left == child.first || (left.starts_with(child.first) && left[child.first.size()] == '.');
    });
    if (found == tree->children.end()) {
      std::vector<std::string_view> there;
      for (const auto& child : tree->children) there.push_back(child.first);
      const std::string_view within(name.data(), name.size() - left.size());
      FJ_CHECK(false, "recompute: there is no module '{}' in {} (there are: {})", left,
               within.empty() ? kind_of(*this) : std::string(within.substr(0, within.size() - 1)),
               there.empty() ? "none" : fmt::format("{}", fmt::join(there, ", ")));
    }
    left.remove_prefix(std::min(left.size(), found->first.size() + 1));
    tree = found->second.get();
  }
  tree->recomputes = on;
  return *this;
}

Module& Module::train(bool on) {
  std::vector<Tree*> open{tree_.get()};
  while (!open.empty()) {
    Tree* tree = open.back();
    open.pop_back();
    tree->training = on;
    for (const auto& [name, child] : tree->children) open.push_back(child.get());
  }
  return *this;
}

bool Module::is_training() const { return tree_->training && !thread_state().stand_ins; }

Module& Module::to(DType dtype) {
  FJ_CHECK(is_float(dtype), "to: a module's values are floats, {} is not", fusejit::name(dtype));
  for (const auto& [name, parameter] : named_values()) {
    const Tensor value = parameter.value();
    if (!is_float(value.dtype()) || value.dtype() == dtype) continue;
    Tensor converted =
        ShapesOnly::is_on() ? without_value({dtype, value.shape(), Layout::standard}) : value.to(dtype).detach().eval();
    if (parameter.trainable()) converted.requires_grad();
    {
      const std::lock_guard lock(parameter.storage()->mutex);
      parameter.storage()->value = converted;
    }
    note_owner(parameter);
  }
  return *this;
}

Module& Module::to(const Device& device) {
  std::vector<std::pair<Parameter, Tensor>> moved;  // all of them first: what fails, fails here
  for (const auto& [name, parameter] : named_values()) {
    moved.emplace_back(parameter, copy_on(parameter.value(), device));
  }
  for (auto& [parameter, copy] : moved) {
    if (parameter.trainable()) copy.requires_grad();
    {
      const std::lock_guard lock(parameter.storage()->mutex);
      std::swap(parameter.storage()->value, copy);
    }
    note_owner(parameter);
  }
  return *this;
}

// Two values of one name would be one in a state_dict. Names may hold dots, so whole names are compared.
void Module::check_name(const char* what, const std::string& name, const Module* module) const {
  const auto refuse = [&](const std::string& clash) {
    throw UserError(fmt::format("{} '{}' cannot be added: there is one called '{}' already", what, name, clash));
  };
  FJ_CHECK(!name.empty(), "a {} must have a name", what);
  for (const auto& [child_name, child] : tree_->children) {
    if (child_name == name) refuse(name);
  }
  bool may_be_within = module != nullptr;  // a value's name that begins with a module's may be that of one within
  for (const auto& [child_name, child] : tree_->children) {
    may_be_within = may_be_within || (name.starts_with(child_name) && name[child_name.size()] == '.');
  }
  for (const auto& [value_name, value] : tree_->values) {
    if (value_name == name) refuse(name);
  }
  if (!may_be_within) return;
  std::unordered_set<std::string> known;
  for (const auto& [known_name, value] : named_values()) known.insert(known_name);
  if (known.contains(name)) refuse(name);
  if (!module) return;
  for (const auto& [inner, value] : module->named_values()) {
    if (known.contains(name + "." + inner)) refuse(name + "." + inner);
  }
}

Parameter Module::parameter(const std::string& name, const Tensor& value) {
  check_name("parameter", name, nullptr);
  Parameter made(name, value, true);
  made.storage()->family = tree_->family;
  return tree_->values.emplace_back(name, std::move(made)).second;
}

Parameter Module::state(const std::string& name, const Tensor& value) {
  check_name("state", name, nullptr);
  return tree_->values.emplace_back(name, Parameter(name, value, false)).second;
}

void Module::add_child(const std::string& name, const Module& module) {
  std::unordered_set<const Tree*> within;  // a module that holds this one would hold itself
  std::vector<const Tree*> open{module.tree_.get()};
  while (!open.empty()) {
    const Tree* tree = open.back();
    open.pop_back();
    FJ_CHECK(tree != tree_.get(), "module '{}' cannot be added to itself", name);
    if (!within.insert(tree).second) continue;
    for (const auto& [child_name, child] : tree->children) open.push_back(child.get());
  }
  check_name("module", name, &module);
  module.tree_->kind = kind_of(module);
  tree_->children.emplace_back(name, module.tree_);
  join(tree_->family, module.tree_->family);
}

}  // namespace fusejit::nn
