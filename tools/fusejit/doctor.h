// What this machine has for fusejit: every piece that generating and running code needs, where it was found, which
// version, and if it is missing how to get it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "codegen/cuda/nvrtc.h"
#include "runtime/cuda/driver/driver.h"
#include "runtime/cudnn/library/library.h"

namespace fusejit::tools {

enum class State { works, missing };

struct Finding {
  std::string part;  // "processor", "driver", ...
  State state = State::works;
  std::string what;   // version, name; of a missing one: why
  std::string where;  // path, if it is a file
  std::string help;   // of a missing one: how to get it
};

struct Diagnosis {
  std::vector<Finding> findings;
  bool x86 = false;        // plans can be compiled for and run on this processor
  bool cuda_code = false;  // CUDA kernels can be compiled
  bool cuda = false;       // ... and run
};

// Looks at the machine. Never throws: what cannot be found out is a finding.
Diagnosis diagnose();
// The same of other libraries than the machine's.
Diagnosis diagnose(const runtime::cuda::DriverState& driver, const codegen::cuda::NvrtcState& nvrtc,
                   const runtime::cudnn::Library& cudnn);

// A readable table, with a last line that says what can be done here.
std::string text(const Diagnosis& diagnosis);
nlohmann::ordered_json json(const Diagnosis& diagnosis);

}  // namespace fusejit::tools
