// Distinct bytes that each phase reads from and writes to each buffer and work.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "ir/kernel/cost/parts.h"
#include "ir/kernel/verify/verify.h"

namespace fusejit::ir {
namespace {

// Distinct values of one dim.
struct Extent {
  std::int64_t low = 0;
  std::int64_t high = -1;
  std::int64_t count = 0;
};

// |coefficient| and number of values, largest coefficient first.
struct Stride {
  std::int64_t coefficient;
  std::int64_t extent;
};

std::int64_t distinct(std::vector<Stride> terms) {
  std::sort(terms.begin(), terms.end(), [](const Stride& a, const Stride& b) { return a.coefficient > b.coefficient; });
  __int128 below = 0, product = 1;
  std::int64_t gcd = 0;
  bool separated = true;
  for (auto t = terms.rbegin(); t != terms.rend(); ++t) {
    if (t->extent > 1 && t->coefficient <= below) separated = false;
    below += static_cast<__int128>(t->coefficient) * (t->extent - 1);
    product *= t->extent;
    if (product > std::int64_t{1} << 60 || below > std::int64_t{1} << 60) return std::int64_t{1} << 60;
    if (t->extent > 1) gcd = std::gcd(gcd, t->coefficient);
  }
  if (separated) return static_cast<std::int64_t>(product);
  return static_cast<std::int64_t>(below / gcd + 1);
}

Extent extent(const Index& index, std::int64_t size, const Path& path, const Facts& facts,
              const VariableRanges& ranges) {
  std::vector<Stride> terms;
  bool gathers = false;
  for (const IndexTerm& t : index.terms()) {
    const std::optional<Interval> range = Index::of(t.atom).interval(ranges);
    if (!range) gathers = true;
    if (range) terms.push_back({std::abs(t.coefficient), range->high - range->low + 1});
  }
  if (gathers) {
    const auto runs = static_cast<std::int64_t>(std::min(executions(path), static_cast<double>(size)));
    return {0, size - 1, runs};
  }
  const std::int64_t low = std::max<std::int64_t>(facts.at_least(index).value_or(0), 0);
  const std::int64_t high = std::min<std::int64_t>(facts.at_most(index).value_or(size - 1), size - 1);
  return {low, high, std::max<std::int64_t>(0, std::min(distinct(std::move(terms)), high - low + 1))};
}

// Arrays that are read at one place of the text share most of their indices, and bounds of quotients take long to find.
class ExtentsAlong {
 public:
  Extent operator()(const Index& index, std::int64_t size, const Path& path) {
    if (path != path_) {
      path_ = path, known_.clear(), ranges_ = {};
      for (const Enclosing& e : path)
        if (e.loop) ranges_.enter(*e.loop);
    }
    for (const Known& known : known_)
      if (known.size == size && known.index == index) return known.extent;
    return known_.emplace_back(Known{index, size, extent(index, size, path, facts_along_(path), ranges_)}).extent;
  }

 private:
  struct Known {
    Index index;
    std::int64_t size;
    Extent extent;
  };
  Path path_;
  VariableRanges ranges_;
  FactsAlong facts_along_;
  std::vector<Known> known_;
};

// The hull of two boxes in one dim.
Extent united(const Extent& a, const Extent& b) {
  if (a.count == 0) return b;
  if (b.count == 0) return a;
  Extent hull{std::min(a.low, b.low), std::max(a.high, b.high), 0};
  const bool same = a.low == b.low && a.high == b.high;
  hull.count = same ? std::max(a.count, b.count) : std::min(a.count + b.count, hull.high - hull.low + 1);
  return hull;
}

}  // namespace

std::vector<MemoryTraffic> traffic(const Kernel& kernel) {
  struct Boxes {
    std::vector<Extent> read, written;
  };
  std::map<std::pair<std::size_t, MemId>, Boxes> boxes;
  ExtentsAlong extent_of;
  for_each_with_path(kernel, [&](const Stmt& stmt, const Path& path, std::size_t phase) {
    const auto* load = std::get_if<LoadStmt>(&stmt.node);
    const auto* store = std::get_if<StoreStmt>(&stmt.node);
    if (!load && !store) return;
    const Place& place = load ? load->place : store->place;
    const Memory& memory = kernel.memories[static_cast<std::size_t>(place.memory)];
    if (memory.is_local()) return;
    Boxes& both = boxes[{phase, place.memory}];
    std::vector<Extent>& box = load ? both.read : both.written;
    const bool first = box.empty();
    box.resize(std::max<std::size_t>(1, memory.dims.size()), Extent{0, 0, 1});
    for (std::size_t d = 0; d < memory.dims.size(); ++d) {
      const Extent e = extent_of(place.index[d], memory.dims[d], path);
      box[d] = first ? e : united(box[d], e);
    }
  });
  std::vector<MemoryTraffic> list;
  for (const auto& [key, both] : boxes) {
    const Memory& memory = kernel.memories[static_cast<std::size_t>(key.second)];
    const auto size = [&](const std::vector<Extent>& box) {
      std::int64_t elements = box.empty() ? 0 : 1;
      for (std::size_t d = 0; d < box.size(); ++d)
        elements *= memory.dims.empty() ? 1 : std::min(box[d].count, memory.dims[d]);
      return bytes(memory.dtype, elements);
    };
    const auto columns = [](const std::vector<Extent>& box) {
      return box.empty() ? Columns() : Columns{box.back().low, box.back().high};
    };
    list.push_back({key.second, static_cast<int>(key.first), size(both.read), size(both.written), columns(both.read),
                    columns(both.written)});
  }
  return list;
}

}  // namespace fusejit::ir
