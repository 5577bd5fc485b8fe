#include "codegen/x86/emit/combine.h"

#include <llvm/IR/DerivedTypes.h>

#include <limits>

#include "codegen/x86/emit/scalar_op.h"
#include "ir/base/check.h"

namespace fusejit::codegen::x86 {
namespace {

using ir::Combiner;
using llvm::Value;

Value* extremum_of(Builder& b, Value* x, Value* y, DType dtype, bool maximum) {
  if (is_float(dtype)) return extremum(b, x, y, maximum);
  if (dtype == DType::boolean) return maximum ? b.CreateOr(x, y) : b.CreateAnd(x, y);
  const bool less = is_int(dtype);
  const auto id = maximum ? (less ? llvm::Intrinsic::smax : llvm::Intrinsic::umax)
                          : (less ? llvm::Intrinsic::smin : llvm::Intrinsic::umin);
  return b.CreateBinaryIntrinsic(id, x, y);
}

// y is better than x, or the first NaN.
Value* beats(Builder& b, Value* x, Value* y, DType type, bool maximum) {
  if (is_float(type))
    return b.CreateAnd(maximum ? b.CreateFCmpUGT(y, x) : b.CreateFCmpULT(y, x), b.CreateFCmpORD(x, x));
  if (is_int(type)) return maximum ? b.CreateICmpSGT(y, x) : b.CreateICmpSLT(y, x);
  return maximum ? b.CreateICmpUGT(y, x) : b.CreateICmpULT(y, x);
}

Components combine_arg(Builder& b, const Components& x, const Components& y, DType value, DType index, bool maximum,
                       bool ascending) {
  Value* take = beats(b, x[0], y[0], value, maximum);
  if (!ascending) {
    Value* index_less = is_unsigned(index) ? b.CreateICmpULT(y[1], x[1]) : b.CreateICmpSLT(y[1], x[1]);
    Value* tie = is_float(value) ? b.CreateOr(b.CreateFCmpOEQ(y[0], x[0]),
                                              b.CreateAnd(b.CreateFCmpUNO(x[0], x[0]), b.CreateFCmpUNO(y[0], y[0])))
                                 : b.CreateICmpEQ(y[0], x[0]);
    take = b.CreateOr(take, b.CreateAnd(tie, index_less));
  }
  return {b.CreateSelect(take, y[0], x[0]), b.CreateSelect(take, y[1], x[1])};
}

// The components of one side may be uniform while others differ between lanes: n usually is.
Components combine_welford(Builder& b, const Components& x, const Components& y, DType dtype) {
  const auto join = [&](Value* p, Value* q, auto&& op) {
    std::vector<Typed> pair = {{p, dtype}, {q, dtype}};
    unify(b, pair);
    return op(pair[0].value, pair[1].value);
  };
  const auto add = [&](Value* p, Value* q) {
    return join(p, q, [&](Value* s, Value* t) { return b.CreateFAdd(s, t); });
  };
  const auto sub = [&](Value* p, Value* q) {
    return join(p, q, [&](Value* s, Value* t) { return b.CreateFSub(s, t); });
  };
  const auto mul = [&](Value* p, Value* q) {
    return join(p, q, [&](Value* s, Value* t) { return b.CreateFMul(s, t); });
  };
  Value* n = add(x[0], y[0]);
  Value* share = join(y[0], n, [&](Value* s, Value* t) {
    return b.CreateSelect(b.CreateFCmpOEQ(t, llvm::Constant::getNullValue(t->getType())),
                          llvm::Constant::getNullValue(t->getType()), b.CreateFDiv(s, t));
  });
  Value* d = sub(y[1], x[1]);
  Value* t = mul(d, share);
  return {n, add(x[1], t), add(add(x[2], y[2]), mul(d, mul(t, x[0])))};
}

Components combine_one(Builder& b, Combiner combiner, const DType* types, const Components& x, const Components& y,
                       bool ascending) {
  const bool floating = is_float(types[0]);
  switch (combiner) {
    case Combiner::add:
      return {floating ? b.CreateFAdd(x[0], y[0]) : b.CreateAdd(x[0], y[0])};
    case Combiner::mul:
      return {floating ? b.CreateFMul(x[0], y[0]) : b.CreateMul(x[0], y[0])};
    case Combiner::maximum:
    case Combiner::minimum:
      return {extremum_of(b, x[0], y[0], types[0], combiner == Combiner::maximum)};
    case Combiner::logical_and:
      return {b.CreateAnd(x[0], y[0])};
    case Combiner::logical_or:
      return {b.CreateOr(x[0], y[0])};
    case Combiner::argmax:
    case Combiner::argmin:
      return combine_arg(b, x, y, types[0], types[1], combiner == Combiner::argmax, ascending);
    case Combiner::welford:
      return combine_welford(b, x, y, types[0]);
  }
  throw InternalError("unknown combiner");
}

unsigned lanes_of(Value* x) { return llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements(); }

// Lanes start .. start+count-1; a scalar if count is 1.
Value* lanes(Builder& b, Value* x, unsigned start, unsigned count) {
  if (count == 1) return b.CreateExtractElement(x, b.getInt64(start));
  std::vector<int> mask;
  for (unsigned i = 0; i < count; ++i) mask.push_back(static_cast<int>(start + i));
  return b.CreateShuffleVector(x, mask);
}

Components halve(Builder& b, const std::vector<Combiner>& combiners, const std::vector<DType>& types, Components x) {
  for (unsigned half = lanes_of(x[0]) / 2; half > 0; half /= 2) {
    Components low, high;
    for (Value* v : x) {
      low.push_back(lanes(b, v, 0, half));
      high.push_back(lanes(b, v, half, half));
    }
    x = combine(b, combiners, types, low, high);
  }
  return x;
}

}  // namespace

Components identity(Builder& b, const std::vector<Combiner>& combiners, const std::vector<DType>& types) {
  Components result;
  for (Combiner combiner : combiners) {
    for (int i = 0; i < ir::components(combiner); ++i) {
      result.push_back(constant(b.getContext(), ir::identity(combiner, i, types[result.size()])));
    }
  }
  return result;
}

Components combine(Builder& b, const std::vector<Combiner>& combiners, const std::vector<DType>& types,
                   const Components& left, const Components& right, bool ascending) {
  Components result;
  for (Combiner combiner : combiners) {
    const std::size_t at = result.size();
    Components x, y;
    for (int i = 0; i < ir::components(combiner); ++i) {
      std::vector<Typed> pair = {{left[at + i], types[at + i]}, {right[at + i], types[at + i]}};
      unify(b, pair);
      x.push_back(pair[0].value);
      y.push_back(pair[1].value);
    }
    if (combiner == Combiner::argmax || combiner == Combiner::argmin) {
      std::vector<Typed> all = {{x[0], types[at]}, {x[1], types[at + 1]}, {y[0], types[at]}, {y[1], types[at + 1]}};
      unify(b, all);
      x = {all[0].value, all[1].value};
      y = {all[2].value, all[3].value};
    }
    for (Value* v : combine_one(b, combiner, &types[at], x, y, ascending)) result.push_back(v);
  }
  return result;
}

Components tree(Builder& b, const std::vector<Combiner>& combiners, const std::vector<DType>& types, Components x) {
  const unsigned count = lanes_of(x[0]);
  if (count <= 32) return halve(b, combiners, types, x);
  // tree(32) of each run of 32, then the tree of those.
  std::vector<Components> runs;
  for (unsigned start = 0; start < count; start += 32) {
    Components run;
    for (Value* v : x) run.push_back(lanes(b, v, start, 32));
    runs.push_back(halve(b, combiners, types, run));
  }
  for (std::size_t half = runs.size() / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) runs[i] = combine(b, combiners, types, runs[i], runs[i + half]);
  }
  return runs[0];
}

}  // namespace fusejit::codegen::x86
