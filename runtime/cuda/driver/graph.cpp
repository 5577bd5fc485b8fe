#include "runtime/cuda/driver/graph.h"

#include "ir/base/check.h"

namespace fusejit::runtime::cuda {

Capture::Capture(DeviceContext& context) : context_(context), stream_(context) {
  context.call(context.driver().stream_begin_capture, stream(), kCaptureThreadLocal);
  open_ = true;
}

Capture::~Capture() {
  if (!open_) return;
  CuGraph graph = nullptr;
  context_.release(context_.driver().stream_end_capture, stream(), &graph);
  if (graph) context_.release(context_.driver().graph_destroy, graph);
}

CuGraphNode Capture::last_node() {
  int status = kCaptureStatusNone;
  const CuGraphNode* nodes = nullptr;
  std::size_t count = 0;
  context_.call(context_.driver().stream_get_capture_info, stream(), &status, nullptr, nullptr, &nodes, &count);
  FJ_ASSERT(status == kCaptureStatusActive && count == 1, "a captured stream depends on {} nodes, status {}", count,
            status);
  return nodes[0];
}

CuGraph Capture::finish() {
  const auto& entry = context_.driver().stream_end_capture;
  CuGraph graph = nullptr;
  context_.enter();
  open_ = false;  // whatever the call says, nothing is captured after it
  context_.check(entry.symbol, entry.function(stream(), &graph));
  return graph;
}

ExecutableGraph::ExecutableGraph(DeviceContext& context, CuGraph graph) : context_(context), graph_(graph) {
  try {
    context.call(context.driver().graph_instantiate, &exec_, graph, 0u);
  } catch (...) {
    context.release(context.driver().graph_destroy, graph);
    throw;
  }
}

ExecutableGraph::~ExecutableGraph() {
  context_.release(context_.driver().graph_exec_destroy, exec_);
  context_.release(context_.driver().graph_destroy, graph_);
}

void ExecutableGraph::set_kernel(CuGraphNode node, const CuKernelNodeParams& parameters) {
  context_.call(context_.driver().graph_set_kernel_node, exec_, node, &parameters);
}

void ExecutableGraph::launch(CuStream stream) { context_.call(context_.driver().graph_launch, exec_, stream); }

}  // namespace fusejit::runtime::cuda
