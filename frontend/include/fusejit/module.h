// Module: named parameters and state, and a forward function. Parameter: a place that holds a tensor.
//
// Copies of a Module or Parameter name the same values, as handles do. A module of one's own:
//   struct Net : fj::nn::ModuleOf<Net> {
//     fj::nn::Conv2d conv = add("conv", fj::nn::Conv2d(1, 8, 3));
//     fj::nn::Linear head = add("head", fj::nn::Linear(8 * 26 * 26, 10));
//     fj::Tensor forward(const fj::Tensor& x) const override { return head(fj::flatten(fj::relu(conv(x)), 1)); }
//   };
//
// A layer that is made and not added belongs to no module: the first step whose loss depends on it is an error
// (train.h).
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "fusejit/frozen.h"
#include "fusejit/io.h"
#include "fusejit/ops.h"

namespace fusejit {

struct ParameterStorage;  // frontend/parameter_storage.h

namespace nn {

// A place that holds a tensor: what is trained, or state. A handle: copies name the same place. One tensor that two
// places are given is a value of each: it has a gradient by each, and an update of one leaves the other as it is.
class Parameter {
 public:
  // trainable: the optimiser updates it, and it asks for gradients; else it is state, such as running statistics.
  // UserError for an empty value, or one that is no float and trainable. As after set(), the value is a leaf.
  Parameter(std::string name, Tensor value, bool trainable = true);
  Tensor value() const;  // as it is now
  operator Tensor() const { return value(); }
  // A new value of the same type; handles of the old one keep it. It becomes a leaf: gradients end at the parameter,
  // and once it is computed, when it is asked for or with what shares work with it, what it was computed from is
  // forgotten. UserError for another type.
  void set(const Tensor& value) const;
  const std::string& name() const;
  bool trainable() const;
  const std::shared_ptr<ParameterStorage>& storage() const { return storage_; }  // internal

 private:
  std::shared_ptr<ParameterStorage> storage_;
};

struct LoadOptions {
  bool strict = true;    // false: what does not fit is left as it is
  bool convert = false;  // floats of another dtype are rounded to the module's; otherwise they do not fit
};

// What was not loaded, and what was as another dtype, by names in the module's order, unknown ones in alphabetical
// order.
//   fj::nn::Linear head(512, 10);
//   fj::nn::Unloaded left = head.load_state_dict({{"weight", fj::ones({1000, 512})}}, {.strict = false});
//   std::cout << left.misshapen[0].given.shape[0] << ' ' << left.missing[0];  // 1000 bias
// f32 values for a module in bf16:
//   fj::nn::Linear half(512, 10);
//   half.to(fj::bf16);
//   fj::nn::Unloaded report = half.load(path, {.convert = true});
//   std::cout << report.converted[0].name << ' ' << report.converted[0].given.str();  // weight f32[10,512]
struct Unloaded {
  // A value that is not of the type of its own.
  struct Misshapen {
    std::string name;
    Type given, own;
  };
  std::vector<std::string> missing;     // the module's, not given
  std::vector<std::string> unexpected;  // given, not the module's
  std::vector<Misshapen> misshapen;     // of another shape or dtype than the module's
  std::vector<Misshapen> converted;     // loaded, but rounded to the module's dtype: with LoadOptions::convert alone
  bool empty() const { return missing.empty() && unexpected.empty() && misshapen.empty(); }
};

class Module {
 public:
  Module();
  virtual ~Module() = default;
  // What it computes. A module overrides one of the two: the const one, or, if its forward changes members of its own,
  // the other; an object of such a class that is declared const must not be called then. Whichever it is, both can be
  // called: a module is a handle, and a const one names the same values.
  virtual Tensor forward(const Tensor& x);
  virtual Tensor forward(const Tensor& x) const;
  // forward(x). Errors begin with the name of the module that they come from: "in layer1.0.conv2: conv2d: ...", if it
  // is called so and is not the outermost one.
  Tensor operator()(const Tensor& x);
  Tensor operator()(const Tensor& x) const;

  // With the modules added, in the order of adding. Names are joined by dots.
  std::vector<Parameter> parameters() const;                                // trainable ones
  std::vector<std::pair<std::string, Parameter>> named_parameters() const;  // trainable ones
  std::vector<std::pair<std::string, Parameter>> named_values() const;      // state too

  // Dropout and batch-norm behave differently in training (the default) and in evaluation.
  Module& train(bool on = true);
  Module& eval() { return train(false); }
  bool is_training() const;

  // In training, only what it reads is kept for the gradient, which computes the rest of it again: less memory for more
  // time, module by module. As recomputed() in grad.h; modules within it are computed again with it.
  //   fj::nn::Sequential block(fj::nn::Conv2d(3, 8, 3), fj::nn::BatchNorm2d(8), fj::nn::ReLU());
  //   block.recompute();
  Module& recompute(bool on = true);
  // The same of a module within it, by its name as in the names of its values. UserError if there is none.
  //   fj::models::ResNet net = fj::models::resnet18();
  //   net.recompute("layer1").recompute("layer2.0");
  Module& recompute(const std::string& name, bool on = true);
  Module& recompute(const char* name, bool on = true) { return recompute(std::string(name), on); }

  // Makes every float value one of this float dtype. Parameters keep their place, but an optimiser that has state for
  // them must be made anew.
  Module& to(DType dtype);

  // Moves every value to a device. Parameters keep their place, and an optimiser's state follows its parameters.
  Module& to(const Device& device);
  Module& to(const std::string& device) { return to(Device(device)); }

  // Every parameter and state by its name, as it is now and where it is; lazy. save() brings values to the host,
  // load_state_dict() to the devices of the parameters.
  StateDict state_dict() const;
  // Sets every value to the one of its name. All of it or nothing: one UserError that counts what is missing, unknown,
  // or of another shape or dtype, and names the first five of each. With strict = false, sets what fits and returns the
  // rest. With convert = true, floats of another dtype fit too: they are rounded to nearest even (beyond f16's range to
  // infinity), and returned as converted. Entries called num_batches_tracked, which PyTorch writes, are passed over.
  Unloaded load_state_dict(const StateDict& values, LoadOptions options = {});
  // state_dict() as a file, and back: .npz, or .safetensors if the name ends so. Errors as in io.h.
  void save(const std::string& path) const;
  Unloaded load(const std::string& path, LoadOptions options = {});

  // The modules within it as a tree, which std::cout << net prints: names as of state_dict(), classes, and the types of
  // parameters and state, as they are now.
  //
  //   fj::nn::Sequential net(fj::nn::Linear(4, 2), fj::nn::ReLU());
  //   std::cout << net;
  //   // Sequential(
  //   //   (0): Linear(weight: f32[2,4], bias: f32[2])
  //   //   (1): ReLU()
  //   // )
  std::string str() const;

  // A copy for serving: parameters as they are now, evaluation mode, batch-norm folded into convolutions. Immutable,
  // callable from any number of threads.
  Frozen freeze() const;

  virtual std::shared_ptr<Module> share() const = 0;  // another handle on the same module; see ModuleOf
  std::mutex& step_mutex() const;                     // steps on one module run one after another

 protected:
  // Adds a parameter to train, or a state that the module itself sets, under a name, and returns it. UserError, here
  // and for modules, if there is one of that name, or if another value would have the same name, dots included.
  Parameter parameter(const std::string& name, const Tensor& value);
  Parameter state(const std::string& name, const Tensor& value);
  // Adds a module under a name and returns it. UserError if that module holds this one.
  template <class M>
  M add(const std::string& name, M module) {
    add_child(name, module);
    return module;
  }
  void add_child(const std::string& name, const Module& module);
  // f(), as a call of this module: for an operator() of one's own with several inputs.
  Tensor as_call(const std::function<Tensor()>& f) const;

 private:
  struct Tree;
  friend struct ModuleCall;
  std::string name_of(const Tree& tree) const;
  void check_name(const char* what, const std::string& name, const Module* module) const;
  static void describe(const Tree& tree, const std::string& kind, int depth, std::string& text);
  static void collect(const Tree& tree, const std::string& prefix,
                      std::vector<std::pair<std::string, Parameter>>& found, int depth);
  std::shared_ptr<Tree> tree_;
};

// As Module::str().
std::ostream& operator<<(std::ostream& out, const Module& module);

// True for a module that overrides neither forward: only then the name means Module's own.
template <class M>
concept HasNoForward = requires(void (*take)(Tensor (Module::*)(const Tensor&))) {
  take(&M::forward);
};

// What modules derive from: struct Net : fj::nn::ModuleOf<Net>. Gives Module what it needs to know of the class.
template <class Self>
class ModuleOf : public Module {
 public:
  std::shared_ptr<Module> share() const override {
    static_assert(!HasNoForward<Self>,
                  "a module says what it computes: Tensor forward(const Tensor& x) const override");
    return std::make_shared<Self>(static_cast<const Self&>(*this));
  }
};

}  // namespace nn
}  // namespace fusejit
