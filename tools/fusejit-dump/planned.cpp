#include "tools/fusejit-dump/planned.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "frontend/io/files.h"
#include "frontend/models/named.h"
#include "ir/base/check.h"
#include "runtime/cudnn/step.h"
#include "scheduler/schedule.h"

namespace fusejit::tools {

Source read_source(Invocation& invocation, const PlanOptions& options) {
  if (options.has_grad && options.grad.empty()) throw UsageError{"--grad: a name is empty"};
  if (!models::is_model_source(options.source)) {
    if (!options.dtype.empty())
      throw UsageError{fmt::format("--dtype {}: the dtypes of {} are those it says", options.dtype, options.source)};
    return {open_source(invocation, options.source, options.grad).graph, {}};
  }
  const std::vector<std::string> wrt = options.grad.empty() ? std::vector<std::string>() : split_names(options.grad);
  models::ModelGraph model = models::model_graph(options.source, dtype_named(options.dtype).value_or(DType::f32));
  invocation.graph_text = ir::print(model.graph);
  if (wrt.empty()) return {std::move(model.graph), std::vector<bool>(model.donated.begin(), model.donated.end())};
  return {io::open_graph(model.graph, wrt).graph, {}};
}

Planned make_plan(Invocation& invocation, const PlanOptions& options) {
  const Target target = parse_target(options.target);
  Source source = read_source(invocation, options);
  scheduler::Plan plan =
      scheduler::schedule(source.graph, {target, options.rules, source.donated, runtime::cudnn::supports_step});
  return {std::move(source), std::move(plan)};
}

std::vector<int> select_steps(const scheduler::Plan& plan, const std::string& kernel) {
  const int count = static_cast<int>(plan.steps.size());
  std::vector<int> steps;
  int number = -1;
  const auto [stop, error] = std::from_chars(kernel.data(), kernel.data() + kernel.size(), number);
  const bool is_number = error == std::errc() && stop == kernel.data() + kernel.size();
  for (int s = 0; s < count; ++s) {
    const scheduler::PlanStep& step = plan.steps[static_cast<std::size_t>(s)];
    const bool is_named = step.name == kernel || step.kernel->name == kernel;
    if (kernel.empty() || (is_number ? s == number : is_named)) steps.push_back(s);
  }
  FJ_CHECK(kernel.empty() || !steps.empty(), "the plan of @{} has no kernel {}; it has {}, counted from 0", plan.name,
           kernel, count);
  return steps;
}

int put(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw FileError(fmt::format("standard output cannot be written: {}", std::strerror(errno)));
  return kDone;
}

int put_into(const std::string& path, const std::string& text) {
  if (path.empty()) return put(text);
  io::write_file(path, std::as_bytes(std::span(text)));
  return kDone;
}

}  // namespace fusejit::tools
