// Statements, loops and branches.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/text.h"
#include "ir/base/check.h"
#include "ir/kernel/math.h"

namespace fusejit::codegen::cuda {
namespace {

bool lockstep(const Emitter& e) { return e.vector != nullptr && !e.in_lane; }

std::string bound_text(const Emitter& e, const std::vector<ir::Index>& bounds, bool low, const char* type) {
  if (bounds.size() == 1) return index_text(e, bounds[0]);
  return fmt::format("fj_{}<{}>({}, {})", low ? "larger" : "smaller", type, index_text(e, bounds[0]),
                     index_text(e, bounds[1]));
}

bool threads_differ(const Emitter& e, const ir::Index& index) {
  bool found = false;
  index.for_each_leaf([&](const ir::IndexAtom& leaf) {
    found = found || (leaf.kind == ir::AtomKind::variable ? e.thread_variables.contains(leaf.id)
                                                          : e.thread_values[static_cast<std::size_t>(leaf.id)]);
  });
  return found;
}
bool threads_differ(const Emitter& e, const std::vector<ir::Index>& bounds) {
  return std::any_of(bounds.begin(), bounds.end(), [&](const ir::Index& i) { return threads_differ(e, i); });
}

void emit_serial(Emitter& e, const ir::ForStmt& s) {
  const auto id = static_cast<std::size_t>(s.variable);
  declare_accumulators(e, s);
  bool narrow = e.ranges.of({ir::AtomKind::variable, s.variable, nullptr, 0}).has_value();
  for (const auto* bounds : {&s.low, &s.high})
    for (const ir::Index& index : *bounds) narrow = narrow && fits_int(e, index);
  e.wide[id] = !narrow;
  const char* type = narrow ? "int" : "long long";
  const std::string variable = variable_name(e, s.variable);
  if (s.binding == ir::Binding::unroll) {
    gather_loads(e, s);
    e.out.line("#pragma unroll");
  } else if (s.copies > 0) {
    e.out.line(fmt::format("#pragma unroll {}", s.copies));
  }
  e.out.open(fmt::format("for ({0} {1} = {2}; {1} < {3}; ++{1}) {{", type, variable, bound_text(e, s.low, true, type),
                         bound_text(e, s.high, false, type)));
  define_quotients(e, s.variable);
  const bool divergent = threads_differ(e, s.low) || threads_differ(e, s.high);
  e.divergent += divergent ? 1 : 0;
  ++e.serial;
  emit_block(e, s.body, accumulation(e, s));
  --e.serial;
  e.divergent -= divergent ? 1 : 0;
  e.out.close();
}

void emit_vector(Emitter& e, const ir::ForStmt& s) {
  e.vector = &s;
  const Tail tail = tree_operands(e, s);
  emit_lockstep(e, s.body, tail);
  if (!s.results.empty()) emit_tree(e, s);
  e.vector = nullptr;
}

void emit_block_axis(Emitter& e, const ir::ForStmt& s) {
  const auto axis = static_cast<std::size_t>(s.binding) - static_cast<std::size_t>(ir::Binding::block_x);
  e.thread_variables.insert(s.variable);
  e.out.line(fmt::format("const int {} = {};", variable_name(e, s.variable), e.coordinates[axis]));
  define_quotients(e, s.variable);
  e.covered[axis] = true;
  emit_block(e, s.body, tree_operands(e, s));
  e.covered[axis] = false;
  if (!s.results.empty()) emit_tree(e, s);
}

// Each side ends by assigning its yields to the results.
Tail assignment(Emitter& e, const ir::IfStmt& s, const std::vector<ir::Arg>& yields) {
  Tail tail;
  tail.args = yields;
  const auto assign = [&e, &s, &yields](bool arrays) {
    for (std::size_t i = 0; i < s.results.size(); ++i) {
      const bool array = e.array[static_cast<std::size_t>(s.results[i])];
      if (array == arrays) e.out.line(fmt::format("{} = {};", text(e, s.results[i]), text(e, yields[i])));
    }
  };
  const bool any_array = lockstep(e) && std::any_of(s.results.begin(), s.results.end(), [&](ir::ValueId id) {
                           return e.array[static_cast<std::size_t>(id)];
                         });
  if (any_array) tail.lanes = [assign] { assign(true); };
  tail.uniform = [assign, all = !lockstep(e)] {
    assign(false);
    if (all) assign(true);
  };
  return tail;
}

// The fragment of a function that CUDA has no name for, one definition a line.
void emit_fragment(Emitter& e, const ir::DefStmt& s, const std::vector<std::string>& args) {
  const DType compute = dtype_of(e, s.args[0]);
  const ir::Fragment& f = ir::fragment(s.op, compute, true);
  const std::string prefix = name(e, s.results[0]) + "_";
  const auto operand = [&](const ir::Arg& a) {
    if (a.is_literal()) return literal(a.literal);
    return a.value < f.arguments ? args[static_cast<std::size_t>(a.value)] : fmt::format("{}{}", prefix, a.value);
  };
  for (const ir::DefStmt& d : f.definitions) {
    std::vector<std::string> inner;
    for (const ir::Arg& a : d.args) inner.push_back(operand(a));
    const ir::Arg& first = d.args.back();
    const DType from = first.is_literal() ? first.literal.dtype : f.values[static_cast<std::size_t>(first.value)];
    const DType to = f.values[static_cast<std::size_t>(d.results[0])];
    const std::string expression = spelled(d.op, from, to, inner);
    FJ_ASSERT(!expression.empty(), "op {} in the fragment of {} has no CUDA spelling", ir::name(d.op), ir::name(s.op));
    e.out.line(fmt::format("const {} {}{} = {};", type_name(to), prefix, d.results[0], expression));
  }
  define(e, s.results[0], operand(f.result));
}

struct StatementEmitter {
  Emitter& e;
  const ir::Stmt& stmt;
  void operator()(const ir::LocalStmt& s) const { emit_local(e, s); }
  void operator()(const ir::ForStmt& s) const { emit_for(e, s); }
  void operator()(const ir::IfStmt& s) const { emit_if(e, s); }
  void operator()(const ir::DefStmt& s) const { emit_def(e, s); }
  void operator()(const ir::LoadStmt& s) const { emit_load(e, s); }
  void operator()(const ir::IndexStmt& s) const {
    const DType type = e.kernel.values[static_cast<std::size_t>(s.result)];
    define(e, s.result, fmt::format("static_cast<{}>({})", type_name(type), index_text(e, s.index)));
  }
  void operator()(const ir::StoreStmt& s) const {
    const auto bits = e.bit_stores.find(&stmt);
    if (bits == e.bit_stores.end()) return emit_store(e, s);
    const std::string lane = variable_name(e, e.vector->variable);
    e.out.line(fmt::format("{0}[{1}] = {2}, {0}_active[{1}] = true;", bits->second, lane, text(e, s.value)));
  }
  void operator()(const ir::PrefetchStmt&) const {}  // a hint that this back end does not take
};

// A lane of bf16 as f32, of a vector that is whole words. In loops alone, which instructions may bind: a point-wise
// kernel waits for memory, and the words took 38 registers where 32 leave room for all threads (1.08 of the time).
bool widens_lane(const Emitter& e, const ir::DefStmt& s) {
  if (s.op != ir::Op::cast || !e.in_lane || e.serial == 0 || s.args[0].is_literal()) return false;
  const ir::ValueId id = s.args[0].value;
  return dtype_of(e, s.args[0]) == DType::bf16 && dtype_of(e, ir::Arg(s.results[0])) == DType::f32 &&
         e.array[static_cast<std::size_t>(id)] && !e.gathered.contains(id) && e.lane_count() % 2 == 0;
}

}  // namespace

void emit_statement(Emitter& e, const ir::Stmt& s) { std::visit(StatementEmitter{e, s}, s.node); }

void emit_barrier(Emitter& e, const ir::Stmt& s) {
  if (e.divergent > 0 || e.in_lane) {
    throw UnsupportedError(
        fmt::format("{}:{}: threads of a block meet through memory inside a branch or loop that they take differently; "
                    "the loops of "
                    "the block would have to stand inside it",
                    s.at.line, s.at.column));
  }
  e.out.line("__syncthreads();");
}

// What one thread of the axes that are missing does alone.
static void emit_lone(Emitter& e, std::span<const ir::Stmt> statements) {
  if (e.barriers.contains(&statements[0])) emit_barrier(e, statements[0]);
  e.out.open(fmt::format("if ({}) {{", lone_condition(e)));
  const std::array<bool, 3> covered = std::exchange(e.covered, {true, true, true});
  ++e.divergent;
  for (const ir::Stmt& s : statements) emit_statement(e, s);
  --e.divergent;
  e.covered = covered;
  e.out.close();
}

void emit_block(Emitter& e, const ir::Block& block, const Tail& tail) {
  if (lockstep(e)) return emit_lockstep(e, block, tail);
  const auto lone = e.tails.begin.find(&block);
  const std::size_t all = block.statements.size(), together = lone == e.tails.begin.end() ? all : lone->second;
  for (std::size_t i = 0; i < together; ++i) {
    if (e.barriers.contains(&block.statements[i])) emit_barrier(e, block.statements[i]);
    emit_statement(e, block.statements[i]);
  }
  if (together < all) emit_lone(e, std::span(block.statements).subspan(together));
  if (tail.lanes) tail.lanes();
  if (tail.uniform) tail.uniform();
}

void emit_def(Emitter& e, const ir::DefStmt& s) {
  if (widens_lane(e, s)) {
    const std::string lane = variable_name(e, e.vector->variable);
    return define(e, s.results[0], fmt::format("fj_widen({}, {})", name(e, s.args[0].value), lane));
  }
  std::vector<std::string> args;
  for (const ir::Arg& a : s.args) args.push_back(text(e, a));
  if (s.results.size() == 4) {  // philox
    std::vector<std::string> words;
    for (ir::ValueId id : s.results) {
      if (!e.array[static_cast<std::size_t>(id)]) declare(e, id);
      words.push_back(text(e, id));
    }
    e.out.line(fmt::format("fj_philox({}, {});", fmt::join(args, ", "), fmt::join(words, ", ")));
    return;
  }
  // The last operand tells the class: the first of `where` is its condition.
  const std::string expression =
      spelled(s.op, dtype_of(e, s.args.back()), e.kernel.values[static_cast<std::size_t>(s.results[0])], args);
  if (expression.empty()) return emit_fragment(e, s, args);
  define(e, s.results[0], expression);
}

void emit_if(Emitter& e, const ir::IfStmt& s) {
  std::string condition = s.condition >= 0 ? text(e, s.condition) : "";
  bool divergent = s.condition >= 0 && e.thread_values[static_cast<std::size_t>(s.condition)];
  for (const ir::Compare& c : s.compares) {
    condition += (condition.empty() ? "" : " && ") + compare_text(e, c);
    divergent = divergent || threads_differ(e, c.left);
  }
  for (ir::ValueId id : s.results) {
    if (e.array[static_cast<std::size_t>(id)]) continue;  // declared before the lanes
    e.array[static_cast<std::size_t>(id)] = lockstep(e) && varies(e, ir::Arg(id));
    declare(e, id);
  }
  e.divergent += divergent ? 1 : 0;
  e.out.open(fmt::format("if ({}) {{", condition));
  emit_block(e, s.then_block, assignment(e, s, s.then_block.yields));
  if (!s.else_block.statements.empty() || !s.else_block.yields.empty()) {
    e.out.reopen("} else {");
    emit_block(e, s.else_block, assignment(e, s, s.else_block.yields));
  }
  e.out.close();
  e.divergent -= divergent ? 1 : 0;
}

void emit_for(Emitter& e, const ir::ForStmt& s) {
  e.ranges.enter(s);
  if (s.binding == ir::Binding::vector) return emit_vector(e, s);
  if (ir::is_block_axis(s.binding)) return emit_block_axis(e, s);
  FJ_ASSERT(s.binding == ir::Binding::none || s.binding == ir::Binding::unroll, "a parallel loop stands outermost");
  emit_serial(e, s);
}

}  // namespace fusejit::codegen::cuda
