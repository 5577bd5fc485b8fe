// train_step: forward, gradient and update of one training step as one plan, recorded at each call, compiled once.
//
//   fj::nn::Linear net(2, 1);
//   fj::optim::SGD opt(net.parameters(), {.lr = 0.1});
//   auto step = fj::train_step(net, opt, [&](fj::Tensor x, fj::Tensor y) { return fj::mse_loss(net(x), y); });
//   float loss = step(fj::ones({4, 2}), fj::zeros({4, 1})).item<float>();
//
// What the loss depends on is trained, or says that it is not: the first step is a UserError that names each parameter
// that its gradient would reach while neither an optimiser nor `net`, nor a module that is joined with those by add(),
// has it. As a rule that is a layer that was made as a member and not added. A network that stays as it is, such as a
// teacher, is called under NoGrad (grad.h); one through which gradients flow, such as a network that a loss is made of,
// as its freeze() gives it, or it is part of `net`. Optimizer::step looks for the same.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "fusejit/module.h"
#include "fusejit/optim.h"

namespace fusejit {

struct TrainStepOptions {
  double max_grad_norm = 0;  // > 0: gradients are clipped to this joint norm
};

namespace detail {

class StepCore {
 public:
  StepCore(nn::Module& net, optim::Optimizer& optimizer, TrainStepOptions options);
  // Records f, whose first output is the loss, the gradients and the update, and runs them as one plan.
  std::vector<Tensor> run(const std::function<std::vector<Tensor>()>& f);
  std::int64_t count() const { return count_; }

 private:
  std::shared_ptr<nn::Module> net_;
  optim::Optimizer& optimizer_;
  TrainStepOptions options_;
  std::int64_t count_ = 0;
};

inline std::vector<Tensor> outputs_of(Tensor loss) { return {std::move(loss)}; }
inline std::vector<Tensor> outputs_of(std::vector<Tensor> outputs) { return outputs; }
template <class Tuple>
std::vector<Tensor> outputs_of(Tuple&& tuple) {
  return std::apply([](auto&&... t) { return std::vector<Tensor>{t...}; }, std::forward<Tuple>(tuple));
}

template <class Result>
Result result_of(std::vector<Tensor> outputs) {
  if constexpr (std::is_same_v<Result, Tensor>) {
    return outputs[0];
  } else if constexpr (std::is_same_v<Result, std::vector<Tensor>>) {
    return outputs;
  } else {
    return [&]<std::size_t... i>(std::index_sequence<i...>) { return Result{outputs[i]...}; }
    (std::make_index_sequence<std::tuple_size_v<Result>>());
  }
}

}  // namespace detail

template <class F>
class TrainStep {
 public:
  TrainStep(nn::Module& net, optim::Optimizer& optimizer, F f, TrainStepOptions options)
      : core_(net, optimizer, options), f_(std::move(f)) {}

  // What f returns, evaluated; its history is forgotten. Parameters, their optimiser's state and the module's running
  // state have new values afterwards; on an exception everything is as before.
  template <class... Arguments>
  auto operator()(Arguments&&... arguments) {
    using Result = std::remove_cvref_t<std::invoke_result_t<F&, Arguments...>>;
    return detail::result_of<Result>(
        core_.run([&] { return detail::outputs_of(std::invoke(f_, std::forward<Arguments>(arguments)...)); }));
  }
  // Steps done.
  std::int64_t count() const { return core_.count(); }

 private:
  detail::StepCore core_;
  F f_;
};

// f(arguments...) gives the loss, one float number, or a tuple or vector of tensors that begins with it. `net` and
// `optimizer` are used by reference; steps on one module run one after another. UserError at the call if the loss is
// not one float number.
template <class F>
TrainStep<F> train_step(nn::Module& net, optim::Optimizer& optimizer, F f, TrainStepOptions options = {}) {
  return TrainStep<F>(net, optimizer, std::move(f), options);
}

}  // namespace fusejit
