// --memory-limit on a command line: the words of scheduler/recompute/memory_limit.h.
#pragma once

#include "scheduler/recompute/memory_limit.h"
#include "tools/parsed_option.h"

namespace fusejit::tools {

inline void add_memory_limit(CLI::App& command, scheduler::MemoryLimit& limit) {
  add_parsed(command, "--memory-limit", limit, scheduler::parse_memory_limit,
             "Of a run, met by computing values again: 800MiB, 1.5GiB, least");
}

}  // namespace fusejit::tools
