// Conversions between dtypes as LLVM IR, on scalars and vectors alike (ops.md §4 cast, kernel-ir.md §7 and §10).
// Inside the emitter f16 and bf16 values are i16 and bool values i1.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <functional>
#include <vector>

#include "codegen/x86/machine.h"
#include "fusejit/dtype.h"
#include "ir/base/scalar.h"

namespace fusejit::codegen::x86 {

using Builder = llvm::IRBuilder<>;

// The LLVM type of one value of `dtype`.
llvm::Type* value_type(llvm::LLVMContext& context, DType dtype);
// `type` with the lanes of `like` (a scalar stays a scalar).
llvm::Type* with_lanes_of(llvm::Type* type, llvm::Type* like);
llvm::Constant* constant(llvm::LLVMContext& context, ir::Scalar literal);

llvm::Value* cast(Builder& b, const MachineFacts& facts, llvm::Value* x, DType from, DType to);
// Of f32 whose lower half is 0: as bf16.
llvm::Value* high_half(Builder& b, llvm::Value* x);
// An instruction of `piece` lanes on operands of any number, of which the last is repeated where they are fewer.
llvm::Value* in_pieces(Builder& b, unsigned piece, const std::vector<llvm::Value*>& operands,
                       const std::function<llvm::Value*(const std::vector<llvm::Value*>& parts)>& instruction);
// Of f32 to the nearest bf16, denormals read as zero (AVX512-BF16).
llvm::Value* round_bf16(Builder& b, llvm::Value* x);
// bits(x) and from_bits(u): the same bits, 16-bit types in the low half of a u32.
llvm::Value* bits_of(Builder& b, llvm::Value* x, DType from);
llvm::Value* from_bits(Builder& b, llvm::Value* x, DType to);

}  // namespace fusejit::codegen::x86
