// A call of a frozen network on an evaluated input. What it computes was traced before, so its result is a leaf, and
// nothing is recorded for it: evaluated alone it runs the network's graph on its input, and only what is computed from
// it, or together with it, has it written out in nodes. Of a small network that serves one image, recording was 7 %.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "frontend/evaluation/trace.h"
#include "frontend/state.h"

namespace fusejit {

// The network for one type of input: `trace` computes its only result from `stand_in` and from leaves.
struct FrozenGraph {
  FrozenGraph(ir::Value stand_in, Trace trace);
  const ir::Value stand_in;
  const Trace trace;
  const std::shared_ptr<const ir::Graph> graph;
};

struct FrozenCall {
  std::shared_ptr<const FrozenGraph> of;
  ir::Value input;  // in the stand-in's place
};

// The trace's values again with other operands: `replace` may give another value for an entry, else it is copied.
std::vector<ir::Value> rewritten(
    const Trace& trace,
    const std::function<ir::Value(std::size_t entry, const std::vector<ir::Value>& copies)>& replace);
// A second handle on a node that a trace keeps.
ir::Value counted(const ir::Node* node);
// The result of the call, in nodes.
ir::Value written_out(const FrozenCall& call);

// A handle on the result; nothing is recorded. The input is evaluated and asks for no gradient.
Tensor result_of(FrozenCall call, std::optional<Device> device);
// Computes the tensor if it is such a result, nothing is computed with it, and nobody overwrites what it reads; else
// returns false and has done nothing.
bool evaluate_call(const Tensor& tensor);

}  // namespace fusejit
