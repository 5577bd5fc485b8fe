// What fusion did: the steps of a plan that compute several ops of the recorded graph, each as one line of `key=value`
// pairs. Form and keys: docs/fusion.md.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/plan.h"

namespace fusejit::scheduler {

struct Fusion {
  int step;
  std::string kernel;                                      // the step's name
  std::vector<std::pair<std::string, std::string>> parts;  // "contraction", "layer1.0.conv1/conv2d", the anchor first
  int ops = 0;                                             // recorded ones
  std::int64_t saved_bytes = 0;
};

struct Fusions {
  std::string graph;
  std::vector<Fusion> list;
  int recorded_ops = 0, fused_ops = 0;  // fused: computed in one of the list, each counted once
  int kernels = 0;
  std::int64_t saved_bytes = 0;  // of the list
};

// Of the graph that the plan was made of.
Fusions fusions_of(const Plan& plan, const ir::Graph& recorded);

// "fusion contraction=layer1.0.conv1/conv2d activation=layer1.0/relu ops=2 kernel=layer1_0_conv1_relu saved_bytes=8192"
std::string line_of(const Fusion& fusion);
// "fusions graph=main lines=1 fused_ops=2 recorded_ops=3 kernels=2 saved_bytes=8192"
std::string summary_of(const Fusions& fusions);

}  // namespace fusejit::scheduler
