#include "runtime/cpu/timed_plan.h"

#include <algorithm>

#include "ir/base/scalar.h"

namespace fusejit::runtime {
namespace {

using Clock = std::chrono::steady_clock;

// Small numbers of both signs; integers, such as labels, are 0.
Buffer made_up(const Type& type) {
  Buffer buffer = Buffer::allocate(type);
  std::uint32_t state = 1;
  for (std::int64_t i = 0; i < type.elements(); ++i) {
    state = state * 1664525U + 1013904223U;
    const double number = is_float(type.dtype)    ? 0.2 * (static_cast<double>(state >> 8) / (1 << 24) - 0.5)
                          : type.dtype == boolean ? 1
                                                  : 0;
    ir::store_element(buffer.data(), type.dtype, i, ir::cast(ir::Scalar::of(number), type.dtype));
  }
  return buffer;
}

}  // namespace

std::vector<Buffer> made_up_arguments(const ir::Graph& graph) {
  std::vector<Buffer> arguments;
  for (const ir::Value& parameter : graph.parameters()) arguments.push_back(made_up(parameter.type()));
  return arguments;
}

TimedPlan::TimedPlan(const ir::Graph& graph, std::vector<Buffer> arguments, const std::vector<bool>& fixed,
                     scheduler::Plan plan, CpuExecutor::Kernels kernels, Workers& workers)
    : graph_(graph),
      plan_(std::make_shared<const scheduler::Plan>(std::move(plan))),
      kernels_(std::move(kernels)),
      arguments_(std::move(arguments)),
      seconds_(plan_->steps.size()),
      executor_(plan_, kernels_, workers, {.observe = [this](int step, std::span<void* const>, bool is_done) {
                  const Clock::time_point now = Clock::now();
                  if (is_done)
                    seconds_[static_cast<std::size_t>(step)] = std::chrono::duration<double>(now - began_).count();
                  began_ = now;
                }}) {
  for (std::size_t i = 0; i < fixed.size(); ++i)
    if (fixed[i]) arguments_[i] = made_up(graph.parameters()[i].type()), arguments_[i].fix();
}

const std::vector<double>& TimedPlan::run() {
  std::fill(seconds_.begin(), seconds_.end(), 0);
  executor_.run(graph_, arguments_);
  return seconds_;
}

}  // namespace fusejit::runtime
