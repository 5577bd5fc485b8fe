// Where the time of a measured step goes: by what kernels are busy with, and kernel after kernel.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tools/fusejit-dump/markup.h"
#include "tools/fusejit-dump/report/report.h"

namespace fusejit::tools {
namespace {

struct Share {
  double took = 0, least = 0;
  int kernels = 0;
};

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

// What the kernels took beside what they take at least, both in the same unit.
std::string bars(const Report& report, double all) {
  std::array<Share, kKinds> shares = {};
  for (std::size_t s = 0; s < report.rows.size(); ++s) {
    Share& share = shares[static_cast<std::size_t>(kind_of(*report.rows[s].step))];
    share.took += report.times->steps[s].median(), share.least += report.least_milliseconds(s), ++share.kernels;
  }
  std::string took, least, key;
  double sum = 0;
  for (std::size_t k = 0; k < shares.size(); ++k) {
    const Share& share = shares[k];
    if (share.kernels == 0) continue;
    const KindLook& kind = look(static_cast<Kind>(k));
    const std::string words = fmt::format("{}: {:.2f} ms in {} kernels, {:.1f} %; at least {:.2f}", kind.name,
                                          share.took, share.kernels, percent(share.took, all), share.least);
    const auto part = [&](double milliseconds) {
      return fmt::format("<i class=\"{}\" style=\"width:{:.3f}%\" title=\"{}\"></i>", kind.style,
                         percent(milliseconds, all), words);
    };
    took += part(share.took), least += part(share.least), sum += share.least;
    key += fmt::format("<li><span class=\"chip {}\"></span>{}</li>\n", kind.style, words);
  }
  return fmt::format(
      "<div class=\"bar\"><span>took</span><div>{}</div><b>{:.2f} ms</b></div>\n"
      "<div class=\"bar\"><span>at least</span><div>{}</div><b>{:.2f} ms</b></div>\n<ul class=\"key\">\n{}</ul>\n",
      took, all, least, sum, key);
}

// A rectangle a kernel, as wide as it took and as high as it came near the roof.
std::string timeline(const Report& report, double all) {
  std::string out = fmt::format(
      "<h3>One after the other</h3>\n<p>As wide as a kernel takes, as high as it comes near to what this machine can "
      "do.</p>\n<svg class=\"curve\" viewBox=\"0 0 {:.6g} 100\" preserveAspectRatio=\"none\" role=\"img\">",
      std::max(all, 1e-9));
  double x = 0;
  for (std::size_t s = 0; s < report.rows.size(); ++s) {
    const double took = report.times->steps[s].median(), height = std::clamp(100 * report.of_roof(s), 2.0, 100.0);
    const scheduler::PlanStep& step = *report.rows[s].step;
    out += fmt::format(
        "<a href=\"#s{0}\"><rect class=\"{1}\" x=\"{2:.6g}\" y=\"{3:.1f}\" width=\"{4:.6g}\" height=\"{5:.1f}\">"
        "<title>{0} {6}: {4:.4f} ms, {7:.0f} % of the roof</title></rect></a>",
        s, look(kind_of(step)).style, x, 100 - height, took, height, escaped(step.name), 100 * report.of_roof(s));
    x += took;
  }
  return out + "</svg>\n";
}

}  // namespace

double Report::of_roof(std::size_t step) const {
  const double took = times->steps[step].median();
  return took > 0 ? least_milliseconds(step) / took : 0;
}

double Report::longest_milliseconds() const {
  double longest = 1e-9;
  for (const Times& step : times->steps) longest = std::max(longest, step.median());
  return longest;
}

std::string times_part(const Report& report) {
  if (!report.times || report.rows.empty()) return "";
  double all = 0;
  for (const Times& step : report.times->steps) all += step.median();
  return "<section id=\"times\">\n<h2>Times</h2>\n<p>Medians of " +
         std::to_string(report.times->whole.milliseconds.size()) +
         " steps on made-up arguments. What takes less than it should found its bytes in a cache.</p>\n" +
         bars(report, all) + timeline(report, all) + "</section>\n";
}

}  // namespace fusejit::tools
