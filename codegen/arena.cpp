#include "codegen/arena.h"

#include <algorithm>

namespace fusejit::codegen {
namespace {

constexpr std::int64_t kAlign = 64;
std::int64_t round_up(std::int64_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

void place(const ir::Kernel& kernel, const ir::Block& block, std::int64_t top, Arena& arena) {
  for (const ir::Stmt& s : block.statements) {
    if (const auto* local = std::get_if<ir::LocalStmt>(&s.node)) {
      const ir::Memory& memory = kernel.memories[local->memory];
      if (memory.kind != ir::MemKind::scratch_local) continue;
      arena.offset[local->memory] = top;
      arena.size[local->memory] = bytes(memory.dtype, memory.elements());
      top = round_up(top + arena.size[local->memory]);
      arena.scratch_bytes = std::max(arena.scratch_bytes, top);
    } else if (const auto* loop = std::get_if<ir::ForStmt>(&s.node)) {
      place(kernel, loop->body, top, arena);
    } else if (const auto* branch = std::get_if<ir::IfStmt>(&s.node)) {
      place(kernel, branch->then_block, top, arena);
      place(kernel, branch->else_block, top, arena);
    }
  }
}

}  // namespace

Arena layout(const ir::Kernel& kernel) {
  Arena arena;
  arena.offset.assign(kernel.memories.size(), -1);
  arena.size.assign(kernel.memories.size(), 0);
  for (ir::MemId work : kernel.works) {
    const ir::Memory& memory = kernel.memories[work];
    arena.offset[work] = arena.work_bytes;
    arena.size[work] = bytes(memory.dtype, memory.elements());
    arena.work_bytes = round_up(arena.work_bytes + arena.size[work]);
  }
  for (const ir::Phase& phase : kernel.phases) place(kernel, phase.body, 0, arena);
  return arena;
}

}  // namespace fusejit::codegen
