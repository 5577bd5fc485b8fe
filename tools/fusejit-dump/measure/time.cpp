// time: how long each kernel of a SOURCE takes on this machine, and how near that is to what the machine can do; with
// --schedule or --tune, beside the plan with the chosen schedules.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "runtime/cpu/roofline.h"
#include "scheduler/names/steps.h"
#include "tools/fusejit-dump/measure/compared.h"
#include "tools/fusejit-dump/table.h"

namespace fusejit::tools {
namespace {

struct Row {
  int step;
  const scheduler::PlanStep* planned;
  const Times* times;
  double of_roofline;  // 0: not known
  std::int64_t bytes() const { return planned->read_bytes + planned->written_bytes; }
};

std::vector<Row> rows_of(const scheduler::Plan& plan, const Measured& measured, const runtime::Roofline& roof) {
  std::vector<Row> rows;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    Row row{static_cast<int>(s), &plan.steps[s], &measured.steps[s], 0};
    if (const double took = row.times->median(); took > 0)
      row.of_roofline = roof.least_milliseconds(row.bytes(), row.planned->flop) / took;
    rows.push_back(row);
  }
  return rows;
}

Json json_of(const Running& running, const scheduler::Plan& plan, const Measured& measured,
             const std::vector<Row>& rows, const runtime::Roofline& roof, int threads) {
  Json json = heading(plan);
  json["threads"] = threads;
  json["steps"] = measured.whole.milliseconds.size();
  json["median_ms"] = measured.whole.median();
  json["min_ms"] = measured.whole.lowest();
  json["max_ms"] = measured.whole.highest();
  json["roofline"] = {{"gigabytes_per_second", roof.gigabytes_per_second}, {"gflops", roof.gflops}};
  json["kernels"] = Json::array();
  for (const Row& row : rows) {
    json["kernels"].push_back({{"index", row.step},
                               {"name", row.planned->name},
                               {"written", scheduler::written_ops(*row.planned, running.source().graph)},
                               {"median_ms", row.times->median()},
                               {"min_ms", row.times->lowest()},
                               {"max_ms", row.times->highest()},
                               {"bytes", row.bytes()},
                               {"flop", row.planned->flop},
                               {"of_roofline", row.of_roofline}});
  }
  return json;
}

std::string table_text(const Running& running, const scheduler::Plan& plan, const Measured& measured,
                       std::vector<Row> rows, const runtime::Roofline& roof, int threads) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.times->median() > b.times->median(); });
  double all = 0;
  for (const Row& row : rows) all += row.times->median();
  std::vector<std::vector<std::string>> cells = {
      {"#", "kernel", "ms", "lowest", "highest", "%", "MiB", "GB/s", "GFLOP/s", "roof %", "ops"}};
  for (const Row& row : rows) {
    const double median = row.times->median(), took = std::max(median, 1e-9);
    const auto bytes = static_cast<double>(row.bytes());
    cells.push_back({std::to_string(row.step), row.planned->name, fmt::format("{:.4f}", median),
                     fmt::format("{:.4f}", row.times->lowest()), fmt::format("{:.4f}", row.times->highest()),
                     fmt::format("{:.1f}", 100 * median / std::max(all, 1e-9)),
                     fmt::format("{:.2f}", bytes / (1 << 20)), fmt::format("{:.1f}", bytes / took * 1e-6),
                     fmt::format("{:.1f}", row.planned->flop / took * 1e-6),
                     running.is_on_cpu() ? fmt::format("{:.0f}", 100 * row.of_roofline) : "-",
                     fmt::format("{}", fmt::join(scheduler::written_ops(*row.planned, running.source().graph), ", "))});
  }
  std::string text = fmt::format("@{} on {}, rules={}, {} threads: medians of {} steps\n", plan.name, plan.target.str(),
                                 name(plan.rules), threads, measured.whole.milliseconds.size());
  text += table(cells, "rlrrrrrrrrl");
  text += fmt::format("a step takes {:.3f} ms ({:.3f} to {:.3f}), its kernels {:.3f}\n", measured.whole.median(),
                      measured.whole.lowest(), measured.whole.highest(), all);
  return text + fmt::format(
                    "roof: {:.1f} GB/s and {:.1f} GFLOP/s were measured here; above 100 % the bytes were in a "
                    "cache\n",
                    roof.gigabytes_per_second, roof.gflops);
}

}  // namespace

int time_kernels(const TimeOptions& options, Invocation& invocation) {
  Source source = read_source(invocation, options);
  std::optional<Running> chosen;
  if (!source.schedules.empty() || options.tune != runtime::Tune::off) {
    Source plain = source;
    plain.schedules.clear();
    chosen.emplace(std::move(plain), options, options.threads);
  }
  Running running(std::move(source), options, options.threads, {}, options.tune);
  std::vector<Running*> both{&running};
  if (chosen) both.insert(both.begin(), &*chosen);
  const std::vector<Measured> all = measure(both, options.steps);
  const Measured& measured = all.back();
  const scheduler::Plan& plan = running.plan();
  if (!options.output.empty()) put_into(options.output, print_schedules(plan, select_steps(plan, "")));
  const int threads =
      options.threads > 0 ? options.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  // Of a CUDA device it is not known.
  const runtime::Roofline roof = running.is_on_cpu() ? runtime::roofline(Target::host(), threads) : runtime::Roofline();
  const std::vector<Row> rows = rows_of(plan, measured, roof);
  if (options.json()) {
    Json json = json_of(running, plan, measured, rows, roof, threads);
    if (chosen) json["chosen"] = compared_json({chosen->plan(), all.front()}, {plan, measured});
    return put(text(json));
  }
  return put(table_text(running, plan, measured, rows, roof, threads) +
             (chosen ? compared_text({chosen->plan(), all.front()}, {plan, measured}) : ""));
}

}  // namespace fusejit::tools
