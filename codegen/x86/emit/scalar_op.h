// Ops of kernel texts as LLVM IR on scalars and vectors: the op's fragment inlined, or the spelling of its row
// (OpDef::llvm, by the class of the first operand):
//   fadd fsub fmul fdiv frem add sub mul and or xor shl lshr   binary; one operand is used twice (square)
//   fcmp <predicate>, icmp <predicate>                         compare; one operand with itself (isnan)
//   fneg, neg, not, same, select                               sign, 0 - x, all bits flipped, x, where
//   fmax, fmin                                                 extremum() below
//   llvm.<name>                                                intrinsic overloaded on the first operand's type
//   fj.floor_divide, fj.fmod, fj.pow                           integer_op.h
// cast, bits, from_bits, where, dot2 and philox are defined by dtypes or have several results: apply() knows them.
#pragma once

#include <string_view>
#include <vector>

#include "codegen/x86/emit/convert.h"
#include "ir/op.h"

namespace fusejit::codegen::x86 {

struct Typed {
  llvm::Value* value = nullptr;
  DType dtype = DType::f32;
};

// Operands of which some are vectors and some scalars meet as vectors.
void unify(Builder& b, std::vector<Typed>& operands);
// Scalar to vector; the splat stands right behind the scalar's definition, so that it is hoisted with it.
llvm::Value* splat(Builder& b, llvm::Value* x, unsigned lanes);

// The results of `op` (one; philox four).
std::vector<llvm::Value*> apply(Builder& b, const MachineFacts& facts, ir::Op op, std::vector<Typed> operands,
                                DType result);

// maximum(a, b) = b where b > a or b is NaN, else a; minimum likewise with <.
llvm::Value* extremum(Builder& b, llvm::Value* x, llvm::Value* y, bool maximum);

std::vector<llvm::Value*> philox(Builder& b, llvm::Value* counter, llvm::Value* stream, llvm::Value* seed);

}  // namespace fusejit::codegen::x86
