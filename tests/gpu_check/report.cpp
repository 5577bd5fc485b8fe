#include "tests/gpu_check/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <vector>

namespace fusejit::gpu_check {
namespace {

std::string cell_text(const Json& cell) {
  if (cell.is_string()) return cell.get<std::string>();
  if (cell.is_number_float()) {
    const double value = cell.get<double>();
    const double size = std::abs(value);
    if (size == 0) return "0";
    if (size < 1e-3) return fmt::format("{:.1e}", value);
    return fmt::format("{:.{}f}", value, size < 10 ? 3 : size < 1000 ? 1 : 0);
  }
  return cell.is_null() ? "" : cell.dump();
}

// Columns in the order in which rows bring them; numbers to the right.
std::string table(const Json& rows) {
  std::vector<std::string> columns;
  for (const Json& row : rows) {
    for (const auto& [name, value] : row.items()) {
      if (std::find(columns.begin(), columns.end(), name) == columns.end()) columns.push_back(name);
    }
  }
  std::vector<std::size_t> widths;
  for (const std::string& column : columns) {
    std::size_t width = column.size();
    for (const Json& row : rows) {
      if (row.contains(column)) width = std::max(width, cell_text(row[column]).size());
    }
    widths.push_back(width);
  }
  std::string out = " ";
  for (std::size_t c = 0; c < columns.size(); ++c) out += fmt::format(" {:<{}}", columns[c], widths[c]);
  while (out.back() == ' ') out.pop_back();
  out += "\n";
  for (const Json& row : rows) {
    std::string line = " ";
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const Json cell = row.contains(columns[c]) ? row[columns[c]] : Json();
      line += cell.is_number() ? fmt::format(" {:>{}}", cell_text(cell), widths[c])
                               : fmt::format(" {:<{}}", cell_text(cell), widths[c]);
    }
    while (line.back() == ' ') line.pop_back();
    out += line + "\n";
  }
  return out;
}

}  // namespace

Report::Report(std::string name, std::filesystem::path file) : file_(std::move(file)) {
  json_ = {{"section", std::move(name)},
           {"state", "running"},
           {"sentence", ""},
           {"seconds", 0.0},
           {"checks", Json::array()},
           {"rows", Json::array()},
           {"sentences", Json::array()}};
  write();
}

void Report::check(const std::string& what, const std::string& problem) {
  json_["checks"].push_back({{"what", what}, {"passed", problem.empty()}, {"problem", problem}});
  if (!problem.empty()) ++failures_;
  write();
}

void Report::row(Json columns) {
  json_["rows"].push_back(std::move(columns));
  write();
}

void Report::say(const std::string& sentence) {
  json_["sentences"].push_back(sentence);
  write();
}

void Report::finish(const std::string& state, const std::string& sentence, double seconds) {
  json_["state"] = state, json_["sentence"] = sentence, json_["seconds"] = seconds;
  write();
}

void Report::write() const {
  if (file_.empty()) return;
  // Texts of drivers and compilers may be in any encoding.
  std::ofstream(file_) << json_.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
}

std::string text(const Json& section) {
  const std::string sentence = section.value("sentence", "");
  std::string out = fmt::format("== {}: {}{}{} ({:.1f} s)\n", section.value("section", ""), section.value("state", ""),
                                sentence.empty() ? "" : ": ", sentence, section.value("seconds", 0.0));
  int passed = 0;
  for (const Json& check : section["checks"]) passed += check.value("passed", false);
  if (!section["checks"].empty()) out += fmt::format("  {} of {} checks passed\n", passed, section["checks"].size());
  constexpr int kMostShown = 12;
  int failed = 0;
  for (const Json& check : section["checks"]) {
    if (check.value("passed", false) || failed++ >= kMostShown) continue;
    out += fmt::format("  FAILED {}: {}\n", check.value("what", ""), check.value("problem", ""));
  }
  if (failed > kMostShown) out += fmt::format("  and {} more, in the JSON\n", failed - kMostShown);
  if (!section["rows"].empty()) out += table(section["rows"]);
  for (const Json& line : section["sentences"]) out += "  " + line.get<std::string>() + "\n";
  return out + "\n";
}

}  // namespace fusejit::gpu_check
