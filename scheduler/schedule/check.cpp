// What is a legal schedule of a contraction. Whatever passes here is built and gives the right numbers; what is merely
// slow is the chooser's business.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "scheduler/schedule/check_matrix.h"
#include "scheduler/schedule/check_panels.h"
#include "scheduler/schedule/check_threads.h"
#include "scheduler/schedule/check_winograd.h"
#include "scheduler/schedule/dims.h"
#include "scheduler/schedule/limits.h"
#include "scheduler/schedule/schedule.h"
#include "scheduler/schedule/shared_panels.h"

namespace fusejit::scheduler {

std::int64_t Schedule::held(const std::string& dim) const {
  if (dim == vector) return block();
  for (const auto* list : {&tile, &unroll}) {
    for (const Extent& extent : *list)
      if (extent.dims.size() == 1 && extent.dims[0] == dim) return extent.count;
  }
  return 1;
}

const Extent* Schedule::combinations(const std::string& dim) const {
  for (const Extent& extent : tile) {
    if (extent.dims.size() > 1 && std::find(extent.dims.begin(), extent.dims.end(), dim) != extent.dims.end())
      return &extent;
  }
  return nullptr;
}

bool Schedule::by_threads() const {
  return std::any_of(tasks.begin(), tasks.end(),
                     [](const ScheduledLoop& loop) { return loop.bound != ir::Binding::none; });
}

std::int64_t Schedule::lanes_together() const {
  std::int64_t together = block();
  for (const ScheduledLoop& loop : tasks)
    if (by_threads() && loop.dims == std::vector{vector}) together = std::max(together, loop.step);
  return together;
}

std::int64_t Schedule::accumulators() const {
  std::int64_t count = vectors;
  for (const Extent& extent : tile) count *= extent.count;
  return count;
}

namespace {

constexpr std::size_t kMostLoops = 32;    // that stand inside of each other
constexpr std::int64_t kMostValues = 64;  // of a thread's tile

class Check {
 public:
  Check(const ir::Contraction& contraction, const Schedule& schedule, const Target& target, bool sums)
      : c_(contraction), s_(schedule), target_(target), reduces_(sums) {}

  std::string run() {
    if (s_.winograd > 0) {
      for (const auto step : {&Check::names, &Check::vector, &Check::registers})
        if (std::string broken = (this->*step)(); !broken.empty()) return broken;
      return check_winograd(c_, s_);
    }
    if (s_.shares_panels()) {
      for (const auto step : {&Check::names, &Check::vector, &Check::registers})
        if (std::string broken = (this->*step)(); !broken.empty()) return broken;
      return check_shared_panels(c_, s_, reduces_);
    }
    for (const auto step : {&Check::names, &Check::vector, &Check::registers, &Check::pairs, &Check::panels,
                            &Check::stores, &Check::cover, &Check::order, &Check::partial_results, &Check::sums,
                            &Check::parts, &Check::epilogue_sums, &Check::idle_lanes, &Check::late, &Check::fetches}) {
      if (std::string broken = (this->*step)(); !broken.empty()) return broken;
    }
    return s_.matrix > 0 ? check_matrix(c_, s_, target_) : "";
  }

 private:
  const ir::ContractionDim& dim(const std::string& name) const { return c_.dim(name); }

  std::string names() {
    std::set<std::string> used{s_.vector};
    for (const auto* list : {&s_.tile, &s_.unroll}) {
      for (const Extent& extent : *list) used.insert(extent.dims.begin(), extent.dims.end());
    }
    if (const std::size_t loops = s_.tasks.size() + s_.outer.size() + s_.inner.size(); loops > kMostLoops)
      return fmt::format("{} loops; at most {}", loops, kMostLoops);
    for (const auto* list : {&s_.tasks, &s_.outer, &s_.inner}) {
      for (const ScheduledLoop& loop : *list) {
        if (std::set<std::string>(loop.dims.begin(), loop.dims.end()).size() < loop.dims.size())
          return fmt::format("the loop {} names a dim twice", str(loop));
        used.insert(loop.dims.begin(), loop.dims.end());
      }
    }
    if (!s_.panel_maxima.empty()) return "'panel maxima' is for a pooling gradient, not for an anchor";
    used.insert(s_.combine.begin(), s_.combine.end());
    used.insert(s_.flush.dims.begin(), s_.flush.dims.end());
    used.insert(s_.fetch.dims.begin(), s_.fetch.dims.end());
    if (!s_.dot.empty()) used.insert(s_.dot);
    for (const std::string& name : used)
      if (c_.find(name) < 0) return fmt::format("there is no dim '{}' in {}", name, str(c_));
    std::set<std::string> held{s_.vector};
    for (const auto* list : {&s_.tile, &s_.unroll}) {
      for (const Extent& extent : *list) {
        for (const std::string& name : extent.dims) {
          if (dim(name).reduced == (list == &s_.tile))
            return fmt::format("{} is {}: it can be {}, not {}", name,
                               dim(name).reduced ? "summed up" : "a parallel dim",
                               dim(name).reduced ? "unrolled" : "tiled", dim(name).reduced ? "tiled" : "unrolled");
          if (list == &s_.tile && c_.b.mentions(c_.find(name)))
            return fmt::format("{} is tiled, and the second operand, which is read once for a tile, has it too", name);
          if (!held.insert(name).second) return fmt::format("{} is held in registers in two ways", name);
        }
      }
    }
    return "";
  }

  std::string vector() {
    const int v = c_.find(s_.vector);
    if (dim(s_.vector).reduced) return fmt::format("lanes run along {}, which is summed up", s_.vector);
    if (!c_.b.mentions(v)) return fmt::format("lanes run along {}, which the second operand does not have", s_.vector);
    const bool cuda = target_.isa == Isa::cuda;
    if (cuda != s_.by_threads()) return cuda ? "no loop is bound to the grid" : "there is no grid on a processor";
    if (s_.lanes < (cuda ? 1 : 2) || (s_.lanes & (s_.lanes - 1)) != 0)
      return fmt::format("a vector of {} lanes: only powers of two from 2 to 64", s_.lanes);
    if (cuda && s_.vectors > 1 && !s_.shares_panels()) return "a thread holds one vector";
    if (s_.pack_b > 0 && c_.terms() == 0) return "nothing is summed up, so that there is nothing to pack";
    if (s_.pack_b % s_.block() != 0)
      return fmt::format("blocks of {} are no whole vectors of {}", s_.pack_b, s_.block());
    if (s_.pack_b / s_.lanes > kMostUnrolled)
      return fmt::format("blocks of {} are more than {} vectors", s_.pack_b, kMostUnrolled);
    const std::int64_t needed = (dim(s_.vector).extent + s_.lanes - 1) / s_.lanes;
    if (s_.vectors > needed)
      return fmt::format("{} vectors of {} lanes, but {} has {} elements", s_.vectors, s_.lanes, s_.vector,
                         dim(s_.vector).extent);
    return "";
  }

  std::string registers() {
    for (const Extent& extent : s_.tile)  // products of larger ones would run over
      if (extent.count > kMostValues)
        return fmt::format("a tile of {} {}; at most {}", extent.count, fmt::join(extent.dims, "*"), kMostValues);
    std::int64_t copies = 1;
    for (const Extent& extent : s_.unroll) copies *= std::min(extent.count, kMostUnrolled + 1);
    if (copies > kMostUnrolled) return fmt::format("more than {} terms without a loop", kMostUnrolled);
    if (s_.unroll_within && copies * s_.vectors > kMostUnrolled)
      return fmt::format("{} vectors of the second operand at once; at most {}", copies * s_.vectors, kMostUnrolled);
    if (target_.isa == Isa::cuda) {
      if (s_.accumulators() * s_.lanes > kMostValues)
        return fmt::format("a thread holds {} values, at most {}", s_.accumulators() * s_.lanes, kMostValues);
      return "";
    }
    if (s_.matrix > 0) return "";  // sums are in tiles, then in scratch
    if (s_.registers > 0) return "a schedule says the registers of a device's threads, not of a processor";
    const std::int64_t all = target_.vector_registers();
    const std::int64_t needed = s_.accumulators() + s_.vectors + 1;
    if (needed > all)
      return fmt::format("a tile of {} vectors needs {} registers, there are {}", s_.accumulators(), needed, all);
    return "";
  }

  // Two neighbouring terms are one word of each operand.
  std::string pairs() {
    if (s_.dot.empty()) return "";
    if (!has_bf16(target_.isa)) return fmt::format("there is no dot2 on {}", name(target_.isa));
    if (c_.a.dtype != DType::bf16 || c_.b.dtype != DType::bf16)
      return fmt::format("dot2 multiplies bf16, not {} and {}", name(c_.a.dtype), name(c_.b.dtype));
    if (!dim(s_.dot).reduced) return fmt::format("{} is a parallel dim: its terms are not added up", s_.dot);
    const int dot = c_.find(s_.dot);
    const auto of_window = std::find_if(c_.a.index.begin(), c_.a.index.end(), [&](const ir::DimSum& sum) {
      return sum.terms.size() > 1 && sum.coefficient_of(dot) != 0;
    });
    if (of_window != c_.a.index.end() && !s_.panel_a.empty()) return pairs_of_window(*of_window);
    if ((dim(s_.dot).extent % 2 != 0 && s_.matrix == 0) || s_.held(s_.dot) % 2 != 0)
      return fmt::format("pairs of {}, of which there are {} and {} are unrolled", s_.dot, dim(s_.dot).extent,
                         s_.held(s_.dot));
    for (std::size_t i = 0; i < c_.a.index.size(); ++i)
      if (c_.a.index[i].coefficient_of(dot) != 0 && c_.a.may_leave(static_cast<int>(i), c_.dims))
        return fmt::format("a pair of {} may lie half outside of the first operand", s_.dot);
    const bool in_panels = !s_.panel_a.empty() && !s_.panel_b.empty();
    if (!in_panels && (s_.pack_b == 0 || c_.dims.back().name != s_.dot))
      return fmt::format("pairs of {} do not lie side by side: the second operand is packed, and its last dim is {}",
                         s_.dot, c_.dims.back().name);
    return "";
  }

  // Taps of a window that moves by whole pairs: every pair of its panel begins at an even place. The last may end with
  // a zero of both operands.
  std::string pairs_of_window(const ir::DimSum& index) {
    const int dot = c_.find(s_.dot);
    if (s_.pack_b == 0) return fmt::format("pairs of {}, taps of a window, are packed in the second operand", s_.dot);
    if (s_.held(s_.dot) % 2 != 0) return fmt::format("pairs of {}, of which {} are unrolled", s_.dot, s_.held(s_.dot));
    for (const ir::DimSum::Term& term : index.terms)
      if (term.coefficient <= 0 || (term.dim == dot ? term.coefficient != 1 : term.coefficient % 2 != 0))
        return fmt::format("a window over pairs of {} moves by whole pairs, not by {}", s_.dot, term.coefficient);
    const bool alone =
        std::any_of(c_.b.index.begin(), c_.b.index.end(), [&](const ir::DimSum& sum) { return is_dim(sum, dot); });
    if (!alone) return fmt::format("pairs of {} are an index of the second operand alone", s_.dot);
    if (s_.winograd > 0 || !s_.combine.empty()) return fmt::format("pairs of {} are added up by one task", s_.dot);
    return "";
  }

  std::string stores() {
    if (s_.stream && s_.by_threads()) return "a device decides itself what its caches keep";
    return "";
  }

  std::string panels() { return check_panels(c_, s_); }

  // Every element of every dim has its turn once.
  std::string cover() {
    std::map<std::vector<std::string>, std::int64_t> step;    // of the innermost loop so far
    std::map<std::string, std::vector<std::string>> loop_of;  // which loops a dim is part of
    std::set<std::string> done;
    for (const auto* list : {&s_.tasks, &s_.outer, &s_.inner}) {
      for (const ScheduledLoop& loop : *list) {
        const Extent* combinations = s_.combinations(loop.dims[0]);
        if (combinations != nullptr && (loop.dims != combinations->dims || loop.step + loop.stride > 0))
          return fmt::format("{} is tiled, so the loop over it is {}", fmt::join(combinations->dims, "*"),
                             fmt::join(combinations->dims, "*"));
        const std::int64_t held = loop.dims.size() > 1 ? 1 : s_.held(loop.dims[0]);
        for (const std::string& name : loop.dims) {
          if (done.contains(name)) return fmt::format("nothing of {} is left for the loop {}", name, str(loop));
          if (loop_of.try_emplace(name, loop.dims).first->second != loop.dims)
            return fmt::format("{} is cut elsewhere, so it cannot be part of the loop {}", name, str(loop));
          const bool whole = dim(name).reduced || !s_.by_threads();
          if (loop.dims.size() > 1 && combinations == nullptr && whole && dim(name).extent % s_.held(name) != 0)
            return fmt::format("the loop {} has no last tile of fewer {} than the {} in registers", str(loop), name,
                               s_.held(name));
          if (combinations == nullptr && s_.combinations(name) != nullptr)
            return fmt::format("{} is tiled together with others, and not in the loop {}", name, str(loop));
        }
        const auto outer = step.find(loop.dims);
        const bool bound = loop.stride > 0 || (list != &s_.tasks && loop.bound != ir::Binding::none);
        if (bound && (list != &s_.inner || !s_.by_threads()))
          return fmt::format("threads share inner loops of a device, and not the loop {}", str(loop));
        if (loop.stride > 0) {
          if (loop.step > 0 || held > 1) return fmt::format("the loop {} strides over single elements", str(loop));
          if (outer != step.end() && outer->second % loop.stride != 0)
            return fmt::format("strides of {} do not fill the {} of {}", loop.stride, outer->second, str(loop));
          continue;
        }
        if (loop.step == 0) {
          done.insert(loop.dims.begin(), loop.dims.end());
          continue;
        }
        if (outer != step.end() && outer->second % loop.step != 0)
          return fmt::format("steps of {} do not fill those of {} of {}", loop.step, outer->second,
                             fmt::join(loop.dims, "*"));
        // What is left of a tile comes last in every block, where all blocks are whole.
        const bool rest = !s_.by_threads() && loop.dims[0] != s_.vector && !dim(loop.dims[0]).reduced &&
                          dim(loop.dims[0]).extent % loop.step == 0;
        if (loop.step % held != 0 && !rest)
          return fmt::format("steps of {} are no multiple of the {} of {} in registers", loop.step, held, loop.dims[0]);
        step[loop.dims] = loop.step;
      }
    }
    for (const ir::ContractionDim& d : c_.dims) {
      if (done.contains(d.name)) continue;
      if (s_.combinations(d.name) == nullptr && s_.held(d.name) >= d.extent && !loop_of.contains(d.name)) continue;
      return fmt::format("no loop goes over the {} elements of {}", d.extent, d.name);
    }
    return "";
  }

  std::string order() {
    if (s_.by_threads()) {
      if (std::string broken = check_threads(c_, s_, reduces_); !broken.empty()) return broken;
    } else if (s_.tasks.size() > kMostTaskLoops) {
      return fmt::format("{} task loops; at most {}", s_.tasks.size(), kMostTaskLoops);
    }
    std::map<std::string, std::int64_t> extent;  // that the task loops so far leave
    for (const ScheduledLoop& loop : s_.tasks) {
      const std::string& name = loop.dims[0];
      if (s_.by_threads()) break;
      const auto [left, first] = extent.try_emplace(name, dim(name).extent);
      if (!first && dim(name).extent % left->second != 0)
        return fmt::format("the task loop {} has as many tasks in every one around it only if {} divides {}", str(loop),
                           left->second, dim(name).extent);
      left->second = loop.step;
      if (loop.step == 0 && name != s_.vector && dim(name).extent % s_.held(name) != 0)
        return fmt::format("the task loop {} has {} of {} a task, which do not fill {}", str(loop), s_.held(name), name,
                           dim(name).extent);
    }
    bool sums = false;
    for (const ScheduledLoop& loop : s_.inner) {
      for (const std::string& name : loop.dims) {
        if (dim(name).reduced) sums = true;
        if (!dim(name).reduced && sums)
          return fmt::format("the loop {} stands inside of a sum: sums of a register tile are innermost", str(loop));
        if (name == s_.vector) return fmt::format("lanes run along {}, so its loop is not an inner one", name);
      }
    }
    return "";
  }

  std::string partial_results() {
    bool cut = false;
    const ScheduledLoop* together = nullptr;  // blocks of several dims, of which what is left is no range of each
    for (const auto* list : {&s_.tasks, &s_.outer}) {
      for (const ScheduledLoop& loop : *list) {
        const bool reduced =
            std::any_of(loop.dims.begin(), loop.dims.end(), [&](const std::string& name) { return dim(name).reduced; });
        cut = cut || reduced;
        if (!reduced && loop.dims.size() > 1 && loop.step > 0) together = &loop;
        if (reduced && list == &s_.outer && together != nullptr)
          return fmt::format("the loop {} adds to partial results that the loop {} cuts across its dims", str(loop),
                             str(*together));
      }
    }
    if (cut && s_.combine.empty())
      return "a sum is cut by a task or an outer loop, and nothing combines the partial results";
    if (s_.combine.empty()) return "";
    for (const auto* list : {&s_.tasks, &s_.outer}) {
      for (const ScheduledLoop& loop : *list) {
        const std::string& name = loop.dims[0];
        if (loop.step == 0 || loop.dims.size() > 1 || name == s_.vector || dim(name).reduced ||
            dim(name).extent % loop.step == 0)
          continue;
        return fmt::format("the loop {} does not cut {} elements evenly, as partial results in memory are", str(loop),
                           dim(name).extent);
      }
    }
    if (reduces_) return "results that are combined from parts are not summed up in the same kernel";
    if (s_.by_threads() && s_.combine.size() == 1) return "threads combine element by element, in an order of all dims";
    for (const std::string& name : s_.combine)
      if (dim(name).reduced) return fmt::format("{} is summed up: no results lie along it", name);
    return s_.by_threads() ? "" : combined_together();
  }

  // Lanes along several dims: dims of their own, whose combinations are all there.
  std::string combined_together() {
    std::set<std::string> seen;
    for (const std::string& name : s_.combine) {
      if (!seen.insert(name).second) return fmt::format("results are combined along {} twice", name);
      if (s_.combine.size() == 1) return "";
      if (name == s_.vector) return fmt::format("results are combined along {}, or along other dims", name);
      for (const ir::ContractionDim& other : c_.dims)
        if (adjoin(name, other.name))
          return fmt::format("{} and {} are one index of the result, so that it is not combined along {}", name,
                             other.name, fmt::join(s_.combine, "*"));
    }
    return "";
  }

  // One index of the result has both dims.
  bool adjoin(const std::string& a, const std::string& b) const { return c_.share_index(c_.find(a), c_.find(b)); }
  bool lies_behind(const std::string& name) const { return c_.lies_behind(c_.find(name), c_.find(s_.vector)); }

  // Lanes beyond the last element of a dim reach into the next group's, so that nothing else may run over groups then.
  std::string idle_lanes() {
    const std::int64_t extent = dim(s_.vector).extent;
    const bool idle = extent % s_.block() != 0;
    if (s_.by_threads()) {
      if (dim(s_.vector).extent % s_.lanes_together() == 0 || !s_.combine.empty()) return "";
      for (const ir::ContractionDim& d : c_.dims)
        if (d.extent > 1 && lies_behind(d.name))
          return fmt::format("lanes along {} are idle, and {} lies behind them", s_.vector, d.name);
      return "";
    }
    const std::string along = s_.combine.empty() ? s_.vector : s_.combine[0];
    if (along != s_.vector && adjoin(along, s_.vector) && (idle || dim(along).extent % s_.lanes != 0))
      return fmt::format("lanes along {} are idle beside those along {}, and both are one index of the result", along,
                         s_.vector);
    for (const auto* list : {&s_.tasks, &s_.outer}) {
      for (const ScheduledLoop& loop : *list) {
        const bool lanes = loop.dims[0] == s_.vector && std::any_of(c_.dims.begin(), c_.dims.end(), [&](const auto& d) {
                             return d.extent > 1 && lies_behind(d.name);
                           });
        if (loop.step > 0 && (lanes || adjoin(loop.dims[0], s_.vector)) && dim(loop.dims[0]).extent % loop.step != 0)
          return fmt::format("the loop {} does not cut {} elements evenly, and they lie between lanes along {}",
                             str(loop), dim(loop.dims[0]).extent, s_.vector);
      }
    }
    if (!idle || !s_.combine.empty()) return "";
    for (const auto* list : {&s_.tasks, &s_.outer, &s_.inner}) {
      for (const ScheduledLoop& loop : *list) {
        for (const std::string& name : loop.dims) {
          const bool copied = list != &s_.tasks && loop.dims.size() == 1 && loop.step == 0 && s_.held(name) == 1;
          if (lies_behind(name) && !copied)
            return fmt::format("lanes along {} are idle, and the loop {} runs over what lies behind them", s_.vector,
                               str(loop));
        }
      }
    }
    return "";
  }

  // A tile's results are shared out to all turns of one loop over terms, which the tile before has too.
  std::string late() {
    if (!s_.finish_late) return "";
    if (s_.by_threads() || s_.matrix > 0 || !s_.combine.empty() || !s_.flush.dims.empty())
      return "tiles are finished late on processors, where nothing is combined or flushed";
    if (s_.tile.size() != 1 || s_.tile[0].dims.size() != 1 || s_.tile[0].count < 2)
      return "tiles that are finished late are of one dim";
    std::vector<std::string> loops;
    for (const ScheduledLoop& loop : s_.inner)
      if (loop.dims.size() > 1 || dim(loop.dims[0]).extent > s_.held(loop.dims[0])) loops.push_back(loop.dims[0]);
    const auto terms = std::find_if(loops.begin(), loops.end(), [&](const std::string& d) { return dim(d).reduced; });
    if (terms == loops.begin() || terms == loops.end() || *(terms - 1) != s_.tile[0].dims[0] ||
        std::any_of(terms, loops.end(), [&](const std::string& other) { return other != *terms; }))
      return fmt::format("tiles that are finished late are those of a loop over {} around one over terms",
                         s_.tile[0].dims[0]);
    for (std::size_t i = 0; i < c_.a.index.size(); ++i)
      if (c_.a.may_leave(static_cast<int>(i), c_.dims))
        return "tiles that are finished late read nothing beyond their operand";
    return dim(s_.vector).extent % s_.block() == 0 ? "" : "tiles that are finished late have no idle lanes";
  }

  // Tiles of results are fetched ahead along a parallel dim, operands of partial results along a sum.
  std::string fetches() {
    if (s_.fetch.dims.empty()) return "";
    if (s_.fetch_packed) return "packed weights are fetched beside what is read along another dim by Winograd alone";
    const std::string& along = s_.fetch.dims[0];
    const bool sums = !s_.combine.empty();
    if (s_.fetch_b && (s_.panel_b.empty() || !sums))
      return "the next panel of b is fetched where there are panels of b, and of partial results";
    if (s_.fetch.dims == std::vector{s_.vector} && s_.pack_b > 0) {
      const bool list = std::any_of(s_.tile.begin(), s_.tile.end(), [](const Extent& e) { return e.dims.size() > 1; });
      const bool whole = s_.pack_b == s_.block() && s_.fetch.count % s_.block() == 0 && !list && !s_.by_threads();
      constexpr auto kRule = "weights are fetched ahead by whole packed blocks of {}, for a tile along single dims";
      return whole ? "" : fmt::format(kRule, s_.block());
    }
    if (s_.fetch.dims.size() > 1 || along == s_.vector || dim(along).reduced != sums)
      return fmt::format("{} is fetched ahead along {}, not along {}", sums ? "what is summed up" : "a tile",
                         sums ? "a dim of the sum" : "a parallel dim that has no lanes", fmt::join(s_.fetch.dims, "*"));
    return "";
  }

  // Every part of a sum is there, also in the last block: the loops outside of the lanes that cut it are counted.
  std::string parts() {
    std::map<std::string, std::int64_t> block;  // of the loops so far over a dim
    for (const auto* list : {&s_.tasks, &s_.outer}) {
      for (const ScheduledLoop& loop : *list) {
        const std::string& name = loop.dims[0];
        const bool cuts = dim(name).reduced ? list == &s_.tasks : reduces_ && !c_.b.mentions(c_.find(name));
        if (!cuts || loop.dims.size() > 1) continue;
        const auto [outer, first] = block.try_emplace(name, loop.step);
        if (!first && dim(name).extent % outer->second != 0)
          return fmt::format("the loop {} leaves a part in every block of {} {}, which do not fill {}", str(loop),
                             outer->second, name, dim(name).extent);
        outer->second = loop.step;
      }
    }
    return "";
  }

  // The epilogue's sums are kept for what the second operand is parallel in, and begin with the lanes.
  std::string epilogue_sums() {
    if (!reduces_) return "";
    for (const auto* list : {&s_.tasks, &s_.outer, &s_.inner}) {
      for (const ScheduledLoop& loop : *list) {
        int kept = 0;
        for (const std::string& name : loop.dims) kept += !dim(name).reduced && c_.b.mentions(c_.find(name)) ? 1 : 0;
        if (kept > 0 && (list == &s_.inner || kept < static_cast<int>(loop.dims.size())))
          return fmt::format("results are summed up, and the loop {} runs over what is kept inside of a sum",
                             str(loop));
      }
    }
    return "";
  }

  std::string sums() {
    if (s_.flush.dims.empty()) return "";
    if (s_.flush.dims.size() > 1 || s_.inner.empty() || s_.inner.back().dims != s_.flush.dims ||
        !dim(s_.flush.dims[0]).reduced || s_.held(s_.flush.dims[0]) == 1)
      return "sums go to f64 after so many unrolled terms of the innermost loop";
    if (s_.flush.count % s_.held(s_.flush.dims[0]) != 0)
      return fmt::format("{} terms are no multiple of the {} that are unrolled", s_.flush.count,
                         s_.held(s_.flush.dims[0]));
    for (const auto* list : {&s_.tasks, &s_.outer, &s_.inner}) {
      for (const ScheduledLoop& loop : *list) {
        if (loop.dims == s_.flush.dims && loop.step % s_.flush.count != 0)
          return fmt::format("the loop {} cuts the {} terms that go to f64 together", str(loop), s_.flush.count);
      }
    }
    return "";
  }

  const ir::Contraction& c_;
  const Schedule& s_;
  const Target& target_;
  const bool reduces_;
};

}  // namespace

std::string check(const ir::Contraction& contraction, const Schedule& schedule, const Target& target, bool sums) {
  return Check(contraction, schedule, target, sums).run();
}

}  // namespace fusejit::scheduler
