#include "runtime/pieces.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "ir/base/at.h"

namespace fusejit::runtime {
namespace {

class Cutter {
 public:
  Cutter(const ir::Graph& graph, const std::vector<int>& nodes)
      : graph_(graph), interpreted_(at(graph.value_count())), level_(at(graph.value_count())) {
    for (const int node : nodes) interpreted_[at(node)] = true;
  }

  Pieces run() {
    // A level is even where code is compiled and odd where it is interpreted; each reads lower ones only.
    int levels = 0;
    for (int v = first_node(); v < graph_.value_count(); ++v) {
      int level = interpreted_[at(v)] ? 1 : 0;
      each_operand(v, [&](int operand) {
        const bool same = operand < first_node() || interpreted_[at(operand)] == interpreted_[at(v)];
        level = std::max(level, level_[at(operand)] + (same ? 0 : 1));
      });
      level_[at(v)] = level;
      levels = std::max(levels, level + 1);
    }
    find_wanted();
    Pieces pieces{graph_, {}};
    for (int level = 0; level < levels; ++level) {
      Piece piece = piece_of(level);
      if (!piece.writes.empty()) pieces.list.push_back(std::move(piece));
    }
    return pieces;
  }

 private:
  int first_node() const { return static_cast<int>(graph_.parameters().size()); }
  template <class Visit>
  void each_operand(int v, const Visit& visit) const {
    for (const ir::Operand& operand : graph_.value(v)->operands)
      if (!operand.is_number()) visit(graph_.index_of(operand.value.get()));
  }

  // What a later piece reads, and results.
  void find_wanted() {
    wanted_.resize(level_.size());
    for (int v = first_node(); v < graph_.value_count(); ++v)
      each_operand(
          v, [&](int operand) { wanted_[at(operand)] = wanted_[at(operand)] || level_[at(operand)] != level_[at(v)]; });
    for (const ir::Value& result : graph_.results()) wanted_[at(graph_.index_of(result.get()))] = true;
  }

  Piece piece_of(int level) const {
    std::map<int, ir::Value> made;
    std::vector<ir::Value> parameters, results;
    Piece piece{graph_, {}, {}, level % 2 == 1, nullptr};
    for (int v = first_node(); v < graph_.value_count(); ++v) {
      if (level_[at(v)] != level) continue;
      std::vector<ir::Operand> operands;
      for (const ir::Operand& operand : graph_.value(v)->operands) {
        if (operand.is_number()) {
          operands.push_back(operand);
          continue;
        }
        const int id = graph_.index_of(operand.value.get());
        const auto [place, fresh] = made.try_emplace(id);
        if (fresh) {
          place->second = ir::parameter(operand.value.type(), "v" + std::to_string(id));
          parameters.push_back(place->second);
          piece.reads.push_back(id);
        }
        operands.push_back(place->second);
      }
      made[v] = ir::rebuild(*graph_.value(v), std::move(operands));
      if (!wanted_[at(v)]) continue;
      results.push_back(made[v]);
      piece.writes.push_back(v);
    }
    if (results.empty()) return piece;
    piece.graph = ir::capture(graph_.name(), std::move(parameters), std::move(results));
    return piece;
  }

  const ir::Graph& graph_;
  std::vector<bool> interpreted_, wanted_;
  std::vector<int> level_;
};

}  // namespace

Pieces cut(const ir::Graph& graph, const std::vector<int>& nodes) { return Cutter(graph, nodes).run(); }

Pieces interpreted(const ir::Graph& graph) {
  std::vector<int> nodes(graph.nodes().size());
  std::iota(nodes.begin(), nodes.end(), static_cast<int>(graph.parameters().size()));
  return cut(graph, nodes);
}

}  // namespace fusejit::runtime
