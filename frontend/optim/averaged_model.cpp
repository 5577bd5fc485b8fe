#include "fusejit/optim/averaged_model.h"

#include <map>
#include <utility>
#include <vector>

#include "frontend/context.h"
#include "frontend/optim/settings.h"
#include "frontend/state.h"
#include "ir/base/check.h"

namespace fusejit::optim {

struct AveragedModel::State {
  std::shared_ptr<nn::Module> module;
  AveragedModelOptions options;
  std::vector<std::pair<nn::Parameter, nn::Parameter>> values;  // the module's, and what stands in for it
  nn::Parameter n_averaged;
  // The count on the host, with the value that it was read from: where that is another one, it was loaded or moved.
  Tensor counted_of;
  std::int64_t counted = 0;
};

AveragedModel::AveragedModel(const nn::Module& module, AveragedModelOptions options) {
  if (options.decay) check_setting("AveragedModel", "decay", *options.decay, 0, 1);
  const nn::Parameter count = state("n_averaged", from_host(std::vector<std::int64_t>{0}, {}));
  state_ = std::make_shared<State>(State{module.share(), options, {}, count, {}});
  for (const auto& [name, value] : module.named_values())
    state_->values.emplace_back(value, state("module." + name, value.value()));
}

std::int64_t AveragedModel::n_averaged() const {
  State& s = *state_;
  if (const Tensor now = s.n_averaged.value(); !s.counted_of.defined() || now.state() != s.counted_of.state()) {
    s.counted = now.item<std::int64_t>();
    s.counted_of = now;
  }
  return s.counted;
}

void AveragedModel::update_parameters() {
  State& s = *state_;
  const std::int64_t before = n_averaged();
  const double weight = s.options.decay ? 1 - *s.options.decay : 1 / static_cast<double>(before + 1);
  std::map<DType, Tensor> weights;  // the number, as each dtype that is met
  for (const auto& [value, average] : s.values) {
    const Tensor old = average.value(), now = copy_on(as_leaf(value.value(), false), old.device());
    const bool averages = before > 0 && is_float(now.dtype()) && (value.trainable() || s.options.use_buffers);
    if (!averages) {
      average.set(now.to(old.dtype()));
      continue;
    }
    const DType dtype = compute_type(old.dtype());
    Tensor& n = weights.try_emplace(dtype, scalar(weight, dtype)).first->second;
    average.set((old.to(dtype) + (now.to(dtype) - old.to(dtype)) * n).to(old.dtype()));
  }
  s.n_averaged.set(from_host(std::vector<std::int64_t>{before + 1}, {}).to(s.n_averaged.value().device()));
  s.counted = before + 1;
  s.counted_of = s.n_averaged.value();
}

Tensor AveragedModel::forward(const Tensor& x) const {
  StandIns values;
  for (const auto& [value, average] : state_->values) values.emplace(value.storage().get(), average.value());
  const StandInScope scope(values);
  return (*state_->module)(x);
}

}  // namespace fusejit::optim
