// The state of emitting one launch of a kernel as one CUDA function, and the steps over it: naming.cpp and
// quotients.cpp say what things are called, index.cpp writes index expressions, memory.cpp reads and writes,
// lockstep.cpp the lanes of vector loops, control.cpp loops and branches.
//
// Outside of vector loops a statement is a line of C++. In a vector loop the lanes run in lockstep: a value that
// differs between them is an fj_lanes array, neighbouring elements are one vector access, and what lies between such
// accesses is written for one lane inside an unrolled loop over the lanes, where values are scalars again.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "codegen/arena.h"
#include "codegen/cuda/emit.h"
#include "codegen/cuda/tails.h"
#include "codegen/lanes.h"
#include "ir/base/text.h"
#include "ir/kernel/text/names.h"
#include "ir/kernel/walk.h"

namespace fusejit::codegen::cuda {

using Extents = std::array<std::int64_t, 3>;  // x, y, z

// What several launches of a kernel share.
struct KernelFacts {
  const ir::Kernel& kernel;  // ids in the order of its text
  const ir::Names names;
  const LaneFacts lanes;
  const Arena arena;
  std::vector<int> uses;         // by ValueId
  std::vector<int> thread_dims;  // by MemId: leading dims of a register local that are the block's threads
  explicit KernelFacts(const ir::Kernel& kernel);
};

// What a block leaves behind: the yields of a loop or `if` go somewhere.
struct Tail {
  std::vector<ir::Arg> args;
  std::function<void()> lanes;    // writes the part that differs between lanes; may be empty
  std::function<void()> uniform;  // and the rest
};

struct Emitter {
  const KernelFacts& facts;
  const ir::Kernel& kernel;
  ir::Writer out = {};
  ir::VariableRanges ranges = {};
  std::vector<bool> wide;                          // by VarId: a long long
  std::vector<bool> array;                         // by ValueId: an fj_lanes, one element a lane
  std::map<ir::ValueId, ir::VarId> gathered = {};  // loaded before the unrolled loop of this variable
  std::vector<bool> lane_rows;                     // by MemId: a register local of a vector loop, [element][lane]
  std::vector<bool> thread_values;                 // by ValueId: differs between the threads of a block
  std::set<ir::VarId> thread_variables = {};

  // The phase that is being emitted.
  Tails tails = {};
  std::set<const ir::Stmt*> barriers = {};
  Extents block = {1, 1, 1};               // threads
  std::array<std::string, 3> coordinates;  // of this thread, as text
  std::array<bool, 3> covered = {};        // axes of the enclosing block loops
  int divergent = 0;                       // enclosing branches and loops that threads may take differently

  // What things are called. Names of buffers and axes of theirs, where their owner said (naming.cpp); quotients and
  // remainders of indices (and sums that several are of) by the variable after which each is defined, and the names of
  // all of them (quotients.cpp).
  std::vector<std::string> memory_names = {};       // by MemId
  std::vector<std::vector<std::string>> axes = {};  // by MemId: a name for each dim, or none
  std::set<std::string> taken = {};
  std::map<ir::VarId, std::vector<ir::Index>> quotients = {};
  std::map<std::string, std::string> quotient_names = {};  // by index_key
  int quotient_count = 0, sum_count = 0;                   // of those that no axis names

  const ir::ForStmt* vector = nullptr;                     // the enclosing vector loop
  int serial = 0;                                          // loops around it that are no threads
  bool in_lane = false;                                    // inside a loop over its lanes
  std::map<const ir::Stmt*, std::string> bit_stores = {};  // b1 stores below a lane's `if`: the name of the bits

  std::int64_t pool_bytes = 0;         // shared memory that reductions need
  std::vector<ir::MemId> shared = {};  // scratch locals, in order of declaration
  bool uses_thread = false;            // the thread's number `t`

  explicit Emitter(const KernelFacts& facts);
  std::int64_t lane_count() const { return vector->high[0].constant(); }
  std::int64_t threads() const { return block[0] * block[1] * block[2]; }
};

// names and values
std::string name(const Emitter& e, ir::ValueId id);
std::string variable_name(const Emitter& e, ir::VarId id);
std::string memory_name(const Emitter& e, ir::MemId id);
std::string text(const Emitter& e, const ir::Arg& arg);
DType dtype_of(const Emitter& e, const ir::Arg& arg);
bool varies(const Emitter& e, const ir::Arg& arg);  // between lanes
// Writes `value = expression`, as a definition unless declare() has been called.
void define(Emitter& e, ir::ValueId value, const std::string& expression);
void declare(Emitter& e, ir::ValueId value);

// naming.cpp
void name_parameters(Emitter& e, std::span<const ParameterName> given);
// The name itself, or with a number behind it.
std::string new_name(Emitter& e, const std::string& wish);
// A factor in an index of the memory (-1: of none): its stride by name, "4*x_row", or a number.
std::string factor_text(const Emitter& e, ir::MemId memory, std::int64_t factor);
// The strides that the body names.
void declare_strides(const Emitter& e, const std::string& body, ir::Writer& out);

// quotients.cpp
std::string index_key(const Emitter& e, const ir::Index& index);
void name_quotients(Emitter& e, const ir::Phase& phase);
// To be called once the variable is defined.
void define_quotients(Emitter& e, ir::VarId variable);

// index.cpp
std::string index_text(const Emitter& e, const ir::Index& index);
// Of an element of the memory (-1: of none): strides have names.
std::string place_text(const Emitter& e, const ir::Index& flat, ir::MemId memory);
// The division itself, whatever it is called.
std::string quotient_text(const Emitter& e, const ir::IndexAtom& atom);
std::string compare_text(const Emitter& e, const ir::Compare& compare);
bool fits_int(const Emitter& e, const ir::Index& index);
ir::Index flatten(const Emitter& e, const ir::Place& place);
// The flat index of lane 0 where lane i has index + i and nothing else differs between lanes.
bool is_contiguous(const Emitter& e, const ir::Place& place);
ir::Index first_lane(const Emitter& e, const ir::Place& place);

// memory.cpp
// The thread with index 0 on the axes whose loops are not around; "" where they all are.
std::string lone_condition(const Emitter& e);
void emit_local(Emitter& e, const ir::LocalStmt& s);
void emit_load(Emitter& e, const ir::LoadStmt& s);
void emit_store(Emitter& e, const ir::StoreStmt& s);
void emit_vector_load(Emitter& e, const ir::LoadStmt& s);
void emit_vector_store(Emitter& e, const ir::StoreStmt& s);
// Declares the arrays of b1 stores below an `if` of a lane, and writes them once all lanes are done.
void open_bit_stores(Emitter& e, const ir::Stmt& s);
void close_bit_stores(Emitter& e, const ir::Stmt& s);

// gather.cpp
void gather_loads(Emitter& e, const ir::ForStmt& loop);

// control.cpp
void emit_block(Emitter& e, const ir::Block& block, const Tail& tail = {});
void emit_statement(Emitter& e, const ir::Stmt& s);
void emit_for(Emitter& e, const ir::ForStmt& s);
void emit_if(Emitter& e, const ir::IfStmt& s);
void emit_def(Emitter& e, const ir::DefStmt& s);
void emit_barrier(Emitter& e, const ir::Stmt& s);

// lockstep.cpp
void emit_lockstep(Emitter& e, const ir::Block& block, const Tail& tail);

// reduce.cpp
void declare_accumulators(Emitter& e, const ir::ForStmt& s);
Tail accumulation(Emitter& e, const ir::ForStmt& s);
// The yields of a vector or block loop, and their tree.
Tail tree_operands(Emitter& e, const ir::ForStmt& s);
void emit_tree(Emitter& e, const ir::ForStmt& s);

}  // namespace fusejit::codegen::cuda
