// Squares turned in registers: where lanes are whole vectors apart in memory and an unrolled loop walks along those
// vectors, they are read as they lie, and shuffled into what the lanes need of each, in place of a gather an iteration.
#include <algorithm>

#include "codegen/x86/emitter.h"

namespace fusejit::codegen::x86 {
namespace {

using llvm::Value;

constexpr std::int64_t kElementBytes = 4;

bool walks_along(const Emitter& e, const ir::Index& flat) {
  return std::any_of(flat.terms().begin(), flat.terms().end(), [&](const ir::IndexTerm& term) {
    return term.atom.kind == ir::AtomKind::variable && term.coefficient == 1 &&
           e.variables[static_cast<std::size_t>(term.atom.id)].kind == VariableKind::constant;
  });
}

// Columns of the square whose rows these are: in steps of 1, 2, 4, ... neighbouring blocks of a pair of rows change
// places.
void turn(Emitter& e, std::vector<Value*>& rows) {
  const auto lanes = static_cast<int>(rows.size());
  for (int step = 1; step < lanes; step *= 2) {
    std::vector<int> low, high;
    for (int i = 0; i < lanes; ++i) {
      const bool second = (i & step) != 0;
      low.push_back(second ? lanes + i - step : i);
      high.push_back(second ? lanes + i : i + step);
    }
    for (int i = 0; i < lanes; ++i) {
      if ((i & step) != 0) continue;
      Value *&a = rows[static_cast<std::size_t>(i)], *&b = rows[static_cast<std::size_t>(i + step)];
      Value* upper = e.b.CreateShuffleVector(a, b, low);
      b = e.b.CreateShuffleVector(a, b, high);
      a = upper;
    }
  }
}

}  // namespace

Value* load_turned(Emitter& e, const ir::Place& place, const Affine& index) {
  const ir::Memory& memory = e.kernel.memories[place.memory];
  const std::int64_t lanes = e.lane_count;
  const auto whole = [lanes](std::int64_t n) { return n % lanes == 0; };
  if (e.mask != nullptr || bytes(memory.dtype) != kElementBytes || !index.per_lane.empty() ||
      !whole(index.lane_step) || memory.dims.empty() || !whole(memory.dims.back()) ||
      !std::all_of(index.uniform.begin(), index.uniform.end(), [&](const auto& term) { return whole(term.coefficient); }) ||
      !walks_along(e, flatten(e, place)))
    return nullptr;
  const std::int64_t column = ((index.constant % lanes) + lanes) % lanes, first = index.constant - column;
  TurnedSquare& known = e.turned;
  if (known.block != e.b.GetInsertBlock() || known.memory != place.memory || known.uniform != index.uniform ||
      known.lane_step != index.lane_step || known.first != first) {
    llvm::Type* type = value_type(e.b.getContext(), memory.dtype);
    auto* vector = llvm::FixedVectorType::get(type, e.lane_count);
    known = {e.b.GetInsertBlock(), place.memory, index.uniform, index.lane_step, first, {}};
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const std::int64_t at = (first + lane * index.lane_step) * kElementBytes;
      Value* pointer = address(e, place.memory, index.uniform, kElementBytes, at);
      known.columns.push_back(tag(e, place.memory,
                                  e.b.CreateAlignedLoad(vector, pointer,
                                                        alignment(e, place.memory, index.uniform, kElementBytes, at))));
    }
    turn(e, known.columns);
    known.block = e.b.GetInsertBlock();
  }
  return known.columns[static_cast<std::size_t>(column)];
}

}  // namespace fusejit::codegen::x86
