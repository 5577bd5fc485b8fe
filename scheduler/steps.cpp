#include "scheduler/steps.h"

#include "ir/kernel/cost/cost.h"

namespace fusejit::scheduler {
namespace {

PlanStep costs_of(std::shared_ptr<const ir::Kernel> kernel) {
  PlanStep step;
  for (const ir::MemoryTraffic& traffic : ir::traffic(*kernel)) {
    step.read_bytes += traffic.read_bytes, step.written_bytes += traffic.written_bytes;
  }
  step.flop = ir::flop(*kernel);
  for (const ir::MemId work : kernel->works) {  // each array starts on a line of its own
    const ir::Memory& memory = kernel->memories[static_cast<std::size_t>(work)];
    step.work_bytes += (bytes(memory.dtype, memory.elements()) + 127) / 64 * 64;
  }
  step.kernel = std::move(kernel);
  return step;
}

}  // namespace

PlanStep StepMaker::make(const std::shared_ptr<const ir::Kernel>& kernel, std::vector<int> values,
                         std::vector<std::string> ops) {
  const auto [known, fresh] = costs_.try_emplace(kernel.get());
  if (fresh) known->second = costs_of(kernel);
  PlanStep step = known->second;
  step.values = std::move(values), step.ops = std::move(ops);
  return step;
}

}  // namespace fusejit::scheduler
