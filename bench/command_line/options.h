// The command lines of the measuring programs. CLI11 stands behind them in one file: it takes longer to compile than
// any of these programs.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace fusejit::bench {

enum class Range : std::uint8_t { any, not_negative, positive };

struct Option {
  const char* name;  // "--rounds"; without dashes it is an argument with a place
  std::variant<int*, std::int64_t*, std::uint64_t*, float*, std::string*, std::vector<std::string>*> value;
  const char* meaning;
  Range range = Range::any;
  std::vector<std::string> one_of = {};  // of texts; empty: any
};

// Reads the command line into the values, which hold the defaults. An exit code if there is nothing to run: help was
// asked for, or something is wrong and was said on stderr.
std::optional<int> read_options(int argc, char** argv, const char* description, std::initializer_list<Option> options);

}  // namespace fusejit::bench
