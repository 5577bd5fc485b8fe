// A graph or a plan as boxes in the order they run and what flows between them: what SVG and DOT are drawn from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "scheduler/plan.h"
#include "tools/fusejit-dump/kinds.h"

namespace fusejit::tools {

struct Box {
  std::string title;               // "4 conv2d_mean_var"
  std::vector<std::string> words;  // its ops as the user wrote them, its type
  std::string note;                // "12.4 MiB in, 49.1 MiB out"
  std::string whole;               // everything, for a pointer that rests on it
  std::string link;                // where a click leads; empty: nowhere
  Kind kind = Kind::elementwise;
};

// A value on its way from the box that wrote it last to one that reads it.
struct Flow {
  int from = -1;  // -1: an argument, or a constant
  int to = -1;    // -1: a result
  std::string name;
  std::int64_t bytes = 0;
};

struct Picture {
  std::string title;
  std::vector<Box> boxes;  // whoever reads a value stands behind whoever wrote it
  std::vector<Flow> flows;
};

Picture picture_of(const ir::Graph& graph);
// Of the plan that was made of `recorded`. A box of step s leads to `links[s]`; no links: nowhere.
Picture picture_of(const scheduler::Plan& plan, const ir::Graph& recorded, const std::vector<std::string>& links = {});

}  // namespace fusejit::tools
