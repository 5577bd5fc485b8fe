#include "ir/kernel/cost/elements.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace fusejit::ir {
namespace {

constexpr std::size_t kMostBoxes = 64;                          // whose union is counted: bits of a mask
constexpr std::int64_t kMostPositions = std::int64_t{1} << 16;  // of parts that are multiplied out

// Sorted by their first; those that meet or touch become one.
std::vector<Runs::Run> merged(std::vector<Runs::Run> runs) {
  std::vector<Runs::Run> apart;
  for (const Runs::Run& run : runs) {
    if (!apart.empty() && run.low <= apart.back().high + 1) {
      apart.back().high = std::max(apart.back().high, run.high);
    } else {
      apart.push_back(run);
    }
  }
  return apart;
}

bool divided_alike(const Box& a, const Box& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Part& x, const Part& y) { return x.dims == y.dims; });
}

}  // namespace

Runs Runs::between(std::int64_t low, std::int64_t high) {
  Runs runs;
  if (low <= high) runs.runs_.push_back({low, high});
  return runs;
}

Runs Runs::of(std::vector<std::int64_t> values) {
  if (!std::is_sorted(values.begin(), values.end())) std::sort(values.begin(), values.end());
  Runs runs;
  for (const std::int64_t value : values) {
    if (!runs.runs_.empty() && value <= runs.runs_.back().high + 1) {
      runs.runs_.back().high = value;
    } else {
      runs.runs_.push_back({value, value});
    }
  }
  return runs;
}

std::int64_t Runs::count() const {
  std::int64_t count = 0;
  for (const Run& run : runs_) count += run.high - run.low + 1;
  return count;
}

Runs Runs::clipped(std::int64_t low, std::int64_t high) const {
  Runs inside;
  for (const Run& run : runs_) {
    if (run.high < low || run.low > high) continue;
    inside.runs_.push_back({std::max(run.low, low), std::min(run.high, high)});
  }
  return inside;
}

Runs Runs::united(const Runs& other) const {
  Runs all;
  all.runs_.resize(runs_.size() + other.runs_.size());
  std::merge(runs_.begin(), runs_.end(), other.runs_.begin(), other.runs_.end(), all.runs_.begin(),
             [](const Run& a, const Run& b) { return a.low < b.low; });
  all.runs_ = merged(std::move(all.runs_));
  return all;
}

Runs Runs::plus(std::int64_t factor, std::int64_t low, std::int64_t high, std::size_t most) const {
  if (empty() || high < low) return {};
  const std::int64_t first = std::min(factor * low, factor * high), last = std::max(factor * low, factor * high);
  const std::int64_t step = std::abs(factor), whole_low = runs_.front().low + first,
                     whole_high = runs_.back().high + last;
  const auto copies = static_cast<std::size_t>(step == 0 ? 1 : high - low + 1);
  // Steps that no run is shorter than close every hole between a run and its next copy.
  if (runs_.size() == 1 && step <= runs_[0].high - runs_[0].low + 1) return between(whole_low, whole_high);
  if (copies > most || runs_.size() > most / copies) return between(whole_low, whole_high);
  Runs sums;
  for (std::size_t i = 0; i < copies; ++i) {
    const std::int64_t by = first + static_cast<std::int64_t>(i) * step;
    for (const Run& run : runs_) sums.runs_.push_back({run.low + by, run.high + by});
  }
  std::sort(sums.runs_.begin(), sums.runs_.end(), [](const Run& a, const Run& b) { return a.low < b.low; });
  sums.runs_ = merged(std::move(sums.runs_));
  return sums;
}

namespace {

// Parts of which one holds dims that others hold apart become one.
std::vector<std::vector<std::size_t>> common_parts(const std::vector<Box>& boxes, std::size_t dims) {
  std::vector<std::size_t> root(dims);
  std::iota(root.begin(), root.end(), std::size_t{0});
  const auto find = [&](std::size_t d) {
    while (root[d] != d) d = root[d];
    return d;
  };
  for (const Box& box : boxes) {
    for (const Part& part : box) {
      for (const std::size_t d : part.dims) {
        const std::size_t a = find(part.dims[0]), b = find(d);
        root[std::max(a, b)] = std::min(a, b);
      }
    }
  }
  std::vector<std::vector<std::size_t>> parts;
  std::vector<std::size_t> at(dims);
  for (std::size_t d = 0; d < dims; ++d) {
    const std::size_t first = find(d);
    if (first == d) at[d] = parts.size(), parts.emplace_back();
    parts[at[first]].push_back(d);
  }
  return parts;
}

// The positions of some parts of a box along all their dims together; nothing if there are too many.
std::optional<Runs> multiplied(const std::vector<const Part*>& parts, const std::vector<std::size_t>& dims,
                               const std::vector<std::int64_t>& extents) {
  std::int64_t count = 1;
  for (const Part* part : parts) {
    const std::int64_t own = part->positions.count();
    if (own == 0) return Runs();
    if (own > kMostPositions / count) return std::nullopt;
    count *= own;
  }
  std::vector<std::int64_t> sums = {0};
  for (const Part* part : parts) {
    std::vector<std::int64_t> own;
    for (const Runs::Run& run : part->positions.list()) {
      for (std::int64_t p = run.low; p <= run.high; ++p) {
        std::int64_t rest = p, position = 0;
        for (std::size_t i = part->dims.size(); i-- > 0;) {
          std::int64_t stride = 1;
          for (std::size_t d = dims.size(); d-- > 0 && dims[d] != part->dims[i];) stride *= extents[dims[d]];
          position += rest % extents[part->dims[i]] * stride;
          rest /= extents[part->dims[i]];
        }
        own.push_back(position);
      }
    }
    std::vector<std::int64_t> product;
    for (const std::int64_t a : sums)
      for (const std::int64_t b : own) product.push_back(a + b);
    sums = std::move(product);
  }
  return Runs::of(std::move(sums));
}

std::optional<Box> divided(const Box& box, const std::vector<std::vector<std::size_t>>& into,
                           const std::vector<std::int64_t>& extents) {
  Box result;
  for (const std::vector<std::size_t>& dims : into) {
    std::vector<const Part*> parts;
    for (const Part& part : box)
      if (std::binary_search(dims.begin(), dims.end(), part.dims[0])) parts.push_back(&part);
    std::optional<Runs> positions =
        parts.size() == 1 ? std::optional(parts[0]->positions) : multiplied(parts, dims, extents);
    if (!positions) return std::nullopt;
    result.push_back({dims, *std::move(positions), parts.size() == 1 ? parts[0]->most : Part().most});
  }
  return result;
}

std::int64_t volume(const Box& box) {
  std::int64_t count = 1;
  for (const Part& part : box) count *= part.count();
  return count;
}

// How many positions of a part lie in the same boxes, by the mask of those boxes.
std::map<std::uint64_t, std::int64_t> shared_by(const std::vector<Box>& boxes, std::size_t part) {
  std::vector<std::pair<std::int64_t, std::uint64_t>> edges;  // where a box begins or ends
  for (std::size_t b = 0; b < boxes.size(); ++b) {
    for (const Runs::Run& run : boxes[b][part].positions.list())
      edges.emplace_back(run.low, std::uint64_t{1} << b), edges.emplace_back(run.high + 1, std::uint64_t{1} << b);
  }
  std::sort(edges.begin(), edges.end());
  std::map<std::uint64_t, std::int64_t> shared;
  std::uint64_t inside = 0;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (inside != 0 && edges[i].first > edges[i - 1].first) shared[inside] += edges[i].first - edges[i - 1].first;
    inside ^= edges[i].second;
  }
  return shared;
}

}  // namespace

void ElementSet::add(Box box) {
  for (const Part& part : box)
    if (part.positions.empty()) return;
  // Boxes that differ along one part are one box: taps beside each other, then rows of them.
  for (std::size_t i = 0; i < boxes_.size();) {
    if (!divided_alike(boxes_[i], box)) {
      ++i;
      continue;
    }
    std::size_t differing = 0, where = 0;
    for (std::size_t p = 0; p < box.size(); ++p)
      if (!(boxes_[i][p] == box[p])) ++differing, where = p;
    if (differing == 0) return;
    if (differing > 1) {
      ++i;
      continue;
    }
    Part& both = box[where];
    const std::int64_t apart = both.count() + boxes_[i][where].count();
    both.positions = both.positions.united(boxes_[i][where].positions);
    both.most = apart < both.positions.count() ? apart : Part().most;
    boxes_.erase(boxes_.begin() + static_cast<std::ptrdiff_t>(i));
    i = 0;
  }
  boxes_.push_back(std::move(box));
}

std::int64_t ElementSet::count() const {
  std::int64_t elements = 1, sum = 0;
  for (const std::int64_t extent : dims_) elements *= extent;
  for (const Box& box : boxes_) sum += volume(box);
  const std::int64_t bound = std::min(elements, sum + unknown_);
  if (boxes_.size() <= 1 || boxes_.size() > kMostBoxes) return bound;
  const std::vector<std::vector<std::size_t>> parts = common_parts(boxes_, dims_.size());
  std::vector<Box> alike;
  for (const Box& box : boxes_) {
    std::optional<Box> same = divided(box, parts, dims_);
    if (!same) return bound;
    alike.push_back(*std::move(same));
  }
  // Elements by the boxes that hold all their positions so far.
  std::map<std::uint64_t, std::int64_t> held = {{~std::uint64_t{0}, 1}};
  for (std::size_t p = 0; p < parts.size(); ++p) {
    std::map<std::uint64_t, std::int64_t> next;
    for (const auto& [mask, count] : shared_by(alike, p))
      for (const auto& [before, combinations] : held)
        if ((mask & before) != 0) next[mask & before] += count * combinations;
    held = std::move(next);
  }
  std::int64_t count = 0;
  for (const auto& [mask, own] : held) count += own;
  return std::min(bound, count + unknown_);
}

}  // namespace fusejit::ir
