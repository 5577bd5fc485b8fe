#include <llvm/IR/Constants.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>

#include "codegen/x86/emit/emitter.h"
#include "ir/base/check.h"

namespace fusejit::codegen::x86 {
namespace {

using ir::MemKind;
using llvm::Value;

// bool is one byte in memory and i1 as a value.
llvm::Type* memory_type(Emitter& e, DType dtype) {
  return dtype == DType::boolean ? e.b.getInt8Ty() : value_type(e.b.getContext(), dtype);
}
Value* from_memory(Emitter& e, Value* x, DType dtype) {
  return dtype == DType::boolean ? e.b.CreateICmpNE(x, llvm::Constant::getNullValue(x->getType())) : x;
}
Value* to_memory(Emitter& e, Value* x, DType dtype) {
  return dtype == DType::boolean ? e.b.CreateZExt(x, with_lanes_of(e.b.getInt8Ty(), x->getType())) : x;
}

// Which element of a register local a place is, and whether it is the row of the lane variable.
struct Element {
  std::size_t at;
  bool row;           // the whole row of lanes
  std::int64_t lane;  // of a local kept in rows but named by a constant
};

Element element_of(const Emitter& e, const ir::Place& place) {
  const ir::Memory& memory = e.kernel.memories[place.memory];
  const int rows = e.lanes.rows[place.memory];
  Element element{0, false, 0};
  for (std::size_t d = 0; d < place.index.size(); ++d) {
    const Affine index = affine(e, place.index[d]);
    if (rows > 0 && d + 1 == place.index.size()) {
      element.row = index.lane_step == 1;
      element.lane = index.constant;
      FJ_ASSERT(index.uniform.empty() && index.per_lane.empty(), "register index is neither constant nor the lane");
      break;
    }
    FJ_ASSERT(
        index.uniform.empty() && !index.lane_dependent() && index.constant >= 0 && index.constant < memory.dims[d],
        "index of a register local is not a constant within its extent");
    element.at = element.at * static_cast<std::size_t>(memory.dims[d]) + static_cast<std::size_t>(index.constant);
  }
  return element;
}

unsigned register_lanes(const Emitter& e, ir::MemId memory) {
  if (e.lanes.rows[memory] > 0) return static_cast<unsigned>(e.lanes.rows[memory]);
  return e.lanes.memory[memory] ? static_cast<unsigned>(e.lanes.inside[memory]) : 0;
}

void store_register(Emitter& e, const ir::Place& place, Value* value) {
  const Element element = element_of(e, place);
  Value*& current = e.registers[place.memory][element.at];
  const unsigned lanes = register_lanes(e, place.memory);
  const bool one_lane = lanes > 0 && e.lanes.rows[place.memory] > 0 && !element.row;
  if (one_lane) {
    current = e.b.CreateInsertElement(current, value, e.b.getInt64(static_cast<std::uint64_t>(element.lane)));
    return;
  }
  if (lanes > 0 && !value->getType()->isVectorTy()) value = splat(e.b, value, lanes);
  if (lanes == 0 && (e.mask != nullptr || value->getType()->isVectorTy())) {
    // A uniform element stored by the one active lane.
    std::vector<Typed> pair = {{value, DType::f32}, {e.mask == nullptr ? e.b.getTrue() : e.mask, DType::boolean}};
    unify(e.b, pair);
    for (unsigned i = 0; i < e.lane_count; ++i) {
      Value* lane =
          pair[0].value->getType()->isVectorTy() ? e.b.CreateExtractElement(pair[0].value, e.b.getInt64(i)) : value;
      current = e.b.CreateSelect(e.b.CreateExtractElement(pair[1].value, e.b.getInt64(i)), lane, current);
    }
    return;
  }
  const bool keeps_old = e.mask != nullptr && !llvm::isa<llvm::PoisonValue>(current);
  current = keeps_old ? e.b.CreateSelect(e.mask, value, current) : value;
}

Value* load_register(Emitter& e, const ir::Place& place) {
  const Element element = element_of(e, place);
  Value* current = e.registers[place.memory][element.at];
  if (e.lanes.rows[place.memory] == 0 || element.row) return current;
  return e.b.CreateExtractElement(current, e.b.getInt64(static_cast<std::uint64_t>(element.lane)));
}

Value* full_mask(Emitter& e) {
  if (e.mask != nullptr) return e.mask;
  return llvm::Constant::getAllOnesValue(llvm::FixedVectorType::get(e.b.getInt1Ty(), e.lane_count));
}

Value* lane_addresses(Emitter& e, ir::MemId memory, const Affine& index, std::int64_t size) {
  if (index.per_lane.empty()) {
    Value* base = address(e, memory, index.uniform, size, index.constant * size);
    std::vector<llvm::Constant*> offsets;
    for (unsigned i = 0; i < e.lane_count; ++i)
      offsets.push_back(e.b.getInt64(static_cast<std::uint64_t>(i * index.lane_step * size)));
    return e.b.CreateGEP(e.b.getInt8Ty(), base, llvm::ConstantVector::get(offsets));
  }
  Value* flat = lane_index(e, index);
  return e.b.CreateGEP(e.b.getInt8Ty(), e.bases[memory],
                       e.b.CreateMul(flat, llvm::ConstantInt::get(flat->getType(), static_cast<std::uint64_t>(size))));
}

Value* load_memory(Emitter& e, const ir::Place& place) {
  const DType dtype = e.kernel.memories[place.memory].dtype;
  const std::int64_t size = bytes(dtype);
  const Affine index = affine(e, flatten(e, place));
  llvm::Type* type = memory_type(e, dtype);
  if (index.lane_step == 1 && index.per_lane.empty()) {
    auto* vector = llvm::FixedVectorType::get(type, e.lane_count);
    const llvm::Align align = alignment(e, place.memory, index.uniform, size, index.constant * size);
    const auto load = [&]() -> Value* {
      Value* pointer = address(e, place.memory, index.uniform, size, index.constant * size);
      llvm::Instruction* loaded = e.mask == nullptr
                                      ? static_cast<llvm::Instruction*>(e.b.CreateAlignedLoad(vector, pointer, align))
                                      : e.b.CreateMaskedLoad(vector, pointer, align, e.mask);
      return from_memory(e, tag(e, place.memory, loaded), dtype);
    };
    const bool may_change = e.mask != nullptr || e.kernel.memories[place.memory].kind != MemKind::read;
    if (may_change || e.scopes.back().most_loads == 0) return load();
    Value* before = load_before_loop(e, place.memory, index, load);
    return before != nullptr ? before : load();
  }
  if (index.lane_dependent()) {
    if (Value* turned = load_turned(e, place, index)) return turned;
    if (Value* half = load_of_pairs(e, place, index)) return half;
    if (Value* run = load_of_runs(e, place, index)) return run;
    if (Value* window = load_of_windows(e, place, index)) return window;
    auto* vector = llvm::FixedVectorType::get(type, e.lane_count);
    Value* pointers = lane_addresses(e, place.memory, index, size);
    return from_memory(
        e,
        tag(e, place.memory,
            e.b.CreateMaskedGather(vector, pointers, llvm::Align(static_cast<std::uint64_t>(size)), full_mask(e))),
        dtype);
  }
  Value* pointer = address(e, place.memory, index.uniform, size, index.constant * size);
  const llvm::Align align(static_cast<std::uint64_t>(size));
  if (e.mask == nullptr)
    return from_memory(e, tag(e, place.memory, e.b.CreateAlignedLoad(type, pointer, align)), dtype);
  // Uniform address below a lane condition: read only if some lane is active.
  auto* one = llvm::FixedVectorType::get(type, 1);
  Value* active = e.b.CreateVectorSplat(1, any_lane(e, e.mask));
  Value* loaded = tag(e, place.memory, e.b.CreateMaskedLoad(one, pointer, align, active));
  return from_memory(e, e.b.CreateExtractElement(loaded, e.b.getInt64(0)), dtype);
}

void store_memory(Emitter& e, const ir::StoreStmt& s, Value* value) {
  const ir::MemId memory = s.place.memory;
  const DType dtype = e.kernel.memories[memory].dtype;
  const std::int64_t size = bytes(dtype);
  const Affine index = affine(e, flatten(e, s.place));
  forget_shuffled(e, memory);
  value = to_memory(e, value, dtype);
  if (!index.lane_dependent() && e.mask == nullptr && !value->getType()->isVectorTy()) {
    Value* pointer = address(e, memory, index.uniform, size, index.constant * size);
    tag(e, memory, e.b.CreateAlignedStore(value, pointer, llvm::Align(static_cast<std::uint64_t>(size))));
    return;
  }
  if (!value->getType()->isVectorTy()) value = splat(e.b, value, e.lane_count);
  if (index.lane_step == 1 && index.per_lane.empty()) {
    Value* pointer = address(e, memory, index.uniform, size, index.constant * size);
    const llvm::Align align = alignment(e, memory, index.uniform, size, index.constant * size);
    if (e.mask != nullptr) {
      tag(e, memory, e.b.CreateMaskedStore(value, pointer, align, e.mask));
      return;
    }
    llvm::Instruction* store = tag(e, memory, e.b.CreateAlignedStore(value, pointer, align));
    if (s.non_temporal) {
      store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                         llvm::MDNode::get(e.b.getContext(), llvm::ConstantAsMetadata::get(e.b.getInt32(1))));
      e.fence = true;
    }
    return;
  }
  if (e.mask == nullptr && index.per_lane.empty() && index.lane_step != 0) {  // a constant stride: lane by lane
    for (unsigned i = 0; i < e.lane_count; ++i) {
      const std::int64_t at = (index.constant + index.lane_step * static_cast<std::int64_t>(i)) * size;
      tag(e, memory,
          e.b.CreateAlignedStore(e.b.CreateExtractElement(value, e.b.getInt64(i)),
                                 address(e, memory, index.uniform, size, at),
                                 llvm::Align(static_cast<std::uint64_t>(size))));
    }
    return;
  }
  tag(e, memory,
      e.b.CreateMaskedScatter(value, lane_addresses(e, memory, index, size),
                              llvm::Align(static_cast<std::uint64_t>(size)), full_mask(e)));
}

// Every element of a scratch local to its initial value: a memset for zeros, else one loop over elements.
void fill_scratch(Emitter& e, ir::MemId id) {
  const ir::Memory& memory = e.kernel.memories[id];
  const std::int64_t size = bytes(memory.dtype);
  if (memory.init.bits == 0) {
    e.b.CreateMemSet(e.bases[id], e.b.getInt8(0), static_cast<std::uint64_t>(memory.elements() * size),
                     llvm::Align(64));
    return;
  }
  llvm::BasicBlock* before = e.b.GetInsertBlock();
  llvm::BasicBlock* loop = new_block(e, "fill");
  e.b.CreateBr(loop);
  e.b.SetInsertPoint(loop);
  llvm::PHINode* at = e.b.CreatePHI(e.b.getInt64Ty(), 2);
  at->addIncoming(e.b.getInt64(0), before);
  Value* pointer = e.b.CreateGEP(memory_type(e, memory.dtype), e.bases[id], at);
  Value* element = to_memory(e, constant(e.b.getContext(), memory.init), memory.dtype);
  tag(e, id, e.b.CreateAlignedStore(element, pointer, llvm::Align(static_cast<std::uint64_t>(size))));
  Value* next = e.b.CreateNSWAdd(at, e.b.getInt64(1));
  at->addIncoming(next, loop);
  llvm::BasicBlock* done = new_block(e, "filled");
  e.b.CreateCondBr(e.b.CreateICmpSLT(next, e.b.getInt64(static_cast<std::uint64_t>(memory.elements()))), loop, done);
  e.b.SetInsertPoint(done);
}

}  // namespace

void make_alias_info(Emitter& e) {
  llvm::MDBuilder metadata(e.b.getContext());
  llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain();
  const std::size_t count = e.kernel.memories.size();
  std::vector<llvm::MDNode*> scopes(count, nullptr);
  for (std::size_t m = 0; m < count; ++m) {
    if (e.kernel.memories[m].kind != MemKind::register_local) scopes[m] = metadata.createAnonymousAliasScope(domain);
  }
  e.aliases.resize(count);
  for (std::size_t m = 0; m < count; ++m) {
    if (scopes[m] == nullptr) continue;
    std::vector<llvm::Metadata*> others;
    for (std::size_t o = 0; o < count; ++o) {
      if (o == m || scopes[o] == nullptr) continue;
      const bool both =
          e.kernel.memories[m].kind == MemKind::scratch_local && e.kernel.memories[o].kind == MemKind::scratch_local;
      if (!both || !e.arena.overlap(static_cast<int>(m), static_cast<int>(o))) others.push_back(scopes[o]);
    }
    e.aliases[m].scope = llvm::MDNode::get(e.b.getContext(), {scopes[m]});
    e.aliases[m].others = llvm::MDNode::get(e.b.getContext(), others);
  }
}

llvm::Instruction* tag(Emitter& e, ir::MemId memory, llvm::Instruction* access) {
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, e.aliases[memory].scope);
  access->setMetadata(llvm::LLVMContext::MD_noalias, e.aliases[memory].others);
  if (e.kernel.memories[memory].kind == MemKind::read && llvm::isa<llvm::LoadInst>(access)) {
    access->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(e.b.getContext(), {}));
  }
  return access;
}

Value* any_lane(Emitter& e, Value* mask) {
  Value* all = e.b.CreateBitCast(mask, e.b.getIntNTy(e.lane_count));
  return e.b.CreateICmpNE(all, llvm::Constant::getNullValue(all->getType()));
}

void emit_local(Emitter& e, const ir::LocalStmt& s) {
  const ir::Memory& memory = e.kernel.memories[s.memory];
  if (memory.kind == MemKind::register_local) {
    const unsigned lanes = register_lanes(e, s.memory);
    const std::int64_t rows = e.lanes.rows[s.memory] > 0 ? e.lanes.rows[s.memory] : 1;
    llvm::Type* type = value_type(e.b.getContext(), memory.dtype);
    if (lanes > 0) type = llvm::FixedVectorType::get(type, lanes);
    Value* init = llvm::PoisonValue::get(type);
    if (memory.has_init) {
      init = constant(e.b.getContext(), memory.init);
      if (lanes > 0) init = splat(e.b, init, lanes);
    }
    e.registers[s.memory].assign(static_cast<std::size_t>(memory.elements() / rows), init);
    return;
  }
  forget_shuffled(e, s.memory);
  if (memory.has_init) fill_scratch(e, s.memory);
}

void emit_load(Emitter& e, const ir::LoadStmt& s) {
  const ir::Memory& memory = e.kernel.memories[s.place.memory];
  Value* value = memory.kind == MemKind::register_local ? load_register(e, s.place)
                 : memory.dtype == DType::b1            ? load_bits(e, s.place)
                                                        : load_memory(e, s.place);
  e.values[s.result] = value;
}

void emit_store(Emitter& e, const ir::StoreStmt& s) {
  const ir::Memory& memory = e.kernel.memories[s.place.memory];
  Value* value = value_of(e, s.value);
  if (memory.kind == MemKind::register_local) {
    store_register(e, s.place, value);
  } else if (memory.dtype == DType::b1) {
    store_bits(e, s.place, value);
  } else {
    store_memory(e, s, value);
  }
}

void emit_prefetch(Emitter& e, const ir::PrefetchStmt& s) {
  const DType dtype = e.kernel.memories[s.place.memory].dtype;
  const Affine index = affine(e, flatten(e, s.place));
  FJ_ASSERT(!index.lane_dependent(), "prefetch names a lane");
  Value* pointer = dtype == DType::b1
                       ? byte_of_bit(e, s.place.memory, uniform_index(e, index))
                       : address(e, s.place.memory, index.uniform, bytes(dtype), index.constant * bytes(dtype));
  const bool write = s.kind == ir::PrefetchKind::write;
  e.b.CreateIntrinsic(
      llvm::Intrinsic::prefetch, {pointer->getType()},
      {pointer, e.b.getInt32(write ? 1 : 0), e.b.getInt32(s.kind == ir::PrefetchKind::l2 ? 2 : 3), e.b.getInt32(1)});
}

}  // namespace fusejit::codegen::x86
