// train_step: forward, gradient and update of one training step as one plan, recorded at each call, compiled once.
//
//   fj::nn::Linear net(2, 1);
//   fj::optim::SGD opt(net.parameters(), {.lr = 0.1});
//   auto step = fj::train_step(net, opt, [&](fj::Tensor x, fj::Tensor y) { return fj::mse_loss(net(x), y); });
//   float loss = step(fj::ones({4, 2}), fj::zeros({4, 1})).item<float>();
//
// A step as a member, by a type that can be spelled. Modules and optimisers are handles, so the function may hold its
// own, and none of them has to outlive the step:
//   struct Trainer {
//     fj::nn::Linear net{2, 1};
//     fj::optim::Adam opt{net.parameters()};
//     fj::Step<fj::Tensor(fj::Tensor, fj::Tensor)> step = fj::train_step(
//         net, opt, [net = net](fj::Tensor x, fj::Tensor y) mutable { return fj::mse_loss(net(x), y); });
//   };
//
// What the loss depends on is trained, or says that it is not: the first step is a UserError that names each parameter
// that its gradient would reach while neither an optimiser nor `net`, nor a module that is joined with those by add(),
// has it. As a rule that is a layer that was made as a member and not added. A network that stays as it is, such as a
// teacher, is called under NoGrad (grad.h); one through which gradients flow, such as a network that a loss is made of,
// as its freeze() gives it, or it is part of `net`. Optimizer::step looks for the same.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "fusejit/module.h"
#include "fusejit/optim.h"
#include "fusejit/optim/grad_scaler.h"

namespace fusejit {

// Settings of train_step().
struct TrainStepOptions {
  double max_grad_norm = 0;               // > 0: gradients are clipped to this joint norm
  std::optional<DType> autocast = {};     // bf16, f16: the function is recorded inside an Autocast (autocast.h)
  std::optional<GradScaler> scaler = {};  // of the loss: for f16 (grad_scaler.h)
};

namespace detail {

class StepCore {
 public:
  StepCore() = default;  // of no step
  StepCore(const nn::Module& net, const optim::Optimizer& optimizer, TrainStepOptions options);
  // Records f, whose first output is the loss, the gradients and the update, and runs them as one plan.
  std::vector<Tensor> run(const std::function<std::vector<Tensor>()>& f);
  std::int64_t count() const;
  StateDict state_dict() const;
  void load_state_dict(const StateDict& values);

 private:
  struct State;
  State& state() const;
  std::shared_ptr<State> state_;
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

// A handle, as the module and the optimiser, which it holds: copies count together. UserError for whatever is asked of
// one that was made of nothing.
template <class F>
class TrainStep {
 public:
  TrainStep() = default;
  TrainStep(const nn::Module& net, const optim::Optimizer& optimizer, F f, TrainStepOptions options = {})
      : core_(net, optimizer, options), f_(std::move(f)) {}
  // The same step by another type: Step, below.
  template <class G>
  requires std::constructible_from<F, G> TrainStep(TrainStep<G> other) : core_(other.core_), f_(std::move(other.f_)) {}

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
  // "count"; for Checkpoint.
  StateDict state_dict() const { return core_.state_dict(); }
  void load_state_dict(const StateDict& values) { core_.load_state_dict(values); }

 private:
  template <class>
  friend class TrainStep;
  detail::StepCore core_;
  F f_;
};

// A train step's type by what it takes and gives: fj::Step<fj::Tensor(fj::Tensor, fj::Tensor)>.
template <class Signature>
using Step = TrainStep<std::function<Signature>>;

// f(arguments...) gives the loss, one float number, or a tuple or vector of tensors that begins with it. Steps on one
// module run one after another. UserError at the call if the loss is not one float number.
template <class F>
TrainStep<F> train_step(const nn::Module& net, const optim::Optimizer& optimizer, F f, TrainStepOptions options = {}) {
  return TrainStep<F>(net, optimizer, std::move(f), options);
}

}  // namespace fusejit
