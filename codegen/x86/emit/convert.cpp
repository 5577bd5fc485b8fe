#include "codegen/x86/emit/convert.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "ir/base/check.h"

namespace fusejit::codegen::x86 {
namespace {

using llvm::Type;
using llvm::Value;

Value* number(Value* like, std::uint64_t n) { return llvm::ConstantInt::get(like->getType(), n); }
Type* lanes(Value* x, Type* element) { return with_lanes_of(element, x->getType()); }
Value* is_nan(Builder& b, Value* x) { return b.CreateFCmpUNO(x, x); }

constexpr unsigned kLanes = 16;

// A whole register of AVX-512, whose upper halves one instruction packs where LLVM takes three.
bool fills_register(const MachineFacts& facts, Value* x) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  return facts.vector_width == "512" && vector != nullptr && vector->getNumElements() == kLanes;
}

Value* packed_high_halves(Builder& b, Value* x) {
  std::vector<llvm::Constant*> odd;
  std::vector<int> low;
  for (unsigned i = 0; i < 2 * kLanes; ++i) odd.push_back(b.getInt16(i < kLanes ? 2 * i + 1 : 0));
  for (unsigned i = 0; i < kLanes; ++i) low.push_back(static_cast<int>(i));
  Value* halves = b.CreateBitCast(x, llvm::FixedVectorType::get(b.getInt16Ty(), 2 * kLanes));
  Value* packed =
      b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_hi_512, {}, {halves, llvm::ConstantVector::get(odd)});
  return b.CreateShuffleVector(packed, low);
}

// What was packed, if that is where x is from.
Value* before_packing(Value* x) {
  const auto* low = llvm::dyn_cast<llvm::ShuffleVectorInst>(x);
  const auto* packed = low == nullptr ? nullptr : llvm::dyn_cast<llvm::IntrinsicInst>(low->getOperand(0));
  if (packed == nullptr || packed->getIntrinsicID() != llvm::Intrinsic::x86_avx512_permvar_hi_512) return nullptr;
  const auto* halves = llvm::dyn_cast<llvm::BitCastInst>(packed->getArgOperand(0));
  return halves == nullptr ? nullptr : halves->getOperand(0);
}

Value* bf16_to_f32(Builder& b, Value* x) {
  if (Value* whole = before_packing(x)) {
    Value* u = b.CreateBitCast(whole, lanes(whole, b.getInt32Ty()));
    return b.CreateBitCast(b.CreateAnd(u, number(u, 0xffff0000)), lanes(x, b.getFloatTy()));
  }
  Value* wide = b.CreateZExt(x, lanes(x, b.getInt32Ty()));
  return b.CreateBitCast(b.CreateShl(wide, 16), lanes(x, b.getFloatTy()));
}

// Nearest even by integer addition: denormals are kept, and NaN stays one by setting its quiet bit. A whole register of
// AVX-512 takes a masked addition and one instruction for NaN: five in place of eight, 0.99 of the time of ResNet-50's
// step in bf16, and of serving (Zen 5). `vcvtneps2bf16` with a branch for denormals, which it loses, is no faster.
Value* f32_to_bf16(Builder& b, const MachineFacts& facts, Value* x) {
  Value* u = b.CreateBitCast(x, lanes(x, b.getInt32Ty()));
  if (fills_register(facts, x)) {
    constexpr std::uint32_t kQuietNan = 0x22;  // of quiet and signalling ones, by four bits each: the quiet one of x
    constexpr std::uint32_t kAsSet = 4;        // rounding, which nothing does
    Value* odd = b.CreateICmpNE(b.CreateAnd(u, number(u, 0x10000)), number(u, 0));
    Value* rounded = b.CreateSelect(odd, b.CreateAdd(u, number(u, 0x8000)), b.CreateAdd(u, number(u, 0x7fff)));
    return packed_high_halves(b, b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_fixupimm_ps_512, {},
                                                   {b.CreateBitCast(rounded, x->getType()), x, number(u, kQuietNan),
                                                    b.getInt32(0), b.getInt16(0xffff), b.getInt32(kAsSet)}));
  }
  Value* odd = b.CreateAnd(b.CreateLShr(u, 16), number(u, 1));
  Value* rounded = b.CreateAdd(u, b.CreateAdd(odd, number(u, 0x7fff)));
  Value* quiet = b.CreateOr(u, number(u, 0x400000));
  return high_half(b, b.CreateBitCast(b.CreateSelect(is_nan(b, x), quiet, rounded), x->getType()));
}

// Without F16C: shift the 15 bits into place; denormals are normalised by one exact multiplication with 2^112.
Value* f16_to_f32_integer(Builder& b, Value* x) {
  Value* u = b.CreateZExt(x, lanes(x, b.getInt32Ty()));
  Value* sign = b.CreateShl(b.CreateAnd(u, number(u, 0x8000)), 16);
  Value* rest = b.CreateShl(b.CreateAnd(u, number(u, 0x7fff)), 13);
  Value* scaled = b.CreateFMul(b.CreateBitCast(rest, lanes(x, b.getFloatTy())),
                               llvm::ConstantFP::get(lanes(x, b.getFloatTy()), 0x1p112));
  Value* finite = b.CreateBitCast(scaled, u->getType());
  Value* special = b.CreateOr(rest, number(u, 0x7f800000));
  Value* nan = b.CreateICmpUGT(rest, number(u, 0x0f800000));
  special = b.CreateSelect(nan, b.CreateOr(special, number(u, 0x00400000)), special);
  Value* value = b.CreateSelect(b.CreateICmpUGE(rest, number(u, 0x0f800000)), special, finite);
  return b.CreateBitCast(b.CreateOr(value, sign), lanes(x, b.getFloatTy()));
}

// Without F16C: normal results by integer rounding, denormal ones by adding 0.5 so that the hardware rounds at 2^-24.
Value* f32_to_f16_integer(Builder& b, Value* x) {
  Type* float_type = lanes(x, b.getFloatTy());
  Value* u = b.CreateBitCast(x, lanes(x, b.getInt32Ty()));
  Value* sign = b.CreateLShr(b.CreateAnd(u, number(u, 0x80000000)), 16);
  Value* magnitude = b.CreateAnd(u, number(u, 0x7fffffff));
  Value* odd = b.CreateAnd(b.CreateLShr(magnitude, 13), number(u, 1));
  Value* shifted = b.CreateAdd(b.CreateSub(magnitude, number(u, 112u << 23)), b.CreateAdd(odd, number(u, 0xfff)));
  Value* normal = b.CreateLShr(shifted, 13);
  Value* sum = b.CreateFAdd(b.CreateBitCast(magnitude, float_type), llvm::ConstantFP::get(float_type, 0.5));
  Value* denormal = b.CreateSub(b.CreateBitCast(sum, u->getType()), number(u, 126u << 23));
  Value* result = b.CreateSelect(b.CreateICmpULT(magnitude, number(u, 113u << 23)), denormal, normal);
  result = b.CreateSelect(b.CreateICmpUGE(magnitude, number(u, 0x477ff000)), number(u, 0x7c00), result);
  Value* payload = b.CreateAnd(b.CreateLShr(magnitude, 13), number(u, 0x3ff));
  Value* nan = b.CreateOr(payload, number(u, 0x7e00));
  result = b.CreateSelect(b.CreateICmpUGT(magnitude, number(u, 0x7f800000)), nan, result);
  return b.CreateTrunc(b.CreateOr(result, sign), lanes(x, b.getInt16Ty()));
}

Value* widen16(Builder& b, const MachineFacts& facts, Value* x, DType from) {
  if (from == DType::bf16) return bf16_to_f32(b, x);
  if (!facts.has_f16c) return f16_to_f32_integer(b, x);
  return b.CreateFPExt(b.CreateBitCast(x, lanes(x, b.getHalfTy())), lanes(x, b.getFloatTy()));
}

Value* narrow16(Builder& b, const MachineFacts& facts, Value* x, DType to) {
  if (to == DType::bf16) return f32_to_bf16(b, facts, x);
  if (!facts.has_f16c) return f32_to_f16_integer(b, x);
  return b.CreateBitCast(b.CreateFPTrunc(x, lanes(x, b.getHalfTy())), lanes(x, b.getInt16Ty()));
}

// Round to odd: toward zero, and the last bit is set if anything was lost. A later rounding to a type at least two bits
// shorter is then that of the exact value. `rounded` is x to nearest as bits; `above`: its magnitude exceeds that of x.
Value* to_odd(Builder& b, Value* rounded, Value* exact, Value* above) {
  Value* toward_zero = b.CreateSelect(above, b.CreateSub(rounded, number(rounded, 1)), rounded);
  return b.CreateSelect(exact, rounded, b.CreateOr(toward_zero, number(rounded, 1)));
}

Value* f64_to_f32_odd(Builder& b, Value* x) {
  Type* float_type = lanes(x, b.getFloatTy());
  Value* nearest = b.CreateFPTrunc(x, float_type);
  Value* back = b.CreateFPExt(nearest, x->getType());
  Value* above = b.CreateFCmpOGT(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                 b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x));
  Value* exact = b.CreateFCmpUEQ(back, x);
  return b.CreateBitCast(to_odd(b, b.CreateBitCast(nearest, lanes(x, b.getInt32Ty())), exact, above), float_type);
}

// A 64-bit integer beyond 2^53 cannot enter f64 exactly: its low 11 bits are folded into one sticky bit first.
Value* int_to_f64_odd(Builder& b, Value* x, bool is_signed) {
  Type* f64_type = lanes(x, b.getDoubleTy());
  if (x->getType()->getScalarSizeInBits() <= 32)
    return is_signed ? b.CreateSIToFP(x, f64_type) : b.CreateUIToFP(x, f64_type);
  Value* low = b.CreateAnd(x, number(x, 0x7ff));
  Value* sticky = b.CreateSelect(b.CreateICmpEQ(low, number(x, 0)), number(x, 0), number(x, 0x800));
  Value* folded = b.CreateOr(b.CreateAnd(x, number(x, ~0x7ffull)), sticky);
  Value* limit = number(x, 1ull << 53);
  Value* small = b.CreateICmpULT(b.CreateAdd(x, limit), number(x, 1ull << 54));
  if (!is_signed) small = b.CreateICmpULT(x, limit);
  Value* input = b.CreateSelect(small, x, folded);
  return is_signed ? b.CreateSIToFP(input, f64_type) : b.CreateUIToFP(input, f64_type);
}

Value* float_to_int(Builder& b, Value* x, DType to) {
  Type* type = lanes(x, value_type(b.getContext(), to));
  const auto id = is_signed(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
  return b.CreateIntrinsic(id, {type, x->getType()}, {x});
}

Value* int_to_float(Builder& b, const MachineFacts& facts, Value* x, DType from, DType to) {
  const bool has_sign = is_signed(from);
  if (to == DType::f16 || to == DType::bf16) {
    return narrow16(b, facts, f64_to_f32_odd(b, int_to_f64_odd(b, x, has_sign)), to);
  }
  Type* type = lanes(x, value_type(b.getContext(), to));
  return has_sign ? b.CreateSIToFP(x, type) : b.CreateUIToFP(x, type);
}

Value* float_to_float(Builder& b, const MachineFacts& facts, Value* x, DType from, DType to) {
  if (to == DType::f64) return b.CreateFPExt(x, lanes(x, b.getDoubleTy()));
  if (to == DType::f32) return b.CreateFPTrunc(x, lanes(x, b.getFloatTy()));
  return narrow16(b, facts, from == DType::f64 ? f64_to_f32_odd(b, x) : x, to);
}

}  // namespace

Value* in_pieces(Builder& b, unsigned piece, const std::vector<Value*>& operands,
                 const std::function<Value*(const std::vector<Value*>& parts)>& instruction) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(operands[0]->getType());
  const unsigned lanes = vector == nullptr ? 1 : vector->getNumElements();
  const auto part = [&](Value* x, unsigned start) -> Value* {
    if (vector == nullptr) {
      return b.CreateInsertElement(llvm::Constant::getNullValue(llvm::FixedVectorType::get(x->getType(), piece)), x,
                                   b.getInt64(0));
    }
    std::vector<int> mask;
    for (unsigned i = 0; i < piece; ++i) mask.push_back(static_cast<int>(std::min(start + i, lanes - 1)));
    return lanes == piece ? x : b.CreateShuffleVector(x, mask);
  };
  Value* result = nullptr;
  for (unsigned start = 0; start < lanes; start += piece) {
    std::vector<Value*> parts;
    for (Value* x : operands) parts.push_back(part(x, start));
    Value* done = instruction(parts);
    if (lanes <= piece) {
      result = done;
      break;
    }
    if (result == nullptr)
      result = llvm::PoisonValue::get(llvm::FixedVectorType::get(done->getType()->getScalarType(), lanes));
    result = b.CreateInsertVector(result->getType(), result, done, b.getInt64(start));
  }
  if (vector == nullptr) return b.CreateExtractElement(result, b.getInt64(0));
  if (lanes >= piece) return result;
  std::vector<int> mask;
  for (unsigned i = 0; i < lanes; ++i) mask.push_back(static_cast<int>(i));
  return b.CreateShuffleVector(result, mask);
}

Value* round_bf16(Builder& b, Value* x) {
  constexpr unsigned kPiece = 16;
  return in_pieces(b, kPiece, {x}, [&](const std::vector<Value*>& parts) {
    Value* halves = b.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_cvtneps2bf16_512, {}, {parts[0]});
    return b.CreateBitCast(halves, llvm::FixedVectorType::get(b.getInt16Ty(), kPiece));
  });
}

Value* high_half(Builder& b, Value* x) {
  Value* u = b.CreateBitCast(x, lanes(x, b.getInt32Ty()));
  return b.CreateTrunc(b.CreateLShr(u, 16), lanes(u, b.getInt16Ty()));
}

Type* value_type(llvm::LLVMContext& context, DType dtype) {
  switch (dtype) {
    case DType::boolean:
    case DType::b1:
      return Type::getInt1Ty(context);
    case DType::i8:
    case DType::u8:
      return Type::getInt8Ty(context);
    case DType::i16:
    case DType::f16:
    case DType::bf16:
      return Type::getInt16Ty(context);
    case DType::i32:
    case DType::u32:
      return Type::getInt32Ty(context);
    case DType::i64:
    case DType::u64:
      return Type::getInt64Ty(context);
    case DType::f32:
      return Type::getFloatTy(context);
    case DType::f64:
      return Type::getDoubleTy(context);
  }
  throw InternalError("unknown dtype");
}

Type* with_lanes_of(Type* type, Type* like) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like);
  return vector == nullptr ? type : llvm::FixedVectorType::get(type, vector->getNumElements());
}

llvm::Constant* constant(llvm::LLVMContext& context, ir::Scalar literal) {
  Type* type = value_type(context, literal.dtype);
  if (literal.dtype == DType::f32) {
    return llvm::ConstantFP::get(context, llvm::APFloat(llvm::APFloat::IEEEsingle(), llvm::APInt(32, literal.bits)));
  }
  if (literal.dtype == DType::f64) {
    return llvm::ConstantFP::get(context, llvm::APFloat(llvm::APFloat::IEEEdouble(), llvm::APInt(64, literal.bits)));
  }
  return llvm::ConstantInt::get(type, literal.bits);
}

Value* cast(Builder& b, const MachineFacts& facts, Value* x, DType from, DType to) {
  if (from == to) return x;
  if (from == DType::f16 || from == DType::bf16) {
    x = widen16(b, facts, x, from);
    from = DType::f32;
    if (from == to) return x;
  }
  Type* type = lanes(x, value_type(b.getContext(), to));
  if (to == DType::boolean) {
    Value* zero = llvm::Constant::getNullValue(x->getType());
    return is_float(from) ? b.CreateFCmpUNE(x, zero) : b.CreateICmpNE(x, zero);
  }
  if (from == DType::boolean) {
    const ir::Scalar one = ir::cast(ir::Scalar::of(true), to);
    Value* scalar = constant(b.getContext(), one);
    if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type))
      scalar = b.CreateVectorSplat(vector->getNumElements(), scalar);
    return b.CreateSelect(x, scalar, llvm::Constant::getNullValue(type));
  }
  if (is_float(from)) return is_float(to) ? float_to_float(b, facts, x, from, to) : float_to_int(b, x, to);
  if (is_float(to)) return int_to_float(b, facts, x, from, to);
  return is_signed(from) ? b.CreateSExtOrTrunc(x, type) : b.CreateZExtOrTrunc(x, type);
}

Value* bits_of(Builder& b, Value* x, DType from) {
  if (bits(from) == 16) return b.CreateZExt(x, lanes(x, b.getInt32Ty()));
  return b.CreateBitCast(x, lanes(x, bits(from) == 64 ? b.getInt64Ty() : b.getInt32Ty()));
}

Value* from_bits(Builder& b, Value* x, DType to) {
  if (bits(to) == 16) return b.CreateTrunc(x, lanes(x, b.getInt16Ty()));
  return b.CreateBitCast(x, lanes(x, value_type(b.getContext(), to)));
}

}  // namespace fusejit::codegen::x86
