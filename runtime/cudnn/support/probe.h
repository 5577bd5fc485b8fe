// probe: what cuDNN's planner says to one call, as a cell of the table that `supports` reads.
#pragma once

#include "runtime/cudnn/support/support.h"

namespace fusejit::runtime::cudnn {

struct Probe {
  char cell = '-';     // 'P', 'R', 'S' or '-' (see cells())
  PlanResult refused;  // what was refused on the way to '-'
};
// Runtime-compiled engines are tried only where no precompiled one serves, or only the one without tensor cores;
// without `compile` they are not tried at all, and a cell is 'P' or '?'.
Probe probe(const std::shared_ptr<const Library>& library, const Descriptor& device, const ConvolutionCall& call,
            const Numerics& numerics, bool compile = true);

// Runtime-compiled engines are planned only where a driver can be loaded. Loads the machine's, or else `substitute`, a
// libcuda.so.1 that has no device; to be called before cuDNN plans for the first time. False if neither can be loaded.
bool load_driver_for_planning(const std::string& substitute);

}  // namespace fusejit::runtime::cudnn
