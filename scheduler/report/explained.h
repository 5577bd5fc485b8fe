// Is it said of every edge of a plan why it is one? Where a step reads what another wrote, the two are kernels apart,
// and a refusal names a value of each. Of a plan without fusion (rules=none) nothing is said.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/plan.h"

namespace fusejit::scheduler {

struct Edge {
  int producer, consumer;  // steps
  int value;               // of the plan: one that goes from the one to the other, or a concatenation that part of does
  std::int64_t bytes;      // of the value, or the part
};
// By value: a concatenation that others lie in the memory of, or one of those.
std::vector<bool> values_in_parts(const Plan& plan);
// Pairs of steps that a value connects, each once, in the order of consumers.
std::vector<Edge> edges_of(const Plan& plan);
// Those that no refusal is about.
std::vector<Edge> unexplained_edges(const Plan& plan);
// Throws InternalError that names the first of them.
void expect_explained(const Plan& plan);

}  // namespace fusejit::scheduler
