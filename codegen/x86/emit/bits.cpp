// b1 memory: element i is bit i mod 8 of byte i / 8. In a vector loop eight lanes share a byte.
#include "codegen/x86/emit/emitter.h"
#include "ir/base/check.h"

namespace fusejit::codegen::x86 {
namespace {

using llvm::Value;

// Byte address of a place whose lanes start on a byte: every coefficient but the lane's is a multiple of 8.
std::optional<Affine> byte_index(const Affine& flat) {
  if (!flat.per_lane.empty() || flat.lane_step != 1 || flat.constant % 8 != 0) return std::nullopt;
  Affine result;
  result.constant = flat.constant / 8;
  for (ir::IndexTerm term : flat.uniform) {
    if (term.coefficient % 8 != 0) return std::nullopt;
    term.coefficient /= 8;
    result.uniform.push_back(term);
  }
  return result;
}

// One bit per byte: whether any of its eight lanes is active.
Value* active_bytes(Emitter& e) {
  auto* byte_type = llvm::FixedVectorType::get(e.b.getInt8Ty(), e.lane_count / 8);
  Value* packed = e.b.CreateBitCast(e.mask, byte_type);
  return e.b.CreateICmpNE(packed, llvm::Constant::getNullValue(byte_type));
}

Value* load_lane_bytes(Emitter& e, ir::MemId memory, const Affine& bytes) {
  auto* byte_type = llvm::FixedVectorType::get(e.b.getInt8Ty(), e.lane_count / 8);
  Value* pointer = address(e, memory, bytes.uniform, 1, bytes.constant);
  llvm::Instruction* load =
      e.mask == nullptr ? static_cast<llvm::Instruction*>(e.b.CreateAlignedLoad(byte_type, pointer, llvm::Align(1)))
                        : e.b.CreateMaskedLoad(byte_type, pointer, llvm::Align(1), active_bytes(e));
  return e.b.CreateBitCast(tag(e, memory, load), llvm::FixedVectorType::get(e.b.getInt1Ty(), e.lane_count));
}

// Bit `flat mod 8` of `byte`, for scalars and vectors.
Value* bit_of(Emitter& e, Value* byte, Value* flat) {
  Value* shift = e.b.CreateTrunc(e.b.CreateAnd(flat, 7), byte->getType());
  return e.b.CreateTrunc(e.b.CreateLShr(byte, shift), with_lanes_of(e.b.getInt1Ty(), byte->getType()));
}

}  // namespace

Value* byte_of_bit(Emitter& e, ir::MemId memory, Value* index) {
  return e.b.CreateGEP(e.b.getInt8Ty(), e.bases[memory], e.b.CreateAShr(index, 3));
}

Value* load_bits(Emitter& e, const ir::Place& place) {
  const Affine flat = affine(e, flatten(e, place));
  const auto bytes = byte_index(flat);
  if (bytes && e.lane_count % 8 == 0 && e.lane_count > 0) return load_lane_bytes(e, place.memory, *bytes);
  if (flat.lane_dependent()) {
    Value* index = lane_index(e, flat);
    Value* pointers = e.b.CreateGEP(e.b.getInt8Ty(), e.bases[place.memory], e.b.CreateLShr(index, 3));
    auto* byte_type = llvm::FixedVectorType::get(e.b.getInt8Ty(), e.lane_count);
    Value* loaded = e.b.CreateMaskedGather(byte_type, pointers, llvm::Align(1), e.mask);
    return bit_of(e, tag(e, place.memory, llvm::cast<llvm::Instruction>(loaded)), index);
  }
  Value* index = uniform_index(e, flat);
  Value* pointer = byte_of_bit(e, place.memory, index);
  if (e.mask == nullptr)
    return bit_of(e, tag(e, place.memory, e.b.CreateAlignedLoad(e.b.getInt8Ty(), pointer, llvm::Align(1))), index);
  Value* active = e.b.CreateVectorSplat(1, any_lane(e, e.mask));
  Value* loaded = e.b.CreateMaskedLoad(llvm::FixedVectorType::get(e.b.getInt8Ty(), 1), pointer, llvm::Align(1), active);
  return bit_of(
      e, e.b.CreateExtractElement(tag(e, place.memory, llvm::cast<llvm::Instruction>(loaded)), e.b.getInt64(0)), index);
}

void store_bits(Emitter& e, const ir::Place& place, Value* value) {
  const auto index = byte_index(affine(e, flatten(e, place)));
  FJ_ASSERT(index && e.lane_count % 8 == 0 && e.lane_count > 0, "a b1 store must name whole bytes of lanes");
  if (!value->getType()->isVectorTy()) value = splat(e.b, value, e.lane_count);
  if (e.mask != nullptr) value = e.b.CreateAnd(value, e.mask);  // inactive lanes store 0
  Value* pointer = address(e, place.memory, index->uniform, 1, index->constant);
  Value* packed = e.b.CreateBitCast(value, llvm::FixedVectorType::get(e.b.getInt8Ty(), e.lane_count / 8));
  if (e.mask == nullptr) {
    tag(e, place.memory, e.b.CreateAlignedStore(packed, pointer, llvm::Align(1)));
  } else {
    tag(e, place.memory, e.b.CreateMaskedStore(packed, pointer, llvm::Align(1), active_bytes(e)));
  }
}

}  // namespace fusejit::codegen::x86
