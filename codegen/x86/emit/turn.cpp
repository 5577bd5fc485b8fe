// Loads that are shuffled in registers, in place of gathers. Squares: where lanes are whole vectors apart in memory and
// an unrolled loop walks along those vectors, they are read as they lie and turned into what the lanes need of each.
// Pairs: where lanes take every other element, both of each pair are read. Runs: where lanes are a few elements apart,
// such as the taps of a weight, and an unrolled loop walks along those, all of them are read.
#include <algorithm>

#include "codegen/x86/emit/emitter.h"

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

// What is added to the lanes' part of an index is a multiple of n, and so are its elements: whole runs of n there are
// inside of it.
bool in_runs_of(std::int64_t n, const ir::Memory& memory, const Affine& index) {
  return index.per_lane.empty() && memory.elements() % n == 0 && index.lane_step % n == 0 &&
         std::all_of(index.uniform.begin(), index.uniform.end(),
                     [&](const ir::IndexTerm& term) { return term.coefficient % n == 0; });
}

std::int64_t remainder(std::int64_t a, std::int64_t n) { return ((a % n) + n) % n; }

}  // namespace

Value* load_of_pairs(Emitter& e, const ir::Place& place, const Affine& index) {
  const ir::Memory& memory = e.kernel.memories[place.memory];
  const std::int64_t size = bytes(memory.dtype);
  if (e.mask != nullptr || index.lane_step != 2 || (size != 2 && size != 4) || !in_runs_of(2, memory, index))
    return nullptr;
  const std::int64_t second = remainder(index.constant, 2), at = (index.constant - second) * size;
  Value* pointer = address(e, place.memory, index.uniform, size, at);
  const llvm::Align align = alignment(e, place.memory, index.uniform, size, at);
  const auto load = [&](llvm::Type* type) { return tag(e, place.memory, e.b.CreateAlignedLoad(type, pointer, align)); };
  llvm::Type* type = value_type(e.b.getContext(), memory.dtype);
  if (size == 4) {
    std::vector<int> half;
    for (unsigned i = 0; i < e.lane_count; ++i) half.push_back(static_cast<int>(2 * i) + static_cast<int>(second));
    return e.b.CreateShuffleVector(load(llvm::FixedVectorType::get(type, 2 * e.lane_count)), half);
  }
  Value* words = load(llvm::FixedVectorType::get(e.b.getInt32Ty(), e.lane_count));
  if (second == 1) words = e.b.CreateLShr(words, llvm::ConstantInt::get(words->getType(), 16));
  Value* elements = e.b.CreateTrunc(words, llvm::FixedVectorType::get(e.b.getInt16Ty(), e.lane_count));
  return e.b.CreateBitCast(elements, llvm::FixedVectorType::get(type, e.lane_count));
}

Value* load_turned(Emitter& e, const ir::Place& place, const Affine& index) {
  const ir::Memory& memory = e.kernel.memories[place.memory];
  const std::int64_t lanes = e.lane_count;
  if (e.mask != nullptr || bytes(memory.dtype) != kElementBytes || !in_runs_of(lanes, memory, index) ||
      !walks_along(e, flatten(e, place)))
    return nullptr;
  const std::int64_t column = remainder(index.constant, lanes), first = index.constant - column;
  ShuffledLoad& known = e.square;
  if (!known.is_of(e.b.GetInsertBlock(), place.memory, index, first)) {
    llvm::Type* type = value_type(e.b.getContext(), memory.dtype);
    auto* vector = llvm::FixedVectorType::get(type, e.lane_count);
    known = {e.b.GetInsertBlock(), place.memory, index.uniform, index.lane_step, first, {}};
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const std::int64_t at = (first + lane * index.lane_step) * kElementBytes;
      Value* pointer = address(e, place.memory, index.uniform, kElementBytes, at);
      known.vectors.push_back(
          tag(e, place.memory,
              e.b.CreateAlignedLoad(vector, pointer, alignment(e, place.memory, index.uniform, kElementBytes, at))));
    }
    turn(e, known.vectors);
    known.block = e.b.GetInsertBlock();
  }
  return known.vectors[static_cast<std::size_t>(column)];
}

namespace {

constexpr std::int64_t kMostElementsOfRun = 9;

// Lane i is element i * n + at of neighbouring vectors: one vector more is taken in by each shuffle.
Value* strided(Builder& b, const std::vector<Value*>& vectors, std::int64_t n, std::int64_t at) {
  const std::int64_t lanes = llvm::cast<llvm::FixedVectorType>(vectors[0]->getType())->getNumElements();
  Value* result = nullptr;
  for (std::int64_t v = 0; v < n; ++v) {
    std::vector<int> from;
    bool any = false;
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const std::int64_t element = lane * n + at;
      const bool here = element / lanes == v;
      any |= here;
      from.push_back(static_cast<int>(here ? lanes + element % lanes : element / lanes < v ? lane : -1));
    }
    if (!any) continue;
    Value* vector = vectors[static_cast<std::size_t>(v)];
    result = b.CreateShuffleVector(result == nullptr ? vector : result, vector, from);
  }
  return result;
}

}  // namespace

Value* load_of_runs(Emitter& e, const ir::Place& place, const Affine& index) {
  const ir::Memory& memory = e.kernel.memories[place.memory];
  const std::int64_t n = index.lane_step, lanes = e.lane_count;
  if (e.mask != nullptr || e.facts.vector_width != "512" || bytes(memory.dtype) != kElementBytes || lanes != 16 ||
      n < 3 || n > kMostElementsOfRun || !in_runs_of(n, memory, index))
    return nullptr;
  const std::int64_t at = remainder(index.constant, n), first = index.constant - at;
  ShuffledLoad& known = e.runs;
  if (!known.is_of(e.b.GetInsertBlock(), place.memory, index, first)) {
    auto* vector = llvm::FixedVectorType::get(value_type(e.b.getContext(), memory.dtype), e.lane_count);
    known = {e.b.GetInsertBlock(), place.memory, index.uniform, n, first, {}};
    for (std::int64_t v = 0; v < n; ++v) {
      const std::int64_t from = (first + v * lanes) * kElementBytes;
      Value* pointer = address(e, place.memory, index.uniform, kElementBytes, from);
      known.vectors.push_back(
          tag(e, place.memory,
              e.b.CreateAlignedLoad(vector, pointer, alignment(e, place.memory, index.uniform, kElementBytes, from))));
    }
  }
  return strided(e.b, known.vectors, n, at);
}

void forget_shuffled(Emitter& e, ir::MemId memory) {
  if (e.square.memory == memory) e.square.block = nullptr;
  if (e.runs.memory == memory) e.runs.block = nullptr;
}

}  // namespace fusejit::codegen::x86
