// Training steps of built-in models on the device, from made-up parameters.
#pragma once

#include "frontend/models/named.h"
#include "tests/gpu_check/machine.h"

namespace fusejit::gpu_check {

// Parameters as a fresh network has them (weights by fan-in, norms 1 and 0, states of the optimiser 0), images from a
// normal distribution, labels, and small positive numbers for the optimiser's constants.
std::vector<Buffer> fresh_arguments(const ir::Graph& graph, std::uint64_t seed);

// A step whose results become the next step's arguments.
class ModelStep {
 public:
  ModelStep(Machine& machine, const std::string& model, const PlanWish& wish, DType dtype = DType::f32);
  const Planned& planned() const { return planned_; }
  // Puts one step on the stream; the loss stays on the device.
  const Buffer& run();
  double loss();  // of the last step; waits

 private:
  Machine& machine_;
  Planned planned_;
  std::vector<Buffer> arguments_;
  std::vector<Buffer> results_;
};

}  // namespace fusejit::gpu_check
