#include "scheduler/choose/neighbours.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "ir/ops/geometry/window.h"

namespace fusejit::scheduler {
namespace {

using Loops = std::vector<ScheduledLoop>;

constexpr Loops Schedule::*kLoops[] = {&Schedule::tasks, &Schedule::outer, &Schedule::inner};

class Neighbours {
 public:
  using Legal = std::function<bool(const Schedule&)>;
  // `extents`: of the work's dims.
  Neighbours(const Schedule& of, std::map<std::string, std::int64_t> extents, Legal legal)
      : of_(of), extents_(std::move(extents)), legal_(std::move(legal)) {}

  std::vector<Schedule> take() { return std::move(list_); }

  // As many tiles of even size, or a few more or less, along what the registers hold.
  void tiles() {
    for (std::size_t i = 0; i < of_.tile.size(); ++i) {
      const std::int64_t all = extent(of_.tile[i].dims), tiles = ir::ceil_divide(all, of_.tile[i].count);
      for (const std::int64_t other : {tiles, tiles + 1, tiles - 1, tiles + 2, tiles * 2}) {
        if (other < 1) continue;
        Schedule s = of_;
        s.tile[i].count = ir::ceil_divide(all, other);
        add(std::move(s));
      }
    }
  }

  // A vector more or less, and a tile that fits beside it.
  void vectors(int registers) {
    for (const int vectors : {of_.vectors + 1, of_.vectors - 1, of_.vectors + 2}) {
      if (vectors < 1) continue;
      Schedule s = of_;
      s.vectors = vectors;
      if (s.pack_b == of_.block()) s.pack_b = s.block();
      if (s.fetch.dims == std::vector{s.vector}) s.fetch.count = s.block();
      for (const auto list : kLoops)
        for (ScheduledLoop& loop : s.*list)
          if (loop.dims == std::vector{s.vector} && loop.step > 0)
            loop.step = ir::ceil_divide(loop.step, s.block()) * s.block();
      if (s.tile.size() == 1) {
        const std::int64_t all = extent(s.tile[0].dims), most = (registers - 2 - vectors) / vectors;
        if (most < 1) continue;
        s.tile[0].count = ir::ceil_divide(all, ir::ceil_divide(all, std::min(all, most)));
      }
      add(std::move(s));
    }
  }

  // Tasks and blocks of twice and half the size; a dim that no loop of the list cuts is cut in two.
  void blocks() {
    for (const auto list : {&Schedule::tasks, &Schedule::outer}) {
      for (std::size_t i = 0; i < (of_.*list).size(); ++i) {
        const ScheduledLoop& loop = (of_.*list)[i];
        if (loop.bound != ir::Binding::none || loop.stride > 0) continue;
        const std::int64_t held = loop.dims.size() > 1 ? 1 : of_.held(loop.dims[0]);
        const std::int64_t step = loop.step > 0 ? loop.step : held;
        for (const std::int64_t other : {step * 2, step / 2}) step_of(list, i, other);
      }
    }
    for (const ScheduledLoop& loop : of_.inner) {
      const bool cut = std::any_of(of_.tasks.begin(), of_.tasks.end(),
                                   [&](const ScheduledLoop& task) { return task.dims == loop.dims; });
      const std::int64_t half = ir::ceil_divide<std::int64_t>(extent(loop.dims), 2);
      if (of_.by_threads() || cut || loop.dims.size() > 1 || half < 2) continue;
      Schedule s = of_;
      s.tasks.push_back({loop.dims, half});
      add(std::move(s));
    }
  }

  void fetches() {
    if (!of_.fetch.dims.empty()) {
      Schedule s = of_;
      s.fetch = {}, s.fetch_b = s.fetch_packed = false;
      add(std::move(s));
      if (of_.winograd > 0 && of_.pack_b > 0) {
        s = of_;
        s.fetch_packed = !of_.fetch_packed;
        add(std::move(s));
      }
      if (!of_.panel_b.empty()) {
        s = of_;
        s.fetch_b = !of_.fetch_b;
        add(std::move(s));
      }
      return;
    }
    for (const auto list : {&Schedule::inner, &Schedule::outer, &Schedule::tasks}) {
      for (const ScheduledLoop& loop : of_.*list) {
        if (loop.dims.size() > 1) continue;
        Schedule s = of_;
        s.fetch = {loop.dims, std::max(loop.step, of_.held(loop.dims[0]))};
        add(std::move(s));
      }
    }
  }

  void unrolled() {
    for (std::size_t i = 0; i < of_.unroll.size(); ++i) {
      for (const std::int64_t other : {of_.unroll[i].count * 2, of_.unroll[i].count / 2}) {
        Schedule s = of_;
        s.unroll[i].count = other;
        if (other > 0) add(std::move(s));
      }
    }
  }

  void panels() {
    if (of_.by_threads() || of_.winograd > 0) return;
    for (const auto panel : {&Schedule::panel_a, &Schedule::panel_b}) {
      if (!(of_.*panel).empty()) continue;
      Schedule s = of_;
      s.*panel = Schedule::kTask;
      add(s);
      if (of_.outer.empty() || of_.outer.front().dims.size() > 1) continue;
      s.*panel = of_.outer.front().dims[0];
      add(std::move(s));
    }
    Schedule s = of_;
    s.tiles_a = !s.tiles_a;
    if (!s.panel_a.empty()) add(std::move(s));
  }

  void finishes() {
    Schedule s = of_;
    s.finish_late = !s.finish_late;
    add(std::move(s));
  }

  void stores() {
    Schedule s = of_;
    s.stream = !s.stream;
    add(std::move(s));
  }

  // Blocks of outputs shared out, or one after the other; tasks in another order.
  void orders() {
    for (const auto& [from, to] :
         {std::pair{&Schedule::tasks, &Schedule::outer}, {&Schedule::outer, &Schedule::tasks}}) {
      for (std::size_t i = 0; i < (of_.*from).size(); ++i) {
        if ((of_.*from)[i].dims != std::vector{of_.vector} || of_.by_threads()) continue;
        Schedule s = of_;
        (s.*to).push_back((s.*from)[i]);
        (s.*from).erase((s.*from).begin() + static_cast<std::ptrdiff_t>(i));
        if (s.fetch.dims == std::vector{s.vector}) s.fetch = {};
        add(std::move(s));
      }
    }
    if (of_.tasks.size() < 2 || of_.by_threads()) return;
    Schedule s = of_;
    std::rotate(s.tasks.begin(), s.tasks.end() - 1, s.tasks.end());
    add(std::move(s));
  }

 private:
  std::int64_t extent(const std::vector<std::string>& dims) const {
    std::int64_t all = 1;
    for (const std::string& dim : dims) all *= extents_.at(dim);
    return all;
  }

  void step_of(Loops Schedule::*list, std::size_t i, std::int64_t step) {
    if (step < 1) return;
    Schedule s = of_;
    ScheduledLoop& loop = (s.*list)[i];
    const std::int64_t held = loop.dims.size() > 1 ? 1 : s.held(loop.dims[0]), before = loop.step;
    const std::vector<std::string> dims = loop.dims;
    loop.step = step == held ? 0 : step;
    if (s.fetch.dims == dims && s.fetch.count == std::max(before, held)) s.fetch.count = step;
    // What a block leaves needs a loop of its own, which is there, or stands last where it was.
    if (step >= extent(dims)) {
      const bool has_inner = std::any_of(s.inner.begin(), s.inner.end(), [&](const auto& l) { return l.dims == dims; });
      if (!has_inner) return;
      if (s.panel_a == dims[0] || s.panel_b == dims[0]) return;
      (s.*list).erase((s.*list).begin() + static_cast<std::ptrdiff_t>(i));
    }
    add(std::move(s));
  }

  void add(Schedule s) {
    if (s == of_ || std::find(list_.begin(), list_.end(), s) != list_.end() || !legal_(s)) return;
    list_.push_back(std::move(s));
  }

  const Schedule& of_;
  const std::map<std::string, std::int64_t> extents_;
  const Legal legal_;
  std::vector<Schedule> list_;
};

}  // namespace

std::vector<Schedule> neighbours(const ir::Contraction& contraction, const Schedule& schedule, const Target& target,
                                 bool sums) {
  std::map<std::string, std::int64_t> extents;
  for (const ir::ContractionDim& dim : contraction.dims) extents.emplace(dim.name, dim.extent);
  Neighbours all(schedule, std::move(extents),
                 [&](const Schedule& s) { return check(contraction, s, target, sums).empty(); });
  const bool cuda = schedule.by_threads();
  if (!cuda) all.tiles();
  all.blocks();
  all.fetches();
  if (!cuda) all.vectors(target.vector_registers());
  all.panels();
  all.unrolled();
  all.orders();
  if (!cuda) all.stores(), all.finishes();
  return all.take();
}

std::vector<Schedule> of_same_order(std::vector<Schedule> list, const ir::Contraction& contraction,
                                    const Schedule& schedule, bool sums) {
  const std::string order = sum_order(contraction, schedule, sums);
  std::erase_if(list, [&](const Schedule& one) { return sum_order(contraction, one, sums) != order; });
  return list;
}

std::vector<Schedule> neighbours(const Domain& domain, const Schedule& schedule, const Target& target) {
  std::map<std::string, std::int64_t> extents;
  for (const DomainAxis& axis : domain.axes) extents.emplace(axis.name, axis.extent);
  Neighbours all(schedule, std::move(extents), [&](const Schedule& s) { return check(domain, s, target).empty(); });
  if (schedule.by_threads()) return {};
  all.blocks();
  all.fetches();
  all.stores();
  return all.take();
}

}  // namespace fusejit::scheduler
