// What a warm-up goes through, between its command line and its workers.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/warmup/signature.h"
#include "tools/fusejit/command.h"

namespace fusejit::tools {

// A signature for a target: one plan to make, with its kernels.
struct WarmupItem {
  std::string source;  // as it was named
  runtime::Signature signature;
  Target target;
};

// Reads all sources. `notes`: lines that were left out. Throws UserError, FileError, UsageError.
std::vector<WarmupItem> warmup_items(const WarmupOptions& options, std::vector<std::string>& notes);

}  // namespace fusejit::tools
