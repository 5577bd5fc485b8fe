#include "scheduler/fuse/rules.h"

#include <algorithm>
#include <array>

#include "ir/base/check.h"

namespace fusejit::scheduler {
namespace {

constexpr std::array kRules = {Rule::chain,    Rule::reduce, Rule::finalise, Rule::barrier, Rule::epilogue,
                               Rule::prologue, Rule::join,   Rule::masks,    Rule::shared};

}  // namespace

std::string name(Rule rule) { return fmt::format("R{}", static_cast<int>(rule)); }

std::string name(const Rules& rules) {
  if (rules == Rules::none) return "none";
  if (rules == Rules::inductor) return "inductor";
  std::string off;
  for (const Rule rule : kRules)
    if (!rules.has(rule)) off += (off.empty() ? "-" : ",-") + name(rule);
  return off.empty() ? "all" : off;
}

std::optional<Rules> rules_named(std::string_view word) {
  for (const Rules& rules : {Rules::all, Rules::none, Rules::inductor})
    if (name(rules) == word) return rules;
  Rules rules = Rules::all;
  for (std::string_view rest = word;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view one = rest.substr(0, comma);
    const auto* const known =
        std::find_if(kRules.begin(), kRules.end(), [&](Rule rule) { return "-" + name(rule) == one; });
    if (known == kRules.end()) return std::nullopt;
    rules = rules.without(*known);
    if (comma == std::string_view::npos) return rules;
    rest = rest.substr(comma + 1);
  }
}

Rules parse_rules(std::string_view word) {
  const std::optional<Rules> rules = rules_named(word);
  FJ_CHECK(rules, "rules '{}' are not known (all, none, inductor, or those to leave out: -R5,-R6; there are R1 to R9)",
           word);
  return *rules;
}

}  // namespace fusejit::scheduler
