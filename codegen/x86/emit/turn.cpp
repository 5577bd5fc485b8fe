// Loads that are shuffled in registers, in place of gathers. Squares: where lanes are whole vectors apart in memory and
// an unrolled loop walks along those vectors, they are read as they lie and turned into what the lanes need of each.
// Pairs: where lanes take every other element, both of each pair are read. Runs: where lanes are a few elements apart,
// such as the taps of a weight, and an unrolled loop walks along those, all of them are read. Windows: where the lanes'
// elements, in whatever order, are known to lie in a few short pieces of memory, such as the channels of a few pixels,
// those are read.
#include <algorithm>
#include <bit>
#include <optional>

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

namespace {

constexpr std::int64_t kMostBytesOfOne = 128, kMostBytesOfSeveral = 64;  // two vectors, one
constexpr std::size_t kMostWindows = 4;

// Elements that some lanes read, from what the lanes have in common on.
struct Window {
  std::int64_t first, elements;
};

// The fewest that hold all offsets, of `most` elements each.
std::vector<Window> windows_of(std::vector<std::int64_t> offsets, std::int64_t most) {
  std::vector<Window> windows;
  while (!offsets.empty()) {
    Window window{*std::min_element(offsets.begin(), offsets.end()), 0};
    const auto is_in = [&](std::int64_t offset) { return offset < window.first + most; };
    for (const std::int64_t offset : offsets)
      if (is_in(offset)) window.elements = std::max(window.elements, offset - window.first + 1);
    std::erase_if(offsets, is_in);
    windows.push_back(window);
  }
  return windows;
}

// What each lane adds to an index; nothing where that is not known yet, as beside a loop's variable.
std::optional<std::vector<std::int64_t>> offsets_of_lanes(const Emitter& e, const Affine& index) {
  const auto is_lane = [&](const ir::IndexAtom& leaf) {
    return leaf.kind == ir::AtomKind::variable &&
           e.variables[static_cast<std::size_t>(leaf.id)].kind == VariableKind::lane;
  };
  bool known = true;
  for (const ir::IndexTerm& term : index.per_lane) {
    known = known && term.atom.inner != nullptr;
    if (known) term.atom.inner->for_each_leaf([&](const ir::IndexAtom& leaf) { known = known && is_lane(leaf); });
  }
  if (!known) return std::nullopt;
  std::vector<std::int64_t> offsets;
  for (std::int64_t lane = 0; lane < e.lane_count; ++lane) {
    std::int64_t offset = lane * index.lane_step;
    for (const ir::IndexTerm& term : index.per_lane)
      offset += term.coefficient * ir::Index::of(term.atom).evaluate([&](const ir::IndexAtom&) { return lane; });
    offsets.push_back(offset);
  }
  return offsets;
}

Value* load_window(Emitter& e, ir::MemId memory, const Affine& index, const Window& window) {
  const DType dtype = e.kernel.memories[memory].dtype;
  const std::int64_t size = bytes(dtype), at = (index.constant + window.first) * size;
  const auto whole = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(window.elements)));
  auto* type = llvm::FixedVectorType::get(value_type(e.b.getContext(), dtype), static_cast<unsigned>(whole));
  Value* pointer = address(e, memory, index.uniform, size, at);
  const llvm::Align align = alignment(e, memory, index.uniform, size, at);
  if (whole == window.elements) return tag(e, memory, e.b.CreateAlignedLoad(type, pointer, align));
  std::vector<llvm::Constant*> there;  // behind the last element memory may end
  for (std::int64_t i = 0; i < whole; ++i) there.push_back(e.b.getInt1(i < window.elements));
  return tag(e, memory, e.b.CreateMaskedLoad(type, pointer, align, llvm::ConstantVector::get(there)));
}

}  // namespace

Value* load_of_windows(Emitter& e, const ir::Place& place, const Affine& index) {
  const ir::Memory& memory = e.kernel.memories[place.memory];
  const std::int64_t size = bytes(memory.dtype);
  if (e.mask != nullptr || e.facts.vector_width != "512" || (size != 2 && size != 4)) return nullptr;
  const std::optional<std::vector<std::int64_t>> offsets = offsets_of_lanes(e, index);
  if (!offsets) return nullptr;
  std::vector<Window> windows = windows_of(*offsets, kMostBytesOfOne / size);
  if (windows.size() > 1) windows = windows_of(*offsets, kMostBytesOfSeveral / size);
  if (windows.size() > kMostWindows) return nullptr;
  Value* result = nullptr;
  for (const Window& window : windows) {
    std::vector<int> from, merged;
    for (const std::int64_t offset : *offsets) {
      const bool here = offset >= window.first && offset < window.first + window.elements;
      const int lane = static_cast<int>(from.size());
      from.push_back(here ? static_cast<int>(offset - window.first) : -1);
      merged.push_back(here ? lane + static_cast<int>(e.lane_count) : lane);
    }
    Value* lanes = e.b.CreateShuffleVector(load_window(e, place.memory, index, window), from);
    result = result == nullptr ? lanes : e.b.CreateShuffleVector(result, lanes, merged);
  }
  return result;
}

void forget_shuffled(Emitter& e, ir::MemId memory) {
  if (e.square.memory == memory) e.square.block = nullptr;
  if (e.runs.memory == memory) e.runs.block = nullptr;
}

}  // namespace fusejit::codegen::x86
