#include "fusejit/train.h"

#include <cmath>

#include "frontend/nn/family.h"
#include "frontend/parameter_storage.h"
#include "frontend/step.h"
#include "fusejit/random.h"
#include "ir/base/check.h"
#include "runtime/profiler.h"

namespace fusejit::detail {

StepCore::StepCore(nn::Module& net, optim::Optimizer& optimizer, TrainStepOptions options)
    : net_(net.share()), optimizer_(optimizer), options_(options) {
  FJ_CHECK(std::isfinite(options.max_grad_norm) && options.max_grad_norm >= 0,
           "train_step: max_grad_norm is {}, it must be finite and not negative", options.max_grad_norm);
  nn::mark_trained(net_->parameters());
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
        std::vector<Tensor> outputs = f();
        if (count_ == 0 && !outputs.empty()) nn::check_families(outputs[0], optimizer_.parameters(), "train_step");
        return outputs;
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
