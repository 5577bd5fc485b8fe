// What a plan is allowed to join: a closed set, "all" and "none" in texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fusejit::scheduler {

enum class Rules : std::uint8_t {
  all,
  none  // one kernel per recorded op, nothing in place
};

std::string_view name(Rules rules);
// Nothing for a word that is neither.
std::optional<Rules> rules_named(std::string_view word);
// UserError for one that is neither, naming both.
Rules parse_rules(std::string_view word);

}  // namespace fusejit::scheduler
