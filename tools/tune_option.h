// --tune on a command line: the words of runtime/tune.h.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "runtime/tune.h"

namespace fusejit::tools {

inline void add_tune(CLI::App& command, runtime::Tune& tune, const std::string& meaning) {
  using runtime::Tune;
  command
      .add_option_function<std::string>(
          "--tune",
          [&tune](const std::string& word) {
            for (const Tune one : {Tune::off, Tune::quick, Tune::full})
              if (word == runtime::name(one)) tune = one;
          },
          meaning)
      ->check(CLI::IsMember({"off", "quick", "full"}));
}

}  // namespace fusejit::tools
