// The order of the passes between capture and scheduling. Gradient, recomputation and expansion of custom rules happen
// before: what comes in here is the whole step.
#include "ir/passes/passes.h"
#include "ir/strict.h"

namespace fusejit::ir {
namespace {

constexpr Pass kPipeline[] = {
    {"expand", [](const Graph& g, const Target&) { return expand(g); },
     "first: every later pass and the scheduler know primitive ops only, and equal parts of composites merge"},
    {"keep_taps", [](const Graph& g, const Target& t) { return keep_taps(g, t); },
     "before simplify, which makes the pool that it asks for and that of the forward pass one"},
    {"simplify", [](const Graph& g, const Target&) { return simplify(g); },
     "after expand: expansions leave casts, reshapes and constants to clean up"},
    {"find_variances", [](const Graph& g, const Target&) { return find_variances(g); },
     "after simplify, which makes equal means one"},
    {"fold_padding", [](const Graph& g, const Target&) { return fold_padding(g); },
     "after simplify, which makes views of nothing vanish; before layout, which looks at convolutions"},
    {"reuse_recomputed", [](const Graph& g, const Target&) { return reuse_recomputed(g); },
     "after simplify, which makes equal forward expressions one; before layout, which gives the new nodes theirs"},
    {"widen_few_channels", [](const Graph& g, const Target& t) { return widen_few_channels(g, t); },
     "before layout, whose copy of the image they are part of"},
    {"layout", [](const Graph& g, const Target& t) { return choose_layouts(g, t); },
     "layouts are chosen for the nodes that will run"},
    {"masks_from_outputs", [](const Graph& g, const Target&) { return masks_from_outputs(g); },
     "a mask reads what lies as it does; after simplify, which makes the relu and that of its gradient one"},
    {"gradients_for_library", [](const Graph& g, const Target& t) { return gradients_for_library(g, t); },
     "last: what masks read is known, and layouts, which say whose gradients are the library's"},
};

}  // namespace

std::span<const Pass> pipeline() { return kPipeline; }

Graph optimise(const Graph& graph, const Target& target) {
  check_text(graph, parse_graph);
  Graph current = graph;
  bool is_verified = false;
  for (const Pass& pass : pipeline()) {
    Graph next = pass.run(current, target);
    if (is_verified && next.is(current)) continue;
    current = std::move(next);
    verify(current);
    is_verified = true;
    check_text(current, parse_graph);
  }
  return current;
}

}  // namespace fusejit::ir
