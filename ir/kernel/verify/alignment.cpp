// V7: vector accesses that an emitter makes with one aligned instruction are aligned.
#include "ir/kernel/verify/verify.h"

namespace fusejit::ir {
namespace {

const ForStmt* vector_loop(const Path& path) {
  for (std::size_t i = path.size(); i-- > 0;)
    if (path[i].loop && path[i].loop->binding == Binding::vector) return path[i].loop;
  return nullptr;
}

// The largest power of two up to 4096 that divides the address of lane 0.
std::int64_t address_alignment(const Memory& memory, const Index& flat, VarId lane) {
  const auto size = static_cast<std::uint64_t>(bytes(memory.dtype));
  std::int64_t base = memory.align != 0 ? memory.align : bytes(memory.dtype);
  if (memory.is_local()) base = 64;
  // Powers of two: a product that wraps keeps its low bits.
  std::uint64_t bits = static_cast<std::uint64_t>(base) | static_cast<std::uint64_t>(flat.constant()) * size;
  for (const IndexTerm& t : flat.terms())
    if (!(t.atom.kind == AtomKind::variable && t.atom.id == lane))
      bits |= static_cast<std::uint64_t>(t.coefficient) * size;
  return static_cast<std::int64_t>(bits & -bits);
}

// Calls broken(statement, place, has, needed) for every access that is not aligned as its isa needs it.
using Misaligned = std::function<void(const Stmt&, const Place&, std::int64_t has, std::int64_t needed)>;
void find_misaligned(const Kernel& kernel, const Misaligned& misaligned) {
  for_each_with_path(kernel, [&](const Stmt& stmt, const Path& path, std::size_t) {
    const Place* place = touched(stmt);
    if (!place) return;
    const auto* store = std::get_if<StoreStmt>(&stmt.node);
    const bool streams = store && store->non_temporal;
    if (!streams && kernel.isa != Isa::cuda) return;
    const Memory& memory = kernel.memories[static_cast<std::size_t>(place->memory)];
    if (memory.kind == MemKind::register_local || memory.dtype == DType::b1) return;
    const ForStmt* lanes = vector_loop(path);
    Index flat;
    for (std::size_t d = 0; d < memory.dims.size(); ++d) flat = flat * memory.dims[d] + place->index[d];
    if (!lanes || flat.coefficient_of(lanes->variable) != 1) {
      if (streams) misaligned(stmt, *place, 0, 0);
      return;
    }
    const std::int64_t vector_bytes = lanes->high[0].constant() * bytes(memory.dtype);
    const std::int64_t needed = streams ? vector_bytes : std::min<std::int64_t>(16, vector_bytes);
    const std::int64_t has = address_alignment(memory, flat, lanes->variable);
    if (has % needed != 0) misaligned(stmt, *place, has, needed);
  });
}

}  // namespace

bool vectors_aligned(const Kernel& kernel) {
  bool aligned = true;
  find_misaligned(kernel, [&](auto&&...) { aligned = false; });
  return aligned;
}

void verify_alignment(const Kernel& kernel) {
  const Names names(kernel);
  find_misaligned(kernel, [&](const Stmt& stmt, const Place& place, std::int64_t has, std::int64_t needed) {
    if (needed == 0) broken(stmt.at, "V7", fmt::format("nt at {} is no store of whole vectors", names.place(place)));
    broken(stmt.at, "V7", fmt::format("{} is aligned to {} bytes, {} are needed", names.place(place), has, needed));
  });
}

}  // namespace fusejit::ir
