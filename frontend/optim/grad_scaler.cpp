#include "fusejit/optim/grad_scaler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "frontend/nn/check_state.h"
#include "frontend/record.h"
#include "fusejit/grad.h"
#include "fusejit/ops.h"
#include "ir/base/check.h"

namespace fusejit {

struct GradScaler::State {
  GradScalerOptions options;
  double scale = 0;
  std::int64_t kept = 0;  // updates in a row
  Tensor overflow;        // of the gradients that unscale() had last: bool []
  // Whose updates are not asked about yet, and whether they are left out.
  std::vector<std::pair<optim::Optimizer, Tensor>> open;
};

GradScaler::GradScaler(const GradScalerOptions& options) : state_(std::make_shared<State>()) {
  FJ_CHECK(std::isfinite(options.init_scale) && options.init_scale > 0,
           "GradScaler: init_scale is {}, it must be finite and positive", options.init_scale);
  FJ_CHECK(std::isfinite(options.growth_factor) && options.growth_factor > 1,
           "GradScaler: growth_factor is {}, it must be more than 1", options.growth_factor);
  FJ_CHECK(options.backoff_factor > 0 && options.backoff_factor < 1,
           "GradScaler: backoff_factor is {}, it must lie between 0 and 1", options.backoff_factor);
  FJ_CHECK(options.growth_interval >= 1, "GradScaler: growth_interval is {}, it must be at least 1",
           options.growth_interval);
  state_->options = options;
  state_->scale = options.init_scale;
}

double GradScaler::scale() const { return state_->scale; }

Tensor GradScaler::scale(const Tensor& loss) const {
  FJ_CHECK(loss.defined() && is_float(loss.dtype()), "GradScaler: the loss must be float (loss: {})", text(loss));
  return wide(loss) * scalar(state_->scale, compute_type(loss.dtype()));
}

void GradScaler::unscale(std::vector<Tensor>& gradients) {
  const NoGrad off;
  Tensor overflow;
  for (Tensor& gradient : gradients) {
    if (!gradient.defined()) continue;
    FJ_CHECK(is_float(gradient.dtype()), "GradScaler: gradients must be float (one is {})", gradient.type().str());
    gradient = wide(gradient) * scalar(1 / state_->scale, compute_type(gradient.dtype()));
    const Tensor here = any(logical_not(isfinite(gradient)));
    overflow = overflow.defined() ? logical_or(overflow, here) : here;
  }
  FJ_CHECK(overflow.defined(), "GradScaler: there is no gradient");
  state_->overflow = overflow;
}

Tensor GradScaler::step(optim::Optimizer& optimizer, const std::vector<Tensor>& gradients) {
  FJ_CHECK(state_->overflow.defined(), "GradScaler: step needs gradients that unscale() has had");
  const Tensor overflow = std::exchange(state_->overflow, {});
  optimizer.update(gradients, overflow);
  state_->open.emplace_back(optimizer, overflow);
  return overflow;
}

void GradScaler::forget() {
  state_->overflow = {};
  state_->open.clear();
}

void GradScaler::update() {
  State& s = *state_;
  bool any_left_out = false;
  for (auto& [optimizer, overflow] : std::exchange(s.open, {})) {
    if (!overflow.item<bool>()) continue;
    optimizer.set_steps(optimizer.steps() - 1);
    any_left_out = true;
  }
  if (any_left_out) {
    s.kept = 0;
    s.scale = std::max(s.scale * s.options.backoff_factor, 0x1p-100);  // one that is 0 would never come back
  } else if (++s.kept >= s.options.growth_interval) {
    s.kept = 0;
    // As in PyTorch, a scale that is not finite as f32 is none.
    if (const double grown = s.scale * s.options.growth_factor; std::isfinite(static_cast<float>(grown)))
      s.scale = grown;
  }
}

StateDict GradScaler::state_dict() const {
  return {{"scale", from_host(std::vector<double>{state_->scale}, {})},
          {"growth_tracker", from_host(std::vector<std::int64_t>{state_->kept}, {})}};
}

void GradScaler::load_state_dict(const StateDict& values) {
  nn::check_state(state_dict(), values, "GradScaler", "scaler");
  const auto scale = values.at("scale").item<double>();
  const auto kept = values.at("growth_tracker").item<std::int64_t>();
  FJ_CHECK(std::isfinite(scale) && scale > 0 && kept >= 0,
           "GradScaler: the state's scale is {} and its growth_tracker {}, they must be positive and not negative",
           scale, kept);
  state_->scale = scale, state_->kept = kept;
}

}  // namespace fusejit
