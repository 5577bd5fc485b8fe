// The body of a vector loop. Statements are gathered into segments, each written as: what is equal in all lanes and
// vector loads; one unrolled loop over the lanes; vector stores. A segment ends where that order would change a
// meaning, and at loops and branches that all lanes take together, whose bodies are segments again.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/text.h"
#include "ir/base/check.h"
#include "ir/kernel/verify/thread_dims.h"

namespace fusejit::codegen::cuda {
namespace {

enum class Place : std::uint8_t { before, lanes, after, alone };

struct Item {
  const ir::Stmt* stmt;
  Place place;
};
using Segment = std::vector<Item>;

bool place_varies(const Emitter& e, const ir::Place& place) {
  return std::any_of(place.index.begin(), place.index.end(),
                     [&](const ir::Index& i) { return varies(e.facts.lanes, i); });
}

// A local with a row of lanes for each element.
bool in_rows(const Emitter& e, const ir::Place& place) { return e.lane_rows[static_cast<std::size_t>(place.memory)]; }

bool condition_varies(const Emitter& e, const ir::IfStmt& s) {
  if (s.condition >= 0) return varies(e, ir::Arg(s.condition));
  return std::any_of(s.compares.begin(), s.compares.end(),
                     [&](const ir::Compare& c) { return varies(e.facts.lanes, c.left); });
}

struct Classify {
  const Emitter& e;
  Place operator()(const ir::LocalStmt&) const { return Place::before; }
  Place operator()(const ir::PrefetchStmt&) const { return Place::before; }
  Place operator()(const ir::ForStmt&) const { return Place::alone; }
  Place operator()(const ir::IfStmt& s) const { return condition_varies(e, s) ? Place::lanes : Place::alone; }
  Place operator()(const ir::DefStmt& s) const { return of(s.results[0]); }
  Place operator()(const ir::IndexStmt& s) const { return of(s.result); }
  Place operator()(const ir::LoadStmt& s) const { return is_contiguous(e, s.place) ? Place::before : of(s.result); }
  Place operator()(const ir::StoreStmt& s) const {
    if (is_contiguous(e, s.place)) return Place::after;
    return in_rows(e, s.place) || place_varies(e, s.place) || varies(e, s.value) ? Place::lanes : Place::before;
  }
  Place of(ir::ValueId id) const { return varies(e, ir::Arg(id)) ? Place::lanes : Place::before; }
};

template <class F>
void for_each_inner(const ir::Stmt& s, const F& visit) {
  visit(s);
  if (const auto* loop = std::get_if<ir::ForStmt>(&s.node)) ir::for_each_stmt(loop->body, visit);
  if (const auto* branch = std::get_if<ir::IfStmt>(&s.node)) {
    ir::for_each_stmt(branch->then_block, visit);
    ir::for_each_stmt(branch->else_block, visit);
  }
}

// Memory that the statement touches, and whether it writes.
std::vector<std::pair<ir::MemId, bool>> accesses(const ir::Stmt& s) {
  std::vector<std::pair<ir::MemId, bool>> list;
  for_each_inner(s, [&](const ir::Stmt& inner) {
    if (const auto* load = std::get_if<ir::LoadStmt>(&inner.node)) list.emplace_back(load->place.memory, false);
    if (const auto* store = std::get_if<ir::StoreStmt>(&inner.node)) list.emplace_back(store->place.memory, true);
    if (const auto* local = std::get_if<ir::LocalStmt>(&inner.node)) list.emplace_back(local->memory, true);
  });
  return list;
}

// Would writing `item` into the segment move it before something that it must follow?
bool overtakes(const Segment& segment, const Item& item) {
  const auto mine = accesses(*item.stmt);
  for (const Item& earlier : segment) {
    if (item.place >= earlier.place) continue;
    for (const auto& [memory, write] : accesses(*earlier.stmt))
      for (const auto& [other, writes] : mine)
        if (memory == other && (write || writes)) return true;
  }
  return false;
}

void count_uses(const ir::Stmt& s, std::vector<int>& uses) {
  const auto use = [&](ir::ValueId id) {
    if (id >= 0) ++uses[static_cast<std::size_t>(id)];
  };
  for_each_inner(s, [&](const ir::Stmt& inner) {
    ir::for_each_arg(inner, [&](const ir::Arg& a) { use(a.value); });
    ir::for_each_index(inner, [&](const ir::Index& i) {
      i.for_each_leaf([&](const ir::IndexAtom& leaf) {
        if (leaf.kind == ir::AtomKind::value) use(leaf.id);
      });
    });
    if (const auto* branch = std::get_if<ir::IfStmt>(&inner.node)) use(branch->condition);
  });
}

// Values of the lanes part that something outside of it names are arrays.
void declare_escaping(Emitter& e, const Segment& segment, const Tail& tail) {
  std::vector<int> inside(e.kernel.values.size(), 0);
  for (const Item& item : segment)
    if (item.place == Place::lanes) count_uses(*item.stmt, inside);
  if (tail.lanes)
    for (const ir::Arg& arg : tail.args)
      if (!arg.is_literal()) ++inside[static_cast<std::size_t>(arg.value)];
  for (const Item& item : segment) {
    if (item.place != Place::lanes) continue;
    for (ir::ValueId id : ir::results(*item.stmt)) {
      if (inside[static_cast<std::size_t>(id)] == e.facts.uses[static_cast<std::size_t>(id)]) continue;
      e.array[static_cast<std::size_t>(id)] = true;
      declare(e, id);
    }
    open_bit_stores(e, *item.stmt);
  }
}

void emit_lanes(Emitter& e, const Segment& segment, const Tail& tail) {
  e.out.line("#pragma unroll");
  const std::string lane = variable_name(e, e.vector->variable);
  e.out.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {{", lane, e.lane_count()));
  e.in_lane = true;
  for (const Item& item : segment)
    if (item.place == Place::lanes) emit_statement(e, *item.stmt);
  if (tail.lanes) tail.lanes();
  e.in_lane = false;
  e.out.close();
}

// Several that one thread does alone stand under one condition.
void emit_stores(Emitter& e, const Segment& segment) {
  std::vector<const ir::StoreStmt*> stores;
  for (const Item& item : segment)
    if (item.place == Place::after) stores.push_back(&std::get<ir::StoreStmt>(item.stmt->node));
  const bool together = stores.size() > 1 && !lone_condition(e).empty();
  const std::array<bool, 3> covered = e.covered;
  if (together) {
    e.out.open(fmt::format("if ({}) {{", lone_condition(e)));
    e.covered = {true, true, true};
  }
  for (const ir::StoreStmt* store : stores) emit_vector_store(e, *store);
  e.covered = covered;
  if (together) e.out.close();
}

void flush(Emitter& e, Segment& segment, const Tail& tail = {}) {
  for (const Item& item : segment) {
    if (item.place != Place::before) continue;
    const auto* load = std::get_if<ir::LoadStmt>(&item.stmt->node);
    if (load && is_contiguous(e, load->place)) {
      emit_vector_load(e, *load);
    } else {
      emit_statement(e, *item.stmt);
    }
  }
  declare_escaping(e, segment, tail);
  const bool any = std::any_of(segment.begin(), segment.end(), [](const Item& i) { return i.place == Place::lanes; });
  if (any || tail.lanes) emit_lanes(e, segment, tail);
  for (const Item& item : segment) close_bit_stores(e, *item.stmt);
  emit_stores(e, segment);
  segment.clear();
}

}  // namespace

KernelFacts::KernelFacts(const ir::Kernel& kernel)
    : kernel(kernel),
      names(kernel),
      lanes(lane_facts(kernel)),
      arena(layout(kernel)),
      uses(kernel.values.size(), 0),
      thread_dims(ir::thread_dims(kernel)) {
  for (const ir::Phase& phase : kernel.phases)
    for (const ir::Stmt& s : phase.body.statements) count_uses(s, uses);
}

void emit_lockstep(Emitter& e, const ir::Block& block, const Tail& tail) {
  Segment segment;
  for (const ir::Stmt& s : block.statements) {
    if (e.barriers.contains(&s)) {
      flush(e, segment);
      emit_barrier(e, s);
    }
    // Known before the segment is written, because later statements of it are classified by it.
    if (const auto* local = std::get_if<ir::LocalStmt>(&s.node)) {
      const auto id = static_cast<std::size_t>(local->memory);
      e.lane_rows[id] = e.facts.lanes.memory[id];
    }
    const Item item{&s, std::visit(Classify{e}, s.node)};
    if (item.place == Place::alone) {
      flush(e, segment);
      emit_statement(e, s);
      continue;
    }
    if (overtakes(segment, item)) flush(e, segment);
    segment.push_back(item);
  }
  flush(e, segment, tail);
  if (tail.uniform) tail.uniform();
}

}  // namespace fusejit::codegen::cuda
