// Gradients: passes over what was recorded, so a gradient is lazy too and can be differentiated again.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fusejit/tensor.h"

namespace fusejit {

// d loss / d input for every input. loss: a 0-d (or one-element) float tensor; each input must lead to it.
// UserError otherwise, naming the input. Gradients of what is marked (requires_grad, parameters), and what is computed
// of them, are computed with the loss when that is asked for first, as long as their handles are there.
//   fj::Tensor w = fj::ones({3}).requires_grad();
//   fj::Tensor g = fj::grad(fj::sum(w * w), {w})[0];          // 2, 2, 2
std::vector<Tensor> grad(const Tensor& loss, const std::vector<Tensor>& inputs);
// The sum over the results of cotangent . d result / d input, for every input. cotangents: of the results' types.
std::vector<Tensor> grad(const std::vector<Tensor>& results, const std::vector<Tensor>& cotangents,
                         const std::vector<Tensor>& inputs);

// What value_and_grad() gives.
struct ValueAndGrad {
  Tensor value;
  std::vector<Tensor> gradients;  // one per differentiated argument
};
// A function of tensors, which are its arguments in order.
using TensorFunction = std::function<Tensor(const std::vector<Tensor>&)>;
// A function that computes f and its gradients with respect to the arguments numbered in `which`; f must give one float
// number. UserError for a number that is no argument's.
//   auto f = fj::value_and_grad([](const std::vector<fj::Tensor>& in) { return fj::sum(in[0] * in[0]); });
//   auto [value, gradients] = f({fj::tensor<float>({1, 2})});  // 5 and {2, 4}
std::function<ValueAndGrad(const std::vector<Tensor>&)> value_and_grad(TensorFunction f, std::vector<int> which = {0});
// The gradients alone.
std::function<std::vector<Tensor>(const std::vector<Tensor>&)> grad_of(TensorFunction f, std::vector<int> which = {0});

// While one lives, results recorded on this thread do not ask for gradients and gradients do not flow through them.
//   const fj::NoGrad off;
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

// What the forward function of a custom gradient gives back: the result, and exactly what its backward function needs.
struct Saved {
  Tensor result;
  std::vector<Tensor> saved;
};
// The forward function of a custom gradient, of its inputs in order.
using CustomForward = std::function<Saved(const std::vector<Tensor>& inputs)>;
// Gradients, one per input; an empty Tensor where none flows. What it records is a recomputation of its own: it is
// never merged with equal values of the forward function, so only `saved` is kept alive between the two.
using CustomBackward = std::function<std::vector<Tensor>(const std::vector<Tensor>& saved, const Tensor& gradient)>;
//   auto square = fj::custom_gradient([](auto& in) { return fj::Saved{in[0] * in[0], {in[0]}}; },
//                                     [](auto& saved, auto& g) { return std::vector{2 * saved[0] * g}; });
// UserError if backward gives another number of gradients than there are inputs, or one of another type than its input.
TensorFunction custom_gradient(CustomForward forward, CustomBackward backward);

// f(), of which only what it reads is kept for the gradient: what it makes on the way is computed again there, to the
// same values, random numbers and batch statistics included (activation checkpointing). f itself is called once, and
// what is evaluated in it is kept. Parts may be within one another. Of a module: Module::recompute().
//   fj::Tensor w = fj::ones({3}).requires_grad();
//   fj::Tensor y = fj::recomputed([&] { return fj::exp(fj::sin(w)); });
//   fj::Tensor g = fj::grad(fj::sum(y), {w})[0];  // exp(sin(w)) * cos(w), sin(w) and exp(sin(w)) computed again
Tensor recomputed(const std::function<Tensor()>& f);

struct GradcheckOptions {
  double step = 1e-6;      // h in (f(x + h) - f(x - h)) / 2h
  double absolute = 1e-5;  // |gradient - difference| <= absolute + relative * |difference|
  double relative = 1e-3;
};
// What gradcheck() found.
struct GradcheckResult {
  bool ok = true;
  std::string why;  // the first difference: input, element, numbers
  explicit operator bool() const { return ok; }
};
// Compares the gradient of f with central differences, element by element, in f64. f may have any shape: it is weighted
// by fixed numbers and summed. UserError unless all inputs are f64.
GradcheckResult gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options = {});

}  // namespace fusejit
