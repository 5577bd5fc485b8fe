// The files of a folder that reproduces one kernel without fusejit: a C++ program around its assembly.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/cost/cost.h"
#include "ir/kernel/kernel.h"

namespace fusejit::tools {

struct ReproBuffer {
  std::string label;
  DType dtype;
  std::int64_t bytes;
  std::string before, after;  // files; empty: not read, not written
};

struct Repro {
  std::string name;    // of the step
  std::string origin;  // what it was made from: "fusejit-dump repro …"
  std::string target;
  std::vector<ReproBuffer> buffers;  // one a buffer parameter
  std::vector<std::int64_t> tasks;   // by phase
  std::int64_t scratch_bytes = 0, work_bytes = 0, moved_bytes = 0;
  double flop = 0;
  bool has_tiles = false;       // in tile registers, which a process has to ask for
  bool is_interpreted = false;  // whether what is expected comes from the kernel interpreter
  bool has_graph = false;
  double relative = 0, absolute = 0;  // tolerance of what the graph gives: its sums have another order
};

// kernel.h: names, sizes and files.
std::string repro_header(const Repro& repro);
std::string repro_readme(const Repro& repro);
extern const std::string_view kReproMain, kReproCmake;

}  // namespace fusejit::tools
