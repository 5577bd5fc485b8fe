// `if`: constants are folded, a uniform condition branches, one that differs between lanes becomes a mask.
#include <llvm/IR/Constants.h>

#include <limits>

#include "codegen/x86/emit/emitter.h"
#include "ir/base/check.h"

namespace fusejit::codegen::x86 {
namespace {

using ir::CompareKind;
using llvm::Value;

bool holds(CompareKind kind, std::int64_t left, std::int64_t right) {
  return kind == CompareKind::lt ? left < right : kind == CompareKind::ge ? left >= right : left == right;
}

// What ranges of variables decide.
std::optional<bool> decided(const Emitter& e, const ir::Compare& c) {
  const auto range = range_of(e, c.left);
  if (!range) return std::nullopt;
  if (range->low == range->high) return holds(c.kind, range->low, c.right);
  switch (c.kind) {
    case CompareKind::lt:
      if (range->high < c.right) return true;
      return range->low >= c.right ? std::optional(false) : std::nullopt;
    case CompareKind::ge:
      if (range->low >= c.right) return true;
      return range->high < c.right ? std::optional(false) : std::nullopt;
    case CompareKind::eq:
      return c.right < range->low || c.right > range->high ? std::optional(false) : std::nullopt;
  }
  return std::nullopt;
}

llvm::CmpInst::Predicate predicate(CompareKind kind) {
  return kind == CompareKind::lt   ? llvm::CmpInst::ICMP_SLT
         : kind == CompareKind::ge ? llvm::CmpInst::ICMP_SGE
                                   : llvm::CmpInst::ICMP_EQ;
}

// lane + rest against a constant: the lane number, in 32 bits, against a clamped scalar.
Value* compare_lane(Emitter& e, const Affine& left, CompareKind kind, std::int64_t right) {
  Affine rest = left;
  rest.lane_step = 0;
  rest.constant -= right;
  Value* limit = e.b.CreateNeg(uniform_index(e, rest));  // lane < limit
  limit = e.b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, limit, e.b.getInt64(static_cast<std::uint64_t>(-1)));
  limit = e.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, limit, e.b.getInt64(e.lane_count));
  std::vector<llvm::Constant*> numbers;
  for (unsigned i = 0; i < e.lane_count; ++i) numbers.push_back(e.b.getInt32(i));
  Value* narrow = splat(e.b, e.b.CreateTrunc(limit, e.b.getInt32Ty()), e.lane_count);
  return e.b.CreateICmp(predicate(kind), llvm::ConstantVector::get(numbers), narrow);
}

Value* compare(Emitter& e, const ir::Compare& c) {
  if (const auto known = decided(e, c)) return e.b.getInt1(*known);
  const Affine left = affine(e, c.left);
  if (left.lane_step == 1 && left.per_lane.empty()) return compare_lane(e, left, c.kind, c.right);
  Value* value = left.lane_dependent() ? lane_index(e, left) : uniform_index(e, left);
  return e.b.CreateICmp(predicate(c.kind), value,
                        llvm::ConstantInt::get(value->getType(), static_cast<std::uint64_t>(c.right)));
}

Value* condition(Emitter& e, const ir::IfStmt& s) {
  if (s.condition >= 0) return e.values[s.condition];
  Value* all = e.b.getTrue();
  for (const ir::Compare& c : s.compares) {
    if (all == e.b.getFalse()) return all;
    std::vector<Typed> pair = {{all, DType::boolean}, {compare(e, c), DType::boolean}};
    if (all == e.b.getTrue() || pair[1].value == e.b.getFalse()) {
      all = pair[1].value;
    } else if (pair[1].value != e.b.getTrue()) {
      unify(e.b, pair);
      all = e.b.CreateAnd(pair[0].value, pair[1].value);
    }
  }
  return all;
}

std::vector<Value*> yields(Emitter& e, const ir::Block& block) {
  std::vector<Value*> result;
  for (const ir::Arg& arg : block.yields) result.push_back(value_of(e, arg));
  return result;
}

void emit_chosen(Emitter& e, const ir::IfStmt& s, const ir::Block& block) {
  emit_block(e, block);
  const std::vector<Value*> result = yields(e, block);
  for (std::size_t i = 0; i < s.results.size(); ++i) e.values[s.results[i]] = result[i];
}

void emit_masked(Emitter& e, const ir::IfStmt& s, Value* active) {
  Value* outer = e.mask;
  const auto within = [&](Value* m) { return outer == nullptr ? m : e.b.CreateAnd(outer, m); };
  e.mask = within(active);
  emit_block(e, s.then_block);
  const std::vector<Value*> then_values = yields(e, s.then_block);
  if (!s.else_block.statements.empty()) {
    e.mask = within(e.b.CreateNot(active));
    emit_block(e, s.else_block);
  }
  const std::vector<Value*> else_values = yields(e, s.else_block);
  e.mask = outer;
  for (std::size_t i = 0; i < s.results.size(); ++i) {
    const DType dtype = e.kernel.values[s.results[i]];
    std::vector<Typed> three = {{active, DType::boolean}, {then_values[i], dtype}, {else_values[i], dtype}};
    unify(e.b, three);
    e.values[s.results[i]] = e.b.CreateSelect(three[0].value, three[1].value, three[2].value);
  }
}

void emit_branches(Emitter& e, const ir::IfStmt& s, Value* taken) {
  std::vector<Value**> elements;
  for (const ir::Block* block : {&s.then_block, &s.else_block}) {
    for (ir::MemId memory : stored_registers(e.kernel, *block)) {
      for (Value*& element : e.registers[memory]) elements.push_back(&element);
    }
  }
  std::vector<Value*> before;
  for (Value** element : elements) before.push_back(*element);
  struct Side {
    const ir::Block* block;
    llvm::BasicBlock* start;
    llvm::BasicBlock* end = nullptr;
    std::vector<Value*> registers = {}, results = {};
  };
  llvm::BasicBlock* join = new_block(e, "join");
  std::array<Side, 2> sides = {Side{&s.then_block, new_block(e, "then")}, Side{&s.else_block, new_block(e, "else")}};
  e.b.CreateCondBr(taken, sides[0].start, sides[1].start);
  for (Side& side : sides) {
    e.b.SetInsertPoint(side.start);
    for (std::size_t i = 0; i < elements.size(); ++i) *elements[i] = before[i];
    emit_block(e, *side.block);
    side.results = yields(e, *side.block);
    for (std::size_t i = 0; i < s.results.size(); ++i) {
      if (e.lanes.value[s.results[i]] && !side.results[i]->getType()->isVectorTy()) {
        side.results[i] = splat(e.b, side.results[i], e.lane_count);
      }
    }
    for (Value** element : elements) side.registers.push_back(*element);
    side.end = e.b.GetInsertBlock();
    e.b.CreateBr(join);
  }
  join->moveAfter(sides[1].end);
  e.b.SetInsertPoint(join);
  const auto merge = [&](Value* x, Value* y) -> Value* {
    if (x == y) return x;
    llvm::PHINode* phi = e.b.CreatePHI(x->getType(), 2);
    phi->addIncoming(x, sides[0].end);
    phi->addIncoming(y, sides[1].end);
    return phi;
  };
  for (std::size_t i = 0; i < elements.size(); ++i) *elements[i] = merge(sides[0].registers[i], sides[1].registers[i]);
  for (std::size_t i = 0; i < s.results.size(); ++i)
    e.values[s.results[i]] = merge(sides[0].results[i], sides[1].results[i]);
}

}  // namespace

void emit_if(Emitter& e, const ir::IfStmt& s) {
  Value* taken = condition(e, s);
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(taken); known != nullptr && !known->getType()->isVectorTy()) {
    return emit_chosen(e, s, known->isOne() ? s.then_block : s.else_block);
  }
  if (taken->getType()->isVectorTy()) return emit_masked(e, s, taken);
  emit_branches(e, s, taken);
}

}  // namespace fusejit::codegen::x86
