// A SOURCE's plan, run on this machine on seeded arguments: what time, timeline and repro look at.
#pragma once

#include <memory>
#include <vector>

#include "runtime/session.h"
#include "tools/fusejit-dump/planned.h"

namespace fusejit::tools {

class Running {
 public:
  // Nothing counts as fixed, so that every step runs every time. UnsupportedError, DeviceError where this machine
  // cannot run the plan.
  Running(Source source, const PlanOptions& options, int threads, runtime::Checks checks = {},
          runtime::Tune tune = runtime::Tune::off);
  // Plans and compiles.
  void prepare();
  // Plans and compiles at first. What a step gives new values to has them in the next one, as in a training loop.
  void step();
  // Of the source on the target; prepares.
  const scheduler::Plan& plan();
  const Source& source() const { return source_; }
  bool is_on_cpu() const { return !session_.options().results_on_device; }

 private:
  Source source_;
  const std::unique_ptr<bool[]> donated_;
  runtime::Session session_;
  std::vector<runtime::Buffer> arguments_;
  std::shared_ptr<const scheduler::Plan> plan_;
};

}  // namespace fusejit::tools
