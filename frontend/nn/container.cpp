#include "fusejit/nn/container.h"

#include <algorithm>

#include "ir/base/check.h"

namespace fusejit::nn {

Functional::Functional(std::function<Tensor(const Tensor&)> f) : f_(std::move(f)) {
  FJ_CHECK(f_, "Functional: there is no function");
}

Module& ModuleItems::operator[](std::int64_t i) const {
  const auto count = static_cast<std::int64_t>(modules_.size());
  FJ_CHECK(i >= -count && i < count, "there is no module {} among {}", i, count);
  return *modules_[static_cast<std::size_t>(i < 0 ? i + count : i)];
}

Sequential& Sequential::push_back(const Module& module) { return push_back(std::to_string(modules_.size()), module); }

Sequential& Sequential::push_back(const std::string& name, const Module& module) {
  std::shared_ptr<Module> shared = module.share();
  add_child(name, *shared);
  modules_.push_back(std::move(shared));
  return *this;
}

Tensor Sequential::forward(const Tensor& x) const {
  Tensor y = x;
  for (Module& module : *this) y = module(y);
  return y;
}

ModuleList& ModuleList::push_back(const Module& module) {
  std::shared_ptr<Module> shared = module.share();
  add_child(std::to_string(modules_.size()), *shared);
  modules_.push_back(std::move(shared));
  return *this;
}

Tensor ModuleList::forward(const Tensor&) const {
  throw UserError("a ModuleList cannot be called: its modules are, one by one");
}

ModuleDict::ModuleDict(std::initializer_list<Item> items) {
  for (const Item& item : items) insert(item.name, *item.module);
}

ModuleDict& ModuleDict::insert(const std::string& name, const Module& module) {
  Item item(name, module);
  add_child(name, *item.module);
  items_.push_back(std::move(item));
  return *this;
}

bool ModuleDict::contains(const std::string& name) const {
  return std::any_of(items_.begin(), items_.end(), [&](const Item& item) { return item.name == name; });
}

Module& ModuleDict::operator[](const std::string& name) const {
  std::string known;
  for (const Item& item : items_) {
    if (item.name == name) return *item.module;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", item.name);
  }
  throw UserError(fmt::format("there is no module '{}' ({})", name, known.empty() ? "there are none" : known));
}

Tensor ModuleDict::forward(const Tensor&) const {
  throw UserError("a ModuleDict cannot be called: its modules are, one by one");
}

}  // namespace fusejit::nn
