// Work and size of a kernel: FLOP, tasks, statements, scratch and work memory. Traffic is in traffic.cpp,
// registers are in registers.cpp.
#include "ir/kernel/cost/cost.h"

#include <algorithm>

#include "ir/kernel/cost/assignment.h"
#include "ir/kernel/cost/parts.h"

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
  explicit Executions(const Path& path) : path_(path), levels_(path.size()), values_(path) {
    for (std::size_t i = 0; i < path.size(); ++i) {
      std::size_t named = i;  // the outermost level that this one names
      const auto names = [&](const Index& index) {
        index.for_each_leaf([&](const IndexAtom& leaf) {
          if (leaf.kind == AtomKind::value) levels_[i].is_known = false;
          const std::size_t level = level_of(path, leaf);
          if (level < i) levels_[level].is_named = true, named = std::min(named, level);
        });
      };
      if (path[i].loop) {
        for (const Index& index : path[i].loop->low) names(index);
        for (const Index& index : path[i].loop->high) names(index);
      } else {
        levels_[i].is_known = path[i].choice->condition < 0;
        for (const Compare& c : path[i].choice->compares) names(c.left);
      }
      for (std::size_t j = named + 1; j <= i; ++j) levels_[j].stands_alone = false;
    }
  }
  double count() {
    const double exact = from(0);
    if (steps_ <= kMaxSteps) return exact;
    for (Level& level : levels_) level.is_named = false, level.known_steps = 0;
    assume_ = true, steps_ = 0;  // too many: bounds as in the middle, conditions as if they held
    return from(0);
  }

 private:
  static constexpr int kMaxSteps = 50000;

  struct Level {
    bool is_named = false;     // by a level inside
    bool is_known = true;      // a condition that names no loaded value
    bool stands_alone = true;  // neither it nor what is inside names a level outside: counted once
    int known_steps = 0;       // what counting took, 0: not counted yet
    double known = 0;
  };

  double from(std::size_t i) {
    if (i == path_.size()) return 1;
    Level& level = levels_[i];
    if (level.known_steps > 0) {
      steps_ = std::min(kMaxSteps + 1, steps_ + level.known_steps);
      return level.known;
    }
    const int before = steps_;
    const double found = count_from(i);
    if (level.stands_alone) level.known = found, level.known_steps = steps_ - before;
    return found;
  }
  double count_from(std::size_t i) {
    if (++steps_ > kMaxSteps) return 0;
    if (path_[i].choice)  // what is not known counts on both sides
      return assume_ || !levels_[i].is_known || values_.holds(path_[i]) ? from(i + 1) : 0;
    const auto [low, high] = values_.bounds(*path_[i].loop);
    if (high <= low) return 0;
    std::int64_t& v = values_[path_[i].loop->variable];
    v = low + (high - low) / 2;
    if (!levels_[i].is_named) return static_cast<double>(high - low) * from(i + 1);
    double total = 0;
    for (v = low; v < high && steps_ <= kMaxSteps; ++v) total += from(i + 1);
    return total;
  }

  const Path& path_;
  std::vector<Level> levels_;
  Assignment values_;
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
