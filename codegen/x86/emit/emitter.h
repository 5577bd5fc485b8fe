// The state of emitting one phase of a kernel as one LLVM function, and the steps over it: address.cpp turns index
// expressions into addresses, memory.cpp reads and writes, control.cpp loops and branches, emit.cpp the rest.
//
// Lanes of a vector loop run in lockstep: a value that differs between lanes is one LLVM vector, any other a scalar.
// Register locals never touch memory: `registers` maps each element to its current value, as SSA construction does.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "codegen/arena.h"
#include "codegen/lanes.h"
#include "codegen/x86/emit/combine.h"
#include "codegen/x86/emit/convert.h"
#include "codegen/x86/emit/scalar_op.h"
#include "ir/kernel/kernel.h"

namespace fusejit::codegen::x86 {

// A pointer that walks through an innermost loop: phi at its head, moved by `step` bytes at its end.
struct InductionPointer {
  llvm::PHINode* phi;
  llvm::Value* pointer;  // the phi's value as the body sees it
  std::int64_t step;
};

// A loop body, or the whole function: a place where computations that are invariant in all deeper loops are put.
struct Scope {
  llvm::Instruction* anchor = nullptr;                      // hoisted code goes before it; erased at the end
  std::map<std::vector<std::int64_t>, llvm::Value*> known;  // what already stands there, by key
  bool innermost = false;  // a loop without loops: its addresses are induction pointers
  ir::VarId variable = -1;
  llvm::Value* low = nullptr;          // first value of the variable
  llvm::Instruction* entry = nullptr;  // the branch into the loop
  std::vector<InductionPointer> induction_pointers = {};
  std::size_t most_loads = 0;                               // that registers keep during the loop
  std::map<std::vector<std::int64_t>, llvm::Value*> loads;  // by memory and index: what they have loaded
};

enum class VariableKind : std::uint8_t { none, constant, uniform, lane };
struct Variable {
  VariableKind kind = VariableKind::none;
  std::int64_t constant = 0;
  llvm::Value* value = nullptr;  // uniform: i64
  int scope = 0;                 // the scope that defines it
  std::optional<ir::Interval> range;
};

// An index with constants put in, split for addressing: sum of terms + lane * lane_step + constant.
struct Affine {
  std::vector<ir::IndexTerm> uniform;
  std::vector<ir::IndexTerm> per_lane;  // terms other than the lane variable that differ between lanes
  std::int64_t lane_step = 0;
  std::int64_t constant = 0;
  bool lane_dependent() const { return lane_step != 0 || !per_lane.empty(); }
};

struct AliasInfo {
  llvm::MDNode* scope = nullptr;
  llvm::MDNode* others = nullptr;
};

// What a load that is shuffled read: valid in its block, until its memory is written.
struct ShuffledLoad {
  llvm::BasicBlock* block = nullptr;
  ir::MemId memory = -1;
  std::vector<ir::IndexTerm> uniform;
  std::int64_t lane_step = 0, first = 0;
  std::vector<llvm::Value*> vectors;  // columns of a square; as they lie
  bool is_of(const llvm::BasicBlock* here, ir::MemId of, const Affine& index, std::int64_t from) const {
    return block == here && memory == of && uniform == index.uniform && lane_step == index.lane_step && first == from;
  }
};

struct Emitter {
  const ir::Kernel& kernel;
  const LaneFacts& lanes;
  const Arena& arena;
  const MachineFacts& facts;
  llvm::Function* function;
  Builder b;

  std::vector<llvm::Value*> values = {};                  // by ValueId
  std::vector<bool> whole_bf16 = {};                      // by ValueId: an f32 that bf16 holds without rounding
  std::vector<Variable> variables = {};                   // by VarId
  std::vector<llvm::Value*> bases = {};                   // by MemId: buffers, work, scratch
  std::vector<AliasInfo> aliases = {};                    // by MemId
  std::vector<std::vector<llvm::Value*>> registers = {};  // by MemId: current value of each element or lane row
  std::vector<Scope> scopes = {};
  std::vector<ir::IndexAtom> atoms = {};  // numbers of compound atoms in keys
  ir::VarId lane_variable = -1;
  unsigned lane_count = 0;              // of the enclosing vector loop, or 0
  llvm::Value* mask = nullptr;          // active lanes, or null: all
  bool fence = false;                   // a non-temporal store was emitted
  bool has_tiles = false;               // the phase has tile loops
  bool tiles_are_alike = false;         // of one shape, which is set
  ShuffledLoad square = {}, runs = {};  // of load_turned() and load_of_runs(), the last ones

  Emitter(const ir::Kernel& kernel, const LaneFacts& lanes, const Arena& arena, const MachineFacts& facts,
          llvm::Function* function, llvm::BasicBlock* entry)
      : kernel(kernel), lanes(lanes), arena(arena), facts(facts), function(function), b(entry) {}
};

// emit.cpp
void emit_phase(Emitter& e, const ir::Phase& phase);
void emit_block(Emitter& e, const ir::Block& block);
llvm::Value* value_of(Emitter& e, const ir::Arg& arg);
DType dtype_of(const Emitter& e, const ir::Arg& arg);
llvm::BasicBlock* new_block(Emitter& e, const char* name);
// Opens a scope whose anchor is the current point.
void open_scope(Emitter& e);
void close_scope(Emitter& e);

// address.cpp
Affine affine(const Emitter& e, const ir::Index& index);
std::optional<ir::Interval> range_of(const Emitter& e, const ir::Index& index);
// i64: the uniform part of an index, constant included.
llvm::Value* uniform_index(Emitter& e, const Affine& index);
// <L x i64>: the index in every lane.
llvm::Value* lane_index(Emitter& e, const Affine& index);
// The flat element index of a place.
ir::Index flatten(const Emitter& e, const ir::Place& place);
// Address of byte `Σ terms·bytes + constant·bytes` of a memory; invariant parts are hoisted.
llvm::Value* address(Emitter& e, ir::MemId memory, const std::vector<ir::IndexTerm>& terms, std::int64_t bytes,
                     std::int64_t constant_bytes);
// What an innermost loop loads again in every turn, loaded before it; null: the load has to stand where it is, or
// registers are taken.
llvm::Value* load_before_loop(Emitter& e, ir::MemId memory, const Affine& index,
                              const std::function<llvm::Value*()>& load);
// The largest power of two that divides every address with these terms.
llvm::Align alignment(const Emitter& e, ir::MemId memory, const std::vector<ir::IndexTerm>& terms, std::int64_t bytes,
                      std::int64_t constant_bytes);

// memory.cpp
void emit_local(Emitter& e, const ir::LocalStmt& s);
void emit_load(Emitter& e, const ir::LoadStmt& s);
void emit_store(Emitter& e, const ir::StoreStmt& s);
void emit_prefetch(Emitter& e, const ir::PrefetchStmt& s);
void make_alias_info(Emitter& e);
// turn.cpp: a load whose lanes are whole vectors apart, or two elements, or a few, or in a few pieces of memory; null:
// it is another.
llvm::Value* load_turned(Emitter& e, const ir::Place& place, const Affine& index);
llvm::Value* load_of_pairs(Emitter& e, const ir::Place& place, const Affine& index);
llvm::Value* load_of_runs(Emitter& e, const ir::Place& place, const Affine& index);
llvm::Value* load_of_windows(Emitter& e, const ir::Place& place, const Affine& index);
// A memory is written: what was read of it is no longer what is there.
void forget_shuffled(Emitter& e, ir::MemId memory);
// bits.cpp: b1 memory
llvm::Value* load_bits(Emitter& e, const ir::Place& place);
void store_bits(Emitter& e, const ir::Place& place, llvm::Value* value);
llvm::Value* byte_of_bit(Emitter& e, ir::MemId memory, llvm::Value* index);
llvm::Instruction* tag(Emitter& e, ir::MemId memory, llvm::Instruction* access);
llvm::Value* any_lane(Emitter& e, llvm::Value* mask);

// control.cpp
void emit_for(Emitter& e, const ir::ForStmt& s);
// At the end of a loop's body: the pointers of the innermost loop move on.
void step_induction_pointers(Emitter& e);
// tile.cpp: a loop of tiles, inside of what a phase opens and closes
void open_tiles(Emitter& e, const ir::Block& body);
void close_tiles(Emitter& e);
void emit_tile(Emitter& e, const ir::ForStmt& s);
// branch.cpp
void emit_if(Emitter& e, const ir::IfStmt& s);

}  // namespace fusejit::codegen::x86
