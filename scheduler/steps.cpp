#include "scheduler/steps.h"

#include <algorithm>

#include "ir/kernel/cost/cost.h"
#include "scheduler/names/steps.h"

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

JoinedKernel named(ir::Joined joined, const ir::Graph& graph, const PlanStep& first, const PlanStep& second) {
  std::vector<int> nodes = first.nodes;
  nodes.insert(nodes.end(), second.nodes.begin(), second.nodes.end());
  joined.kernel.name = name_by_ops(graph, nodes);
  return {std::make_shared<const ir::Kernel>(std::move(joined.kernel)), std::move(joined.first),
          std::move(joined.second)};
}

std::vector<int> same_values(const PlanStep& first, const PlanStep& second) {
  std::vector<int> same;
  for (const int v : second.values) {
    const auto found = std::find(first.values.begin(), first.values.end(), v);
    same.push_back(found == first.values.end() ? -1 : static_cast<int>(found - first.values.begin()));
  }
  return same;
}

std::int64_t moved_bytes(const ir::Kernel& kernel) {
  std::int64_t bytes = 0;
  for (const ir::MemoryTraffic& one : ir::traffic(kernel)) bytes += one.read_bytes + one.written_bytes;
  return bytes;
}

PlanStep StepMaker::make_joined(const JoinedKernel& joined, const PlanStep& first, const PlanStep& second) {
  std::vector<int> values(joined.kernel->params.size(), -1);
  const auto place = [&](const std::vector<int>& from, const std::vector<int>& to) {
    for (std::size_t i = 0; i < from.size(); ++i)
      if (to[i] >= 0) values[static_cast<std::size_t>(to[i])] = from[i];
  };
  place(first.values, joined.first), place(second.values, joined.second);
  const auto both = [](auto of_first, const auto& of_second) {
    of_first.insert(of_first.end(), of_second.begin(), of_second.end());
    return of_first;
  };
  PlanStep step = make(joined.kernel, std::move(values), both(first.ops, second.ops));
  step.nodes = both(first.nodes, second.nodes), step.schedules = both(first.schedules, second.schedules);
  return step;
}

}  // namespace fusejit::scheduler
