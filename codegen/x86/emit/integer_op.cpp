#include "codegen/x86/emit/integer_op.h"

#include <llvm/IR/Constants.h>

namespace fusejit::codegen::x86 {
namespace {

using llvm::Value;

Value* number(Value* like, std::int64_t n) {
  return llvm::ConstantInt::get(like->getType(), static_cast<std::uint64_t>(n), true);
}
Value* is(Builder& b, Value* x, std::int64_t n) { return b.CreateICmpEQ(x, number(x, n)); }
Value* negative(Builder& b, Value* x) { return b.CreateICmpSLT(x, number(x, 0)); }

// 0 and -1 as divisors trap; 1 gives the same remainder 0.
Value* safe_divisor(Builder& b, Value* y) {
  return b.CreateSelect(b.CreateOr(is(b, y, 0), is(b, y, -1)), number(y, 1), y);
}

Value* floor_divide(Builder& b, Value* x, Value* y) {
  Value* divisor = safe_divisor(b, y);
  Value* quotient = b.CreateSDiv(x, divisor);
  Value* inexact = b.CreateICmpNE(b.CreateSRem(x, divisor), number(x, 0));
  Value* down = b.CreateAnd(inexact, b.CreateXor(negative(b, x), negative(b, y)));
  quotient = b.CreateAdd(quotient, b.CreateSExt(down, x->getType()));
  quotient = b.CreateSelect(is(b, y, -1), b.CreateNeg(x), quotient);
  return b.CreateSelect(is(b, y, 0), number(x, 0), quotient);
}

// Repeated product modulo 2^n, one squaring for each bit of the exponent.
Value* power(Builder& b, Value* x, Value* y) {
  Value* result = number(x, 1);
  Value* square = x;
  const unsigned width = x->getType()->getScalarSizeInBits();
  for (unsigned bit = 0; bit + 1 < width; ++bit) {
    Value* set = b.CreateTrunc(b.CreateLShr(y, bit), with_lanes_of(b.getInt1Ty(), y->getType()));
    result = b.CreateSelect(set, b.CreateMul(result, square), result);
    square = b.CreateMul(square, square);
  }
  Value* odd = b.CreateTrunc(y, with_lanes_of(b.getInt1Ty(), y->getType()));
  Value* inverse = b.CreateSelect(is(b, x, -1), b.CreateSelect(odd, number(x, -1), number(x, 1)), number(x, 0));
  inverse = b.CreateSelect(is(b, x, 1), number(x, 1), inverse);
  return b.CreateSelect(negative(b, y), inverse, result);
}

}  // namespace

Value* integer_op(Builder& b, std::string_view word, Value* x, Value* y) {
  if (word == "fj.floor_divide") return floor_divide(b, x, y);
  if (word == "fj.fmod") return b.CreateSRem(x, safe_divisor(b, y));
  return word == "fj.pow" ? power(b, x, y) : nullptr;
}

}  // namespace fusejit::codegen::x86
