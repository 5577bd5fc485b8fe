// Networks from ONNX files, as PyTorch and others export them, as modules like any other: they can be run, frozen
// (freeze() folds batch norm into convolutions), trained and saved. Which ops are understood: docs/onnx.md.
//
//   fj::onnx::Model net = fj::onnx::load(path);
//   fj::Tensor y = net(fj::ones({2, 1, 4, 4}));                            // of one input and one result
//   std::vector<fj::Tensor> all = net.run({fj::ones({8, 1, 4, 4})});       // of any; another batch plans anew
//   fj::Frozen serve = net.freeze();
//   fj::optim::SGD opt(net.parameters(), {.lr = 0.1});
//   std::cout << net.state_dict().contains("0.weight") << ' ' << all[0].shape()[0];  // 1 8
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fusejit/module.h"

namespace fusejit::onnx {

// What the file says of an input or a result.
struct Port {
  std::string name;
  DType dtype = f32;
  std::optional<std::vector<std::int64_t>> shape;  // -1: as the call has it; nothing where the file is silent
};

// The network of a file, as a module.
class Model : public nn::ModuleOf<Model> {
 public:
  // All results of all inputs, in the order of results() and inputs(). Recorded, lazily, as ops of ops.h; whatever
  // follows from shapes alone is computed then. UserError for inputs of another number, kind, rank or extent than the
  // file says, and one for all nodes that these shapes do not fit, each with its name, its op and the reason.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const;
  // run() of a model that has one input and one result; else UserError.
  Tensor forward(const Tensor& x) const override;
  const std::vector<Port>& inputs() const;
  const std::vector<Port>& results() const;

 private:
  friend Model load(const std::string& path);
  struct State;
  explicit Model(std::shared_ptr<State> state);
  std::shared_ptr<const State> state_;
};

// The model in a file of op set 13 to 21; tensors that it keeps in files of their own are read, if those lie in its
// folder. Float initializers are the module's values, under their names in the file, which PyTorch's exporter takes
// from state_dict(): those of one axis or more are trained; numbers without axes, and the statistics of batch norm, are
// state; those that a node reads as plain numbers (Clip, Pad, Resize ...) are constants, as are all integers.
//
// Batch norm has its evaluation form, and dropout is the identity, in training too, unless the graph itself has their
// training forms (torch.onnx.export with training=TrainingMode.TRAINING): those follow train() and eval().
//
// FileError if a file cannot be read. UserError if it is damaged or no model. UnsupportedError for nodes that have no
// meaning here: one that names all of them, each with its op and the reason.
Model load(const std::string& path);

}  // namespace fusejit::onnx
