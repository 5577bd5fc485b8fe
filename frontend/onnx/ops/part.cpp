// Ops that cut tensors up and put them together: concat, split, slice, pad.
#include <algorithm>
#include <limits>
#include <numeric>

#include "frontend/onnx/call.h"
#include "ir/base/check.h"

namespace fusejit::onnx {
namespace {

using Tensors = std::vector<Tensor>;

// One op joins at most 64.
Tensors joined(const Call& c) {
  constexpr std::size_t kMost = 64;
  Tensors all = c.tensors();
  FJ_CHECK(c.has("axis"), "the attribute 'axis' is missing");
  const int axis = axis_of(c.integer("axis", 0), all[0].rank());
  while (all.size() > 1) {
    Tensors fewer;
    for (std::size_t i = 0; i < all.size(); i += kMost) {
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(i);
      fewer.push_back(concat({first, first + static_cast<std::ptrdiff_t>(std::min(kMost, all.size() - i))}, axis));
    }
    all = std::move(fewer);
  }
  return all;
}

Tensors split(const Call& c) {
  const Tensor x = c.tensor(0);
  const int axis = axis_of(c.integer("axis", 0), x.rank());
  const std::int64_t extent = x.shape()[axis], parts = static_cast<std::int64_t>(c.node().outputs.size());
  Dims extents = c.integers_at(1);
  if (!c.has(1)) {  // equal parts, the last perhaps smaller
    FJ_CHECK(c.integer("num_outputs", parts) == parts, "num_outputs is {}, there are {} results",
             c.integer("num_outputs", 0), parts);
    const std::int64_t part = (extent + parts - 1) / parts;
    for (std::int64_t i = 0; i < parts; ++i) extents.push_back(std::clamp<std::int64_t>(extent - i * part, 0, part));
    FJ_CHECK(c.opset() >= 18 || extent % parts == 0, "{} do not divide into {} equal parts (x: {})", extent, parts,
             x.type().str());
  }
  const bool fits =
      std::all_of(extents.begin(), extents.end(), [&](std::int64_t e) { return e >= 0 && e <= extent; }) &&
      std::accumulate(extents.begin(), extents.end(), std::int64_t{0}) == extent;
  FJ_CHECK(fits && static_cast<std::int64_t>(extents.size()) == parts,
           "the parts do not add up to axis {} of x, or are not as many as the results (x: {})", axis, x.type().str());
  Tensors results;
  std::int64_t at = 0;
  for (const std::int64_t e : extents) {
    results.push_back(slice(x, axis, at, at + e));
    at += e;
  }
  return results;
}

// Elements start, start + step, ... before stop; a negative step goes backwards: as a slice of x flipped.
Tensor sliced(const Tensor& x, int axis, std::int64_t start, std::int64_t stop, std::int64_t step) {
  const std::int64_t extent = x.shape()[axis];
  FJ_CHECK(step != 0, "the step of axis {} is 0", axis);
  if (extent == 0) return x;
  const auto counted = [&](std::int64_t at) { return at < 0 ? std::max(at, -2 * extent) + extent : at; };
  if (step > 0) {
    const std::int64_t from = std::clamp<std::int64_t>(counted(start), 0, extent);
    return slice(x, axis, from, std::clamp<std::int64_t>(counted(stop), from, extent), step);
  }
  const std::int64_t from = std::clamp<std::int64_t>(counted(start), 0, extent - 1),
                     to = std::clamp<std::int64_t>(counted(stop), -1, from);
  const std::int64_t stride = step == std::numeric_limits<std::int64_t>::min() ? extent : std::min(-step, extent);
  return slice(flip(x, {axis}), axis, extent - 1 - from, extent - 1 - to, stride);
}

// Operands: x, starts, ends, axes, steps.
Tensors sliced_row(const Call& c) {
  Tensor x = c.tensor(0);
  const Dims starts = c.integers_at(1), stops = c.integers_at(2);
  Dims axes = c.integers_at(3), steps = c.integers_at(4);
  if (!c.has(3)) axes.resize(starts.size()), std::iota(axes.begin(), axes.end(), 0);
  if (!c.has(4)) steps.assign(starts.size(), 1);
  FJ_CHECK(stops.size() == starts.size() && axes.size() == starts.size() && steps.size() == starts.size(),
           "starts, ends, axes and steps are not equally many");
  for (std::size_t i = 0; i < starts.size(); ++i)
    x = sliced(x, axis_of(axes[i], x.rank()), starts[i], stops[i], steps[i]);
  return {x};
}

// Where the cells of an axis of `extent` come from that is padded by `low` and `high` cells of the axis itself.
Dims places_of_padding(const std::string& mode, std::int64_t extent, std::int64_t low, std::int64_t high) {
  FJ_CHECK(extent > 0 && (mode != "reflect" || std::max(low, high) < extent),
           "{} cells cannot be padded by {} and {} ({})", extent, low, high, mode);
  Dims places;
  for (std::int64_t at = -low; at < extent + high; ++at) {
    const std::int64_t last = extent - 1;
    places.push_back(mode == "edge"      ? std::clamp<std::int64_t>(at, 0, last)
                     : mode == "reflect" ? last - std::abs(last - std::abs(at))
                                         : ((at % extent) + extent) % extent);
  }
  return places;
}

// Operands: x, pads (all first, then all last ones), value, axes. Negative pads crop.
Tensors padded(const Call& c) {
  Tensor x = c.tensor(0);
  const std::string mode = c.text("mode", "constant");
  const Dims pads = c.integers_at(1);
  Dims axes = c.integers_at(3);
  if (!c.has(3)) axes.resize(static_cast<std::size_t>(x.rank())), std::iota(axes.begin(), axes.end(), 0);
  FJ_CHECK(pads.size() == 2 * axes.size(), "{} pads are given for {} axes", pads.size(), axes.size());
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  Dims low(static_cast<std::size_t>(x.rank())), high = low;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int axis = axis_of(axes[i], x.rank());
    const std::int64_t first = pads[i], last = pads[i + axes.size()], extent = x.shape()[axis];
    FJ_CHECK(std::abs(std::clamp(first, -kMost, kMost)) < kMost && std::abs(std::clamp(last, -kMost, kMost)) < kMost,
             "axis {} is padded by {} and {}, the limit is {}", axis, first, last, kMost);
    const std::int64_t from = std::max<std::int64_t>(-first, 0), to = extent - std::max<std::int64_t>(-last, 0);
    FJ_CHECK(from <= to, "axis {} has {} cells, {} and {} are cropped", axis, extent, -first, -last);
    x = slice(x, axis, from, to);
    const std::int64_t before = std::max<std::int64_t>(first, 0), after = std::max<std::int64_t>(last, 0);
    if (mode == "constant") {
      low[static_cast<std::size_t>(axis)] = before, high[static_cast<std::size_t>(axis)] = after;
    } else if (before + after > 0) {
      x = taken(x, axis, places_of_padding(mode, to - from, before, after));
    }
  }
  const bool is_same = std::all_of(low.begin(), low.end(), [](std::int64_t n) { return n == 0; }) &&
                       std::all_of(high.begin(), high.end(), [](std::int64_t n) { return n == 0; });
  return {is_same ? x : pad(x, low, high, c.number_at(2, 0))};
}

}  // namespace

std::vector<Row> part_rows() {
  const AttributeRule axis{"axis", Kind::integer};
  const auto pads = [](int since, int until, int most, const char* modes) {
    return Row{.op = "Pad",
               .since = since,
               .until = until,
               .least = 2,
               .most = most,
               .attributes = {{"mode", Kind::text, modes}},
               .numbers = {2},
               .mean = padded};
  };
  return {
      {.op = "Concat", .most = INT_MAX, .attributes = {axis}, .mean = joined},
      {.op = "Split", .until = 17, .most = 2, .results = INT_MAX, .attributes = {axis}, .mean = split},
      {.op = "Split",
       .since = 18,
       .most = 2,
       .results = INT_MAX,
       .attributes = {axis, {"num_outputs", Kind::integer}},
       .mean = split},
      {.op = "Slice", .least = 3, .most = 5, .mean = sliced_row},
      pads(13, 17, 3, "constant|reflect|edge"),
      pads(18, 18, 4, "constant|reflect|edge"),
      pads(19, INT_MAX, 4, "constant|reflect|edge|wrap"),
  };
}

}  // namespace fusejit::onnx
