#include "tools/fusejit-dump/measure/running.h"

#include <algorithm>
#include <cstdio>

#include "runtime/backends.h"
#include "runtime/cudnn/step.h"
#include "runtime/devices.h"
#include "runtime/disk/settings.h"
#include "tools/seeded.h"

namespace fusejit::tools {
namespace {

runtime::SessionOptions session_options(const Source& source, const PlanOptions& options, int threads,
                                        runtime::Checks checks, runtime::Tune tune) {
  runtime::SessionOptions wanted;
  wanted.target = parse_target(options.target);
  wanted.rules = options.rules;
  wanted.memory_limit = options.memory_limit;
  wanted.threads = threads;
  wanted.checks = std::move(checks);
  wanted.tune = tune;
  if (tune != runtime::Tune::off)
    wanted.log = [](const std::string& line) { std::fprintf(stderr, "fusejit-dump: %s\n", line.c_str()); };
  wanted.disk = runtime::disk::user_cache("on", {});
  if (wanted.target.isa == Isa::cuda) wanted = runtime::on_device(std::move(wanted), Device("cuda:0"));
  scheduler::PlanOptions planned{wanted.target, wanted.rules, source.donated, runtime::cudnn::supports_step};
  planned.memory_limit = wanted.memory_limit;
  wanted.reschedule = reschedule_of(source.schedules, source.graph, planned);
  return wanted;
}

std::unique_ptr<bool[]> flags(const std::vector<bool>& donated, std::size_t count) {
  auto copy = std::make_unique<bool[]>(count);
  std::copy(donated.begin(), donated.end(), copy.get());
  return copy;
}

}  // namespace

Running::Running(Source source, const PlanOptions& options, int threads, runtime::Checks checks, runtime::Tune tune)
    : source_(std::move(source)),
      donated_(flags(source_.donated, source_.graph.parameters().size())),
      session_(session_options(source_, options, threads, std::move(checks), tune)) {
  source_.fixed.clear();
}

void Running::prepare() {
  if (!plan_) plan_ = session_.plan(source_.graph, {donated_.get(), source_.graph.parameters().size()});
}

const scheduler::Plan& Running::plan() {
  prepare();
  return *plan_;
}

void Running::step() {
  prepare();
  const ir::Graph& graph = source_.graph;
  for (std::size_t i = arguments_.size(); i < graph.parameters().size(); ++i)
    arguments_.push_back(session_.place(seeded_argument(graph.parameters()[i].type(), static_cast<std::uint32_t>(i))));
  const std::vector<runtime::Buffer> results = session_.run(graph, arguments_, {donated_.get(), arguments_.size()});
  session_.synchronize();
  for (std::size_t r = 0; r < results.size(); ++r) {
    const scheduler::PlanValue& value = plan_->values[static_cast<std::size_t>(plan_->results[r])];
    if (value.storage == scheduler::Storage::donated) arguments_[static_cast<std::size_t>(value.index)] = results[r];
  }
}

}  // namespace fusejit::tools
