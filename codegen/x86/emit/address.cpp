#include <algorithm>
#include <bit>
#include <numeric>

#include "codegen/x86/emit/emitter.h"
#include "ir/base/check.h"

namespace fusejit::codegen::x86 {
namespace {

using ir::AtomKind;
using ir::Index;
using ir::IndexAtom;
using ir::IndexTerm;
using llvm::Value;

bool atom_varies(const Emitter& e, const IndexAtom& atom) {
  switch (atom.kind) {
    case AtomKind::variable:
      return e.variables[atom.id].kind == VariableKind::lane;
    case AtomKind::value:
      return e.values[atom.id]->getType()->isVectorTy();
    case AtomKind::quotient:
    case AtomKind::remainder:
      return varies(e.lanes, *atom.inner);
  }
  return false;
}

// The innermost scope that defines anything the atom names. A loaded value belongs to the innermost one.
int scope_of(const Emitter& e, const IndexAtom& atom) {
  const int innermost = static_cast<int>(e.scopes.size()) - 1;
  if (atom.kind == AtomKind::variable) return e.variables[atom.id].scope;
  if (atom.kind == AtomKind::value) return innermost;
  int scope = 0;
  atom.inner->for_each_leaf([&](const IndexAtom& leaf) { scope = std::max(scope, scope_of(e, leaf)); });
  return scope;
}

bool names_value(const IndexAtom& atom) {
  if (atom.kind == AtomKind::variable) return false;
  if (atom.kind == AtomKind::value) return true;
  bool found = false;
  atom.inner->for_each_leaf([&](const IndexAtom& leaf) { found = found || leaf.kind == AtomKind::value; });
  return found;
}

// A number for the atom in keys; compound atoms are equal if their expressions are.
std::int64_t atom_number(Emitter& e, const IndexAtom& atom) {
  if (atom.kind == AtomKind::variable) return atom.id;
  const auto found = std::find(e.atoms.begin(), e.atoms.end(), atom);
  const auto at = found - e.atoms.begin();
  if (found == e.atoms.end()) e.atoms.push_back(atom);
  return -1 - at;
}

// E / c and E % c rounded down, for i64 or a vector of them.
Value* divide(Builder& b, Value* x, std::int64_t divisor, bool quotient, bool non_negative) {
  Value* c = llvm::ConstantInt::get(x->getType(), static_cast<std::uint64_t>(divisor));
  if (std::has_single_bit(static_cast<std::uint64_t>(divisor))) {
    const int shift = std::countr_zero(static_cast<std::uint64_t>(divisor));
    return quotient ? b.CreateAShr(x, shift) : b.CreateAnd(x, static_cast<std::uint64_t>(divisor - 1));
  }
  if (non_negative) return quotient ? b.CreateUDiv(x, c) : b.CreateURem(x, c);
  Value* rest = b.CreateSRem(x, c);
  Value* negative = b.CreateICmpSLT(rest, llvm::Constant::getNullValue(x->getType()));
  if (!quotient) return b.CreateSelect(negative, b.CreateAdd(rest, c), rest);
  return b.CreateAdd(b.CreateSDiv(x, c), b.CreateSExt(negative, x->getType()));
}

bool non_negative(const Emitter& e, const Index& index) {
  const auto range = range_of(e, index);
  return range && range->low >= 0;
}

Value* compound(Emitter& e, const IndexAtom& atom, Value* inner) {
  return divide(e.b, inner, atom.divisor, atom.kind == AtomKind::quotient, non_negative(e, *atom.inner));
}

Value* uniform_atom(Emitter& e, const IndexAtom& atom) {
  if (atom.kind == AtomKind::variable) return e.variables[atom.id].value;
  if (atom.kind == AtomKind::value) return e.b.CreateSExt(e.values[atom.id], e.b.getInt64Ty());
  return compound(e, atom, uniform_index(e, affine(e, *atom.inner)));
}

Value* scaled(Builder& b, Value* x, std::int64_t factor) {
  return factor == 1 ? x : b.CreateMul(x, llvm::ConstantInt::get(x->getType(), static_cast<std::uint64_t>(factor)));
}

Value* splat_i64(Emitter& e, Value* x) { return x->getType()->isVectorTy() ? x : splat(e.b, x, e.lane_count); }

Value* lane_numbers(Emitter& e) {
  std::vector<llvm::Constant*> numbers;
  for (unsigned i = 0; i < e.lane_count; ++i) numbers.push_back(e.b.getInt64(i));
  return llvm::ConstantVector::get(numbers);
}

Value* varying_atom(Emitter& e, const IndexAtom& atom) {
  if (atom.kind == AtomKind::variable) return lane_numbers(e);
  if (atom.kind == AtomKind::value) {
    return e.b.CreateSExt(e.values[atom.id], with_lanes_of(e.b.getInt64Ty(), e.values[atom.id]->getType()));
  }
  return compound(e, atom, lane_index(e, affine(e, *atom.inner)));
}

Value* sum_of(Emitter& e, const std::vector<IndexTerm>& terms) {
  Value* sum = nullptr;
  for (const IndexTerm& term : terms) {
    Value* product = scaled(e.b, uniform_atom(e, term.atom), term.coefficient);
    sum = sum == nullptr ? product : e.b.CreateAdd(sum, product);
  }
  return sum;
}

// Terms sorted by the scope that they become known in.
struct ScopedTerm {
  int scope;
  IndexTerm term;
};
std::vector<ScopedTerm> by_scope(const Emitter& e, const std::vector<IndexTerm>& terms) {
  std::vector<ScopedTerm> sorted;
  for (const IndexTerm& term : terms) sorted.push_back({scope_of(e, term.atom), term});
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const ScopedTerm& a, const ScopedTerm& b) { return a.scope < b.scope; });
  return sorted;
}

// Adds terms scope by scope, each sum in its own scope and only once; `start` is the value without terms.
template <typename Add>
Value* accumulate(Emitter& e, std::vector<std::int64_t> key, const std::vector<IndexTerm>& terms, Value* start,
                  const Add& add) {
  const std::vector<ScopedTerm> sorted = by_scope(e, terms);
  Value* sum = start;
  bool local = false;  // names a loaded value: no longer invariant, emitted in place
  for (std::size_t i = 0; i < sorted.size();) {
    const int depth = sorted[i].scope;
    std::size_t end = i;
    std::vector<IndexTerm> own;
    for (; end < sorted.size() && sorted[end].scope == depth; ++end) {
      own.push_back(sorted[end].term);
      key.push_back(atom_number(e, own.back().atom));
      key.push_back(own.back().coefficient);
      local = local || names_value(own.back().atom);
    }
    const auto known = e.scopes[depth].known.find(key);
    if (!local && known != e.scopes[depth].known.end()) {
      sum = known->second;
    } else {
      Builder::InsertPointGuard guard(e.b);
      if (!local) e.b.SetInsertPoint(e.scopes[depth].anchor);
      sum = add(sum, e.scopes[depth], own);
      if (!local) e.scopes[depth].known[key] = sum;
    }
    i = end;
  }
  return sum;
}

// In an innermost loop the address itself is carried and moved: left to loop strength reduction, the hundreds of
// accesses of an unrolled tile take most of the compile time. The laundering hides the recurrence from it.
Value* walk(Emitter& e, Scope& scope, Value* base, std::int64_t step) {
  Builder::InsertPointGuard guard(e.b);
  e.b.SetInsertPoint(scope.entry);
  Value* start = e.b.CreateGEP(e.b.getInt8Ty(), base, scaled(e.b, scope.low, step));
  llvm::BasicBlock* head = scope.anchor->getParent();
  e.b.SetInsertPoint(head, head->begin());
  llvm::PHINode* phi = e.b.CreatePHI(e.b.getPtrTy(), 2);
  phi->addIncoming(start, scope.entry->getParent());
  e.b.SetInsertPoint(scope.anchor);
  Value* pointer = e.b.CreateLaunderInvariantGroup(phi);
  scope.induction_pointers.push_back({phi, pointer, step});
  return pointer;
}

// Beyond this number base + index addressing is cheaper than moving every pointer.
constexpr std::size_t kMostInductionPointers = 6;

bool walks(const Scope& scope, const std::vector<IndexTerm>& terms) {
  const auto is_variable = [&](const IndexTerm& t) {
    return t.atom.kind == AtomKind::variable && t.atom.id == scope.variable;
  };
  return scope.innermost && scope.induction_pointers.size() < kMostInductionPointers && terms.size() == 1 &&
         is_variable(terms[0]);
}

}  // namespace

namespace {
ir::RangeOf ranges_of(const Emitter& e) {
  return [&e](const IndexAtom& leaf) -> std::optional<ir::Interval> {
    if (leaf.kind != AtomKind::variable) return std::nullopt;
    return e.variables[leaf.id].range;
  };
}
}  // namespace

std::optional<ir::Interval> range_of(const Emitter& e, const Index& index) { return index.interval(ranges_of(e)); }

Affine affine(const Emitter& e, const Index& index) {
  bool replace = false;
  index.for_each_leaf([&](const IndexAtom& leaf) {
    replace = replace || (leaf.kind == AtomKind::variable && e.variables[leaf.id].kind == VariableKind::constant);
  });
  const auto constants = [&](const IndexAtom& leaf) -> std::optional<Index> {
    if (leaf.kind != AtomKind::variable || e.variables[leaf.id].kind != VariableKind::constant) return std::nullopt;
    return Index(e.variables[leaf.id].constant);
  };
  const Index plain = replace ? index.substitute(constants) : index;
  Affine result;
  result.constant = plain.constant();
  for (const IndexTerm& term : plain.terms()) {
    if (term.atom.kind == AtomKind::variable && e.variables[term.atom.id].kind == VariableKind::lane) {
      result.lane_step += term.coefficient;
    } else {
      (atom_varies(e, term.atom) ? result.per_lane : result.uniform).push_back(term);
    }
  }
  return result;
}

Value* uniform_index(Emitter& e, const Affine& index) {
  Value* sum = accumulate(e, {-1}, index.uniform, nullptr, [&](Value* s, Scope&, const std::vector<IndexTerm>& own) {
    Value* part = sum_of(e, own);
    return s == nullptr ? part : e.b.CreateAdd(s, part);
  });
  if (sum == nullptr) return e.b.getInt64(static_cast<std::uint64_t>(index.constant));
  if (index.constant == 0) return sum;
  return e.b.CreateAdd(sum, e.b.getInt64(static_cast<std::uint64_t>(index.constant)));
}

Value* lane_index(Emitter& e, const Affine& index) {
  Value* sum = splat_i64(e, uniform_index(e, index));
  if (index.lane_step != 0) sum = e.b.CreateAdd(sum, scaled(e.b, lane_numbers(e), index.lane_step));
  for (const IndexTerm& term : index.per_lane) {
    sum = e.b.CreateAdd(sum, scaled(e.b, varying_atom(e, term.atom), term.coefficient));
  }
  return sum;
}

Index flatten(const Emitter& e, const ir::Place& place) {
  const ir::Memory& memory = e.kernel.memories[place.memory];
  Index flat;
  std::int64_t stride = 1;
  for (std::size_t d = memory.dims.size(); d-- > 0;) {
    flat = flat + place.index[d] * stride;
    stride *= memory.dims[d];
  }
  return flat.simplify(ranges_of(e));  // digits of one number, in different dims, come together only here
}

Value* address(Emitter& e, ir::MemId memory, const std::vector<IndexTerm>& terms, std::int64_t bytes,
               std::int64_t constant_bytes) {
  Value* pointer = accumulate(e, {memory, bytes}, terms, e.bases[memory],
                              [&](Value* base, Scope& scope, const std::vector<IndexTerm>& own) {
                                if (walks(scope, own)) return walk(e, scope, base, own[0].coefficient * bytes);
                                return e.b.CreateGEP(e.b.getInt8Ty(), base, scaled(e.b, sum_of(e, own), bytes));
                              });
  if (constant_bytes == 0) return pointer;
  return e.b.CreateGEP(e.b.getInt8Ty(), pointer, e.b.getInt64(static_cast<std::uint64_t>(constant_bytes)));
}

Value* load_before_loop(Emitter& e, ir::MemId memory, const Affine& index, const std::function<Value*()>& load) {
  Scope& scope = e.scopes.back();
  const int innermost = static_cast<int>(e.scopes.size()) - 1;
  std::vector<std::int64_t> key{memory, index.constant};
  for (const IndexTerm& term : index.uniform) {
    if (scope_of(e, term.atom) == innermost || names_value(term.atom)) return nullptr;
    key.push_back(atom_number(e, term.atom));
    key.push_back(term.coefficient);
  }
  const auto known = scope.loads.find(key);
  if (known != scope.loads.end()) return known->second;
  if (scope.loads.size() >= scope.most_loads) return nullptr;
  Builder::InsertPointGuard guard(e.b);
  e.b.SetInsertPoint(scope.entry);
  return scope.loads[key] = load();
}

llvm::Align alignment(const Emitter& e, ir::MemId memory, const std::vector<IndexTerm>& terms, std::int64_t bytes,
                      std::int64_t constant_bytes) {
  const ir::Memory& m = e.kernel.memories[memory];
  const bool arena = m.kind == ir::MemKind::scratch_local || m.kind == ir::MemKind::work;
  const std::int64_t base = arena ? 64 : m.align > 0 ? m.align : std::max<std::int64_t>(1, fusejit::bytes(m.dtype));
  std::uint64_t all = static_cast<std::uint64_t>(base) | static_cast<std::uint64_t>(constant_bytes);
  for (const IndexTerm& term : terms) all |= static_cast<std::uint64_t>(term.coefficient * bytes);
  return llvm::Align(std::uint64_t{1} << std::countr_zero(all));
}

}  // namespace fusejit::codegen::x86
