#include "fusejit/train.h"

#include <cmath>

#include "frontend/parameter_storage.h"
#include "frontend/step.h"
#include "fusejit/autocast.h"
#include "fusejit/random.h"
#include "ir/base/check.h"
#include "runtime/profiler.h"

namespace fusejit::detail {

StepCore::StepCore(nn::Module& net, optim::Optimizer& optimizer, TrainStepOptions options)
    : net_(net.share()), optimizer_(optimizer), options_(options) {
  FJ_CHECK(std::isfinite(options.max_grad_norm) && options.max_grad_norm >= 0,
           "train_step: max_grad_norm is {}, it must be finite and not negative", options.max_grad_norm);
  if (options.autocast) Autocast{*options.autocast};  // refuses a type that cannot be meant, here and not at a step
}

std::vector<Tensor> StepCore::run(const std::function<std::vector<Tensor>()>& f) {
  const std::lock_guard one_at_a_time(net_->step_mutex());
  const std::int64_t updates = optimizer_.steps();
  Recording recording;
  recording.seed = next_seed();
  recording.name = "train_step";
  RecordingScope scope(recording);
  try {
    RecordedStep step = [&] {
      const runtime::ProfileScope scope("record", "train_step");
      return record_step(recording, optimizer_, options_.max_grad_norm, [&] {
        const Autocast scope(options_.autocast.value_or(f32));
        return f();
      });
    }();
    // What a step gives back is a value without history, and so is what it leaves in the module.
    for (const Tensor& tensor : step.wanted) tensor.state()->needs_grad = false;
    evaluate(step.wanted, step.donations, "train_step");
    for (std::size_t i = 0; i < recording.before.size(); ++i) {
      step.wanted[step.outputs.size() + i].state()->needs_grad = recording.before[i].first->trainable;
    }
    scope.keep();
    ++count_;
    return std::move(step.outputs);
  } catch (...) {
    optimizer_.set_steps(updates);
    throw;
  }
}

}  // namespace fusejit::detail
