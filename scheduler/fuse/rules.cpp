#include "scheduler/fuse/rules.h"

#include "ir/base/check.h"

namespace fusejit::scheduler {

std::string_view name(Rules rules) { return rules == Rules::all ? "all" : "none"; }

std::optional<Rules> rules_named(std::string_view word) {
  for (const Rules rules : {Rules::all, Rules::none}) {
    if (name(rules) == word) return rules;
  }
  return std::nullopt;
}

Rules parse_rules(std::string_view word) {
  const std::optional<Rules> rules = rules_named(word);
  FJ_CHECK(rules, "rules '{}' are not known (all, none)", word);
  return *rules;
}

}  // namespace fusejit::scheduler
