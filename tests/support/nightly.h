// FUSEJIT_NIGHTLY: tests take their time, as those with ctest's label `nightly` do.
#pragma once

#include <cstdlib>

namespace fusejit::testing {

inline bool is_nightly() { return std::getenv("FUSEJIT_NIGHTLY") != nullptr; }

}  // namespace fusejit::testing
