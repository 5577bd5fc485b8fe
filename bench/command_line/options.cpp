#include "bench/command_line/options.h"

#include <CLI/CLI.hpp>

namespace fusejit::bench {

std::optional<int> read_options(int argc, char** argv, const char* description, std::initializer_list<Option> options) {
  CLI::App app(description);
  for (const Option& option : options) {
    CLI::Option* added = std::visit(
        [&](auto* value) { return app.add_option(option.name, *value, option.meaning)->capture_default_str(); },
        option.value);
    if (option.range == Range::not_negative) added->check(CLI::NonNegativeNumber);
    if (option.range == Range::positive) added->check(CLI::PositiveNumber);
    if (!option.one_of.empty()) added->check(CLI::IsMember(option.one_of));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  return {};
}

}  // namespace fusejit::bench
