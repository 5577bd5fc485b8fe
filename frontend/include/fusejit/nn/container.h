// Modules that hold modules: Sequential, ModuleList, ModuleDict; and Functional, a function as a module.
//
// What they hold is named as PyTorch does: by numbers from 0, or as the program says. Indexing and iterating give the
// modules themselves.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fusejit/error.h"
#include "fusejit/module.h"

namespace fusejit::nn {

template <class M>
concept AnyModule = std::is_base_of_v<Module, std::remove_cvref_t<M>>;

// Whatever can be called with a tensor and gives one: fj::relu, a lambda, a frozen network.
template <class F>
concept AnyFunction = !AnyModule<F> && std::is_invocable_r_v<Tensor, const std::decay_t<F>&, const Tensor&>;

// A function as a module without parameters. Those of modules that it calls are not its own: it does not hold them.
class Functional : public ModuleOf<Functional> {
 public:
  explicit Functional(std::function<Tensor(const Tensor&)> f);  // UserError for an empty one
  Tensor forward(const Tensor& x) const override { return f_(x); }

 private:
  std::function<Tensor(const Tensor&)> f_;
};

// Modules by number.
class ModuleItems {
 public:
  // Over the modules themselves.
  class Iterator {
   public:
    explicit Iterator(const std::shared_ptr<Module>* at) : at_(at) {}
    Module& operator*() const { return **at_; }
    Iterator& operator++() { return ++at_, *this; }
    bool operator==(const Iterator&) const = default;

   private:
    const std::shared_ptr<Module>* at_;
  };
  Iterator begin() const { return Iterator(modules_.data()); }
  Iterator end() const { return Iterator(modules_.data() + modules_.size()); }
  std::size_t size() const { return modules_.size(); }
  // Negative numbers count from the end; UserError if out of range.
  Module& operator[](std::int64_t i) const;
  // The same as the layer that it is: net.at<fj::nn::Conv2d>(0).weight(). UserError if it is another.
  template <AnyModule M>
  M& at(std::int64_t i) const {
    M* const module = dynamic_cast<M*>(&(*this)[i]);
    if (!module) throw UserError("module " + std::to_string(i) + " is of another type than the one that is asked for");
    return *module;
  }

 protected:
  std::vector<std::shared_ptr<Module>> modules_;
};

// One after another: modules and functions. Each is named by its number: "0", "1", ..., or as push_back says.
//   fj::nn::Sequential head;
//   head.push_back("norm", fj::nn::BatchNorm2d(8)).push_back(fj::nn::ReLU()).push_back(fj::nn::Conv2d(8, 4, 1));
//   bool found = head.state_dict().contains("2.weight");  // and "norm.weight"
//
//   fj::nn::Sequential net(fj::nn::Conv2d(1, 8, 3), fj::relu, [](const fj::Tensor& x) { return x.mean({2, 3}); });
class Sequential : public ModuleOf<Sequential>, public ModuleItems {
 public:
  Sequential() = default;
  template <class... M>
  requires((AnyModule<M> || AnyFunction<M>)&&...) &&
      (sizeof...(M) > 1 ||
       !(std::same_as<std::remove_cvref_t<M>, Sequential> || ...)) explicit Sequential(M&&... modules) {
    (push_back(std::forward<M>(modules)), ...);
  }
  // They name the same module, as handles do. UserError if there is one of that name.
  Sequential& push_back(const Module& module);
  Sequential& push_back(const std::string& name, const Module& module);
  template <AnyFunction F>
  Sequential& push_back(F&& f) {
    return push_back(Functional(std::forward<F>(f)));
  }
  template <AnyFunction F>
  Sequential& push_back(const std::string& name, F&& f) {
    return push_back(name, Functional(std::forward<F>(f)));
  }
  Tensor forward(const Tensor& x) const override;
};

// Modules that the program calls itself; they are named "0", "1", ... A module that holds the list with add() holds
// them. Calling the list is a UserError.
//   fj::nn::ModuleList layers(fj::nn::Linear(4, 4), fj::nn::Linear(4, 4));
//   fj::Tensor y = fj::ones({2, 4});
//   for (fj::nn::Module& layer : layers) y = fj::relu(layer(y)) + y;
class ModuleList : public ModuleOf<ModuleList>, public ModuleItems {
 public:
  ModuleList() = default;
  template <AnyModule... M>
  requires(sizeof...(M) > 1 ||
           !(std::same_as<std::remove_cvref_t<M>, ModuleList> || ...)) explicit ModuleList(const M&... modules) {
    (push_back(modules), ...);
  }
  ModuleList& push_back(const Module& module);
  Tensor forward(const Tensor& x) const override;
};

// The same by name, in the order in which they came.
//   fj::nn::ModuleDict heads({{"boxes", fj::nn::Linear(8, 4)}, {"classes", fj::nn::Linear(8, 10)}});
//   fj::Tensor boxes = heads["boxes"](fj::ones({2, 8}));  // [2,4]
//   for (const auto& [name, head] : heads) std::cout << name << (*head)(fj::ones({2, 8})).shape().str() << ' ';
class ModuleDict : public ModuleOf<ModuleDict> {
 public:
  // A module and its name.
  struct Item {
    std::string name;
    std::shared_ptr<Module> module;
    Item(std::string n, const Module& m) : name(std::move(n)), module(m.share()) {}
  };
  ModuleDict() = default;
  explicit ModuleDict(std::initializer_list<Item> items);
  // UserError if there is one of that name.
  ModuleDict& insert(const std::string& name, const Module& module);
  Module& operator[](const std::string& name) const;  // UserError, with the names that there are, if there is none
  bool contains(const std::string& name) const;
  std::size_t size() const { return items_.size(); }
  std::vector<Item>::const_iterator begin() const { return items_.begin(); }
  std::vector<Item>::const_iterator end() const { return items_.end(); }
  Tensor forward(const Tensor& x) const override;

 private:
  std::vector<Item> items_;
};

}  // namespace fusejit::nn
