// One graph on the engines: machine code with and without fusion against the graph interpreter in f64, which shares
// nothing with lowering.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fusejit/target.h"
#include "ir/interp.h"
#include "scheduler/fuse/rules.h"
#include "scheduler/recompute/memory_limit.h"
#include "tests/random/generate/network.h"

namespace fusejit::testing {

// The same ops over f64 in place of every float dtype.
ir::Graph in_f64(const ir::Graph& graph);
// Values that suit the names of a network's parameters: weights scaled by what they sum over, positive factors and
// variances, classes. Already rounded to the parameter's dtype; in f64 where that is a float.
std::vector<ir::Array> network_arguments(const ir::Graph& graph_in_f64, const ir::Graph& graph, std::uint64_t seed);
// How close the closest comparison, clamp or maximum of a window comes to its other outcome, relative to the largest
// value compared: a rounding of that size may change which branch counts, and with it a gradient by any amount.
double distance_to_kink(const ir::Graph& graph_in_f64, const std::vector<ir::Array>& arguments);

struct Finding {
  std::string kind = {};  // the same mistake has the same kind: "all is wrong", "none: V2"; empty: none
  std::string text = {};
  double of_bound = 0;   // the largest part of what rounding is allowed that any result took
  bool compared = true;  // false: no arguments were found on which rounding decides nothing
};
struct CheckOptions {
  Target target;
  bool compiled = false;  // machine code, which must have the bits of the kernel interpreter; else that alone
  scheduler::Rules rules = scheduler::Rules::all;  // beside none
  scheduler::MemoryLimit memory_limit = {};        // with those
  std::vector<bool> donated = {};
  std::vector<std::string> results = {};  // names, for the text
};
Finding check_graph(const ir::Graph& graph, std::uint64_t seed, const CheckOptions& options);
Finding check_network(const Network& network, std::uint64_t seed, CheckOptions options);

// The text of a finding of `check_network`, made small: blocks first, then nodes. Empty if there is none any more.
std::string smallest(Network network, std::uint64_t seed, const CheckOptions& options, const std::string& kind);

}  // namespace fusejit::testing
