// What a page begins with: totals, and where the bytes go.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/base/number.h"
#include "tools/fusejit-dump/markup.h"
#include "tools/fusejit-dump/picture/draw.h"
#include "tools/fusejit-dump/report/report.h"
#include "tools/fusejit-dump/table.h"

namespace fusejit::tools {
namespace {

std::string card(const std::string& figure, const std::string& meaning) {
  return fmt::format("<div class=\"card\"><b>{}</b><span>{}</span></div>\n", escaped(figure), escaped(meaning));
}

double percent(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

struct ShareOfTotal {
  std::int64_t bytes = 0, kernels = 0;
};

// The kernels by what they are busy with; what is computed before runs moves nothing in them.
std::array<ShareOfTotal, kKinds> shares_of(const Report& report) {
  std::array<ShareOfTotal, kKinds> shares = {};
  for (std::size_t s = 0; s < report.rows.size(); ++s) {
    ShareOfTotal& share = shares[static_cast<std::size_t>(kind_of(*report.rows[s].step))];
    ++share.kernels;
    if (!report.plan().is_derivation(static_cast<int>(s))) share.bytes += report.bytes(s);
  }
  return shares;
}

// How much of the arena holds values that are still to be read, after each step.
std::string arena_curve(const Report& report) {
  const scheduler::Plan& plan = report.plan();
  if (plan.arena_bytes == 0 || plan.steps.empty()) return "";
  std::string out = fmt::format(
      "<h3>Arena</h3>\n<p>Bytes that later kernels still read, after each kernel; the arena has {}.</p>\n"
      "<svg class=\"curve\" viewBox=\"0 0 {} 100\" preserveAspectRatio=\"none\" role=\"img\">",
      ir::bytes_text(plan.arena_bytes), plan.steps.size());
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const std::int64_t alive = scheduler::live_arena_bytes_after(plan, static_cast<int>(s));
    const double height = percent(alive, plan.arena_bytes);
    out += fmt::format(
        "<a href=\"#s{0}\"><rect class=\"{1}\" x=\"{0}\" y=\"{2:.2f}\" width=\"1.02\" height=\"{3:.2f}\">"
        "<title>after {0} {4}: {5}</title></rect></a>",
        s, look(kind_of(plan.steps[s])).style, 100 - height, height, escaped(plan.steps[s].name),
        ir::bytes_text(alive));
  }
  return out + "</svg>\n";
}

std::string fallbacks_text(const scheduler::Plan& plan) {
  std::string out;
  for (const scheduler::Fallback& fallback : plan.fallbacks)
    out += fmt::format("<p class=\"warning\">The group {} was made from its parts: {}</p>\n", escaped(fallback.group),
                       escaped(fallback.why));
  return out;
}

}  // namespace

double Report::flop() const {
  double sum = 0;
  for (const Row& row : rows) sum += row.step->flop;
  return sum;
}

double Report::least_milliseconds(std::size_t step) const {
  return machine->least_milliseconds(bytes(step), rows[step].step->flop);
}

std::string head_part(const Report& report) {
  const scheduler::Plan& plan = report.plan();
  std::string out = fmt::format("<header>\n<h1>@{}</h1>\n<nav>", escaped(plan.name));
  const std::pair<const char*, const char*> parts[] = {{"bytes", "Bytes"},       {"plan", "Plan"},
                                                       {"kernels", "Kernels"},   {"roofline", "Roofline"},
                                                       {"refused", "Not fused"}, {"code", "Code"}};
  for (const auto& [id, title] : parts) {
    out += fmt::format("<a href=\"#{}\">{}</a> ", id, title);
    if (report.times && std::string_view(id) == "bytes") out += "<a href=\"#times\">Times</a> ";
  }
  out +=
      fmt::format("</nav>\n</header>\n<p class=\"about\">{} on <code>{}</code>, rules={}</p>\n<div class=\"cards\">\n",
                  escaped(report.source), escaped(plan.target.str()), escaped(name(plan.rules)));
  out += card(std::to_string(plan.steps.size()),
              fmt::format("kernels, {} of them different, of {} recorded ops", different(report.rows),
                          report.planned->source.graph.nodes().size()));
  const double times =
      plan.bound_bytes == 0 ? 0 : static_cast<double>(plan.ledger_bytes()) / static_cast<double>(plan.bound_bytes);
  out += card(ir::bytes_text(plan.ledger_bytes()), fmt::format("moved: {} bytes", grouped(plan.ledger_bytes())));
  out += card(
      ir::bytes_text(plan.bound_bytes),
      fmt::format("moved at least, with a kernel for each convolution and product: the plan moves {:.2f} times that",
                  times));
  out += card(ir::bytes_text(plan.arena_bytes), "arena: what is neither argument nor result");
  out += card(fmt::format("{:.2f} GFLOP", report.flop() / 1e9), "arithmetic");
  out += card(std::to_string(plan.refusals.size()), "pairs of neighbours not fused, each with a reason");
  if (report.machine) {
    double milliseconds = 0;
    for (std::size_t s = 0; s < report.rows.size(); ++s) milliseconds += report.least_milliseconds(s);
    out += card(fmt::format("{:.2f} ms", milliseconds),
                fmt::format("at least, at {:.0f} GFLOP/s (f32) and {:.1f} GB/s as measured here",
                            report.machine->gflops, report.machine->gigabytes_per_second));
  }
  if (report.times) {
    out += card(fmt::format("{:.2f} ms", report.times->whole.median()),
                fmt::format("a step as measured here ({:.2f} to {:.2f})", report.times->whole.lowest(),
                            report.times->whole.highest()));
  }
  return out + "</div>\n" + fallbacks_text(plan);
}

std::string bytes_part(const Report& report) {
  const scheduler::Plan& plan = report.plan();
  const std::int64_t ledger = plan.ledger_bytes();
  std::string bar, key;
  const std::array<ShareOfTotal, kKinds> shares = shares_of(report);
  for (std::size_t k = 0; k < shares.size(); ++k) {
    if (shares[k].kernels == 0) continue;
    const KindLook& kind = look(static_cast<Kind>(k));
    const double width = percent(shares[k].bytes, ledger);
    const std::string words = fmt::format("{}: {} in {} kernels, {:.1f} %", kind.name, ir::bytes_text(shares[k].bytes),
                                          shares[k].kernels, width);
    bar += fmt::format("<i class=\"{}\" style=\"width:{:.3f}%\" title=\"{}\"></i>", kind.style, width, words);
    key += fmt::format("<li><span class=\"chip {}\"></span>{}</li>\n", kind.style, words);
  }
  std::string out = "<section id=\"bytes\">\n<h2>Bytes</h2>\n";
  out +=
      fmt::format("<div class=\"bar\"><span>moved</span><div>{}</div><b>{}</b></div>\n", bar, ir::bytes_text(ledger));
  out += fmt::format(
      "<div class=\"bar\"><span>bound</span><div><i class=\"bound\" style=\"width:{:.3f}%\"></i></div>"
      "<b>{}</b></div>\n<ul class=\"key\">\n{}</ul>\n",
      std::min(100.0, percent(plan.bound_bytes, ledger)), ir::bytes_text(plan.bound_bytes), key);
  return out + arena_curve(report) + "</section>\n";
}

std::string picture_part(const Report& report) {
  std::string out =
      "<section id=\"plan\">\n<h2>Plan</h2>\n<p>A box is a kernel; a click leads to its code. Lines are values with "
      "their "
      "bytes; what comes from arguments or far away stands at the left, results and what goes far at the right.</p>\n";
  out +=
      "<p class=\"zoom\"><button data-zoom=\"fit\">fit the width</button> <button data-zoom=\"0.8\">smaller</button> "
      "<button data-zoom=\"1.25\">larger</button> <button data-zoom=\"1\">as drawn</button></p>\n";
  std::vector<std::string> links;
  for (const Row& row : report.rows) links.push_back(fmt::format("#k{}", row.same_as));
  return out + "<div class=\"paper\" tabindex=\"0\">\n" +
         svg(picture_of(report.plan(), report.planned->source.graph, links)) + "</div>\n</section>\n";
}

}  // namespace fusejit::tools
