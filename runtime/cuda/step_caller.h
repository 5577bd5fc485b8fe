// StepCaller: what makes calls of a library out of steps of plans: cuDNN's (runtime/cudnn/step.h), or a test's.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cuda/library_call.h"
#include "scheduler/library.h"
#include "scheduler/plan.h"

namespace fusejit::runtime::cuda {

class StepCaller {
 public:
  virtual ~StepCaller() = default;
  // Why nothing can be called on this device at all; empty if something can.
  virtual std::string why_none() = 0;
  // The scheduler's question. A forecast: make() has the last word.
  virtual scheduler::LibraryAnswer supports(const ir::Graph& ops, const Target& target) const = 0;
  // The call for a step that has a LibraryOp, of a plan for `target`. Null with a sentence in `why_not` if there is
  // none: the step's kernel does the work. From any thread; can take seconds.
  virtual std::shared_ptr<const LibraryCall> make(const scheduler::PlanStep& step, const Target& target,
                                                  std::string& why_not) = 0;
  // What besides steps and target decides about calls, for keys: its version and its options.
  virtual std::string identity() const { return ""; }
  // What was made, as texts that spare another process the making. A text that is damaged, or another device's, is of
  // no use and does no harm; false if that is seen at once.
  virtual std::vector<std::string> texts() { return {}; }
  virtual bool add_text(std::string_view) { return false; }
};

}  // namespace fusejit::runtime::cuda
