// Loops: copies for `unroll`, lockstep lanes for `vector`, a loop with phis otherwise.
#include <llvm/IR/Instructions.h>

#include <algorithm>

#include "codegen/x86/emit/emitter.h"
#include "ir/base/check.h"
#include "ir/kernel/positions.h"

namespace fusejit::codegen::x86 {
namespace {

using llvm::Value;

// A bound's value where constants decide it.
std::optional<std::int64_t> constant_bound(const Emitter& e, const std::vector<ir::Index>& bounds, bool low) {
  std::optional<std::int64_t> result;
  for (const ir::Index& bound : bounds) {
    const Affine a = affine(e, bound);
    if (a.lane_dependent() || !a.uniform.empty()) return std::nullopt;
    result = !result ? a.constant : low ? std::max(*result, a.constant) : std::min(*result, a.constant);
  }
  return result;
}

Value* bound_value(Emitter& e, const std::vector<ir::Index>& bounds, bool low) {
  Value* result = nullptr;
  for (const ir::Index& bound : bounds) {
    Value* value = uniform_index(e, affine(e, bound));
    result = result == nullptr
                 ? value
                 : e.b.CreateBinaryIntrinsic(low ? llvm::Intrinsic::smax : llvm::Intrinsic::smin, result, value);
  }
  return result;
}

// low is at least, high at most: the loosest bounds that ranges of outer variables give.
std::optional<ir::Interval> bound_range(const Emitter& e, const std::vector<ir::Index>& bounds, bool low) {
  std::optional<ir::Interval> result;
  for (const ir::Index& bound : bounds) {
    const auto range = range_of(e, bound);
    if (!range) return std::nullopt;
    if (!result) {
      result = range;
    } else if (low) {
      result = ir::Interval{std::max(result->low, range->low), std::max(result->high, range->high)};
    } else {
      result = ir::Interval{std::min(result->low, range->low), std::min(result->high, range->high)};
    }
  }
  return result;
}

std::vector<DType> result_types(const Emitter& e, const ir::ForStmt& s) {
  std::vector<DType> types;
  for (ir::ValueId result : s.results) types.push_back(e.kernel.values[result]);
  return types;
}

Components yielded_by(Emitter& e, const ir::ForStmt& s) {
  Components yielded;
  for (const ir::Arg& arg : s.body.yields) yielded.push_back(value_of(e, arg));
  return yielded;
}

// acc = comb(acc, yielded) in place: addresses of its elements are held by `Carried`.
void accumulate(Emitter& e, const ir::ForStmt& s, const std::vector<DType>& types, Components& acc,
                bool ascending = false) {
  if (s.results.empty()) return;
  const Components combined = combine(e.b, s.combiners, types, acc, yielded_by(e, s), ascending);
  std::copy(combined.begin(), combined.end(), acc.begin());
}

void emit_copies(Emitter& e, const ir::ForStmt& s, std::int64_t low, std::int64_t high) {
  const std::vector<DType> types = result_types(e, s);
  Components acc = identity(e.b, s.combiners, types);
  // Whatever the first of them is, it is better than nothing, and a later one that equals it comes too late.
  const bool ascending = high - low > 1 && ir::positions_ascend(s);
  for (std::int64_t i = low; i < high; ++i) {
    e.variables[s.variable] = {VariableKind::constant, i, nullptr, 0, ir::Interval{i, i}};
    emit_block(e, s.body);
    if (ascending && i == low) {
      acc = yielded_by(e, s);
    } else {
      accumulate(e, s, types, acc, ascending);
    }
  }
  for (std::size_t i = 0; i < acc.size(); ++i) e.values[s.results[i]] = acc[i];
}

void emit_lanes(Emitter& e, const ir::ForStmt& s) {
  FJ_ASSERT(e.lane_count == 0, "vector loops do not nest");
  const std::int64_t lanes = s.high[0].constant();
  e.variables[s.variable] = {VariableKind::lane, 0, nullptr, 0, ir::Interval{0, lanes - 1}};
  e.lane_variable = s.variable;
  e.lane_count = static_cast<unsigned>(lanes);
  emit_block(e, s.body);
  Components yielded;
  for (const ir::Arg& arg : s.body.yields) {
    Value* value = value_of(e, arg);
    yielded.push_back(value->getType()->isVectorTy() ? value : splat(e.b, value, e.lane_count));
  }
  e.lane_variable = -1;
  e.lane_count = 0;
  if (s.results.empty()) return;
  const Components result = tree(e.b, s.combiners, result_types(e, s), yielded);
  for (std::size_t i = 0; i < result.size(); ++i) e.values[s.results[i]] = result[i];
}

// A value carried around a loop: a register element or an accumulator.
struct Carried {
  Value** current;  // where its value is kept
  Value* before;
  llvm::PHINode* phi;
};

// A phi of itself and one other value is that value: elements that the body turned out not to store.
void remove_trivial(Emitter& e, std::vector<Carried>& carried) {
  for (Carried& c : carried) {
    if (*c.current != c.phi) continue;
    Value* phi = c.phi;
    for (std::vector<Value*>& elements : e.registers) std::replace(elements.begin(), elements.end(), phi, c.before);
    for (Carried& other : carried) {
      if (*other.current == phi) *other.current = c.before;
    }
    phi->replaceAllUsesWith(c.before);
  }
}

bool is_innermost(const ir::Block& block) {
  return std::none_of(block.statements.begin(), block.statements.end(), [](const ir::Stmt& s) {
    if (const auto* loop = std::get_if<ir::ForStmt>(&s.node))
      return loop->binding == ir::Binding::none || loop->binding == ir::Binding::tile || !is_innermost(loop->body);
    const auto* branch = std::get_if<ir::IfStmt>(&s.node);
    return branch != nullptr && !(is_innermost(branch->then_block) && is_innermost(branch->else_block));
  });
}

// Of 32 vector registers, and of 16: four vectors side by side of a normalisation's gradient have 24 factors.
constexpr std::size_t kMostLoadsKept = 24, kMostLoadsKeptOf16 = 8;

// Registers that what stays the same in an innermost loop may take, beside what a turn computes. A tile needs all of
// them, and what stands under a condition may not be there to be read.
std::size_t registers_for_loads(const Emitter& e, const ir::Block& body) {
  const auto is_straight = [](const auto& self, const ir::Block& block) -> bool {
    return std::all_of(block.statements.begin(), block.statements.end(), [&](const ir::Stmt& s) {
      if (const auto* loop = std::get_if<ir::ForStmt>(&s.node)) return loop->results.empty() && self(self, loop->body);
      return !std::holds_alternative<ir::IfStmt>(s.node) && !std::holds_alternative<ir::LocalStmt>(s.node);
    });
  };
  if (!is_straight(is_straight, body)) return 0;
  return e.facts.vector_width == "512" ? kMostLoadsKept : kMostLoadsKeptOf16;
}

void emit_serial(Emitter& e, const ir::ForStmt& s) {
  const std::vector<DType> types = result_types(e, s);
  const auto low_range = bound_range(e, s.low, true);
  const auto high_range = bound_range(e, s.high, false);
  Value* low = bound_value(e, s.low, true);
  Value* high = bound_value(e, s.high, false);
  const bool runs = low_range && high_range && low_range->high < high_range->low;  // at least one iteration

  Components acc = identity(e.b, s.combiners, types);
  for (std::size_t i = 0; i < acc.size(); ++i) {
    if (e.lanes.value[s.results[i]]) acc[i] = splat(e.b, acc[i], e.lane_count);
  }
  std::vector<Carried> carried;
  for (ir::MemId memory : stored_registers(e.kernel, s.body)) {
    for (Value*& element : e.registers[memory]) carried.push_back({&element, element, nullptr});
  }
  for (Value*& component : acc) carried.push_back({&component, component, nullptr});

  llvm::BasicBlock* before = e.b.GetInsertBlock();
  llvm::BasicBlock* head = new_block(e, "loop");
  llvm::BasicBlock* exit = new_block(e, "done");
  llvm::Instruction* entry = runs ? e.b.CreateBr(head) : e.b.CreateCondBr(e.b.CreateICmpSLT(low, high), head, exit);
  e.b.SetInsertPoint(head);
  llvm::PHINode* variable = e.b.CreatePHI(e.b.getInt64Ty(), 2);
  variable->addIncoming(low, before);
  for (Carried& c : carried) {
    c.phi = e.b.CreatePHI(c.before->getType(), 2);
    c.phi->addIncoming(c.before, before);
    *c.current = c.phi;
  }
  std::optional<ir::Interval> range;
  if (low_range && high_range) range = ir::Interval{low_range->low, std::max(low_range->low, high_range->high - 1)};
  open_scope(e);
  Scope& scope = e.scopes.back();
  scope.innermost = is_innermost(s.body);
  if (scope.innermost && runs && carried.empty()) scope.most_loads = registers_for_loads(e, s.body);
  scope.variable = s.variable;
  scope.low = low;
  scope.entry = entry;
  e.variables[s.variable] = {VariableKind::uniform, 0, variable, static_cast<int>(e.scopes.size()) - 1, range};
  emit_block(e, s.body);
  accumulate(e, s, types, acc);
  step_induction_pointers(e);
  close_scope(e);
  llvm::BasicBlock* latch = e.b.GetInsertBlock();
  Value* next = e.b.CreateNSWAdd(variable, e.b.getInt64(1));
  variable->addIncoming(next, latch);
  e.b.CreateCondBr(e.b.CreateICmpSLT(next, high), head, exit);

  for (Carried& c : carried) c.phi->addIncoming(*c.current, latch);
  remove_trivial(e, carried);
  exit->moveAfter(latch);
  e.b.SetInsertPoint(exit);
  for (Carried& c : carried) {
    if (!runs && *c.current != c.before) {
      llvm::PHINode* merged = e.b.CreatePHI(c.before->getType(), 2);
      merged->addIncoming(c.before, before);
      merged->addIncoming(*c.current, latch);
      *c.current = merged;
    }
    if (c.phi->use_empty()) c.phi->eraseFromParent();
  }
  for (std::size_t i = 0; i < acc.size(); ++i) e.values[s.results[i]] = acc[i];
}

}  // namespace

void step_induction_pointers(Emitter& e) {
  for (const InductionPointer& induction : e.scopes.back().induction_pointers) {
    Value* next =
        e.b.CreateGEP(e.b.getInt8Ty(), induction.pointer, e.b.getInt64(static_cast<std::uint64_t>(induction.step)));
    induction.phi->addIncoming(next, e.b.GetInsertBlock());
  }
}

void emit_for(Emitter& e, const ir::ForStmt& s) {
  if (s.binding == ir::Binding::vector) return emit_lanes(e, s);
  if (s.binding == ir::Binding::tile) return emit_tile(e, s);
  const auto low = constant_bound(e, s.low, true);
  const auto high = constant_bound(e, s.high, false);
  if (s.binding == ir::Binding::unroll) {
    FJ_ASSERT(low && high, "the bounds of an unrolled loop are not constant");
    return emit_copies(e, s, *low, *high);
  }
  FJ_ASSERT(s.binding == ir::Binding::none, "parallel loops stand outermost");
  if (low && high && *high - *low <= 1) return emit_copies(e, s, *low, *high);
  emit_serial(e, s);
}

}  // namespace fusejit::codegen::x86
