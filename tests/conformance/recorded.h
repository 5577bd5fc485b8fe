// Graphs of files with what PyTorch computed for them (tests/reference), and their results on an engine.
#pragma once

#include <vector>

#include "frontend/io/graph_file.h"
#include "runtime/arrays.h"
#include "runtime/session.h"

namespace fusejit {

struct Recorded {
  io::GraphFile file;
  std::vector<ir::Array> arguments;
  std::vector<io::NamedArray> expected;
  io::Tolerance tolerance;
};

inline std::vector<ir::Array> results_of(runtime::Session& session, const Recorded& recorded) {
  std::vector<runtime::Buffer> arguments;
  for (const ir::Array& argument : recorded.arguments) arguments.push_back(runtime::to_buffer(argument));
  std::vector<ir::Array> results;
  for (const runtime::Buffer& result : session.run(recorded.file.graph, arguments))
    results.push_back(runtime::to_array(result));
  return results;
}

}  // namespace fusejit
