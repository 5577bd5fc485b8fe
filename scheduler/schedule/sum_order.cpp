// sum_order: loops over what is summed up, from the outside in, are taken for what they do to the order alone: a loop
// of one iteration is none, blocks of a dim one after the other are the dim, and several dims together are one after
// the other, the last fastest, unless they are cut. What a register tile holds comes last, in the contraction's order.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "ir/ops/geometry/window.h"
#include "scheduler/schedule/check_threads.h"
#include "scheduler/schedule/schedule.h"
#include "scheduler/schedule/winograd.h"

namespace fusejit::scheduler {
namespace {

using Dims = std::vector<std::string>;

struct Level {
  Dims dims;
  std::int64_t step = 1;    // elements, or combinations of what the registers hold
  std::int64_t stride = 0;  // above 0: so many threads that meet in a tree
  int stage = 0;            // what is added up without a rounding between is of one
};

class Order {
 public:
  Order(const ir::Contraction& c, const Schedule& s, bool merges) : c_(c), s_(s), merges_(merges) {}

  void add(const ScheduledLoop& loop, int stage) {
    const Extent* combinations = s_.combinations(loop.dims[0]);
    const std::int64_t held = combinations != nullptr ? combinations->count
                              : loop.dims.size() > 1  ? 1
                                                      : s_.held(loop.dims[0]);
    const std::int64_t step = loop.stride > 0 ? 1 : loop.step > 0 ? loop.step : held;
    levels_.push_back({loop.dims, step, loop.stride, stage});
  }
  void add_held(const Dims& dims, int stage) { levels_.push_back({dims, 1, 0, stage}); }

  std::string text(int stages) {
    tidy();
    separate();
    tidy();
    std::string text;
    for (int stage = 0; stage < stages; ++stage) {
      std::vector<std::string> loops;
      for (const Level& level : levels_)
        if (level.stage == stage)
          loops.push_back(str({in_units(level.dims), level.step > 1 ? level.step : 0, level.stride}));
      if (!loops.empty()) text += fmt::format(" {}", fmt::join(loops, ", "));
      if (stage + 1 < stages && (!loops.empty() || stages > 2)) text += " |";
    }
    return text;
  }

 private:
  std::int64_t extent(const std::string& name) const { return c_.dim(name).extent; }
  // Combinations of single elements where a tile holds several of those, else of what is held of every dim.
  std::int64_t count(const Dims& dims) const {
    std::int64_t all = 1;
    for (const std::string& name : dims) {
      const std::int64_t held = dims.size() == 1 ? 1 : s_.held(name);
      all *= ir::ceil_divide(extent(name), held);
    }
    return all;
  }

  // Several dims that are cut together count what is held of each as one: "(s*c/4)/6".
  Dims in_units(Dims dims) const {
    if (dims.size() == 1) return dims;
    bool held = false;
    for (std::string& name : dims) {
      const std::int64_t unit = s_.held(name);
      if (unit > 1) held = true, name += fmt::format("/{}", unit);
    }
    if (held) dims = {fmt::format("({})", fmt::join(dims, "*"))};
    return dims;
  }

  void tidy() {
    std::map<Dims, std::int64_t> left;
    std::vector<Level> kept;
    for (Level& level : levels_) {
      std::int64_t& rest = left.try_emplace(level.dims, count(level.dims)).first->second;
      if (level.stride > 0) {
        rest = ir::ceil_divide(rest, level.stride);
      } else if (rest <= level.step) {
        continue;
      } else {
        rest = level.step;
      }
      const bool goes_on = merges_ && !kept.empty() && kept.back().dims == level.dims && level.stride == 0 &&
                           kept.back().stride == 0 && kept.back().stage == level.stage;
      if (goes_on) kept.pop_back();
      kept.push_back(std::move(level));
    }
    levels_ = std::move(kept);
  }

  // Dims together that are not cut: one after the other.
  void separate() {
    std::vector<Level> apart;
    for (const Level& level : levels_) {
      const bool whole = level.dims.size() > 1 && level.step == 1 &&
                         std::count_if(levels_.begin(), levels_.end(),
                                       [&](const Level& other) { return other.dims == level.dims; }) == 1;
      if (!whole || level.stride > 0) {
        apart.push_back(level);
        continue;
      }
      for (const std::string& name : level.dims) apart.push_back({{name}, s_.held(name), 0, level.stage});
    }
    levels_ = std::move(apart);
  }

  const ir::Contraction& c_;
  const Schedule& s_;
  const bool merges_;
  std::vector<Level> levels_;
};

// Of every point its channels in ascending order, or its patches, in blocks of the outer loops.
std::string winograd_order(const ir::Contraction& c, const Schedule& s, bool sums) {
  const WinogradDims dims = *winograd_dims(c);
  const auto name = [&](int d) { return c.dims[static_cast<std::size_t>(d)].name; };
  const auto cuts = [&](const std::vector<ScheduledLoop>& loops) {
    std::string text;
    for (const ScheduledLoop& loop : loops) {
      const int d = c.find(loop.dims[0]);
      const std::int64_t step = loop.step > 0 ? loop.step : d == dims.p ? dims.down.results() : 1;
      if (d != dims.k) text += fmt::format(" {}/{}", loop.dims[0], std::min(c.dim(loop.dims[0]).extent, step));
    }
    return text;
  };
  const std::string patches = fmt::format("{}{}/{}, {}/{}", dims.n < 0 ? "" : name(dims.n) + ", ", name(dims.p),
                                          dims.down.results(), name(dims.q), dims.across.results());
  if (dims.of_weights)
    return fmt::format("terms winograd {}{} |{} {}", s.winograd, cuts(s.tasks), cuts(s.outer), patches);
  const std::string terms = fmt::format("terms winograd {} {}", s.winograd, name(dims.c));
  if (!sums) return terms;
  return fmt::format("{}; results{} | {}, {}, {}", terms, cuts(s.tasks), patches, name(dims.p), name(dims.q));
}

}  // namespace

std::string sum_order(const ir::Contraction& c, const Schedule& s, bool sums) {
  if (s.winograd > 0) return winograd_order(c, s, sums);
  const auto reduced = [&](const std::string& name) { return c.dim(name).reduced; };
  // What goes to f64 now and then, or to memory between, is cut there.
  const bool flushes = !s.flush.dims.empty();
  const int inner = flushes ? 2 : 1;
  Order terms(c, s, !flushes);
  for (const ScheduledLoop& loop : s.tasks)
    if (reduced(loop.dims[0])) terms.add(loop, 0);
  for (const ScheduledLoop& loop : s.outer)
    if (reduced(loop.dims[0])) terms.add(loop, 1);
  for (const ScheduledLoop& loop : s.inner)
    if (reduced(loop.dims[0])) terms.add(loop, inner);
  for (const ir::ContractionDim& dim : c.dims)
    if (dim.reduced && s.held(dim.name) > 1) terms.add_held({dim.name}, inner);
  std::string text = "terms" + terms.text(inner + 1);
  if (flushes) {  // what the registers hold goes to f64 together, what is looped over does not
    text += fmt::format(" flush {} {}", s.flush.dims[0], s.flush.count);
    for (const Extent& held : s.unroll)
      if (c.dim(held.dims[0]).extent > 1 && held.count > 1) text += fmt::format(", {} {}", held.dims[0], held.count);
  }
  if (!s.dot.empty()) text += fmt::format(" dot {}", s.dot);
  if (s.matrix > 0) text += fmt::format(" {}", s.matrix);
  for (const ScheduledLoop& loop : s.outer)  // blocks begin at 0 each, and are added to the part
    if (s.matrix > 0 && reduced(loop.dims[0])) text += fmt::format(", block {}/{}", loop.dims[0], loop.step);
  if (!sums) return text;

  const auto summed = [&](const std::string& name) { return !reduced(name) && !c.b.mentions(c.find(name)); };
  Order results(c, s, true);
  for (const auto* list : {&s.tasks, &s.outer})
    for (const ScheduledLoop& loop : *list)
      if (summed(loop.dims[0])) results.add(loop, 0);
  for (const ScheduledLoop& loop : s.inner)
    if (summed(loop.dims[0])) results.add(loop, 1);
  for (const Extent& extent : s.tile)
    if (extent.dims.size() > 1) results.add_held(extent.dims, 1);
  for (const ir::ContractionDim& dim : c.dims)
    if (summed(dim.name) && s.combinations(dim.name) == nullptr && s.held(dim.name) > 1)
      results.add_held({dim.name}, 1);
  return text + "; results" + results.text(2);
}

}  // namespace fusejit::scheduler
