// CUDA graphs, owned: a stream's work captured once, then launched as a whole.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/cuda/driver/stream.h"

namespace fusejit::runtime::cuda {

// What is put on its stream while this lives is recorded, not done. Without finish(), it is thrown away. The stream is
// its own, so that other threads may go on putting work on the device's.
class Capture {
 public:
  explicit Capture(DeviceContext& context);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  CuStream stream() const { return stream_.get(); }
  // The node of what was put on the stream last.
  CuGraphNode last_node();
  // Ends the capture. The caller owns the graph.
  CuGraph finish();

 private:
  DeviceContext& context_;
  Stream stream_;
  bool open_ = false;
};

// A graph that can be launched. The nodes of `graph` name those of the executable one, so both are kept.
class ExecutableGraph {
 public:
  // Takes over `graph`, also if it throws.
  ExecutableGraph(DeviceContext& context, CuGraph graph);
  ~ExecutableGraph();
  ExecutableGraph(const ExecutableGraph&) = delete;
  ExecutableGraph& operator=(const ExecutableGraph&) = delete;

  // Later launches run the kernel of `node` with these parameters.
  void set_kernel(CuGraphNode node, const CuKernelNodeParams& parameters);
  void launch(CuStream stream);

 private:
  DeviceContext& context_;
  CuGraph graph_ = nullptr;
  CuGraphExec exec_ = nullptr;
};

}  // namespace fusejit::runtime::cuda
