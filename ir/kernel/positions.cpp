#include "ir/kernel/positions.h"

#include <algorithm>

namespace fusejit::ir {

namespace {

bool keeps_positions(const ForStmt& loop) {
  const bool turns = loop.binding == Binding::none || loop.binding == Binding::unroll;
  return turns && loop.combiners.size() == 1 &&
         (loop.combiners[0] == Combiner::argmax || loop.combiners[0] == Combiner::argmin) && loop.low.size() == 1 &&
         loop.high.size() == 1 && loop.low[0].is_constant() && loop.high[0].is_constant() &&
         loop.low[0].constant() < loop.high[0].constant();
}

// What defines this value in the block itself.
const Stmt* definition(const Block& block, ValueId value) {
  const auto found = std::find_if(block.statements.begin(), block.statements.end(), [&](const Stmt& s) {
    if (const auto* index = std::get_if<IndexStmt>(&s.node)) return index->result == value;
    const auto* loop = std::get_if<ForStmt>(&s.node);
    return loop != nullptr && loop->results.size() == 2 && loop->results[1] == value;
  });
  return found == block.statements.end() ? nullptr : &*found;
}

}  // namespace

bool positions_ascend(const ForStmt& loop) {
  if (!keeps_positions(loop)) return false;
  std::vector<const ForStmt*> loops{&loop};
  const Index* position = nullptr;
  while (position == nullptr) {
    const Arg& yielded = loops.back()->body.yields[1];
    const Stmt* from = yielded.is_literal() ? nullptr : definition(loops.back()->body, yielded.value);
    if (from == nullptr) return false;
    if (const auto* index = std::get_if<IndexStmt>(&from->node)) {
      position = &index->index;
    } else {
      const ForStmt& inner = std::get<ForStmt>(from->node);
      if (!keeps_positions(inner) || inner.combiners != loop.combiners) return false;
      loops.push_back(&inner);
    }
  }
  std::int64_t spread = 0;  // of the positions among which a turn chooses
  for (const ForStmt* of : loops) {
    IndexAtom variable;
    variable.id = of->variable;
    const std::int64_t by = position->coefficient_of(of->variable);
    if (position->without(variable).mentions(of->variable)) return false;  // in a quotient
    if (of == &loop) continue;
    spread += std::abs(by) * (of->high[0].constant() - of->low[0].constant() - 1);
  }
  return position->coefficient_of(loop.variable) > spread;
}

}  // namespace fusejit::ir
