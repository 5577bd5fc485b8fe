#include "frontend/step.h"

#include "frontend/grad.h"
#include "frontend/parameter_storage.h"
#include "frontend/record.h"
#include "fusejit/autocast.h"
#include "fusejit/grad.h"
#include "ir/base/check.h"

namespace fusejit {
std::vector<Tensor> gradients_of(const Tensor& loss, const std::vector<nn::Parameter>& parameters,
                                 const std::string& caller) {
  FJ_CHECK(loss.defined() && loss.elements() == 1 && is_float(loss.dtype()),
           "{}: the loss must be one float number (loss: {})", caller, text(loss));
  std::vector<Tensor> used, gradients(parameters.size());
  std::vector<std::size_t> places;
  std::vector<Tensor> values(parameters.begin(), parameters.end());
  const std::vector<bool> reached = leads_to(values, loss);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (reached[i]) used.push_back(values[i]), places.push_back(i);
  }
  FJ_CHECK(!used.empty(),
           "{}: the loss does not depend on any parameter of the optimiser (what is computed under NoGrad, of detached "
           "values or by a frozen network leads to none, nor does what an earlier step has computed)",
           caller);
  std::vector<Tensor> found = grad(loss, used);
  for (std::size_t k = 0; k < places.size(); ++k) gradients[places[k]] = std::move(found[k]);
  return gradients;
}

RecordingScope::RecordingScope(Recording& recording) : recording_(recording) {
  FJ_CHECK(!thread_state().recording, "a training step cannot be called inside another one");
  thread_state().recording = &recording;
}

RecordingScope::~RecordingScope() {
  thread_state().recording = nullptr;
  if (kept_) return;
  for (auto& [storage, old] : recording_.before) {
    const std::lock_guard lock(storage->mutex);
    std::swap(storage->value, old);
  }
}

RecordedStep record_step(Recording& recording, optim::Optimizer& optimizer, const TrainStepOptions& options,
                         const std::function<std::vector<Tensor>()>& f) {
  RecordedStep step;
  {
    const Autocast cast(options.autocast.value_or(f32));
    step.outputs = f();
  }
  FJ_CHECK(!step.outputs.empty() && step.outputs[0].defined(), "train_step: the function must return the loss");
  const Tensor& loss = step.outputs[0];
  std::optional<GradScaler> scaler = options.scaler;  // a handle
  std::vector<Tensor> gradients =
      gradients_of(scaler ? scaler->scale(loss) : loss, optimizer.parameters(), "train_step");
  if (scaler) scaler->unscale(gradients);
  if (options.max_grad_norm > 0) optim::clip_grad_norm(gradients, options.max_grad_norm);
  Tensor overflow;
  if (scaler) {
    overflow = scaler->step(optimizer, gradients);
  } else {
    optimizer.update(gradients);
  }
  step.wanted = step.outputs;
  for (const auto& [storage, old] : recording.before) {
    const std::lock_guard lock(storage->mutex);
    step.wanted.push_back(storage->value);
    step.donations.push_back({old, 2, storage->name});  // owned here and by recording.before
  }
  if (overflow.defined()) step.wanted.push_back(overflow);
  return step;
}

}  // namespace fusejit
