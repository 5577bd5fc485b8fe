#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "fusejit/error.h"
#include "ir/base/number.h"
#include "tools/fusejit-dump/markup.h"
#include "tools/fusejit-dump/picture/arrange.h"
#include "tools/fusejit-dump/picture/draw.h"

namespace fusejit::tools {
namespace {

// Letters are of one width, so that what is written fits without asking a font.
constexpr double kTitleLetter = 7.3, kLetter = 6.7, kLine = 15, kPadding = 9, kSideGap = 14, kHeader = 74;
constexpr std::size_t kBoxLetters = 42, kSideLetters = 26, kBoxLines = 4, kSideLines = 5;
// In a tall picture no eye follows a line that passes more rows than this: its ends name each other instead.
constexpr int kTall = 40, kLongestLine = 12;
constexpr std::size_t kMostBoxes = 20000;

constexpr std::string_view kStyle = R"(
.picture { --ink: #1c2330; --faint: #5b6778; --paper: #ffffff; --line: #94a3b8; }
@media (prefers-color-scheme: dark) { .picture { --ink: #e4e8ee; --faint: #9aa7b8; --paper: #12161d; --line: #5c6a7e; } }
.picture text { font: 11px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: var(--ink); }
.picture .title { font-size: 12px; font-weight: 600; }
.picture .head { font-size: 14px; font-weight: 600; }
.picture .faint, .picture .side text { fill: var(--faint); }
.picture .paper { fill: var(--paper); }
.picture .box rect { fill: var(--kind); fill-opacity: .13; stroke: var(--kind); stroke-width: 1.2; }
.picture .box .stripe { fill-opacity: 1; stroke: none; }
.picture a:hover .box rect, .picture .box:target rect { fill-opacity: .32; stroke-width: 2.5; }
.picture .flow path { fill: none; stroke: var(--line); }
.picture .flow:hover path { stroke: #f97316; }
.picture .flow text { text-anchor: middle; font-size: 10px; fill: var(--faint); stroke: var(--paper); stroke-width: 4px;
  paint-order: stroke; }
.picture .side path { fill: none; stroke: var(--line); stroke-dasharray: 3 3; }
.picture .side a:hover text { fill: #f97316; text-decoration: underline; }
)";

// Words set in lines of so many letters; what is more than kBoxLines is counted.
std::vector<std::string> wrapped(const std::vector<std::string>& words) {
  std::vector<std::string> lines;
  for (std::size_t w = 0; w < words.size(); ++w) {
    const std::string word = words[w] + (w + 1 < words.size() ? "," : "");
    const bool fits = !lines.empty() && lines.back().size() + 1 + word.size() <= kBoxLetters;
    if (!fits && lines.size() == kBoxLines) {
      lines.back() = shortened(lines.back(), kBoxLetters - 12) + fmt::format(" and {} more", words.size() - w);
      break;
    }
    fits ? lines.back() += " " + word : lines.emplace_back(shortened(word, kBoxLetters));
  }
  return lines;
}

// What a box gets from, or gives to, where no line is drawn to.
struct Side {
  std::vector<Flow> flows;
  std::vector<std::string> lines;
  double width() const {
    std::size_t most = 0;
    for (const std::string& line : lines) most = std::max(most, line.size());
    return lines.empty() ? 0 : kLetter * static_cast<double>(most) + kSideGap + 6;
  }
};

// "%w 36.0 KiB", "from 12: 49.0 MiB", "to 231: 49.0 MiB", "result %7 4.0 KiB"
std::string side_line(const Flow& flow, bool left) {
  const int other = left ? flow.from : flow.to;
  if (other >= 0) return fmt::format("{} {}: {}", left ? "from" : "to", other, ir::bytes_text(flow.bytes));
  const std::string bytes = " " + ir::bytes_text(flow.bytes);
  return (left ? "" : "result ") + shortened(flow.name, kSideLetters - bytes.size()) + bytes;
}

void set_lines(Side& side, bool left) {
  std::stable_sort(side.flows.begin(), side.flows.end(),
                   [](const Flow& a, const Flow& b) { return a.bytes > b.bytes; });
  const bool all = side.flows.size() <= kSideLines;
  const std::size_t shown = all ? side.flows.size() : kSideLines - 1;
  for (std::size_t i = 0; i < shown; ++i) side.lines.push_back(side_line(side.flows[i], left));
  std::int64_t rest = 0;
  for (std::size_t i = shown; i < side.flows.size(); ++i) rest += side.flows[i].bytes;
  if (!all) side.lines.push_back(fmt::format("and {} more {}", side.flows.size() - shown, ir::bytes_text(rest)));
}

struct Cell {
  std::string title;
  std::vector<std::string> lines;
  Side left, right;
  double width = 0, height = 0;  // of the box itself
};

struct Sheet {
  std::vector<Cell> cells;
  std::vector<Line> lines;
  std::vector<std::vector<Flow>> of_line;
  std::vector<Flow> passed;  // arguments that are results
  std::vector<int> layers;
};

Sheet sheet_of(const Picture& picture) {
  Sheet sheet;
  const int count = static_cast<int>(picture.boxes.size());
  std::vector<Line> all;
  for (const Flow& flow : picture.flows)
    if (flow.from >= 0 && flow.to >= 0) all.emplace_back(flow.from, flow.to);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  sheet.layers = layers_of(count, all);
  sheet.cells.resize(picture.boxes.size());
  const bool tall = count > 0 && *std::max_element(sheet.layers.begin(), sheet.layers.end()) >= kTall;
  const int longest = tall ? kLongestLine : kTall;
  std::map<Line, std::vector<Flow>> near;
  for (const Flow& flow : picture.flows) {
    const auto cell = [&](int box) -> Cell& { return sheet.cells[static_cast<std::size_t>(box)]; };
    const auto layer = [&](int box) { return sheet.layers[static_cast<std::size_t>(box)]; };
    if (flow.from < 0 && flow.to < 0) {
      sheet.passed.push_back(flow);
    } else if (flow.from >= 0 && flow.to >= 0 && layer(flow.to) - layer(flow.from) <= longest) {
      near[{flow.from, flow.to}].push_back(flow);
    } else {
      if (flow.to >= 0) cell(flow.to).left.flows.push_back(flow);
      if (flow.from >= 0) cell(flow.from).right.flows.push_back(flow);
    }
  }
  std::vector<int> arriving(picture.boxes.size()), leaving(picture.boxes.size());
  for (auto& [line, flows] : near) {
    sheet.lines.push_back(line);
    sheet.of_line.push_back(flows);
    ++leaving[static_cast<std::size_t>(line.first)], ++arriving[static_cast<std::size_t>(line.second)];
  }
  for (std::size_t b = 0; b < picture.boxes.size(); ++b) {
    const Box& box = picture.boxes[b];
    Cell& cell = sheet.cells[b];
    cell.title = shortened(box.title, kBoxLetters - 3);
    cell.lines = wrapped(box.words);
    if (!box.note.empty()) cell.lines.push_back(box.note);
    double width = kTitleLetter * static_cast<double>(cell.title.size());
    for (const std::string& line : cell.lines) width = std::max(width, kLetter * static_cast<double>(line.size()));
    cell.width = std::max(width + 2 * kPadding + 6, 66.0 * std::min(8, std::max(arriving[b], leaving[b])));
    set_lines(cell.left, true);
    set_lines(cell.right, false);
    const std::size_t rows = std::max({cell.lines.size() + 1, cell.left.lines.size(), cell.right.lines.size()});
    cell.height = kLine * static_cast<double>(rows) + 2 * kPadding;
  }
  return sheet;
}

std::string text(double x, double y, std::string_view style, std::string_view words) {
  const std::string styled = style.empty() ? "" : fmt::format(" class=\"{}\"", style);
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>", x, y, styled, escaped(words));
}

// Their bytes and, for a pointer that rests there, their names.
std::string bytes_of(const std::vector<Flow>& flows) {
  std::string all;
  for (const Flow& flow : flows) all += (all.empty() ? "" : " ") + std::to_string(flow.bytes);
  return all;
}
std::string title_of(const std::vector<Flow>& flows, bool with_ends) {
  std::string all;
  for (const Flow& flow : flows) {
    const auto end = [](int box, const char* rim) { return box < 0 ? rim : std::to_string(box); };
    all += all.empty() ? "" : "\n";
    if (with_ends) all += end(flow.from, "argument") + " to " + end(flow.to, "result") + ": ";
    all += fmt::format("{}, {} bytes", flow.name, flow.bytes);
  }
  return "<title>" + escaped(all) + "</title>";
}

std::string side_text(const Side& side, bool left, double x, double y, std::size_t box) {
  if (side.flows.empty()) return "";
  std::string out = fmt::format("<g class=\"side\" data-{}=\"{}\" data-bytes=\"{}\">{}", left ? "to" : "from", box,
                                bytes_of(side.flows), title_of(side.flows, true));
  const double edge = left ? x - kSideGap : x + kSideGap, height = kLine * static_cast<double>(side.lines.size());
  out +=
      fmt::format("<path d=\"M{:.1f} {:.1f}v{:.1f}M{:.1f} {:.1f}H{:.1f}\"/>", edge, y + 4, height, edge, y + kLine, x);
  for (std::size_t i = 0; i < side.lines.size(); ++i) {
    const int other = i >= side.flows.size() ? -1 : left ? side.flows[i].from : side.flows[i].to;
    const bool linked = other >= 0 && !side.lines[i].starts_with("and ");
    if (linked) out += fmt::format("<a href=\"#b{}\">", other);
    out +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>", left ? edge - 5 : edge + 5,
                    y + kLine * static_cast<double>(i + 1), left ? " text-anchor=\"end\"" : "", escaped(side.lines[i]));
    if (linked) out += "</a>";
  }
  return out + "</g>\n";
}

std::string box_text(const Box& box, const Cell& cell, std::size_t number, Point top) {
  const double x = top.x - cell.width / 2, y = top.y;
  std::string out;
  if (!box.link.empty()) out += fmt::format("<a href=\"{}\">", escaped(box.link));
  out +=
      fmt::format("<g id=\"b{}\" class=\"box {}\"><title>{}</title>", number, look(box.kind).style, escaped(box.whole));
  out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"5\"/>", x, y, cell.width,
                     cell.height);
  out += fmt::format("<rect class=\"stripe\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"4\" height=\"{:.1f}\"/>", x, y + 3,
                     cell.height - 6);
  double line = y + kPadding + 10;
  out += text(x + kPadding + 6, line, "title", cell.title);
  for (const std::string& words : cell.lines)
    out += text(x + kPadding + 6, line += kLine, words == box.note ? "faint" : "", words);
  out += box.link.empty() ? "</g>\n" : "</g></a>\n";
  return out + side_text(cell.left, true, x, y, number) + side_text(cell.right, false, x + cell.width, y, number);
}

// The two largest: more do not fit.
std::string line_label(std::vector<Flow> flows) {
  std::stable_sort(flows.begin(), flows.end(), [](const Flow& a, const Flow& b) { return a.bytes > b.bytes; });
  std::string label = ir::bytes_text(flows[0].bytes);
  if (flows.size() > 1) label += fmt::format(" +{}", flows.size() - 1);
  return label;
}

std::string line_text(const Line& line, const std::vector<Flow>& flows, const std::vector<Point>& route) {
  std::int64_t bytes = 0;
  for (const Flow& flow : flows) bytes += flow.bytes;
  const double kib = static_cast<double>(bytes) / 1024;
  std::string path = fmt::format("M{:.1f} {:.1f}V{:.1f}", route[0].x, route[0].y, route[1].y);
  for (std::size_t i = 1; i + 1 < route.size(); i += 2) {
    const Point from = route[i], to = route[i + 1];
    const double middle = (from.y + to.y) / 2;
    path += fmt::format("C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", from.x, middle, to.x, middle, to.x, to.y);
    if (i + 2 < route.size()) path += fmt::format("V{:.1f}", route[i + 2].y);
  }
  return fmt::format(
      "<g class=\"flow\" data-from=\"{}\" data-to=\"{}\" data-bytes=\"{}\">{}<path d=\"{}\" "
      "stroke-width=\"{:.1f}\"/>{}</g>\n",
      line.first, line.second, bytes_of(flows), title_of(flows, false), path,
      1 + std::clamp(std::log2(kib + 1) - 4, 0.0, 12.0) / 3,
      text(route.back().x, route.back().y - 7, "", line_label(flows)));
}

std::string header_text(const Picture& picture, const Sheet& sheet, double& width) {
  std::string out = text(24, 28, "head", picture.title);
  width = 48 + 8.6 * static_cast<double>(picture.title.size());
  double x = 24;
  for (int k = 0; k < kKinds; ++k) {
    const KindLook& kind = look(static_cast<Kind>(k));
    const auto has_kind = [&](const Box& box) { return box.kind == static_cast<Kind>(k); };
    if (std::none_of(picture.boxes.begin(), picture.boxes.end(), has_kind)) continue;
    out +=
        fmt::format("<g class=\"box {}\"><rect class=\"stripe\" x=\"{:.1f}\" y=\"42\" width=\"11\" height=\"11\"/></g>",
                    kind.style, x);
    out += text(x + 16, 52, "faint", kind.name);
    x += 16 + kLetter * static_cast<double>(kind.name.size()) + 18;
  }
  width = std::max(width, x + 24);
  if (!sheet.passed.empty()) {
    out += fmt::format("<g class=\"side\" data-bytes=\"{}\">{}", bytes_of(sheet.passed), title_of(sheet.passed, true));
    out += text(24, 70, "", fmt::format("arguments that are results as they are: {}", sheet.passed.size())) + "</g>\n";
  }
  return out + "\n";
}

}  // namespace

std::string svg(const Picture& picture) {
  if (picture.boxes.size() > kMostBoxes)
    throw UnsupportedError(fmt::format("a picture has {} boxes at most, this one would have {}; DOT has no limit",
                                       kMostBoxes, picture.boxes.size()));
  const Sheet sheet = sheet_of(picture);
  std::vector<Extent> extents;
  for (const Cell& cell : sheet.cells)
    extents.push_back(
        {cell.width / 2 + cell.left.width(), cell.width / 2 + cell.right.width(), cell.width / 2 - 8, cell.height});
  Arrangement arranged = arrange(extents, sheet.layers, sheet.lines);
  for (Point& top : arranged.tops) top.y += kHeader;
  double header_width = 0;
  const std::string header = header_text(picture, sheet, header_width);
  const double width = std::max(arranged.width, header_width), height = arranged.height + kHeader;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"picture\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\">\n<title>{2}</title>\n<style>{3}",
      std::ceil(width), std::ceil(height), escaped(picture.title), kStyle);
  out += kind_styles() + "</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n" + header;
  for (std::size_t l = 0; l < sheet.lines.size(); ++l) {
    for (Point& point : arranged.routes[l]) point.y += kHeader;
    out += line_text(sheet.lines[l], sheet.of_line[l], arranged.routes[l]);
  }
  for (std::size_t b = 0; b < picture.boxes.size(); ++b)
    out += box_text(picture.boxes[b], sheet.cells[b], b, arranged.tops[b]);
  return out + "</svg>\n";
}

}  // namespace fusejit::tools
