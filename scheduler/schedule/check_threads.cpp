// A thread that has nothing to do is kept out by a condition, and a condition allows less than a loop's bound: no other
// threads begin inside of it, of an index over several dims one alone is proven by it, and a quotient has no writer of
// its own any more.
#include "scheduler/schedule/check_threads.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "ir/kernel/walk.h"
#include "ir/ops/geometry/window.h"
#include "scheduler/schedule/limits.h"

namespace fusejit::scheduler {
namespace {

using ir::Binding;

bool contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

class ThreadCheck {
 public:
  ThreadCheck(const ir::Contraction& c, const Schedule& s, bool sums) : c_(c), s_(s), reduces_(sums) {}

  std::string run() {
    for (const auto step : {&ThreadCheck::axes, &ThreadCheck::uneven, &ThreadCheck::bounds, &ThreadCheck::packed,
                            &ThreadCheck::combined, &ThreadCheck::summed_together, &ThreadCheck::trees}) {
      if (std::string broken = (this->*step)(); !broken.empty()) return broken;
    }
    return "";
  }

 private:
  const ir::ContractionDim& dim(const std::string& name) const { return c_.dim(name); }
  const ir::ContractionDim& dim(int d) const { return c_.dims[static_cast<std::size_t>(d)]; }
  // Of a loop over several dims: combinations of what is held of each.
  std::int64_t elements(const ScheduledLoop& loop) const {
    if (loop.dims.size() == 1) return dim(loop.dims[0]).extent;
    std::int64_t all = 1;
    for (const std::string& name : loop.dims) all *= ir::ceil_divide(dim(name).extent, s_.held(name));
    return all;
  }

  // Grid before block, each axis once, and grid.x always.
  std::string axes() {
    for (const ScheduledLoop& loop : s_.outer)
      if (dim(loop.dims[0]).reduced) return fmt::format("partial results are added to once, not in {}", str(loop));
    static constexpr Binding kOrder[] = {Binding::grid_z, Binding::grid_y, Binding::grid_x};
    const auto* axis = std::begin(kOrder);
    for (const ScheduledLoop& loop : s_.tasks) {
      if (loop.bound == Binding::none || !bound_.insert(loop.bound).second)
        return fmt::format("the loop {} is not bound, or on an axis that has another one", str(loop));
      if (ir::is_block_axis(loop.bound)) {
        axis = std::end(kOrder);
      } else if ((axis = std::find(axis, std::end(kOrder), loop.bound)) == std::end(kOrder)) {
        return fmt::format("the loop {} is bound to {}: outermost first, that is z, y, x of the grid, then a block's",
                           str(loop), ir::name(loop.bound));
      }
    }
    return bound_.contains(Binding::grid_x) ? "" : "no loop is bound to grid.x";
  }

  // How many threads there are, and where some of them have nothing to do.
  std::string uneven() {
    std::map<std::vector<std::string>, std::int64_t> left;
    std::string condition;
    for (const auto* list : {&s_.tasks, &s_.outer, &s_.inner}) {
      for (const ScheduledLoop& loop : *list) {
        if (s_.combinations(loop.dims[0]) != nullptr) continue;
        const bool lanes = contains(loop.dims, s_.vector), last = loop.step + loop.stride == 0;
        if (lanes && loop.dims.size() > 1)
          return fmt::format("lanes run along {}, so its loop is not {}", s_.vector, str(loop));
        const std::int64_t held = loop.dims.size() == 1 ? s_.held(loop.dims[0]) : 1;
        if (list == &s_.tasks && last && held > 1 && !lanes)
          return fmt::format("threads of the loop {} hold {} elements each: the loop goes in such steps", str(loop),
                             held);
        if (loop.stride > 0 && !condition.empty())
          return fmt::format("threads share the loop {} inside of {}, where some have nothing to do", str(loop),
                             condition);
        std::int64_t& rest = left.try_emplace(loop.dims, elements(loop)).first->second;
        const std::int64_t step = last ? held : loop.step;
        const std::int64_t iterations = loop.stride > 0 ? loop.stride : ir::ceil_divide(rest, step);
        if (ir::is_block_axis(loop.bound)) threads_ *= iterations;
        if (!last && rest % (loop.stride > 0 ? loop.stride : step) != 0) cut_unevenly(loop);
        rest = loop.stride > 0 ? ir::ceil_divide(rest, loop.stride) : step;
        if (!last || lanes || std::none_of(loop.dims.begin(), loop.dims.end(), [&](const std::string& name) {
              return uneven_.contains(name);
            }))
          continue;
        condition = str(loop);
        if (reduces_ && list != &s_.inner)
          return fmt::format("threads of the loop {} have nothing to add up, and leave a sum each", condition);
      }
    }
    return check_block(threads_, s_.registers);
  }
  // The condition bounds the outermost of the dims; the others are remainders.
  void cut_unevenly(const ScheduledLoop& loop) {
    uneven_.insert(*std::find_if(loop.dims.begin(), loop.dims.end() - 1,
                                 [&](const std::string& name) { return dim(name).extent > s_.held(name); }));
  }

  // An index stays within one such bound at most, and each element of the result has one writer.
  std::string bounds() {
    for (const ir::ContractionDim& d : c_.dims) {
      const bool lanes = d.name == s_.vector;
      if ((lanes || !d.reduced) && d.extent % (lanes ? s_.lanes_together() : s_.held(d.name)) != 0)
        uneven_.insert(d.name);
    }
    const auto uneven_of = [&](const ir::DimSum& sum) {
      std::vector<std::string> names;
      for (const ir::DimSum::Term& term : sum.terms)
        if (uneven_.contains(dim(term.dim).name)) names.push_back(dim(term.dim).name);
      return names;
    };
    for (const ir::DimSum& sum : c_.result) {
      std::vector<std::string> names = uneven_of(sum);
      std::erase(names, s_.vector);  // idle lanes: a rule of their own
      if (sum.terms.size() > 1 && !names.empty())
        return fmt::format("threads along {} have nothing to do, and an index of the result has it beside another dim",
                           names[0]);
    }
    std::vector<ir::ContractionDim> tiles = c_.dims;  // whole ones: what may leave an operand has conditions of its own
    for (ir::ContractionDim& d : tiles)
      if (d.name != s_.vector) d.extent = ir::ceil_divide(d.extent, s_.held(d.name)) * s_.held(d.name);
    for (const auto* operand : {&c_.a, &c_.b}) {
      for (std::size_t i = 0; i < operand->index.size(); ++i) {
        const std::vector<std::string> names = uneven_of(operand->index[i]);
        if (names.size() > 1 && (operand == &c_.b || !c_.a.may_leave(static_cast<int>(i), tiles)))
          return fmt::format("threads along {} have nothing to do, and they are one index of an operand",
                             fmt::join(names, " and "));
      }
    }
    return "";
  }

  std::string packed() {
    const auto in_blocks = [&](std::int64_t block) { return ir::ceil_divide(dim(s_.vector).extent, block) * block; };
    if (s_.pack_b == 0 || in_blocks(s_.lanes_together()) <= in_blocks(s_.pack_b)) return "";
    return fmt::format("threads take {} {} side by side, which reach beyond the last block of {}", s_.lanes_together(),
                       s_.vector, s_.pack_b);
  }

  // Every element of a result once, those of one index one after the other.
  std::string combined() {
    if (s_.combine.empty()) return "";
    for (const ir::ContractionDim& d : c_.dims) {
      const auto times = std::count(s_.combine.begin(), s_.combine.end(), d.name);
      if (!d.reduced && (times > 1 || (times == 0 && d.extent > 1)))
        return fmt::format("threads combine results in an order of all dims, and {} is there {} times", d.name, times);
    }
    for (std::size_t i = 0; i < s_.combine.size(); ++i) {
      for (std::size_t j = 0; j < s_.combine.size(); ++j) {
        if (c_.lies_behind(c_.find(s_.combine[i]), c_.find(s_.combine[j])) && j != i + 1)
          return fmt::format("{} and {} are one index of the result, and threads combine it in another order",
                             s_.combine[i], s_.combine[j]);
      }
    }
    return "";
  }

  // A thread counts the results that it adds up in one loop over all of them.
  std::string summed_together() {
    if (!reduces_) return "";
    std::vector<std::string> all;
    for (const ir::ContractionDim& d : c_.dims)
      if (!d.reduced && d.extent > 1 && !c_.b.mentions(c_.find(d.name))) all.push_back(d.name);
    for (const auto* list : {&s_.tasks, &s_.outer, &s_.inner}) {
      for (const ScheduledLoop& loop : *list) {
        const auto have =
            std::count_if(all.begin(), all.end(), [&](const std::string& name) { return contains(loop.dims, name); });
        const bool whole = have == static_cast<std::ptrdiff_t>(all.size()) && loop.dims.size() > 1 &&
                           s_.combinations(loop.dims[0]) == nullptr;
        if (have > 0 && !whole)
          return fmt::format("threads add up results in one loop over {}, not in {}", fmt::join(all, "*"), str(loop));
      }
    }
    return "";
  }

  // What threads add up in turn meets in a tree: the epilogue's sums where those begin, the terms of a partial result
  // where that does.
  std::string trees() {
    bool terms = false;
    for (const ScheduledLoop& loop : s_.inner) {
      const bool reduced = dim(loop.dims[0]).reduced, first = reduced && !std::exchange(terms, terms || reduced);
      const bool is_bound = loop.bound != Binding::none;
      if (is_bound != (loop.stride > 0) || (is_bound && !bound_.insert(loop.bound).second))
        return fmt::format("threads share the loop {} by strides, on an axis of their own", str(loop));
      if (!is_bound) continue;
      if ((reduces_ || reduced) && (loop.stride & (loop.stride - 1)) != 0)
        return fmt::format("{} threads do not meet in a tree: only a power of two of them do", loop.stride);
      const bool tile = std::any_of(s_.tile.begin(), s_.tile.end(), [](const Extent& t) { return t.dims.size() == 1; });
      if (reduced && tile)
        return fmt::format("threads share the loop {}, and each holds a tile that is no list of combinations",
                           str(loop));
      if (reduced && (!first || s_.combine.empty()))
        return fmt::format("threads share the loop {}, which is not the first over the terms of one partial result",
                           str(loop));
      if (!reduced && reduces_ && &loop != &s_.inner.front())
        return fmt::format("threads share the loop {}, and what it adds up begins outside of it", str(loop));
    }
    return "";
  }

  const ir::Contraction& c_;
  const Schedule& s_;
  const bool reduces_;
  std::int64_t threads_ = 1;  // of a block
  std::set<Binding> bound_;
  std::set<std::string> uneven_;  // dims of which some threads, or lanes, have no element
};

}  // namespace

std::string str(const ScheduledLoop& loop) {
  return fmt::format("{}", fmt::join(loop.dims, "*")) + (loop.step > 0     ? fmt::format("/{}", loop.step)
                                                         : loop.stride > 0 ? fmt::format(" stride {}", loop.stride)
                                                                           : "");
}

std::string check_threads(const ir::Contraction& contraction, const Schedule& schedule, bool sums) {
  return ThreadCheck(contraction, schedule, sums).run();
}

std::string check_block(std::int64_t threads, std::int64_t registers) {
  if (threads > kMostThreads) return fmt::format("a block of {} threads; at most {}", threads, kMostThreads);
  if (registers == 0) return "";
  if (registers < ir::kLeastRegisters || registers > ir::kMostRegisters)
    return fmt::format("a thread has {} to {} registers, not {}", ir::kLeastRegisters, ir::kMostRegisters, registers);
  if (ir::blocks_that_fit(threads, static_cast<int>(registers)) > 0) return "";
  return fmt::format("{} threads of {} registers each are more than a multiprocessor has", threads, registers);
}

}  // namespace fusejit::scheduler
