#include "tools/cudnn_probe/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "fusejit/error.h"

namespace fusejit::cudnn_probe {
namespace {

using namespace fusejit::runtime::cudnn;

std::size_t place(int pattern, int shape_class, int column) {
  return (static_cast<std::size_t>(pattern) * shape_classes().size() + static_cast<std::size_t>(shape_class)) *
             kColumns +
         static_cast<std::size_t>(column);
}

std::ofstream open(const std::string& path) {
  std::ofstream file(path);
  if (!file) throw FileError("cannot write " + path);
  return file;
}

constexpr std::string_view kMarker = "<!-- Below: made by cudnn_probe -->\n";

// What a page says before its generated part.
std::string until_marker(const std::string& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t marker = text.find(kMarker);
  if (marker == std::string::npos) throw FileError(path + " has no line " + std::string(kMarker));
  return text.substr(0, marker + kMarker.size()) + "\n";
}

// The reasons of a table, each once, in the order of their letters.
std::vector<std::string> letters_of(const Table& table) {
  std::vector<std::string> letters;
  for (const Cell& cell : table.all) {
    if (cell.state == '-' && !std::count(letters.begin(), letters.end(), cell.reason)) letters.push_back(cell.reason);
  }
  if (letters.size() > 26) throw InternalError("cudnn_probe: more than 26 reasons");
  if (letters.empty()) letters.push_back("");
  return letters;
}

char written(const Cell& cell, const std::vector<std::string>& letters) {
  if (cell.state != '-') return cell.state;
  return static_cast<char>('a' + (std::find(letters.begin(), letters.end(), cell.reason) - letters.begin()));
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) result += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
  return result + '"';
}

}  // namespace

Cell& Table::cell(int pattern, int shape_class, int column) { return all[place(pattern, shape_class, column)]; }
const Cell& Table::cell(int pattern, int shape_class, int column) const {
  return all[place(pattern, shape_class, column)];
}

Table compiled_in_table() {
  Table table;
  table.version = table_version();
  for (int p = 0; p < static_cast<int>(patterns().size()); ++p) {
    for (int s = 0; s < static_cast<int>(shape_classes().size()); ++s) {
      for (const char letter : cells(p, s)) {
        const bool none = letter >= 'a' && letter <= 'z';
        table.all.push_back(
            {none ? '-' : letter, none ? std::string(reasons()[static_cast<std::size_t>(letter - 'a')]) : ""});
      }
    }
  }
  return table;
}

void write_table(const Table& table, const std::string& path) {
  const std::vector<std::string> letters = letters_of(table);
  std::ofstream file = open(path);
  file << "// Made by cudnn_probe; change nothing here. Columns: sm_80, sm_90, sm_100; of each nhwc, nchw; of each f16 "
          "bf16\n"
          "// f32 tf32. Letters are explained at cells() in support.h.\n";
  file << fmt::format("constexpr int kTableVersion = {};\n", table.version);
  file << fmt::format("constexpr std::array<std::string_view, {}> kReasons = {{\n", letters.size());
  for (std::size_t i = 0; i < letters.size(); ++i) {
    file << fmt::format("    {},  // {}\n", quoted(letters[i]), static_cast<char>('a' + i));
  }
  file << fmt::format("}};\nconstexpr std::array<std::string_view, {}> kCells = {{\n",
                      patterns().size() * shape_classes().size());
  for (int p = 0; p < static_cast<int>(patterns().size()); ++p) {
    file << "    // " << patterns()[static_cast<std::size_t>(p)].name << '\n';
    for (int s = 0; s < static_cast<int>(shape_classes().size()); ++s) {
      std::string row;
      for (int c = 0; c < kColumns; ++c) row += written(table.cell(p, s, c), letters);
      file << fmt::format("    \"{}\",  // {}\n", row, shape_classes()[static_cast<std::size_t>(s)].name);
    }
  }
  file << "};\n";
}

void write_markdown(const Table& table, const std::string& path) {
  const std::vector<std::string> letters = letters_of(table);
  const std::string kept = until_marker(path);
  std::ofstream file = open(path);
  file << kept;
  for (int s = 0; s < static_cast<int>(shape_classes().size()); ++s) {
    const ShapeClass& kind = shape_classes()[static_cast<std::size_t>(s)];
    file << fmt::format("### {}: {}\n\n", kind.name, kind.meaning);
    file << "| | sm_80 nhwc | nchw | sm_90 nhwc | nchw | sm_100 nhwc | nchw |\n| --- | --- | --- | --- | --- | --- | "
            "--- |\n";
    for (int p = 0; p < static_cast<int>(patterns().size()); ++p) {
      file << "| " << patterns()[static_cast<std::size_t>(p)].name << " |";
      for (int c = 0; c < kColumns; ++c) {
        file << (c % 4 ? " " : " `") << written(table.cell(p, s, c), letters) << (c % 4 == 3 ? "` |" : "");
      }
      file << '\n';
    }
    file << '\n';
  }
  file << "Why there is none:\n\n";
  for (std::size_t i = 0; i < letters.size(); ++i) {
    file << fmt::format("- `{}` {}\n", static_cast<char>('a' + i), letters[i]);
  }
}

}  // namespace fusejit::cudnn_probe
