#include "codegen/lanes.h"

#include <algorithm>

namespace fusejit::codegen {
namespace {

using ir::Block;
using ir::MemKind;

// One pass over the kernel marks what follows from the marks so far; passes repeat until nothing changes.
struct Pass {
  const ir::Kernel& kernel;
  LaneFacts& facts;
  bool changed = false;
  int lanes = 0;        // of the enclosing vector loop
  bool masked = false;  // below a condition that differs between lanes

  void mark(std::vector<bool>& set, int id, bool condition) {
    if (condition && !set[id]) set[id] = changed = true;
  }
  bool of(const ir::Arg& arg) const { return !arg.is_literal() && facts.value[arg.value]; }
  bool of(const ir::Place& place) const {
    return std::any_of(place.index.begin(), place.index.end(), [&](const ir::Index& i) { return varies(facts, i); });
  }

  void visit(const Block& block);
  void visit(const ir::LocalStmt& s) { facts.inside[s.memory] = lanes; }
  void visit(const ir::DefStmt& s) {
    const bool any = std::any_of(s.args.begin(), s.args.end(), [&](const ir::Arg& a) { return of(a); });
    for (ir::ValueId r : s.results) mark(facts.value, r, any);
  }
  void visit(const ir::IndexStmt& s) { mark(facts.value, s.result, varies(facts, s.index)); }
  void visit(const ir::PrefetchStmt&) {}
  void visit(const ir::LoadStmt& s) {
    note_row(s.place);
    mark(facts.value, s.result, of(s.place) || facts.memory[s.place.memory]);
  }
  void visit(const ir::StoreStmt& s) {
    note_row(s.place);
    const bool own =
        kernel.memories[s.place.memory].kind == MemKind::register_local && facts.inside[s.place.memory] > 0;
    mark(facts.memory, s.place.memory, own && (of(s.value) || masked));
  }
  void note_row(const ir::Place& place) {
    if (kernel.memories[place.memory].kind != MemKind::register_local || place.index.empty()) return;
    if (varies(facts, place.index.back()))
      facts.rows[place.memory] = static_cast<int>(kernel.memories[place.memory].dims.back());
  }
  void visit(const ir::IfStmt& s);
  void visit(const ir::ForStmt& s);
};

void Pass::visit(const Block& block) {
  for (const ir::Stmt& s : block.statements) std::visit([&](const auto& node) { visit(node); }, s.node);
}

void Pass::visit(const ir::IfStmt& s) {
  const bool condition = s.condition >= 0 ? facts.value[s.condition]
                                          : std::any_of(s.compares.begin(), s.compares.end(),
                                                        [&](const ir::Compare& c) { return varies(facts, c.left); });
  const bool outer = masked;
  masked = masked || condition;
  visit(s.then_block);
  visit(s.else_block);
  masked = outer;
  for (std::size_t i = 0; i < s.results.size(); ++i) {
    mark(facts.value, s.results[i], condition || of(s.then_block.yields[i]) || of(s.else_block.yields[i]));
  }
}

void Pass::visit(const ir::ForStmt& s) {
  const bool vector = s.binding == ir::Binding::vector;
  const int outer = lanes;
  if (vector) {
    facts.variable[s.variable] = true;
    lanes = static_cast<int>(s.high[0].constant());
  }
  visit(s.body);
  lanes = outer;
  if (vector) return;  // lanes have been combined
  std::size_t at = 0;
  for (ir::Combiner combiner : s.combiners) {
    // Component i depends on the yielded components 0..i (welford: n, mean, M2), those of argmax on both.
    const std::size_t count = static_cast<std::size_t>(ir::components(combiner));
    bool any = false;
    if (count == 2) any = of(s.body.yields[at]) || of(s.body.yields[at + 1]);
    for (std::size_t i = 0; i < count; ++i, ++at) {
      any = any || of(s.body.yields[at]);
      mark(facts.value, s.results[at], any);
    }
  }
}

void collect_stores(const ir::Kernel& kernel, const Block& block, std::vector<ir::MemId>& stored,
                    std::vector<ir::MemId>& declared) {
  for (const ir::Stmt& s : block.statements) {
    if (const auto* local = std::get_if<ir::LocalStmt>(&s.node)) declared.push_back(local->memory);
    if (const auto* store = std::get_if<ir::StoreStmt>(&s.node)) {
      const ir::MemId m = store->place.memory;
      if (kernel.memories[m].kind == MemKind::register_local &&
          std::find(stored.begin(), stored.end(), m) == stored.end()) {
        stored.push_back(m);
      }
    }
    if (const auto* loop = std::get_if<ir::ForStmt>(&s.node)) collect_stores(kernel, loop->body, stored, declared);
    if (const auto* branch = std::get_if<ir::IfStmt>(&s.node)) {
      collect_stores(kernel, branch->then_block, stored, declared);
      collect_stores(kernel, branch->else_block, stored, declared);
    }
  }
}

}  // namespace

LaneFacts lane_facts(const ir::Kernel& kernel) {
  LaneFacts facts;
  facts.value.resize(kernel.values.size());
  facts.memory.resize(kernel.memories.size());
  facts.rows.resize(kernel.memories.size());
  facts.inside.resize(kernel.memories.size());
  facts.variable.resize(static_cast<std::size_t>(kernel.variable_count));
  for (bool again = true; again;) {
    Pass pass{kernel, facts};
    for (const ir::Phase& phase : kernel.phases) pass.visit(phase.body);
    again = pass.changed;
  }
  return facts;
}

bool varies(const LaneFacts& facts, const ir::Index& index) {
  bool found = false;
  index.for_each_leaf([&](const ir::IndexAtom& leaf) {
    const std::vector<bool>& set = leaf.kind == ir::AtomKind::variable ? facts.variable : facts.value;
    found = found || set[static_cast<std::size_t>(leaf.id)];
  });
  return found;
}

std::vector<ir::MemId> stored_registers(const ir::Kernel& kernel, const ir::Block& block) {
  std::vector<ir::MemId> stored, declared;
  collect_stores(kernel, block, stored, declared);
  std::erase_if(stored, [&](ir::MemId m) { return std::find(declared.begin(), declared.end(), m) != declared.end(); });
  return stored;
}

}  // namespace fusejit::codegen
