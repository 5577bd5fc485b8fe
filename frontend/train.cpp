#include "fusejit/train.h"

#include <cmath>

#include "frontend/context.h"
#include "frontend/eval.h"
#include "frontend/history.h"
#include "frontend/slot.h"
#include "fusejit/grad.h"
#include "fusejit/random.h"
#include "ir/base/check.h"

namespace fusejit::detail {
namespace {

// Marks this thread as recording a step; puts the slots back unless the step was kept.
class RecordingScope {
 public:
  explicit RecordingScope(Recording& recording) : recording_(recording) {
    FJ_CHECK(!thread_state().recording, "a training step cannot be called inside another one");
    thread_state().recording = &recording;
  }
  ~RecordingScope() {
    thread_state().recording = nullptr;
    if (kept_) return;
    for (auto& [slot, old] : recording_.before) {
      const std::lock_guard lock(slot->mutex);
      std::swap(slot->value, old);
    }
  }
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;
  void keep() { kept_ = true; }

 private:
  Recording& recording_;
  bool kept_ = false;
};

Tensor slot_value(const Slot& slot) {
  const std::lock_guard lock(slot.mutex);
  return slot.value;
}

// Gradients of the loss; empty for parameters that it does not depend on.
std::vector<Tensor> gradients_of(const Tensor& loss, const std::vector<nn::Parameter>& parameters) {
  std::vector<Tensor> used, gradients(parameters.size());
  std::vector<std::size_t> places;
  std::vector<Tensor> values(parameters.begin(), parameters.end());
  const std::vector<bool> reached = leads_to(values, loss);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (reached[i]) used.push_back(values[i]), places.push_back(i);
  }
  FJ_CHECK(!used.empty(), "train_step: the loss does not depend on any parameter of the optimiser");
  std::vector<Tensor> found = grad(loss, used);
  for (std::size_t k = 0; k < places.size(); ++k) gradients[places[k]] = std::move(found[k]);
  return gradients;
}

}  // namespace

StepCore::StepCore(nn::Module& net, optim::Optimizer& optimizer, TrainStepOptions options)
    : net_(net.share()), optimizer_(optimizer), options_(options) {
  FJ_CHECK(std::isfinite(options.max_grad_norm) && options.max_grad_norm >= 0,
           "train_step: max_grad_norm is {}, it must be finite and not negative", options.max_grad_norm);
}

std::vector<Tensor> StepCore::run(const std::function<std::vector<Tensor>()>& f) {
  const std::lock_guard one_at_a_time(net_->step_mutex());
  const std::int64_t updates = optimizer_.steps();
  Recording recording;
  recording.seed = next_seed();
  recording.name = "train_step";
  RecordingScope scope(recording);
  try {
    std::vector<Tensor> outputs = f();
    FJ_CHECK(!outputs.empty() && outputs[0], "train_step: the function must return the loss");
    FJ_CHECK(outputs[0].elements() == 1 && is_float(outputs[0].dtype()),
             "train_step: the loss must be one float number (loss: {})", outputs[0].type().str());
    {
      std::vector<Tensor> gradients = gradients_of(outputs[0], optimizer_.parameters());
      if (options_.max_grad_norm > 0) optim::clip_grad_norm(gradients, options_.max_grad_norm);
      optimizer_.update(gradients);
    }
    std::vector<Tensor> wanted = outputs;
    std::vector<Donation> given;
    for (const auto& [slot, old] : recording.before) {
      wanted.push_back(slot_value(*slot));
      given.push_back({old, 2, slot->name});  // here and in recording.before
    }
    // What a step gives back is a value without history, and so is what it leaves in the module.
    for (const Tensor& tensor : wanted) tensor.state()->needs_grad = false;
    evaluate(wanted, given, "train_step");
    for (const auto& [slot, old] : recording.before) slot_value(*slot).state()->needs_grad = slot->trainable;
    scope.keep();
    ++count_;
    return outputs;
  } catch (...) {
    optimizer_.set_steps(updates);
    throw;
  }
}

}  // namespace fusejit::detail
