// An option whose words a parser of the library knows: what it throws is what the command line says.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "fusejit/error.h"

namespace fusejit::tools {

// `parse`: const std::string& -> what `value` holds, or a UserError.
template <class Value, class Parse>
void add_parsed(CLI::App& command, const std::string& name, Value& value, Parse parse, const std::string& meaning) {
  const auto read = [&value, name, parse](const std::string& text) {
    try {
      value = parse(text);
    } catch (const UserError& error) {
      throw CLI::ValidationError(name, error.what());
    }
  };
  command.add_option_function<std::string>(name, read, meaning);
}

}  // namespace fusejit::tools
