// The compact form that the kernel interpreter runs: the statement tree with slots for values and flat addresses.
#pragma once

#include <memory>
#include <vector>

#include "ir/kernel/interp/scalar.h"

namespace fusejit::ir {

using Slot = std::uint32_t;

// sum of coefficient * term + constant. Slots hold values, variables and literals as words.
enum class TermKind : std::uint8_t { slot, slot_i32, quotient, remainder };
struct FlatTerm {
  std::int64_t coefficient;
  TermKind kind;
  Slot slot;            // slot, slot_i32
  std::uint32_t inner;  // quotient, remainder: index into Code::affines
  std::int64_t divisor;
};
struct Affine {
  std::uint32_t first;  // into Code::terms
  std::uint32_t count;
  std::int64_t constant;
  bool plain;  // only terms of kind slot
};

enum class Action : std::uint8_t { scalar, generic, philox, index, load, store, local, loop, branch };
struct Instruction {
  Action action;
  MemId memory = -1;
  Slot result = 0;
  Slot args[3] = {0, 0, 0};
  ScalarFn fn = nullptr;
  std::uint32_t extra = 0;  // affine of load, store, index; generic op, loop, branch
};
using Sequence = std::vector<Instruction>;

struct GenericOp {
  Op op;
  DType result;
  std::vector<Slot> args;
  std::vector<DType> types;
};
struct Reduction {
  Combiner combiner;
  std::uint32_t first;  // its components in results, yields and types
  ScalarFn fn;          // of one component; null: argmax, argmin, welford
};
struct LoopCode {
  std::vector<std::uint32_t> low, high;  // affines
  Slot variable;
  bool any_order;  // another order may not change a bit
  bool tree;       // a reduction over lanes or a block
  std::vector<Reduction> parts;
  std::vector<DType> types;
  std::vector<Slot> results, yields;
  Sequence body;
  std::vector<Word> values;  // accumulators, or all lanes' yields
  std::vector<std::int64_t> permutation;
};
struct BranchCode {
  bool has_condition = false;
  Slot condition = 0;
  struct Test {
    std::uint32_t affine;
    CompareKind kind;
    std::int64_t right;
  };
  std::vector<Test> tests;
  std::vector<Slot> results, then_yields, else_yields;
  Sequence then_code, else_code;
};

struct Code {
  std::vector<Word> slots;  // with literals in place
  std::vector<FlatTerm> terms;
  std::vector<Affine> affines;
  std::vector<GenericOp> generics;
  std::vector<std::unique_ptr<LoopCode>> loops;
  std::vector<std::unique_ptr<BranchCode>> branches;
  std::vector<Sequence> phases;
  std::vector<Slot> scalars;  // of the scalar parameters, in order
};

// Straight-line fragments of functions are put in place. InternalError if the kernel is malformed.
Code compile_for_interpreter(const Kernel& kernel);

}  // namespace fusejit::ir
