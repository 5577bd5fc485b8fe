// The text of a schedule: each line of schedule.h in this order, those that say nothing left out.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/kernel/text/parser.h"
#include "ir/kernel/walk.h"
#include "scheduler/schedule/schedule.h"

namespace fusejit::scheduler {

using ir::Binding;
using ir::Lexer;
using ir::TokenKind;

namespace {

constexpr Binding kAxes[] = {Binding::grid_x, Binding::grid_y, Binding::grid_z, Binding::block_x, Binding::block_y};

std::string str(const Extent& extent) { return fmt::format("{} {}", fmt::join(extent.dims, "*"), extent.count); }

std::string str(const std::vector<Extent>& list) {
  std::string text;
  for (const Extent& extent : list) text += (text.empty() ? "" : ", ") + str(extent);
  return text;
}

std::string str(const std::vector<ScheduledLoop>& loops) {
  std::string text;
  for (const ScheduledLoop& loop : loops) {
    if (!text.empty()) text += ", ";
    if (loop.bound != Binding::none) text += std::string(ir::name(loop.bound)) + " ";
    text += fmt::format("{}", fmt::join(loop.dims, "*"));
    if (loop.step > 0) text += fmt::format("/{}", loop.step);
    if (loop.stride > 0) text += fmt::format(" stride {}", loop.stride);
  }
  return text;
}

constexpr std::int64_t kMost = std::int64_t{1} << 40;

// Of a Lexer, or of the reader that plans and kernels share.
template <class Tokens>
class Reader {
 public:
  explicit Reader(Tokens& tokens) : tokens_(tokens) {}

  Schedule run() {
    Schedule s;
    tokens_.expect("schedule"), tokens_.expect("{");
    if (tokens_.accept("algorithm")) tokens_.expect("winograd"), s.winograd = positive();
    if (tokens_.accept("vector")) {
      s.vector = dim();
      const ir::Token at = tokens_.peek();
      const std::int64_t lanes = positive();
      tokens_.expect("x");
      const std::int64_t vectors = positive();
      if (lanes > 64 || vectors > 64) Lexer::fail(at, "a vector has at most 64 lanes, and a tile 64 vectors");
      s.lanes = static_cast<int>(lanes), s.vectors = static_cast<int>(vectors);
    }
    if (tokens_.accept("tile")) s.tile = extents();
    if (tokens_.accept("unroll")) {
      s.unroll = extents();
      s.unroll_within = tokens_.accept("within");
    }
    if (tokens_.accept("dot")) {
      s.dot = dim();
      if (tokens_.peek().kind == TokenKind::number) s.matrix = positive();
    }
    if (tokens_.accept("registers")) s.registers = positive();
    if (tokens_.accept("task")) s.tasks = loops();
    if (tokens_.accept("outer")) s.outer = loops();
    if (tokens_.accept("inner")) s.inner = loops();
    if (tokens_.accept("panel")) {
      do {
        const ir::Token operand = tokens_.expect(TokenKind::name, "a, b or maxima");
        std::string* const panel = operand.text == "a"        ? &s.panel_a
                                   : operand.text == "b"      ? &s.panel_b
                                   : operand.text == "maxima" ? &s.panel_maxima
                                                              : nullptr;
        if (panel == nullptr) Lexer::fail(operand, "there are panels of a, of b and of maxima");
        *panel = dim();
        if (panel == &s.panel_a) s.tiles_a = tokens_.accept("tiles");
      } while (tokens_.accept(","));
    }
    if (tokens_.accept("pack")) tokens_.expect("b"), s.pack_b = positive();
    if (tokens_.accept("combine")) s.combine = dims();
    if (tokens_.accept("finish")) tokens_.expect("late"), s.finish_late = true;
    if (tokens_.accept("flush")) s.flush = extent();
    if (tokens_.accept("fetch")) {
      s.fetch.dims = dims();
      s.fetch_b = s.fetch.dims == std::vector<std::string>{"b"} && tokens_.peek().kind == TokenKind::name;
      if (s.fetch_b) s.fetch.dims = dims();
      s.fetch.count = positive();
      if (tokens_.accept(",")) tokens_.expect("b"), s.fetch_packed = true;
    }
    if (tokens_.accept("store")) tokens_.expect("stream"), s.stream = true;
    tokens_.expect("}");
    return s;
  }

 private:
  std::int64_t positive() {
    const ir::Token at = tokens_.expect(TokenKind::number, "a number");
    const ir::NumberToken number = Lexer::number(at);
    if (!number.is_integer || number.integer < 1 || number.integer > static_cast<std::uint64_t>(kMost))
      Lexer::fail(at, fmt::format("expected a whole number from 1 to {}", kMost));
    return static_cast<std::int64_t>(number.integer);
  }
  std::string dim() { return std::string(tokens_.expect(TokenKind::name, "a dim").text); }
  std::vector<std::string> dims() {
    std::vector<std::string> list{dim()};
    while (tokens_.accept("*")) list.push_back(dim());
    return list;
  }
  Extent extent() {
    Extent one;
    one.dims = dims();
    one.count = positive();
    return one;
  }
  std::vector<Extent> extents() {
    std::vector<Extent> list;
    do list.push_back(extent());
    while (tokens_.accept(","));
    return list;
  }
  Binding bound() {
    const bool grid = tokens_.accept("grid");
    if (!grid && !tokens_.accept("block")) return Binding::none;
    tokens_.expect(".");
    const ir::Token axis = tokens_.expect(TokenKind::name, "x, y or z");
    const std::string wanted = (grid ? "grid." : "block.") + std::string(axis.text);
    for (const Binding known : kAxes)
      if (ir::name(known) == wanted) return known;
    Lexer::fail(axis, fmt::format("{} is no axis: grid.x, grid.y, grid.z, block.x, block.y", wanted));
  }
  std::vector<ScheduledLoop> loops() {
    std::vector<ScheduledLoop> list;
    do {
      ScheduledLoop loop;
      loop.bound = bound();
      loop.dims = dims();
      if (tokens_.accept("/")) loop.step = positive();
      if (tokens_.accept("stride")) loop.stride = positive();
      list.push_back(std::move(loop));
    } while (tokens_.accept(","));
    return list;
  }

  Tokens& tokens_;
};

}  // namespace

namespace {

std::vector<std::string> lines_of(const Schedule& s) {
  std::vector<std::string> lines;
  const auto line = [&](std::string_view word, const std::string& rest) {
    if (!rest.empty()) lines.push_back(fmt::format("{} {}", word, rest));
  };
  if (s.winograd > 0) line("algorithm", fmt::format("winograd {}", s.winograd));
  if (!s.vector.empty()) line("vector", fmt::format("{} {} x {}", s.vector, s.lanes, s.vectors));
  line("tile", str(s.tile));
  line("unroll", str(s.unroll) + (s.unroll_within ? " within" : ""));
  line("dot", s.matrix > 0 ? fmt::format("{} {}", s.dot, s.matrix) : s.dot);
  if (s.registers > 0) line("registers", fmt::format("{}", s.registers));
  line("task", str(s.tasks));
  line("outer", str(s.outer));
  line("inner", str(s.inner));
  std::string panels;
  for (const auto& [of, where] : {std::pair{"a", &s.panel_a}, {"b", &s.panel_b}, {"maxima", &s.panel_maxima}})
    if (!where->empty())
      panels += fmt::format("{}{} {}{}", panels.empty() ? "" : ", ", of, *where,
                            where == &s.panel_a && s.tiles_a ? " tiles" : "");
  line("panel", panels);
  if (s.pack_b > 0) line("pack", fmt::format("b {}", s.pack_b));
  line("combine", fmt::format("{}", fmt::join(s.combine, "*")));
  if (s.finish_late) line("finish", "late");
  if (!s.flush.dims.empty()) line("flush", str(s.flush));
  if (!s.fetch.dims.empty()) line("fetch", (s.fetch_b ? "b " : "") + str(s.fetch) + (s.fetch_packed ? ", b" : ""));
  if (s.stream) line("store", "stream");
  return lines;
}

}  // namespace

std::string_view name(Work kind) { return kind == Work::domain ? "domain" : "contraction"; }

std::string print(const Schedule& schedule) {
  std::string text = "schedule {";
  for (const std::string& line : lines_of(schedule)) text += " " + line;
  return text + " }";
}

std::string print_work(const ScheduledWork& one) { return fmt::format("{} \"{}\"", name(one.kind), one.work); }

std::string print_lines(const ScheduledWork& one) {
  std::string text = print_work(one) + "\nschedule {\n";
  for (const std::string& line : lines_of(one.schedule)) text += "  " + line + "\n";
  return text + "}\n";
}

Schedule parse_schedule(ir::TokenReader& tokens) { return Reader(tokens).run(); }

bool is_scheduled_work(const ir::TokenReader& tokens) {
  return tokens.is(name(Work::contraction)) || tokens.is(name(Work::domain));
}

ScheduledWork parse_scheduled_work(ir::TokenReader& tokens) {
  const bool domain = tokens.accept(name(Work::domain));
  if (!domain) tokens.expect(name(Work::contraction));
  std::string work(tokens.expect(TokenKind::string, domain ? "a domain in quotes" : "a contraction in quotes").text);
  return {domain ? Work::domain : Work::contraction, std::move(work), parse_schedule(tokens)};
}

Schedule parse_schedule(std::string_view text) {
  Lexer tokens(text);
  Schedule schedule = Reader(tokens).run();
  tokens.expect(TokenKind::end, "the end of the text");
  return schedule;
}

}  // namespace fusejit::scheduler
