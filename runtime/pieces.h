// A graph cut around ops that have no kernel: what runs compiled, and what the graph interpreter runs alone.
#pragma once

#include <memory>
#include <vector>

#include "ir/graph.h"
#include "runtime/executor.h"

namespace fusejit::runtime {

struct Piece {
  ir::Graph graph;                 // of values of the whole graph
  std::vector<int> reads, writes;  // value of the whole graph for each parameter and result
  bool interpreted = false;
  std::shared_ptr<const Executable> executable;  // if it is not interpreted
};

struct Pieces {
  ir::Graph graph;
  std::vector<Piece> list;  // in the order to run them; results of the graph that are parameters are in none
};

// `nodes` of `graph` are interpreted; a piece holds all that depends on the same pieces.
Pieces cut(const ir::Graph& graph, const std::vector<int>& nodes);
// One piece, interpreted.
Pieces interpreted(const ir::Graph& graph);

}  // namespace fusejit::runtime
