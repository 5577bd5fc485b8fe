// Frozen: a network for serving. Nothing about it changes any more, so it may be called from many threads at once, and
// what depends on its parameters alone is computed once: batch-norm is folded into the convolution before it, weights
// are packed as the kernels of the cpu read them (kept beside the original ones, for as long as those live).
#pragma once

#include <memory>

#include "fusejit/tensor.h"
#include "fusejit/warmup.h"

namespace fusejit {

namespace nn {
class Module;
}

class Frozen {
 public:
  // x -> forward(x) in evaluation mode. Records, lazily; a new type of x is planned once. UserError as forward's.
  Tensor operator()(const Tensor& x) const;

  using Input = InputType;
  // Plans and compiles for inputs of this type now, so that the time and the errors (UnsupportedError, DeviceError)
  // come here: serve.compile({fj::f32, {1, 3, 224, 224}}).
  void compile(const Input& input) const;

 private:
  friend class nn::Module;
  struct State;
  explicit Frozen(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace fusejit
