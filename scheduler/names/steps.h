// What kernels and steps are called: by what the user wrote (ir/origin.h), not by what passes made of it.
//
// A kernel is called by its ops alone, "conv2d_bn_relu", because equal layers share it. A step is called by its layer
// too, "layer1_0_conv2_bn_relu". No key holds either.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scheduler/fuse/group.h"
#include "scheduler/plan.h"

namespace fusejit::scheduler {

// The nodes that a group's kernel computes, in memory or on the way: its anchor first, then in the order of the graph.
std::vector<int> computed_nodes(const ir::Graph& graph, const std::vector<bool>& stored, const Group& group);

// Of values of a graph, in that order. At most kLongestName characters, [a-z0-9_].
inline constexpr std::size_t kLongestName = 60;
std::string name_by_ops(const ir::Graph& graph, std::span<const int> values);
std::string name_by_layer(const ir::Graph& graph, std::span<const int> values);
// Path of the one module that they are said to belong to: that of the anchor, else of what stands deepest.
std::string leading_layer(const ir::Graph& graph, std::span<const int> values);

// Kernels that write weights anew for another kernel are called so, and then the op.
inline constexpr std::string_view kPacking = "pack_";

// Which nodes of the recorded graph those of an optimised one were made of.
class RecordedNodes {
 public:
  explicit RecordedNodes(const ir::Graph& recorded);
  // In the order of `nodes`, each once. What a pass made of nothing is behind none.
  std::vector<int> behind(const ir::Graph& graph, std::span<const int> nodes) const;

 private:
  std::unordered_map<std::uint64_t, int> by_serial_;
};

// Names all steps, and their layers, by their nodes of `recorded`: after scheduling, and after loading too, since a
// plan on disk was put there by whoever came first, perhaps with other layers.
void name_steps(Plan& plan, const ir::Graph& recorded);

// What the user wrote that a node stands for: "layer1.0.conv2 conv2d", "layer1.0 relu grad".
std::string written_op(const ir::Node& node);
// And all that a step computes, each once.
std::vector<std::string> written_ops(const PlanStep& step, const ir::Graph& recorded);

}  // namespace fusejit::scheduler
