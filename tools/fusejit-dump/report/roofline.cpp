// Arithmetic against arithmetic per byte, a dot a kernel, both axes logarithmic. A kernel's bytes are then a slanted
// line; on a measured machine, all kernels that take at least as long lie on one roof.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/base/number.h"
#include "tools/fusejit-dump/markup.h"
#include "tools/fusejit-dump/report/report.h"

namespace fusejit::tools {
namespace {

constexpr double kWidth = 900, kHeight = 460, kLeft = 84, kRight = 70, kTop = 24, kBottom = 48;

// Whole decades around the numbers that are shown.
struct Axis {
  double low = 0, high = 1;  // exponents of 10
  void take(double number) {
    low = empty_ ? std::floor(std::log10(number)) : std::min(low, std::floor(std::log10(number)));
    high = empty_ ? low + 1 : std::max(high, std::ceil(std::log10(number)));
    empty_ = false;
  }
  double part(double number) const { return (std::log10(number) - low) / (high - low); }

 private:
  bool empty_ = true;
};

struct Plot {
  Axis x, y;
  double left(double number) const { return kLeft + x.part(number) * (kWidth - kLeft - kRight); }
  double top(double number) const { return kHeight - kBottom - y.part(number) * (kHeight - kTop - kBottom); }
};

std::string decade(double exponent) {
  return std::abs(exponent) < 4 ? fmt::format("{:g}", std::pow(10, exponent)) : fmt::format("1e{:g}", exponent);
}

std::string axes(const Plot& plot) {
  std::string out;
  for (double e = plot.x.low; e <= plot.x.high; ++e) {
    const double x = plot.left(std::pow(10, e));
    out += fmt::format(
        "<path class=\"grid\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/><text x=\"{0:.1f}\" y=\"{3:.1f}\" "
        "text-anchor=\"middle\">{4}</text>",
        x, kTop, kHeight - kBottom, kHeight - kBottom + 17, decade(e));
  }
  for (double e = plot.y.low; e <= plot.y.high; ++e) {
    const double y = plot.top(std::pow(10, e));
    out += fmt::format(
        "<path class=\"grid\" d=\"M{0:.1f} {1:.1f}H{2:.1f}\"/><text x=\"{3:.1f}\" y=\"{4:.1f}\" "
        "text-anchor=\"end\">{5}</text>",
        kLeft, y, kWidth - kRight, kLeft - 8, y + 4, decade(e - 9));
  }
  return out + fmt::format(
                   "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">FLOP per byte</text><text x=\"16\" "
                   "y=\"14\">GFLOP</text>\n",
                   (kLeft + kWidth - kRight) / 2, kHeight - 8);
}

// The points (x, min(rise * x, most)) inside the plot, with its name where it leaves.
std::string roof(const Plot& plot, double rise, double most, const std::string& name) {
  const double x0 = std::pow(10, plot.x.low), x1 = std::pow(10, plot.x.high);
  const double y0 = std::pow(10, plot.y.low), y1 = std::pow(10, plot.y.high);
  const double from = std::max(x0, y0 / rise), ridge = most / rise;
  const double end = std::min({x1, y1 / rise, ridge});
  if (from >= end) return "";
  std::string path = fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", plot.left(from), plot.top(rise * from), plot.left(end),
                                 plot.top(rise * end));
  const bool flat = ridge < x1 && most <= y1;
  if (flat) path += fmt::format("H{:.1f}", kWidth - kRight);
  const bool at_right = flat || rise * x1 <= y1;
  const double x = at_right ? kWidth - kRight + 6 : plot.left(y1 / rise),
               y = at_right ? plot.top(std::min(rise * x1, most)) + 4 : kTop - 7;
  return fmt::format("<path class=\"roof\" d=\"{}\"/><text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", path, x, y,
                     at_right ? "" : " text-anchor=\"middle\"", name);
}

std::string roofs(const Plot& plot, const std::optional<runtime::Roofline>& machine) {
  std::string out;
  if (machine && machine->gflops > 0) {
    const std::pair<double, const char*> times[] = {{1e-6, "1 µs"},  {1e-5, "10 µs"},  {1e-4, "100 µs"}, {1e-3, "1 ms"},
                                                    {1e-2, "10 ms"}, {1e-1, "100 ms"}, {1, "1 s"}};
    for (const auto& [seconds, name] : times)
      out += roof(plot, machine->gigabytes_per_second * 1e9 * seconds, machine->gflops * 1e9 * seconds, name);
  } else {
    for (double bytes = 1024; bytes < 1e12; bytes *= 32)
      out += roof(plot, bytes, INFINITY, ir::bytes_text(std::llround(bytes)));
  }
  return out;
}

}  // namespace

std::string roofline_part(const Report& report) {
  Plot plot;
  std::vector<std::size_t> shown;
  for (std::size_t s = 0; s < report.rows.size(); ++s) {
    const double flop = report.rows[s].step->flop;
    if (flop <= 0 || report.bytes(s) == 0) continue;
    shown.push_back(s);
    plot.x.take(flop / static_cast<double>(report.bytes(s)));
    plot.y.take(flop);
  }
  std::string out = "<section id=\"roofline\">\n<h2>Roofline</h2>\n";
  out += report.machine
             ? "<p>Kernels on one line take at least as long on this machine, as measured: on the slope they wait "
               "for memory, on the level part for arithmetic.</p>\n"
             : "<p>Kernels on one slanted line move as many bytes; the further right, the more is computed with "
               "each. --measure draws this machine's roofs.</p>\n";
  if (shown.empty()) return out + "<p>No kernel computes anything.</p>\n</section>\n";
  out += fmt::format("<svg class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\">\n{}{}", kWidth, kHeight, axes(plot),
                     roofs(plot, report.machine));
  for (const std::size_t s : shown) {
    const scheduler::PlanStep& step = *report.rows[s].step;
    const double intensity = step.flop / static_cast<double>(report.bytes(s));
    std::string title = fmt::format("{} {}\n{:.3f} GFLOP, {:.2f} FLOP per byte, {}", s, step.name, step.flop / 1e9,
                                    intensity, ir::bytes_text(report.bytes(s)));
    if (report.machine) title += fmt::format("\nat least {:.4f} ms", report.least_milliseconds(s));
    if (report.times) title += fmt::format(", measured {:.4f}", report.times->steps[s].median());
    out += fmt::format(
        "<a href=\"#s{}\"><circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"><title>{}</title></circle>"
        "</a>\n",
        s, look(kind_of(step)).style, plot.left(intensity), plot.top(step.flop), escaped(title));
  }
  out += "</svg>\n";
  if (shown.size() < report.rows.size())
    out += fmt::format("<p class=\"faint\">{} kernels only copy and are not here.</p>\n",
                       report.rows.size() - shown.size());
  return out + "</section>\n";
}

}  // namespace fusejit::tools
