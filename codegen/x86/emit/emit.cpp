// Statements, blocks and phases.
#include "codegen/x86/emit/emit.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <iterator>

#include "codegen/x86/emit/emitter.h"
#include "ir/base/check.h"

namespace fusejit::codegen::x86 {
namespace {

using llvm::Value;

// Of f32: what came from bf16, and what is chosen among such values. A ReLU needs no rounding.
bool is_whole_bf16(const Emitter& e, const ir::Arg& arg) {
  if (dtype_of(e, arg) != DType::f32) return false;
  return arg.is_literal() ? (arg.literal.bits & 0xffff) == 0 : e.whole_bf16[static_cast<std::size_t>(arg.value)];
}

bool gives_whole_bf16(const Emitter& e, const ir::DefStmt& s) {
  if (s.results.size() != 1 || e.kernel.values[s.results[0]] != DType::f32) return false;
  const auto all_from = [&](std::size_t first) {
    return std::all_of(s.args.begin() + static_cast<std::ptrdiff_t>(first), s.args.end(),
                       [&](const ir::Arg& arg) { return is_whole_bf16(e, arg); });
  };
  if (s.op == ir::Op::cast) return dtype_of(e, s.args[0]) == DType::bf16;
  if (s.op == ir::Op::where) return all_from(1);
  constexpr ir::Op kChoices[] = {ir::Op::maximum, ir::Op::minimum, ir::Op::neg, ir::Op::abs};
  return std::find(std::begin(kChoices), std::end(kChoices), s.op) != std::end(kChoices) && all_from(0);
}

void emit_def(Emitter& e, const ir::DefStmt& s) {
  std::vector<Typed> operands;
  for (const ir::Arg& arg : s.args) operands.push_back({value_of(e, arg), dtype_of(e, arg)});
  if (s.op == ir::Op::cast && e.kernel.values[s.results[0]] == DType::bf16 && is_whole_bf16(e, s.args[0])) {
    e.values[s.results[0]] = high_half(e.b, operands[0].value);
    return;
  }
  if (gives_whole_bf16(e, s)) e.whole_bf16[static_cast<std::size_t>(s.results[0])] = true;
  const std::vector<Value*> results = apply(e.b, e.facts, s.op, operands, e.kernel.values[s.results[0]]);
  for (std::size_t i = 0; i < s.results.size(); ++i) e.values[s.results[i]] = results[i];
}

void emit_index(Emitter& e, const ir::IndexStmt& s) {
  const Affine index = affine(e, s.index);
  Value* wide = index.lane_dependent() ? lane_index(e, index) : uniform_index(e, index);
  e.values[s.result] = cast(e.b, e.facts, wide, DType::i64, e.kernel.values[s.result]);
}

struct StatementEmitter {
  Emitter& e;
  void operator()(const ir::LocalStmt& s) const { emit_local(e, s); }
  void operator()(const ir::ForStmt& s) const { emit_for(e, s); }
  void operator()(const ir::IfStmt& s) const { emit_if(e, s); }
  void operator()(const ir::DefStmt& s) const { emit_def(e, s); }
  void operator()(const ir::LoadStmt& s) const { emit_load(e, s); }
  void operator()(const ir::IndexStmt& s) const { emit_index(e, s); }
  void operator()(const ir::StoreStmt& s) const { emit_store(e, s); }
  void operator()(const ir::PrefetchStmt& s) const { emit_prefetch(e, s); }
};

// Parameters from the argument arrays; work and scratch as offsets.
void load_parameters(Emitter& e) {
  llvm::Argument* args = e.function->getArg(0);
  llvm::Argument* scalars = e.function->getArg(1);
  llvm::MDNode* invariant = llvm::MDNode::get(e.b.getContext(), {});
  std::uint64_t buffers = 0, numbers = 0;
  for (const ir::KernelParam& param : e.kernel.params) {
    const bool buffer = param.memory >= 0;
    llvm::Type* type = buffer ? e.b.getPtrTy() : value_type(e.b.getContext(), e.kernel.values[param.scalar]);
    const bool boolean = type->isIntegerTy(1);
    Value* slot =
        e.b.CreateGEP(e.b.getInt64Ty(), buffer ? args : scalars, e.b.getInt64(buffer ? buffers++ : numbers++));
    llvm::LoadInst* load = e.b.CreateAlignedLoad(boolean ? e.b.getInt8Ty() : type, slot, llvm::Align(8));
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, invariant);
    if (buffer) {
      e.bases[param.memory] = load;
    } else {
      e.values[param.scalar] = boolean ? e.b.CreateTrunc(load, type) : static_cast<Value*>(load);
    }
  }
  for (std::size_t m = 0; m < e.kernel.memories.size(); ++m) {
    if (e.arena.offset[m] < 0) continue;
    const bool work = e.kernel.memories[m].kind == ir::MemKind::work;
    e.bases[m] = e.b.CreateGEP(e.b.getInt8Ty(), e.function->getArg(work ? 4 : 3),
                               e.b.getInt64(static_cast<std::uint64_t>(e.arena.offset[m])));
  }
}

// task -> up to three loop variables, row-major; returns the body below them.
const ir::Block* bind_tasks(Emitter& e, const ir::Block& body) {
  const ir::Block* inner = &body;
  std::vector<const ir::ForStmt*> loops;
  while (inner->statements.size() == 1) {
    const auto* loop = std::get_if<ir::ForStmt>(&inner->statements[0].node);
    if (loop == nullptr || loop->binding != ir::Binding::threads) break;
    loops.push_back(loop);
    inner = &loop->body;
  }
  Value* rest = e.function->getArg(2);
  for (std::size_t i = loops.size(); i-- > 0;) {
    const std::int64_t extent = loops[i]->high[0].constant();
    Value* count = e.b.getInt64(static_cast<std::uint64_t>(extent));
    Variable& variable = e.variables[loops[i]->variable];
    variable = {VariableKind::uniform, 0, i == 0 ? rest : e.b.CreateURem(rest, count), 0, ir::Interval{0, extent - 1}};
    if (i > 0) rest = e.b.CreateUDiv(rest, count);
  }
  return inner;
}

}  // namespace

std::int64_t task_count(const ir::Phase& phase) {
  std::int64_t tasks = 1;
  const ir::Block* inner = &phase.body;
  while (inner->statements.size() == 1) {
    const auto* loop = std::get_if<ir::ForStmt>(&inner->statements[0].node);
    if (loop == nullptr || loop->binding != ir::Binding::threads) break;
    tasks *= loop->high[0].constant();
    inner = &loop->body;
  }
  return tasks;
}

void emit_block(Emitter& e, const ir::Block& block) {
  for (const ir::Stmt& s : block.statements) std::visit(StatementEmitter{e}, s.node);
}

Value* value_of(Emitter& e, const ir::Arg& arg) {
  return arg.is_literal() ? constant(e.b.getContext(), arg.literal) : e.values[arg.value];
}

DType dtype_of(const Emitter& e, const ir::Arg& arg) {
  return arg.is_literal() ? arg.literal.dtype : e.kernel.values[arg.value];
}

llvm::BasicBlock* new_block(Emitter& e, const char* name) {
  return llvm::BasicBlock::Create(e.b.getContext(), name, e.function);
}

void open_scope(Emitter& e) {
  Scope scope;
  scope.anchor = e.b.CreateIntrinsic(llvm::Intrinsic::donothing, {}, {});
  e.scopes.push_back(std::move(scope));
}

void close_scope(Emitter& e) {
  e.scopes.back().anchor->eraseFromParent();
  e.scopes.pop_back();
}

void emit_phase(Emitter& e, const ir::Phase& phase) {
  e.values.resize(e.kernel.values.size(), nullptr);
  e.whole_bf16.resize(e.kernel.values.size());
  e.variables.resize(static_cast<std::size_t>(e.kernel.variable_count));
  e.bases.resize(e.kernel.memories.size(), nullptr);
  e.registers.resize(e.kernel.memories.size());
  make_alias_info(e);
  load_parameters(e);
  const ir::Block* body = bind_tasks(e, phase.body);
  open_scope(e);
  open_tiles(e, *body);
  emit_block(e, *body);
  close_tiles(e);
  close_scope(e);
  if (e.fence) e.b.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  e.b.CreateRetVoid();
}

}  // namespace fusejit::codegen::x86
