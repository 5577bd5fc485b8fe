// Texts and JSON values that several subcommands write alike.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scheduler/plan.h"

namespace fusejit::tools {

using Json = nlohmann::ordered_json;  // members in the order of writing

// Columns as wide as their widest cell, two blanks between them; the columns marked 'r' are set flush right.
std::string table(const std::vector<std::vector<std::string>>& rows, std::string_view alignment);
// 1234567 -> "1,234,567".
std::string grouped(std::int64_t number);
// Indented, ending in a line feed; bytes that are no UTF-8 are replaced.
std::string text(const Json& json);
// What every JSON answer about a plan begins with.
Json heading(const scheduler::Plan& plan);
Json to_json(const scheduler::Refusal& refusal);

}  // namespace fusejit::tools
