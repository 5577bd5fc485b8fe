// Work and size of a kernel: FLOP, tasks, statements, scratch and work memory. Traffic is in cost_traffic.cpp,
// registers are in cost_registers.cpp.
#include "ir/kernel/cost.h"

#include <algorithm>

#include "ir/kernel/cost_parts.h"

namespace fusejit::ir {
namespace {

class Work {
 public:
  explicit Work(const Kernel& kernel) : k_(kernel) {
    Path path;
    for (const Phase& phase : kernel.phases) block(phase.body, path, 1);
  }

  double flop = 0;
  std::int64_t statements = 0;

 private:
  void block(const Block& b, Path& path, std::int64_t copies) {
    double once = 0;
    for (const Stmt& stmt : b.statements) {
      statements = std::min(kManyStatements, statements + copies);
      if (const auto* def = std::get_if<DefStmt>(&stmt.node)) once += flop_of(*def);
    }
    if (once > 0) flop += once * executions(path);
    for (const Stmt& stmt : b.statements) {
      if (const auto* loop = std::get_if<ForStmt>(&stmt.node)) {
        const std::int64_t inner = std::min(kManyStatements, copies * unrolled_copies(*loop));
        path.push_back({loop, nullptr, false});
        double combined = 0;
        for (std::size_t i = 0, at = 0; i < loop->combiners.size(); ++i) {
          if (is_float(k_.values[static_cast<std::size_t>(loop->results[at])])) combined += flop_of(loop->combiners[i]);
          at += static_cast<std::size_t>(components(loop->combiners[i]));
        }
        if (combined > 0) flop += combined * executions(path);
        block(loop->body, path, inner);
        path.pop_back();
      } else if (const auto* choice = std::get_if<IfStmt>(&stmt.node)) {
        for (const bool in_else : {false, true}) {
          path.push_back({nullptr, choice, in_else});
          block(in_else ? choice->else_block : choice->then_block, path, copies);
          path.pop_back();
        }
      }
    }
  }

  static constexpr std::int64_t kManyStatements = std::int64_t{1} << 40;

  // Integer and index work is not counted.
  double flop_of(const DefStmt& def) const {
    const auto floating = [&](const Arg& a) {
      return is_float(a.is_literal() ? a.literal.dtype : k_.values[static_cast<std::size_t>(a.value)]);
    };
    return std::any_of(def.args.begin(), def.args.end(), floating) ? op_def(def.op).cost : 0;
  }
  static double flop_of(Combiner combiner) { return combiner == Combiner::welford ? 9 : 1; }  // of comb(a, b)

  const Kernel& k_;
};

// The product of the extents of the parallel nest, 1 without one.
std::int64_t task_count(const Phase& phase) {
  std::int64_t tasks = 1;
  const Block* level = &phase.body;
  while (level->statements.size() == 1) {
    const auto* loop = std::get_if<ForStmt>(&level->statements[0].node);
    if (!loop || !(loop->binding == Binding::threads || is_grid_axis(loop->binding))) break;
    tasks *= std::max<std::int64_t>(0, loop->high[0].constant());
    level = &loop->body;
  }
  return tasks;
}

// Counts the iterations of the loops of a path whose bounds and conditions hold. Variables that other bounds or
// conditions name are enumerated, the others multiply.
class Executions {
 public:
  explicit Executions(const Path& path) : path_(path) {
    const auto names = [&](const Index& index, std::size_t before) {
      index.for_each_leaf([&](const IndexAtom& leaf) {
        for (std::size_t i = 0; i < before; ++i)
          if (leaf.kind == AtomKind::variable && path_[i].loop && path_[i].loop->variable == leaf.id) named_[i] = true;
      });
    };
    named_.resize(path.size());
    values_.resize(path.size());
    for (std::size_t i = 0; i < path.size(); ++i) {
      if (path[i].loop) {
        for (const Index& index : path[i].loop->low) names(index, i);
        for (const Index& index : path[i].loop->high) names(index, i);
      } else {
        for (const Compare& c : path[i].choice->compares) names(c.left, i);
      }
    }
  }
  double count() {
    const double exact = from(0);
    if (steps_ <= kMaxSteps) return exact;
    named_.assign(named_.size(), false);  // too many: bounds as in the middle, conditions as if they held
    assume_ = true, steps_ = 0;
    return from(0);
  }

 private:
  static constexpr int kMaxSteps = 50000;

  std::int64_t value(const Index& index) const {
    return index.evaluate([&](const IndexAtom& leaf) -> std::int64_t {
      for (std::size_t i = 0; i < path_.size(); ++i)
        if (leaf.kind == AtomKind::variable && path_[i].loop && path_[i].loop->variable == leaf.id) return values_[i];
      return 0;
    });
  }
  static bool has_value(const Index& index) {
    bool found = false;
    index.for_each_leaf([&](const IndexAtom& leaf) { found = found || leaf.kind == AtomKind::value; });
    return found;
  }
  bool holds(const Enclosing& e) const {
    if (e.choice->condition >= 0 || assume_) return true;
    bool all = true;
    for (const Compare& c : e.choice->compares) {
      if (has_value(c.left)) return true;  // not known: both sides count
      const std::int64_t left = value(c.left);
      all = all && (c.kind == CompareKind::lt   ? left < c.right
                    : c.kind == CompareKind::ge ? left >= c.right
                                                : left == c.right);
    }
    return all != e.in_else;
  }
  double from(std::size_t i) {
    if (i == path_.size()) return 1;
    if (++steps_ > kMaxSteps) return 0;
    if (path_[i].choice) return holds(path_[i]) ? from(i + 1) : 0;
    const ForStmt& loop = *path_[i].loop;
    std::int64_t low = INT64_MIN, high = INT64_MAX;
    for (const Index& index : loop.low) low = std::max(low, value(index));
    for (const Index& index : loop.high) high = std::min(high, value(index));
    if (high <= low) return 0;
    values_[i] = low + (high - low) / 2;
    if (!named_[i]) return static_cast<double>(high - low) * from(i + 1);
    double total = 0;
    for (std::int64_t v = low; v < high && steps_ <= kMaxSteps; ++v) values_[i] = v, total += from(i + 1);
    return total;
  }

  const Path& path_;
  std::vector<bool> named_;
  std::vector<std::int64_t> values_;
  int steps_ = 0;
  bool assume_ = false;
};

}  // namespace

double executions(const Path& path) { return Executions(path).count(); }

std::int64_t unrolled_copies(const ForStmt& loop) {
  if (loop.binding != Binding::unroll) return 1;
  std::int64_t low = INT64_MIN, high = INT64_MAX;
  for (const Index& index : loop.low) low = std::max(low, index.constant());
  for (const Index& index : loop.high) high = std::min(high, index.constant());
  return std::max<std::int64_t>(0, high - low);
}

double flop(const Kernel& kernel) { return Work(kernel).flop; }

KernelCost cost(const Kernel& kernel) {
  KernelCost result;
  const Work work(kernel);
  for (const Phase& phase : kernel.phases) {
    result.tasks.push_back(task_count(phase));
    result.scratch_bytes = std::max(result.scratch_bytes, scratch_bytes(phase.body, kernel));
  }
  for (MemId id : kernel.works) {
    const Memory& m = kernel.memories[static_cast<std::size_t>(id)];
    result.work_bytes += (bytes(m.dtype, m.elements()) + 63) / 64 * 64;
  }
  result.flop = work.flop;
  result.statements = work.statements;
  result.traffic = traffic(kernel);
  result.vector_registers = vector_registers(kernel);
  return result;
}

}  // namespace fusejit::ir
