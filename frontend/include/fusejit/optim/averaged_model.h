// AveragedModel: a running average of a module's parameters, to be evaluated in their place. PyTorch's
// torch.optim.swa_utils.AveragedModel.
//
//   fj::optim::AveragedModel ema(net, {.decay = 0.9});
//   for (int i = 0; i < 3; ++i) {
//     opt.step(fj::mse_loss(net(x), y));
//     ema.update_parameters();
//   }
//   fj::Tensor averaged = ema(x);
//   ema.save(path);
#pragma once

#include <memory>
#include <optional>

#include "fusejit/module.h"

namespace fusejit::optim {

struct AveragedModelOptions {
  // Exponential averages: a = decay*a + (1 - decay)*p, with 0 <= decay <= 1. Left out: the mean of all values so far
  // (stochastic weight averaging, Izmailov et al. 2018).
  std::optional<double> decay = {};
  bool use_buffers = false;  // running statistics are averaged too, not copied
};

// A module whose values are averages of another one's: its state is "module.<name>" for each value of that one, and
// "n_averaged". It calls the other one's forward with its own values, always in evaluation mode; so freeze(), save(),
// to(device) and the rest are those of any module; to(f32) lets averages of 16-bit values take in small changes.
// Gradients flow to x, not to the averages.
class AveragedModel : public nn::ModuleOf<AveragedModel> {
 public:
  // Begins with the module's values as they are. UserError for a decay out of its range.
  explicit AveragedModel(const nn::Module& module, AveragedModelOptions options = {});

  // Takes the module's parameters, as they are now, into the averages, and copies its other state: lazily, in one plan
  // with whatever is computed of them next, such as the next training step. The first call copies everything. The
  // weight of the new values is an argument of the trace.
  void update_parameters();
  // Calls of it so far.
  std::int64_t n_averaged() const;

  Tensor forward(const Tensor& x) const override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace fusejit::optim
