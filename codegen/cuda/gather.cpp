// Neighbouring elements that the copies of an unrolled loop load one by one, as one vector access in front of the loop.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/text.h"

namespace fusejit::codegen::cuda {
namespace {

// Element 0's index, if the loop loads elements 0, 1, … from there, all at whole accesses of up to 16 bytes.
std::optional<ir::Index> neighbours(const Emitter& e, const ir::ForStmt& loop, const ir::LoadStmt& load) {
  const ir::Memory& m = e.kernel.memories[static_cast<std::size_t>(load.place.memory)];
  const std::int64_t extent = loop.high[0].constant(), size = bytes(m.dtype, 1);
  if (m.kind != ir::MemKind::read || m.dtype == DType::b1 || varies(e, load.result)) return std::nullopt;
  const std::int64_t chunk = std::min(16 / size, extent);
  if (chunk < 2 || !std::has_single_bit(static_cast<std::uint64_t>(chunk)) || extent % chunk != 0) return std::nullopt;
  if (m.align < chunk * size) return std::nullopt;
  const ir::Index first = flatten(e, load.place) - ir::Index::variable(loop.variable);
  bool whole = first.constant() % chunk == 0;
  for (const ir::IndexTerm& t : first.terms()) whole = whole && t.coefficient % chunk == 0;
  first.for_each_leaf([&](const ir::IndexAtom& leaf) {
    whole = whole && leaf.kind == ir::AtomKind::variable && leaf.id != loop.variable;
  });
  if (!whole) return std::nullopt;
  return first;
}

}  // namespace

void gather_loads(Emitter& e, const ir::ForStmt& loop) {
  if (loop.low[0] != ir::Index(0)) return;
  for (const ir::Stmt& s : loop.body.statements) {
    const auto* load = std::get_if<ir::LoadStmt>(&s.node);
    const std::optional<ir::Index> first = load ? neighbours(e, loop, *load) : std::nullopt;
    if (!first) continue;
    const std::int64_t extent = loop.high[0].constant();
    e.out.line(fmt::format("const fj_lanes<{}, {}> {} = fj_load<{}>({} + ({}));",
                           type_name(e.kernel.values[static_cast<std::size_t>(load->result)]), extent,
                           name(e, load->result), extent, memory_name(e, load->place.memory),
                           place_text(e, *first, load->place.memory)));
    e.gathered[load->result] = loop.variable;
  }
}

}  // namespace fusejit::codegen::cuda
