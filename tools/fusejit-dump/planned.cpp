#include "tools/fusejit-dump/planned.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <optional>

#include "frontend/io/files.h"
#include "frontend/models/named.h"
#include "ir/base/check.h"
#include "runtime/cudnn/step.h"
#include "runtime/warmup/signature.h"
#include "scheduler/make_plan.h"

namespace fusejit::tools {

namespace {

constexpr std::string_view kSignatures = ".fjs";

// "runs.fjs#2" -> "runs.fjs" and 2; without a number 0.
std::optional<std::pair<std::string, int>> signature_place(const std::string& source) {
  const std::size_t mark = source.rfind('#');
  int number = 0;
  if (mark != std::string::npos && source.substr(0, mark).ends_with(kSignatures)) {
    const char* const end = source.data() + source.size();
    const auto [stop, error] = std::from_chars(source.data() + mark + 1, end, number);
    if (error == std::errc() && stop == end && number > 0) return std::pair(source.substr(0, mark), number);
  }
  if (source.ends_with(kSignatures)) return std::pair(source, 0);
  return std::nullopt;
}

Source recorded_source(Invocation& invocation, const std::string& path, int number) {
  const std::vector<runtime::Signature> all = runtime::read_signatures(path).signatures;
  if (number == 0 && all.size() > 1) {
    constexpr std::size_t kMostListed = 20;
    std::string list;
    for (std::size_t i = 0; i < std::min(all.size(), kMostListed); ++i)
      list += fmt::format("\n  {}#{}  @{}, {} ops, for {}", path, i + 1, all[i].graph.name(),
                          all[i].graph.nodes().size(), all[i].target.str());
    if (all.size() > kMostListed) list += fmt::format("\n  and {} more", all.size() - kMostListed);
    throw UserError(fmt::format("{} holds {} signatures, say which:{}", path, all.size(), list));
  }
  FJ_CHECK(number <= static_cast<int>(all.size()), "{} holds {} signatures, there is no #{}", path, all.size(), number);
  const runtime::Signature& chosen = all[static_cast<std::size_t>(std::max(number, 1) - 1)];
  invocation.graph_text = ir::print(chosen.graph);
  return {chosen.graph, chosen.donated, chosen.fixed};
}

Source graph_source(Invocation& invocation, const PlanOptions& options) {
  if (options.has_grad && options.grad.empty()) throw UsageError{"--grad: a name is empty"};
  if (!models::is_model_source(options.source)) {
    if (!options.dtype.empty())
      throw UsageError{fmt::format("--dtype {}: the dtypes of {} are those it says", options.dtype, options.source)};
    if (const auto place = signature_place(options.source)) {
      if (!options.grad.empty()) throw UsageError{fmt::format("--grad: {} says what is computed", place->first)};
      return recorded_source(invocation, place->first, place->second);
    }
    return {open_source(invocation, options.source, options.grad).graph, {}};
  }
  const std::vector<std::string> wrt = options.grad.empty() ? std::vector<std::string>() : split_names(options.grad);
  models::ModelGraph model = models::model_graph(options.source, dtype_named(options.dtype).value_or(DType::f32));
  invocation.graph_text = ir::print(model.graph);
  if (wrt.empty()) return {std::move(model.graph), std::vector<bool>(model.donated.begin(), model.donated.end())};
  return {io::open_graph(model.graph, wrt).graph, {}};
}

}  // namespace

Source read_source(Invocation& invocation, const PlanOptions& options) {
  Source source = graph_source(invocation, options);
  source.schedules = read_schedules(invocation, options.schedule);
  return source;
}

Planned make_plan(Invocation& invocation, const PlanOptions& options) {
  static_cast<void>(parse_target(options.target));  // what is wrong on the command line comes first
  return make_plan(read_source(invocation, options), options);
}

scheduler::PlanOptions wanted_plan(const Source& source, const PlanOptions& options) {
  scheduler::PlanOptions wanted{parse_target(options.target), options.rules, source.donated,
                                runtime::cudnn::supports_step, source.fixed};
  wanted.memory_limit = options.memory_limit;
  wanted.reschedule = reschedule_of(source.schedules, source.graph, wanted);
  return wanted;
}

Planned make_plan(Source source, const PlanOptions& options) {
  scheduler::PlanOptions wanted = wanted_plan(source, options);
  scheduler::Plan plan = scheduler::make_plan(source.graph, wanted);
  return {std::move(source), std::move(wanted), std::move(plan)};
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
