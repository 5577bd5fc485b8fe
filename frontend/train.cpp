#include "fusejit/train.h"

#include <cmath>

#include "frontend/nn/check_state.h"
#include "frontend/nn/family.h"
#include "frontend/parameter_storage.h"
#include "frontend/step.h"
#include "fusejit/autocast.h"
#include "fusejit/random.h"
#include "ir/base/check.h"
#include "runtime/profiler.h"

namespace fusejit::detail {

struct StepCore::State {
  std::shared_ptr<nn::Module> net;
  optim::Optimizer optimizer;
  TrainStepOptions options;
  std::int64_t count = 0;
};

StepCore::StepCore(const nn::Module& net, const optim::Optimizer& optimizer, TrainStepOptions options)
    : state_(std::make_shared<State>(State{net.share(), optimizer, options})) {
  FJ_CHECK(std::isfinite(options.max_grad_norm) && options.max_grad_norm >= 0,
           "train_step: max_grad_norm is {}, it must be finite and not negative", options.max_grad_norm);
  if (options.autocast) Autocast{*options.autocast};  // refuses a type that cannot be meant, here and not at a step
  nn::mark_trained(net.parameters());
}

StepCore::State& StepCore::state() const {
  FJ_CHECK(state_, "this train step is empty: train_step() makes one");
  return *state_;
}

std::int64_t StepCore::count() const { return state().count; }

StateDict StepCore::state_dict() const { return {{"count", from_host(std::vector<std::int64_t>{count()}, {})}}; }

void StepCore::load_state_dict(const StateDict& values) {
  nn::check_state(state_dict(), values, "train_step", "step");
  const auto count = values.at("count").item<std::int64_t>();
  FJ_CHECK(count >= 0, "train_step: the state's number of steps is {}", count);
  state().count = count;
}

std::vector<Tensor> StepCore::run(const std::function<std::vector<Tensor>()>& f) {
  const std::shared_ptr<State> kept = state_;  // whatever f does to the step
  State& own = state();
  const std::lock_guard one_at_a_time(own.net->step_mutex());
  const std::int64_t updates = own.optimizer.steps();
  Recording recording;
  recording.seed = next_seed();
  recording.name = "train_step";
  RecordingScope scope(recording);
  try {
    RecordedStep step = [&] {
      const runtime::ProfileScope scope("record", "train_step");
      return record_step(recording, own.optimizer, own.options, [&] {
        std::vector<Tensor> outputs = f();
        if (own.count == 0 && !outputs.empty())
          nn::check_families(outputs[0], own.optimizer.parameters(), "train_step");
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
    ++own.count;
    if (own.options.scaler) own.options.scaler->update();
    return std::move(step.outputs);
  } catch (...) {
    if (own.options.scaler) own.options.scaler->forget();
    own.optimizer.set_steps(updates);
    throw;
  }
}

}  // namespace fusejit::detail
