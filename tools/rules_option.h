// --rules and its kin on a command line: the words of scheduler/fuse/rules.h.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "scheduler/fuse/rules.h"
#include "tools/parsed_option.h"

namespace fusejit::tools {

inline constexpr const char* kRulesHelp =
    "Fusion: all, none, inductor (a model of what TorchInductor fuses), or all but some: -R5,-R6";

// `rules`: a Rules, or an optional one that stays empty where nothing is said.
template <class Rules>
void add_rules(CLI::App& command, const std::string& name, Rules& rules, const std::string& meaning) {
  add_parsed(command, name, rules, scheduler::parse_rules, meaning);
}

}  // namespace fusejit::tools
