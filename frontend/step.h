// A training step as a recording: what train_step runs, and what tools show of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "frontend/context.h"
#include "frontend/evaluation/evaluation.h"
#include "fusejit/train.h"

namespace fusejit {

// Gradients of the loss; empty for parameters that it does not depend on. UserError, which begins with `caller`, if it
// depends on none or is not one float number.
std::vector<Tensor> gradients_of(const Tensor& loss, const std::vector<nn::Parameter>& parameters,
                                 const std::string& caller);

// Marks this thread as recording a step; puts the slots back unless the step is kept.
class RecordingScope {
 public:
  explicit RecordingScope(Recording& recording);
  ~RecordingScope();
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;
  void keep() { kept_ = true; }

 private:
  Recording& recording_;
  bool kept_ = false;
};

struct RecordedStep {
  std::vector<Tensor> outputs;  // of the function; the loss is the first
  // The outputs, then the new values of recording.before's slots, then, with a scaler, whether nothing is kept.
  std::vector<Tensor> wanted;
  std::vector<Donation> donations;  // the old ones
};

// Records f, the gradients of its first output and the optimiser's update. Throws UserError unless that is one float
// number that depends on a parameter.
RecordedStep record_step(Recording& recording, optim::Optimizer& optimizer, const TrainStepOptions& options,
                         const std::function<std::vector<Tensor>()>& f);

}  // namespace fusejit
