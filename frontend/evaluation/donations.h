// Which arguments of a plan its results may be written over.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "frontend/evaluation/trace.h"

namespace fusejit {

// A value that the caller gives up: its memory may become a result's, unless something else still needs it. `owners`:
// handles on the state that the caller knows of.
struct Donation {
  Tensor value;  // counts as one owner
  long owners = 1;
  std::string name;
};

enum class Gift : char {
  none,
  whole,  // the argument itself is overwritten
  // A copy of it is, since its value is needed after the plan: so the plan is the same one, whoever holds what a step
  // begins with. Of host memory; on a device the argument is left as it is, and the plan is another one.
  copy
};

// What of each argument may be overwritten: those given up, that nothing outside the trace can reach, or a copy. A node
// is held from outside if it has more references than the trace and the wanted handles explain; what it is computed
// from stays alive. `lines` gets a sentence for each chance that is lost. Caller holds the graph lock.
std::vector<Gift> given_arguments(const Trace& trace, std::span<const Tensor> wanted,
                                  std::span<const Donation> donations, std::vector<std::string>& lines);

}  // namespace fusejit
