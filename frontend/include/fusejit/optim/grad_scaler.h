// GradScaler: training in f16, whose gradients would vanish below 6e-8. The loss is multiplied by a scale before
// gradients are taken and they are divided by it; an update with a gradient that is not finite is left out, and the
// scale goes down; after a while without one it goes up.
//
//   auto step = fj::train_step(net, opt, [&](fj::Tensor x, fj::Tensor y) { return fj::mse_loss(net(x), y); },
//                              {.autocast = fj::f16, .scaler = fj::GradScaler()});
//
// A loop of one's own:
//   std::vector<fj::Tensor> gradients = fj::grad(scaler.scale(loss), values);
//   scaler.unscale(gradients);
//   fj::optim::clip_grad_norm(gradients, 1);
//   scaler.step(opt, gradients);
//   scaler.update();
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fusejit/io.h"
#include "fusejit/optim.h"

namespace fusejit {

namespace detail {
class StepCore;
}

// PyTorch's numbers.
struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
};

// A handle, as optimisers are: copies have one scale. The scale is an argument of the trace: another one compiles
// nothing. What decides whether an update is left out is computed in its plan.
class GradScaler {
 public:
  // UserError unless the scale is positive, growth_factor more than 1, backoff_factor between 0 and 1 and the interval
  // at least 1.
  explicit GradScaler(const GradScalerOptions& options = {});

  // The scale of the next loss.
  double scale() const;
  // The loss times that, f32 (f64 of f64).
  Tensor scale(const Tensor& loss) const;
  // The gradients of a scaled loss, divided, lazily and in place of the given ones, as f32 (f64 of f64); empty ones are
  // passed over. Call it once for each update, before step().
  void unscale(std::vector<Tensor>& gradients);
  // optimizer.update(gradients), of which nothing is kept where one of the gradients is not finite. UserError unless
  // unscale() has had them. Returns whether one is not finite: bool [].
  Tensor step(optim::Optimizer& optimizer, const std::vector<Tensor>& gradients);
  // After the steps of a round: asks whether they were kept, which computes them, takes those that were not from the
  // optimisers' counts, and sets the next scale.
  void update();

  // "scale" and "growth_tracker"; for Checkpoint.
  StateDict state_dict() const;
  void load_state_dict(const StateDict& values);

 private:
  friend class detail::StepCore;
  void forget();  // steps that have failed
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace fusejit
