// FakeDriver: captures and graphs.
#include <algorithm>
#include <utility>

#include "tests/support/fake_device/fake_driver_state.h"

namespace fusejit::test {
namespace {

constexpr CuResult kCaptureInvalidated = 901, kWrongThread = 908;
constexpr int kCaptureStatusInvalidated = 2;

}  // namespace

CuResult FakeDriver::stream_begin_capture(CuStream handle, int mode) {
  StreamState* found = stream(handle, "cuStreamBeginCapture");
  if (!found || mode != kCaptureThreadLocal || found->capturing) return kInvalidValue;
  found->capturing = true;
  found->captured_by = std::this_thread::get_id();
  found->capture_broken = false;
  found->captured = std::make_unique<GraphState>();
  return kSuccess;
}

CuResult FakeDriver::stream_end_capture(CuStream handle, CuGraph* graph) {
  StreamState* found = stream(handle, "cuStreamEndCapture");
  if (!found || !found->capturing) return kInvalidValue;
  if (found->captured_by != std::this_thread::get_id()) {
    return problem("cuStreamEndCapture on another thread than began it"), kWrongThread;
  }
  found->capturing = false;
  *graph = nullptr;
  // A call that fails gives no graph out.
  if (found->capture_broken || sticky_ != kSuccess || (failed_ && calls_ == fail_at_)) {
    found->captured.reset();
    return kCaptureInvalidated;
  }
  return *graph = add<CuGraph>(graphs_, std::move(found->captured)), kSuccess;
}

CuResult FakeDriver::stream_get_capture_info(CuStream handle, int* status, std::uint64_t* id, CuGraph* graph,
                                             const CuGraphNode** nodes, std::size_t* count) {
  StreamState* found = stream(handle, "cuStreamGetCaptureInfo");
  if (!found) return kInvalidHandle;
  *status = !found->capturing       ? kCaptureStatusNone
            : found->capture_broken ? kCaptureStatusInvalidated
                                    : kCaptureStatusActive;
  if (*status != kCaptureStatusActive) return kSuccess;
  if (id) *id = 1;
  if (graph) *graph = reinterpret_cast<CuGraph>(found->captured.get());
  static thread_local CuGraphNode last;
  last = found->captured->nodes.empty() ? nullptr : reinterpret_cast<CuGraphNode>(found->captured->nodes.back().get());
  if (nodes) *nodes = &last;
  if (count) *count = last ? 1 : 0;
  return kSuccess;
}

CuResult FakeDriver::graph_instantiate(CuGraphExec* exec, CuGraph graph, unsigned long long) {
  const GraphState* found = find(graphs_, graph);
  if (!found) return kInvalidHandle;
  auto state = std::make_unique<ExecState>();
  for (const auto& node : found->nodes) state->steps.push_back({node.get(), *node});
  return *exec = add<CuGraphExec>(execs_, std::move(state)), kSuccess;
}

CuResult FakeDriver::graph_set_kernel_node(CuGraphExec exec, CuGraphNode node, const CuKernelNodeParams* parameters) {
  ExecState* found = find(execs_, exec);
  if (!found) return kInvalidHandle;
  const bool graph_alive = std::any_of(graphs_.begin(), graphs_.end(), [&](auto& graph) {
    return std::any_of(graph.first->nodes.begin(), graph.first->nodes.end(),
                       [&](auto& n) { return n.get() == reinterpret_cast<const GraphState::Node*>(node); });
  });
  if (!graph_alive) return problem("a node is set whose graph is not alive"), kInvalidHandle;
  for (ExecState::Step& step : found->steps) {
    if (step.node != node || !step.what.is_kernel) continue;
    KernelWork& kernel = step.what.kernel;
    const CuKernelNodeParams& p = *parameters;
    if (p.function != kernel.function || p.extra || p.kernel)
      return problem("a node is made another one"), kInvalidValue;
    KernelWork changed{
        p.function, {p.grid_x, p.grid_y, p.grid_z}, {p.block_x, p.block_y, p.block_z}, {}, kernel.ordinal};
    if (!can_launch(p.function, changed.grid, changed.block, p.shared_bytes, p.arguments, changed))
      return kInvalidValue;
    kernel = std::move(changed);
    return ++graph_updates_, kSuccess;
  }
  return problem("a node is set that the executable graph does not have"), kInvalidHandle;
}

CuResult FakeDriver::graph_launch(CuGraphExec exec, CuStream handle) {
  StreamState* found = stream(handle, "cuGraphLaunch");
  const ExecState* launched = find(execs_, exec);
  if (!found || !launched) return kInvalidHandle;
  if (found->capturing) return problem("cuGraphLaunch into a capture"), kCaptureUnsupported;
  for (const ExecState::Step& step : launched->steps) {
    if (step.what.is_kernel && !function(step.what.kernel.function)) {
      return problem("cuGraphLaunch of a graph whose module is not loaded any more"), kInvalidHandle;
    }
    found->queue.push_back(step.what.is_kernel ? step.what.kernel.work(*this, true) : step.what.work);
    found->queue.back().graph = launched;
  }
  return kSuccess;
}

CuResult FakeDriver::graph_exec_destroy(CuGraphExec exec) {
  ExecState* found = find(execs_, exec);
  if (!found) return problem("cuGraphExecDestroy of a graph that is not alive"), kInvalidHandle;
  for (const auto& [raw, stream] : streams_) {
    const auto pending = stream->queue.begin() + static_cast<std::ptrdiff_t>(stream->done);
    const auto of_it = [&](const Work& work) { return work.graph == found; };
    if (sticky_ == kSuccess && std::any_of(pending, stream->queue.end(), of_it)) {
      problem("cuGraphExecDestroy of a graph that is under way");
    }
  }
  return execs_.erase(found), kSuccess;
}

CuResult FakeDriver::graph_destroy(CuGraph graph) {
  GraphState* found = find(graphs_, graph);
  if (!found) return problem("cuGraphDestroy of a graph that is not alive"), kInvalidHandle;
  return graphs_.erase(found), kSuccess;
}

}  // namespace fusejit::test
