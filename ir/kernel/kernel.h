// Kernel: the loop language between lowering and everything that runs. kernel-ir.md is its contract.
//
// A Kernel is an immutable value. Ids are dense indices into its tables: VarId (loop variables), ValueId (SSA values
// and scalar parameters), MemId (buffers, work, locals). Names of the text are not kept: printing renumbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fusejit/target.h"
#include "ir/base/scalar.h"
#include "ir/base/text.h"
#include "ir/kernel/combiner.h"
#include "ir/kernel/index.h"
#include "ir/op.h"

namespace fusejit::ir {

using VarId = int;
using ValueId = int;
using MemId = int;

enum class MemKind : std::uint8_t { read, write, update, work, register_local, scratch_local };

struct Memory {
  MemKind kind = MemKind::read;
  DType dtype = DType::f32;
  std::vector<std::int64_t> dims;  // physical, row-major
  std::int64_t align = 0;          // bytes; buffers and work (0: element size)
  bool has_init = false;           // locals: `= number`
  Scalar init = {};
  std::int64_t elements() const;
  bool is_local() const { return kind == MemKind::register_local || kind == MemKind::scratch_local; }
};

// An argument of an op, a yield or a store: an SSA value or a literal already read into its dtype.
struct Arg {
  ValueId value = -1;  // -1: literal
  Scalar literal = {};
  Arg() = default;
  Arg(ValueId v) : value(v) {}
  Arg(Scalar s) : literal(s) {}
  bool is_literal() const { return value < 0; }
  friend bool operator==(const Arg&, const Arg&) = default;
};

enum class Binding : std::uint8_t {
  none,
  threads,
  unroll,
  vector,
  tile,
  grid_x,
  grid_y,
  grid_z,
  block_x,
  block_y,
  block_z
};

struct Place {
  MemId memory = -1;
  std::vector<Index> index;  // one per dim
  friend bool operator==(const Place&, const Place&) = default;
};

enum class CompareKind : std::uint8_t { lt, ge, eq };
// index < right, >= right, == right, where the constant part of the index has been moved to the right.
struct Compare {
  Index left;
  CompareKind kind = CompareKind::lt;
  std::int64_t right = 0;
  friend bool operator==(const Compare&, const Compare&) = default;
};

struct Stmt;
struct Block {
  std::vector<Stmt> statements;
  std::vector<Arg> yields;
};

struct LocalStmt {
  MemId memory;
};
struct ForStmt {
  std::vector<ValueId> results;  // of the reduction; empty: none
  VarId variable;
  std::vector<Index> low;   // 1, or 2 for max(a, b)
  std::vector<Index> high;  // 1, or 2 for min(a, b)
  Binding binding = Binding::none;
  std::vector<Combiner> combiners;
  Block body;
  int copies = 0;  // of the body, in which a serial loop runs on CUDA ("unroll n", §5); 0: nothing is said
};
struct IfStmt {
  std::vector<ValueId> results;
  ValueId condition = -1;  // a bool value, or -1: the conjunction of `compares`
  std::vector<Compare> compares;
  Block then_block;
  Block else_block;  // empty if left out
};
struct DefStmt {
  std::vector<ValueId> results;  // one, but four for philox
  Op op;
  std::vector<Arg> args;
  std::vector<Attr> attrs;  // none in the text form; reserved
};
struct LoadStmt {
  ValueId result;
  Place place;
  bool through_views = false;  // of lowering, not of the text: the index was made by views (guard_views)
};
struct IndexStmt {
  ValueId result;
  Index index;
};
struct StoreStmt {
  Place place;
  Arg value;
  bool non_temporal = false;
};
enum class PrefetchKind : std::uint8_t { l1, l2, write };
struct PrefetchStmt {
  Place place;
  PrefetchKind kind;
};

struct Stmt {
  std::variant<LocalStmt, ForStmt, IfStmt, DefStmt, LoadStmt, IndexStmt, StoreStmt, PrefetchStmt> node;
  Position at = {};  // where it stood in a text; line 0 if built by lowering
};

struct Phase {
  Block body;
  int registers = 0;  // of a thread, at most: what lowering's choice needs (§4); 0: nothing is said
};

// What a thread may be said to take.
inline constexpr int kLeastRegisters = 16, kMostRegisters = 255;
// Blocks of so many threads that have room in a multiprocessor of CUDA together, where a thread takes `registers`.
std::int64_t blocks_that_fit(std::int64_t threads, int registers);

// A parameter of the signature, in order: a buffer or a scalar.
struct KernelParam {
  MemId memory = -1;    // buffer, or -1
  ValueId scalar = -1;  // `%lr: f32 param`, or -1
};

struct Kernel {
  std::string name;
  Isa isa = Isa::any;
  std::vector<KernelParam> params;
  std::vector<MemId> works;
  std::vector<Phase> phases;

  std::vector<Memory> memories;  // by MemId
  std::vector<DType> values;     // by ValueId
  int variable_count = 0;        // VarIds are 0 .. variable_count-1
};

// Canonical text (§11). The name is kept in the text; kernel_key_text() replaces it by `k`.
std::string print(const Kernel& kernel);
std::string kernel_key_text(const Kernel& kernel);
// Reads one kernel, canonicalises indices. Throws ParseError. Does not verify.
Kernel parse_kernel(std::string_view text);
// Equal texts.
bool operator==(const Kernel& a, const Kernel& b);

// Rules V1-V9 of §8. Throws InternalError "line:column: V3: sentence" (positions refer to the canonical text if the
// kernel was built by lowering).
void verify(const Kernel& kernel);

// Rule V7 alone, for lowering that chooses the width of its accesses.
bool vectors_aligned(const Kernel& kernel);

// Folds constants and proven conditions, drops dead values and empty loops, replaces one-iteration serial loops.
Kernel simplify(const Kernel& kernel);

}  // namespace fusejit::ir
