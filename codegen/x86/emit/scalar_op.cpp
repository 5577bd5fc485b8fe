#include "codegen/x86/emit/scalar_op.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <array>
#include <map>

#include "codegen/x86/emit/integer_op.h"
#include "ir/base/check.h"
#include "ir/kernel/math.h"

namespace fusejit::codegen::x86 {
namespace {

using llvm::Instruction;
using llvm::Value;
using Values = std::vector<Value*>;

struct BinaryWord {
  std::string_view word;
  Instruction::BinaryOps opcode;
};
constexpr std::array<BinaryWord, 13> kBinary = {{
    {"fadd", Instruction::FAdd},
    {"fsub", Instruction::FSub},
    {"fmul", Instruction::FMul},
    {"fdiv", Instruction::FDiv},
    {"frem", Instruction::FRem},
    {"add", Instruction::Add},
    {"sub", Instruction::Sub},
    {"mul", Instruction::Mul},
    {"and", Instruction::And},
    {"or", Instruction::Or},
    {"xor", Instruction::Xor},
    {"shl", Instruction::Shl},
    {"lshr", Instruction::LShr},
}};

struct PredicateWord {
  std::string_view word;
  llvm::CmpInst::Predicate predicate;
};
using P = llvm::CmpInst::Predicate;
constexpr std::array<PredicateWord, 24> kPredicates = {{
    {"fcmp oeq", P::FCMP_OEQ}, {"fcmp une", P::FCMP_UNE}, {"fcmp olt", P::FCMP_OLT}, {"fcmp ole", P::FCMP_OLE},
    {"fcmp ogt", P::FCMP_OGT}, {"fcmp oge", P::FCMP_OGE}, {"fcmp uno", P::FCMP_UNO}, {"fcmp ord", P::FCMP_ORD},
    {"fcmp one", P::FCMP_ONE}, {"fcmp ueq", P::FCMP_UEQ}, {"fcmp ult", P::FCMP_ULT}, {"fcmp ule", P::FCMP_ULE},
    {"fcmp ugt", P::FCMP_UGT}, {"fcmp uge", P::FCMP_UGE}, {"icmp eq", P::ICMP_EQ},   {"icmp ne", P::ICMP_NE},
    {"icmp slt", P::ICMP_SLT}, {"icmp sle", P::ICMP_SLE}, {"icmp sgt", P::ICMP_SGT}, {"icmp sge", P::ICMP_SGE},
    {"icmp ult", P::ICMP_ULT}, {"icmp ule", P::ICMP_ULE}, {"icmp ugt", P::ICMP_UGT}, {"icmp uge", P::ICMP_UGE},
}};

std::string_view spelling(const ir::OpDef& def, DType dtype) {
  if (is_float(dtype)) return def.llvm.floating;
  if (is_int(dtype)) return def.llvm.signed_int;
  return is_unsigned(dtype) ? def.llvm.unsigned_int : def.llvm.boolean;
}

[[noreturn]] void unknown(ir::Op op, std::string_view word, DType dtype) {
  throw InternalError(fmt::format("x86 cannot emit {} of {} (spelling \"{}\")", name(op), name(dtype), word));
}

Value* intrinsic(Builder& b, std::string_view word, const std::vector<Typed>& operands) {
  const llvm::Intrinsic::ID id = llvm::Function::lookupIntrinsicID(llvm::StringRef(word));
  if (id == llvm::Intrinsic::not_intrinsic) return nullptr;
  Values arguments;
  for (const Typed& operand : operands) arguments.push_back(operand.value);
  if (id == llvm::Intrinsic::abs) arguments.push_back(b.getFalse());  // the least integer is its own magnitude
  return b.CreateIntrinsic(id, {operands[0].value->getType()}, arguments);
}

// c + a1*b1, then + a0*b0 on pairs of bf16 in u32.
Value* dot2(Builder& b, const std::vector<Typed>& operands) {
  llvm::Type* type = operands[2].value->getType();
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  const unsigned lanes = vector == nullptr ? 1 : vector->getNumElements();
  // The instruction has 4, 8 and 16 lanes; other counts are done in pieces of those.
  const unsigned piece = lanes >= 16 ? 16 : lanes >= 8 ? 8 : 4;
  const auto id = piece == 16  ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512
                  : piece == 8 ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_256
                               : llvm::Intrinsic::x86_avx512bf16_dpbf16ps_128;
  auto* pairs = llvm::FixedVectorType::get(b.getBFloatTy(), piece * 2);
  return in_pieces(b, piece, {operands[2].value, operands[0].value, operands[1].value}, [&](const Values& parts) {
    return b.CreateIntrinsic(id, {}, {parts[0], b.CreateBitCast(parts[1], pairs), b.CreateBitCast(parts[2], pairs)});
  });
}

// Left to itself, instruction selection folds a load that only a select reads into a load under the select's mask. That
// load waits for the mask, and where it is not aligned it is several times slower; a frozen value stays apart.
Value* select(Builder& b, const std::vector<Typed>& operands) {
  const auto apart = [&](Value* x) { return llvm::isa<llvm::LoadInst>(x) ? b.CreateFreeze(x) : x; };
  return b.CreateSelect(operands[0].value, apart(operands[1].value), apart(operands[2].value));
}

Value* by_spelling(Builder& b, std::string_view word, const std::vector<Typed>& operands) {
  Value* x = operands[0].value;
  Value* y = operands.size() > 1 ? operands[1].value : x;  // one operand is used twice: square, isnan
  for (const BinaryWord& row : kBinary) {
    if (row.word == word) return b.CreateBinOp(row.opcode, x, y);
  }
  for (const PredicateWord& row : kPredicates) {
    if (row.word == word) return b.CreateCmp(row.predicate, x, y);
  }
  if (word == "select") return select(b, operands);
  if (word == "fmax" || word == "fmin") return extremum(b, x, y, word == "fmax");
  if (word == "fneg") return b.CreateFNeg(x);
  if (word == "neg") return b.CreateNeg(x);
  if (word == "not") return b.CreateNot(x);
  if (word == "same") return x;
  if (word.starts_with("llvm.")) return intrinsic(b, word, operands);
  return integer_op(b, word, x, y);
}

// The row's straight-line body, definition by definition.
Value* inline_fragment(Builder& b, const MachineFacts& facts, const ir::Fragment& fragment,
                       const std::vector<Typed>& operands) {
  Values values(fragment.values.size(), nullptr);
  for (std::size_t i = 0; i < operands.size(); ++i) values[i] = operands[i].value;
  const auto typed = [&](const ir::Arg& arg) -> Typed {
    if (arg.is_literal()) return {constant(b.getContext(), arg.literal), arg.literal.dtype};
    return {values[arg.value], fragment.values[arg.value]};
  };
  for (const ir::DefStmt& def : fragment.definitions) {
    std::vector<Typed> arguments;
    for (const ir::Arg& arg : def.args) arguments.push_back(typed(arg));
    const Values results = apply(b, facts, def.op, arguments, fragment.values[def.results[0]]);
    for (std::size_t i = 0; i < def.results.size(); ++i) values[def.results[i]] = results[i];
  }
  Value* result = typed(fragment.result).value;
  auto* lanes = llvm::dyn_cast<llvm::FixedVectorType>(operands[0].value->getType());
  return lanes != nullptr && !result->getType()->isVectorTy() ? splat(b, result, lanes->getNumElements()) : result;
}

}  // namespace

Value* splat(Builder& b, Value* x, unsigned lanes) {
  auto* instruction = llvm::dyn_cast<Instruction>(x);
  if (instruction == nullptr) return b.CreateVectorSplat(lanes, x);
  for (llvm::User* user : instruction->users()) {  // one splat of each scalar: find the insertelement of an earlier one
    if (auto* insert = llvm::dyn_cast<llvm::InsertElementInst>(user); insert != nullptr && insert->getOperand(1) == x) {
      for (llvm::User* next : insert->users()) {
        if (auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(next);
            shuffle != nullptr && shuffle->isZeroEltSplat() && shuffle->getShuffleMask().size() == lanes) {
          return shuffle;
        }
      }
    }
  }
  Builder::InsertPointGuard guard(b);
  if (llvm::isa<llvm::PHINode>(instruction)) {
    b.SetInsertPoint(instruction->getParent(), instruction->getParent()->getFirstInsertionPt());
  } else {
    b.SetInsertPoint(instruction->getParent(), std::next(instruction->getIterator()));
  }
  return b.CreateVectorSplat(lanes, x);
}

void unify(Builder& b, std::vector<Typed>& operands) {
  unsigned lanes = 0;
  for (const Typed& operand : operands) {
    if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(operand.value->getType()))
      lanes = vector->getNumElements();
  }
  if (lanes == 0) return;
  for (Typed& operand : operands) {
    if (!operand.value->getType()->isVectorTy()) operand.value = splat(b, operand.value, lanes);
  }
}

Value* extremum(Builder& b, Value* x, Value* y, bool maximum) {
  const auto predicate = maximum ? llvm::CmpInst::FCMP_OGT : llvm::CmpInst::FCMP_OLT;
  // maxps(y, x) is y > x ? y : x: one instruction.
  Value* chosen = b.CreateSelect(b.CreateFCmp(predicate, y, x), y, x);
  if (llvm::isa<llvm::Constant>(y)) {
    const auto* element = llvm::dyn_cast_or_null<llvm::ConstantFP>(
        y->getType()->isVectorTy() ? llvm::cast<llvm::Constant>(y)->getSplatValue() : llvm::cast<llvm::Constant>(y));
    if (element != nullptr && !element->isNaN()) return chosen;
  }
  return b.CreateSelect(b.CreateFCmpUNO(y, y), y, chosen);
}

Values apply(Builder& b, const MachineFacts& facts, ir::Op op, std::vector<Typed> operands, DType result) {
  // These few are defined by dtypes or yield several results.
  switch (op) {
    case ir::Op::cast:
      return {cast(b, facts, operands[0].value, operands[0].dtype, result)};
    case ir::Op::bits:
      return {bits_of(b, operands[0].value, operands[0].dtype)};
    case ir::Op::from_bits:
      return {from_bits(b, operands[0].value, result)};
    case ir::Op::round_bf16:
      return {round_bf16(b, operands[0].value)};
    default:
      break;
  }
  unify(b, operands);
  switch (op) {
    case ir::Op::dot2:
      return {dot2(b, operands)};
    case ir::Op::philox:
      return philox(b, operands[0].value, operands[1].value, operands[2].value);
    case ir::Op::where:
      return {select(b, operands)};
    default:
      break;
  }
  const ir::OpDef& def = op_def(op);
  const DType dtype = operands[0].dtype;
  // A fragment is the meaning where there is one, for the interpreter as well.
  if (is_float(dtype) && !(dtype == DType::f64 ? def.fragment_f64 : def.fragment_f32).empty()) {
    return {inline_fragment(b, facts, ir::fragment(op, dtype, facts.has_fma), operands)};
  }
  const std::string_view word = spelling(def, dtype);
  Value* value = word.empty() ? nullptr : by_spelling(b, word, operands);
  if (value == nullptr) unknown(op, word, dtype);
  return {value};
}

Values philox(Builder& b, Value* counter, Value* stream, Value* seed) {
  llvm::Type* u32 = with_lanes_of(b.getInt32Ty(), counter->getType());
  const auto low = [&](Value* x) { return b.CreateTrunc(x, u32); };
  const auto high = [&](Value* x) { return b.CreateTrunc(b.CreateLShr(x, 32), u32); };
  const auto literal = [&](std::uint32_t n) { return llvm::ConstantInt::get(u32, n); };
  Values c = {low(counter), high(counter), low(stream), high(stream)};
  Value* k0 = low(seed);
  Value* k1 = high(seed);
  const auto product = [&](Value* x, std::uint32_t factor) {
    return b.CreateMul(b.CreateZExt(x, counter->getType()), llvm::ConstantInt::get(counter->getType(), factor));
  };
  for (int round = 0; round < 10; ++round) {
    Value* p0 = product(c[0], 0xD2511F53);
    Value* p1 = product(c[2], 0xCD9E8D57);
    c = {b.CreateXor(b.CreateXor(high(p1), c[1]), k0), low(p1), b.CreateXor(b.CreateXor(high(p0), c[3]), k1), low(p0)};
    k0 = b.CreateAdd(k0, literal(0x9E3779B9));
    k1 = b.CreateAdd(k1, literal(0xBB67AE85));
  }
  return c;
}

}  // namespace fusejit::codegen::x86
