// Distinct bytes that each phase reads from and writes to each buffer and work.
#include <algorithm>
#include <bitset>
#include <cmath>
#include <map>
#include <utility>

#include "ir/kernel/cost/assignment.h"
#include "ir/kernel/cost/elements.h"
#include "ir/kernel/cost/parts.h"
#include "ir/kernel/verify/verify.h"

namespace fusejit::ir {
namespace {

// Iterations that are walked to know which elements a place names: along a dim whose positions would be one run but
// for conditions, and elsewhere.
constexpr double kMostWalkedOfRun = 512;
constexpr double kMostWalked = 1 << 13;
constexpr std::size_t kMostRuns = 1 << 12;

using Levels = std::bitset<kMaxNesting + 1>;  // of a path

// Positions that an index takes where each variable of it runs through its loop.
struct Positions {
  Runs runs;
  bool exact = true;      // false: some of them may not be taken
  std::int64_t most = 1;  // combinations of the terms' values
};

// How many leaves an index has in all, and which loops of a path they are of.
struct Leaves {
  std::size_t count = 0;
  bool has_values = false;
  Levels loops;
};
Leaves leaves_of(const Index& index, const Path& path) {
  Leaves leaves;
  index.for_each_leaf([&](const IndexAtom& leaf) {
    ++leaves.count;
    leaves.has_values = leaves.has_values || leaf.kind == AtomKind::value;
    if (const std::size_t level = level_of(path, leaf); level < path.size()) leaves.loops.set(level);
  });
  return leaves;
}

Positions positions_of(const Index& index, const VariableRanges& ranges);

// Quotients and remainders of what has no holes have none.
std::optional<std::pair<Interval, bool>> values_of(const IndexAtom& atom, const VariableRanges& ranges) {
  const std::optional<Interval> range = Index::of(atom).interval(ranges);
  if (!range) return std::nullopt;
  if (!atom.inner) return std::pair(*range, true);
  const Positions inner = positions_of(*atom.inner, ranges);
  const bool whole = inner.exact && inner.runs.list().size() == 1;
  return std::pair(*range, whole && (atom.kind == AtomKind::quotient || inner.runs.count() >= atom.divisor ||
                                     inner.runs.count() == range->high - range->low + 1));
}

// Nothing where a term has no bounds.
Positions positions_of(const Index& index, const VariableRanges& ranges) {
  Index::Terms terms = index.terms();
  std::sort(terms.begin(), terms.end(),
            [](const IndexTerm& a, const IndexTerm& b) { return std::abs(a.coefficient) < std::abs(b.coefficient); });
  Positions positions{Runs::between(index.constant(), index.constant())};
  for (const IndexTerm& term : terms) {
    const auto values = values_of(term.atom, ranges);
    if (!values) return {Runs(), false};
    const std::int64_t count = std::max<std::int64_t>(0, values->first.high - values->first.low + 1);
    if (__builtin_mul_overflow(positions.most, count, &positions.most)) positions.most = Part().most;
    positions.runs = positions.runs.plus(term.coefficient, values->first.low, values->first.high, kMostRuns);
    positions.exact = positions.exact && values->second;
  }
  return positions;
}

// The elements that a place names in all iterations of the loops and conditions around it.
class PlacesAlong {
 public:
  // Places are asked about along the path entered last.
  void enter(const Path& path) {
    if (path_ && path == *path_) return;
    path_ = path, known_.clear(), ranges_ = {}, facts_.reset();
    linked_.assign(path.size(), {}), restricting_.reset(), unknown_.reset();
    for (std::size_t i = 0; i < path.size(); ++i) {
      Levels all;
      all.set(i);
      const auto names = [&](const Index& index) {
        const Leaves leaves = leaves_of(index, path);
        if (leaves.has_values) unknown_.set(i);
        for (std::size_t j = 0; j < i; ++j)
          if (leaves.loops[j]) all |= linked_[j], restricting_.set(i);
      };
      if (path[i].loop) {
        ranges_.enter(*path[i].loop);
        for (const Index& index : path[i].loop->low) names(index);
        for (const Index& index : path[i].loop->high) names(index);
      } else if (is_known(path[i])) {
        for (const Compare& c : path[i].choice->compares) names(c.left);
      }
      for (std::size_t j = 0; j <= i; ++j)
        if (all[j]) linked_[j] = all;
    }
  }

  Box box(const Place& place, const std::vector<std::int64_t>& extents) {
    struct Joined {
      std::vector<std::size_t> dims;
      Levels levels;
    };
    std::vector<Joined> parts;  // dims of which some level decides together
    for (std::size_t d = 0; d < extents.size(); ++d) {
      Joined own{{d}, levels_of(place.index[d])};
      std::erase_if(parts, [&](const Joined& part) {
        if ((part.levels & own.levels).none()) return false;
        own.levels |= part.levels;
        own.dims.insert(own.dims.end(), part.dims.begin(), part.dims.end());
        return true;
      });
      std::sort(own.dims.begin(), own.dims.end());
      parts.push_back(std::move(own));
    }
    Box box;
    for (const Joined& part : parts) {
      std::optional<Runs> walked;
      if (part.dims.size() > 1) walked = walk(place, part.dims, extents, part.levels, kMostWalked);
      if (walked) {
        box.push_back({part.dims, *std::move(walked)});
        continue;
      }
      for (const std::size_t d : part.dims) {
        const Known& own = along(place, d, extents);
        box.push_back({{d}, own.runs});
        if (own.most < own.runs.count()) box.back().most = own.most;
      }
    }
    std::sort(box.begin(), box.end(), [](const Part& a, const Part& b) { return a.dims[0] < b.dims[0]; });
    return box;
  }
  // Loaded values say which elements these are.
  bool is_by_data(const Place& place) const {
    return std::any_of(place.index.begin(), place.index.end(),
                       [&](const Index& index) { return leaves_of(index, *path_).has_values; });
  }
  // As many as iterations, and as there are along the dims of which loaded values say nothing.
  std::int64_t most_by_data(const Place& place, const std::vector<std::int64_t>& extents) {
    double most = 1;
    for (std::size_t d = 0; d < extents.size(); ++d) {
      const Known& own = along(place, d, extents);
      most *= static_cast<double>(std::min(own.runs.count(), own.most));
    }
    return static_cast<std::int64_t>(std::min(most, executions(*path_)));
  }
  // From the first to the last along the innermost dim.
  Columns columns(const Place& place, const std::vector<std::int64_t>& extents) {
    if (extents.empty()) return {0, 0};
    return along(place, extents.size() - 1, extents).columns;
  }

 private:
  // Of a dim by itself.
  struct Known {
    Index index;
    std::int64_t extent;
    Runs runs;
    std::int64_t most;  // of the runs, where holes of them were filled
    Columns columns;
  };

  static bool is_known(const Enclosing& side) {
    bool known = side.choice->condition < 0;
    for (const Compare& c : side.choice->compares)
      c.left.for_each_leaf([&](const IndexAtom& leaf) { known = known && leaf.kind != AtomKind::value; });
    return known;
  }

  Levels levels_of(const Index& index) const {
    Levels all;
    const Leaves leaves = leaves_of(index, *path_);
    for (std::size_t i = 0; i < path_->size(); ++i)
      if (leaves.loops[i]) all |= linked_[i];
    return all;
  }

  const Known& along(const Place& place, std::size_t dim, const std::vector<std::int64_t>& extents) {
    const Index& index = place.index[dim];
    const std::int64_t extent = extents[dim];
    for (const Known& known : known_)
      if (known.extent == extent && known.index == index) return known;
    return known_.emplace_back(find(place, dim, extents));
  }

  Known find(const Place& place, std::size_t dim, const std::vector<std::int64_t>& extents) {
    const Index& index = place.index[dim];
    const std::int64_t extent = extents[dim];
    const Leaves leaves = leaves_of(index, *path_);
    if (leaves.has_values) return {index, extent, Runs::between(0, extent - 1), extent, {0, extent - 1}};
    Positions positions = positions_of(index, ranges_);
    positions.exact = positions.exact && leaves.count == leaves.loops.count();  // no variable twice
    if (positions.runs.empty()) positions.runs = Runs::between(0, extent - 1), positions.most = extent;
    Runs runs = positions.runs.clipped(0, extent - 1);  // accesses are in bounds
    const Levels levels = levels_of(index);
    if (!positions.exact || (levels & restricting_).any()) {
      const bool one_run = positions.exact && runs.list().size() <= 1;
      if (std::optional<Runs> walked = walk(place, {dim}, extents, levels, one_run ? kMostWalkedOfRun : kMostWalked)) {
        runs = *std::move(walked), positions.most = runs.count();
      } else {  // a whole proof would find little more: accesses are in bounds
        if (!facts_) facts_.emplace(*path_);
        runs = runs.clipped(facts_->range_at_least(index).value_or(0),
                            -facts_->range_at_least(index * -1).value_or(1 - extent));
      }
    }
    const Columns columns = runs.empty() ? Columns() : Columns{runs.list().front().low, runs.list().back().high};
    return {index, extent, std::move(runs), positions.most, columns};
  }

  // Positions along these dims in all iterations of these levels; nothing if those are more than `most`.
  std::optional<Runs> walk(const Place& place, const std::vector<std::size_t>& dims,
                           const std::vector<std::int64_t>& extents, const Levels& levels, double most) {
    if ((levels & unknown_).any()) return std::nullopt;
    double iterations = 1;
    std::vector<const Enclosing*> nest;
    for (std::size_t i = 0; i < path_->size(); ++i) {
      if (!levels[i]) continue;
      const Enclosing& level = (*path_)[i];
      nest.push_back(&level);
      if (!level.loop) continue;
      const auto range = ranges_.of({AtomKind::variable, level.loop->variable, nullptr, 0});
      if (!range) return std::nullopt;
      iterations *= static_cast<double>(std::max<std::int64_t>(0, range->high - range->low + 1));
    }
    for (const std::size_t d : dims)
      if (leaves_of(place.index[d], *path_).has_values) return std::nullopt;
    if (iterations > most) return std::nullopt;
    std::vector<std::int64_t> positions;
    Assignment values(*path_);
    const auto visit = [&](const auto& self, std::size_t at) -> void {
      if (at == nest.size()) {
        std::int64_t position = 0;
        for (const std::size_t d : dims) {
          const std::int64_t own = values.value(place.index[d]);
          if (own < 0 || own >= extents[d]) return;
          position = position * extents[d] + own;
        }
        positions.push_back(position);
      } else if (nest[at]->choice) {
        if (values.holds(*nest[at])) self(self, at + 1);
      } else {
        const auto [low, high] = values.bounds(*nest[at]->loop);
        std::int64_t& v = values[nest[at]->loop->variable];
        for (v = low; v < high; ++v) self(self, at + 1);
      }
    };
    visit(visit, 0);
    return Runs::of(std::move(positions));
  }

  std::optional<Path> path_;
  std::vector<Levels> linked_;  // levels that decide with a level of the path: by bounds and conditions between them
  Levels restricting_;          // conditions, and loops whose bounds name variables
  Levels unknown_;              // loops whose bounds name loaded values
  VariableRanges ranges_;
  std::optional<Facts> facts_;  // of the path, once asked for
  std::vector<Known> known_;    // arrays that are read at one place of the text share most of their indices
};

Columns united(const Columns& a, const Columns& b) {
  if (a.high < a.low) return b;
  if (b.high < b.low) return a;
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

}  // namespace

std::vector<MemoryTraffic> traffic(const Kernel& kernel) {
  struct Way {
    explicit Way(const Memory& memory) : elements(memory.dims) {}
    ElementSet elements;
    std::vector<std::vector<Index>> by_data;  // places that loaded values name, each once
    Columns columns;
  };
  struct Touched {
    explicit Touched(const Memory& memory) : read(memory), written(memory) {}
    Way read, written;
  };
  std::map<std::pair<std::size_t, MemId>, Touched> touched;
  PlacesAlong places;
  for_each_with_path(kernel, [&](const Stmt& stmt, const Path& path, std::size_t phase) {
    const auto* load = std::get_if<LoadStmt>(&stmt.node);
    const auto* store = std::get_if<StoreStmt>(&stmt.node);
    if (!load && !store) return;
    const Place& place = load ? load->place : store->place;
    const Memory& memory = kernel.memories[static_cast<std::size_t>(place.memory)];
    if (memory.is_local()) return;
    places.enter(path);
    Touched& both = touched.try_emplace({phase, place.memory}, memory).first->second;
    Way& way = load ? both.read : both.written;
    way.columns = united(way.columns, places.columns(place, memory.dims));
    if (!places.is_by_data(place)) return way.elements.add(places.box(place, memory.dims));
    if (std::find(way.by_data.begin(), way.by_data.end(), place.index) != way.by_data.end()) return;
    way.by_data.push_back(place.index);
    way.elements.add_unknown(places.most_by_data(place, memory.dims));
  });
  std::vector<MemoryTraffic> list;
  for (const auto& [key, both] : touched) {
    const DType dtype = kernel.memories[static_cast<std::size_t>(key.second)].dtype;
    list.push_back({key.second, static_cast<int>(key.first), bytes(dtype, both.read.elements.count()),
                    bytes(dtype, both.written.elements.count()), both.read.columns, both.written.columns});
  }
  return list;
}

}  // namespace fusejit::ir
