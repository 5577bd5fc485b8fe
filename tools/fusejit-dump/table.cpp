#include "tools/fusejit-dump/table.h"

#include <algorithm>

namespace fusejit::tools {

std::string table(const std::vector<std::vector<std::string>>& rows, std::string_view alignment) {
  std::vector<std::size_t> widths(alignment.size());
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string blanks(widths[c] - row[c].size(), ' ');
      line += (c == 0 ? "" : "  ") + (alignment[c] == 'r' ? blanks + row[c] : row[c] + blanks);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::size_t sign = number < 0 ? 1 : 0;
  for (std::size_t i = digits.size(); i > sign + 3;) digits.insert(i -= 3, ",");
  return digits;
}

std::string text(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

Json heading(const scheduler::Plan& plan) {
  return {{"graph", plan.name}, {"target", plan.target.str()}, {"rules", name(plan.rules)}};
}

Json to_json(const scheduler::Refusal& refusal) {
  return {{"code", name(refusal.code)},
          {"producer", refusal.producer},
          {"consumer", refusal.consumer},
          {"sentence", refusal.sentence},
          {"bytes", refusal.bytes}};
}

}  // namespace fusejit::tools
