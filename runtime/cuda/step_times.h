// How long the steps of a run take on a device, while a profile is taken: an event on the stream in front of each.
#pragma once

#include <vector>

#include "runtime/cuda/device.h"
#include "runtime/cuda/driver/stream.h"
#include "scheduler/plan.h"

namespace fusejit::runtime::cuda {

class StepTimes {
 public:
  StepTimes(CudaDevice& device, const scheduler::Plan& plan) : device_(device), plan_(plan) {}
  // What is launched from now on is the step's; once a step, however many launches it has.
  void begin(const scheduler::PlanStep& step);
  // Waits for the stream and notes every step in the profile. Times of the device are put where the host's clock was
  // when the last step was done.
  void note();

 private:
  CudaDevice& device_;
  const scheduler::Plan& plan_;
  std::vector<const scheduler::PlanStep*> steps_;
  std::vector<Event> events_;
};

}  // namespace fusejit::runtime::cuda
