// Loads, stores and locals.
#include <fmt/format.h>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/text.h"
#include "ir/base/check.h"
#include "ir/kernel/verify/thread_dims.h"

namespace fusejit::codegen::cuda {
namespace {

using ir::Index;
using ir::MemKind;

const ir::Memory& memory(const Emitter& e, const ir::Place& place) {
  return e.kernel.memories[static_cast<std::size_t>(place.memory)];
}

// "p0[i0*64 + i1]"; locals of a vector loop have a row of lanes for each element.
std::string element(const Emitter& e, const ir::Place& place) {
  Index flat = flatten(e, place);
  if (e.lane_rows[static_cast<std::size_t>(place.memory)])
    flat = flat * e.lane_count() + Index::variable(e.vector->variable);
  return fmt::format("{}[{}]", memory_name(e, place.memory), place_text(e, flat, place.memory));
}

// The address of lane 0, bits as bytes.
std::string address(const Emitter& e, const ir::Place& place) {
  Index first = first_lane(e, place);
  const bool bits = memory(e, place).dtype == DType::b1;
  if (bits) first = first / 8;
  return first.is_constant() && first.constant() == 0
             ? memory_name(e, place.memory)
             : fmt::format("{} + ({})", memory_name(e, place.memory),
                           bits ? index_text(e, first) : place_text(e, first, place.memory));
}

// Stores outside of some block loop are done by the thread with index 0 on its axis.
std::string guard(const Emitter& e, const ir::Memory& m) {
  const std::string condition = m.kind == MemKind::register_local ? "" : lone_condition(e);
  return condition.empty() ? "" : fmt::format("if ({}) ", condition);
}

// A value in all lanes.
std::string lanes_text(const Emitter& e, const ir::Arg& arg) {
  if (!arg.is_literal() && e.array[static_cast<std::size_t>(arg.value)]) return name(e, arg.value);
  return fmt::format("fj_splat<{}>({})", e.lane_count(), text(e, arg));
}

template <class F>
void for_each_bit_store(const Emitter& e, const ir::Stmt& s, const F& visit) {
  const auto* branch = std::get_if<ir::IfStmt>(&s.node);
  if (!branch) return;
  const auto look = [&](const ir::Stmt& inner) {
    const auto* store = std::get_if<ir::StoreStmt>(&inner.node);
    if (store && memory(e, store->place).dtype == DType::b1) visit(inner, *store);
  };
  ir::for_each_stmt(branch->then_block, look);
  ir::for_each_stmt(branch->else_block, look);
}

}  // namespace

std::string lone_condition(const Emitter& e) {
  std::string condition;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (e.block[axis] == 1 || e.covered[axis]) continue;
    condition += fmt::format("{}{} == 0", condition.empty() ? "" : " && ", e.coordinates[axis]);
  }
  return condition;
}

void emit_local(Emitter& e, const ir::LocalStmt& s) {
  const auto id = static_cast<std::size_t>(s.memory);
  const ir::Memory& m = e.kernel.memories[id];
  const std::string value = m.has_init ? literal(m.init) : "";
  if (m.kind == MemKind::scratch_local) {
    e.shared.push_back(s.memory);
    if (!m.has_init) return;
    FJ_ASSERT(e.divergent == 0, "scratch with an initial value in a branch that threads take differently");
    e.uses_thread = true;
    e.out.line(fmt::format("for (int i = t; i < {}; i += {}) {}[i] = {};", m.elements(), e.threads(),
                           memory_name(e, s.memory), value));
    return;
  }
  e.lane_rows[id] = e.vector && !e.in_lane && e.facts.lanes.memory[id];
  const std::int64_t count =
      ir::elements_of_thread(m, e.facts.thread_dims[id]) * (e.lane_rows[id] ? e.lane_count() : 1);
  const bool zero = m.has_init && m.init.bits == 0, whole = zero || count == 1;
  const std::string start = !m.has_init || !whole ? "" : fmt::format(" = {{{}}}", zero ? "" : value);
  e.out.line(fmt::format("{} {}[{}]{};", type_name(m.dtype), memory_name(e, s.memory), count, start));
  if (!m.has_init || whole) return;
  e.out.line("#pragma unroll");
  e.out.line(fmt::format("for (int i = 0; i < {}; ++i) {}[i] = {};", count, memory_name(e, s.memory), value));
}

void emit_load(Emitter& e, const ir::LoadStmt& s) {
  if (e.gathered.contains(s.result)) return;
  if (memory(e, s.place).dtype == DType::b1) {
    return define(e, s.result,
                  fmt::format("fj_load_bit({}, {})", memory_name(e, s.place.memory),
                              place_text(e, flatten(e, s.place), s.place.memory)));
  }
  define(e, s.result, element(e, s.place));
}

void emit_store(Emitter& e, const ir::StoreStmt& s) {
  const ir::Memory& m = memory(e, s.place);
  FJ_ASSERT(m.dtype != DType::b1, "a b1 store must name whole bytes of lanes");
  e.out.line(fmt::format("{}{} = {};", guard(e, m), element(e, s.place), text(e, s.value)));
}

void emit_vector_load(Emitter& e, const ir::LoadStmt& s) {
  const DType dtype = memory(e, s.place).dtype;
  e.array[static_cast<std::size_t>(s.result)] = true;
  e.out.line(fmt::format("const fj_lanes<{}, {}> {} = fj_load{}<{}>({});",
                         type_name(e.kernel.values[static_cast<std::size_t>(s.result)]), e.lane_count(),
                         name(e, s.result), dtype == DType::b1 ? "_bits" : "", e.lane_count(), address(e, s.place)));
}

void emit_vector_store(Emitter& e, const ir::StoreStmt& s) {
  const ir::Memory& m = memory(e, s.place);
  const bool bits = m.dtype == DType::b1;
  e.out.line(fmt::format("{}fj_store{}({}, {});", guard(e, m), bits ? fmt::format("_bits<{}>", e.lane_count()) : "",
                         address(e, s.place), lanes_text(e, s.value)));
}

void open_bit_stores(Emitter& e, const ir::Stmt& s) {
  for_each_bit_store(e, s, [&](const ir::Stmt& inner, const ir::StoreStmt& store) {
    FJ_ASSERT(is_contiguous(e, store.place), "a b1 store must name whole bytes of lanes");
    const std::string bits = fmt::format("{}_bits{}", memory_name(e, store.place.memory), e.bit_stores.size());
    e.bit_stores[&inner] = bits;
    e.out.line(fmt::format("fj_lanes<bool, {0}> {1} = fj_splat<{0}>(false), {1}_active = {1};", e.lane_count(), bits));
  });
}

void close_bit_stores(Emitter& e, const ir::Stmt& s) {
  for_each_bit_store(e, s, [&](const ir::Stmt& inner, const ir::StoreStmt& store) {
    const std::string& bits = e.bit_stores.at(&inner);
    e.out.line(fmt::format("{}fj_store_bits<{}>({}, {}, {}_active);", guard(e, memory(e, store.place)), e.lane_count(),
                           address(e, store.place), bits, bits));
  });
}

}  // namespace fusejit::codegen::cuda
