// The page's table of kernels and its list of what was not fused.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "ir/base/number.h"
#include "scheduler/names/steps.h"
#include "tools/fusejit-dump/markup.h"
#include "tools/fusejit-dump/report/report.h"
#include "tools/fusejit-dump/table.h"

namespace fusejit::tools {
namespace {

constexpr std::size_t kShownRefusals = 40;

// A cell that is sorted by `value`; its bar is that part of the widest one.
std::string number_cell(double value, const std::string& words, double part = 0) {
  const std::string bar = part > 0 ? fmt::format(" style=\"--part:{:.3f}\"", part) : "";
  return fmt::format("<td class=\"n\" data-v=\"{:.9g}\"{}>{}</td>", value, bar, words);
}
std::string count_cell(std::int64_t value) { return number_cell(static_cast<double>(value), grouped(value)); }
std::string mebibytes_cell(std::int64_t bytes, std::int64_t most) {
  const double part = most == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(most);
  return number_cell(static_cast<double>(bytes), fmt::format("{:.3f}", static_cast<double>(bytes) / (1 << 20)), part);
}

std::vector<std::string> column_names(const Report& report) {
  std::vector<std::string> names = {"#",     "kernel",        "ops",   "read MiB", "written MiB",
                                    "GFLOP", "FLOP per byte", "tasks", "alive MiB"};
  const bool cuda = report.plan().target.isa == Isa::cuda;
  if (report.compiled && cuda) names.insert(names.end(), {"registers", "spilled bytes", "shared bytes"});
  if (report.compiled && !cuda) names.insert(names.end(), {"IR instructions", "code bytes"});
  if (report.machine) names.push_back("least ms");
  if (report.times) names.insert(names.end(), {"ms", "roof %"});
  return names;
}

std::string code_cells(const Report& report, const CodeFigures& code) {
  if (!report.compiled) return "";
  if (report.plan().target.isa != Isa::cuda) return count_cell(code.ir_instructions) + count_cell(code.code_bytes);
  return count_cell(code.registers) + count_cell(code.spill_bytes) + count_cell(code.shared_bytes);
}

std::string kernel_row(const Report& report, std::size_t s, std::int64_t most) {
  const Row& row = report.rows[s];
  const scheduler::PlanStep& step = *row.step;
  const KindLook& kind = look(kind_of(step));
  const std::string ops = escaped(fmt::format("{}", fmt::join(step.ops, ", ")));
  const std::string written =
      escaped(fmt::format("{}", fmt::join(scheduler::written_ops(step, report.planned->source.graph), ", ")));
  std::int64_t tasks = 0;
  for (const std::int64_t of_phase : row.cost.tasks) tasks = std::max(tasks, of_phase);
  std::string out = fmt::format("<tr id=\"s{0}\"><td class=\"n\" data-v=\"{0}\"><a href=\"#b{0}\">{0}</a></td>", s);
  out += fmt::format("<td class=\"name\"><span class=\"chip {}\" title=\"{}\"></span><a href=\"#k{}\">{}</a>{}</td>",
                     kind.style, kind.name, row.same_as, escaped(step.name), step.library ? " (library)" : "");
  out += fmt::format("<td class=\"ops\" title=\"{}\"><div>{}</div></td>", ops, written);
  out += mebibytes_cell(step.read_bytes, most) + mebibytes_cell(step.written_bytes, most);
  const double intensity = report.bytes(s) == 0 ? 0 : step.flop / static_cast<double>(report.bytes(s));
  out += number_cell(step.flop, fmt::format("{:.3f}", step.flop / 1e9));
  out += number_cell(intensity, fmt::format("{:.2f}", intensity)) + count_cell(tasks);
  const std::int64_t alive = scheduler::live_arena_bytes_after(report.plan(), static_cast<int>(s));
  out += mebibytes_cell(alive, report.plan().arena_bytes) + code_cells(report, report.rows[row.same_as].code);
  if (report.machine)
    out += number_cell(report.least_milliseconds(s), fmt::format("{:.4f}", report.least_milliseconds(s)));
  if (report.times) {
    const double took = report.times->steps[s].median(), of_roof = report.of_roof(s);
    out += number_cell(took, fmt::format("{:.4f}", took), took / report.longest_milliseconds());
    out += number_cell(of_roof, fmt::format("{:.0f}", 100 * of_roof));
  }
  return out + "</tr>\n";
}

// "%3 conv2d", and the row of the kernel that computes it.
class Labels {
 public:
  explicit Labels(const scheduler::Plan& plan) {
    for (std::size_t s = 0; s < plan.steps.size(); ++s)
      for (const std::string& op : plan.steps[s].ops) steps_.emplace(op, s);
  }
  std::string linked(const std::string& label) const {
    const auto at = steps_.find(label);
    return at == steps_.end() ? escaped(label) : fmt::format("<a href=\"#s{}\">{}</a>", at->second, escaped(label));
  }

 private:
  std::unordered_map<std::string, std::size_t> steps_;
};

std::string refusal_table(const std::vector<scheduler::Refusal>& refusals, std::size_t first, std::size_t last,
                          const Labels& labels) {
  std::string out =
      "<div class=\"wide\"><table>\n<thead><tr><th>MiB</th><th>reason</th><th>producer</th><th>consumer</th>"
      "<th></th></tr></thead>\n<tbody>\n";
  for (std::size_t i = first; i < last; ++i) {
    const scheduler::Refusal& refusal = refusals[i];
    out += fmt::format("<tr>{}<td>{}</td><td>{}</td><td>{}</td><td class=\"sentence\">{}</td></tr>\n",
                       mebibytes_cell(refusal.bytes, refusals.front().bytes), name(refusal.code),
                       labels.linked(refusal.producer), labels.linked(refusal.consumer), escaped(refusal.sentence));
  }
  return out + "</tbody></table></div>\n";
}

}  // namespace

std::string kernels_part(const Report& report) {
  std::string out = "<section id=\"kernels\">\n<h2>Kernels</h2>\n";
  out +=
      "<p><input id=\"search\" type=\"search\" placeholder=\"a kernel or an op\" aria-label=\"search\"/> "
      "<span id=\"found\"></span></p>\n<div class=\"wide\"><table id=\"table\">\n<thead><tr>";
  const std::vector<std::string> names = column_names(report);
  for (std::size_t c = 0; c < names.size(); ++c)
    out += fmt::format("<th{}><button>{}</button></th>", c == 0 || c > 2 ? " class=\"n\"" : "", names[c]);
  out += "</tr></thead>\n<tbody>\n";
  std::int64_t most = 0;
  for (const Row& row : report.rows) most = std::max({most, row.step->read_bytes, row.step->written_bytes});
  for (std::size_t s = 0; s < report.rows.size(); ++s) out += kernel_row(report, s, most);
  return out + "</tbody></table></div>\n</section>\n";
}

std::string refused_part(const Report& report) {
  const std::vector<scheduler::Refusal> refusals = ranked_refusals(report.plan());
  std::string out = "<section id=\"refused\">\n<h2>Not fused</h2>\n";
  if (refusals.empty()) return out + "<p>Every pair of neighbours is one kernel.</p>\n</section>\n";
  std::map<scheduler::RefusalCode, std::pair<std::int64_t, std::int64_t>> totals;  // pairs, bytes
  for (const scheduler::Refusal& refusal : refusals)
    ++totals[refusal.code].first, totals[refusal.code].second += refusal.bytes;
  out += "<ul class=\"key\">\n";
  for (const auto& [code, total] : totals)
    out += fmt::format("<li><b>{}</b>: {} pairs, {}</li>\n", name(code), total.first, ir::bytes_text(total.second));
  out += "</ul>\n";
  const Labels labels(report.plan());
  const std::size_t shown = std::min(refusals.size(), kShownRefusals);
  out += refusal_table(refusals, 0, shown, labels);
  if (shown < refusals.size())
    out += fmt::format("<details><summary>and {} smaller ones</summary>\n{}</details>\n", refusals.size() - shown,
                       refusal_table(refusals, shown, refusals.size(), labels));
  return out + "</section>\n";
}

}  // namespace fusejit::tools
