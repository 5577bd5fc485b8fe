// Which arguments of a plan its results may be written over.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "frontend/eval.h"
#include "frontend/trace.h"

namespace fusejit {

// Which arguments may be overwritten: those given up, that nothing outside the trace can reach. A node is held from
// outside if it has more references than the trace and the wanted handles explain; what it is computed from stays
// alive. Each argument's answer; `lines` gets a sentence for each chance that is lost. Caller holds the graph lock.
std::vector<char> donated_arguments(const Trace& trace, std::span<const Tensor> wanted,
                                    std::span<const Donation> donations, std::vector<std::string>& lines);

}  // namespace fusejit
