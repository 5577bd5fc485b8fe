// --memory-limit on a command line: the words of scheduler/recompute/memory_limit.h.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "fusejit/error.h"
#include "scheduler/recompute/memory_limit.h"

namespace fusejit::tools {

inline void add_memory_limit(CLI::App& command, scheduler::MemoryLimit& limit) {
  const auto read = [&limit](const std::string& text) {
    try {
      limit = scheduler::parse_memory_limit(text);
    } catch (const UserError& error) {
      throw CLI::ValidationError("--memory-limit", error.what());
    }
  };
  command.add_option_function<std::string>("--memory-limit", read,
                                           "Of a run, met by computing values again: 800MiB, 1.5GiB, least");
}

}  // namespace fusejit::tools
