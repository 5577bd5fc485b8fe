// What is a legal schedule of a group without an anchor: on a processor here, on a device in check_domain_threads.
// Whatever passes is built and gives the right numbers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "scheduler/schedule/check_domain_threads.h"
#include "scheduler/schedule/check_threads.h"
#include "scheduler/schedule/domain.h"
#include "scheduler/schedule/limits.h"

namespace fusejit::scheduler {
namespace {

class DomainCheck {
 public:
  DomainCheck(const Domain& domain, const Schedule& schedule) : d_(domain), s_(schedule), sums_(!domain.sums.empty()) {}

  std::string run(const Target& target) {
    for (const auto step : {&DomainCheck::lines, &DomainCheck::names})
      if (std::string broken = (this->*step)(); !broken.empty()) return broken;
    if (target.isa == Isa::cuda) return check_domain_threads(d_, s_);
    for (const auto step : {&DomainCheck::vector, &DomainCheck::unrolled, &DomainCheck::loops, &DomainCheck::cover,
                            &DomainCheck::tasks, &DomainCheck::order, &DomainCheck::positions, &DomainCheck::maxima,
                            &DomainCheck::flush, &DomainCheck::fetch}) {
      if (std::string broken = (this->*step)(); !broken.empty()) return broken;
    }
    return "";
  }

 private:
  const DomainAxis& axis(const std::string& name) const { return d_.axis(name); }
  const std::string& last() const { return d_.axes.back().name; }
  bool lanes_reduced() const { return d_.axes.back().reduced; }
  std::int64_t whole_vectors() const { return d_.axes.back().extent / s_.lanes; }
  // Elements of an axis that a loop steps by.
  std::int64_t unit(const std::string& name) const {
    if (name == s_.vector) return s_.block();
    for (const Extent& extent : s_.unroll)
      if (extent.dims[0] == name) return extent.count;
    return 1;
  }
  static bool has(const std::vector<ScheduledLoop>& loops, const std::string& name) {
    return find(loops, name) != nullptr;
  }
  static const ScheduledLoop* find(const std::vector<ScheduledLoop>& loops, const std::string& name) {
    for (const ScheduledLoop& loop : loops)
      if (loop.dims[0] == name) return &loop;
    return nullptr;
  }

  // Those that say something about operands of an anchor.
  std::string lines() {
    const std::pair<const char*, bool> others[] = {
        {"algorithm", s_.winograd > 0},   {"tile", !s_.tile.empty()},          {"dot", !s_.dot.empty()},
        {"panel a", !s_.panel_a.empty()}, {"panel b", !s_.panel_b.empty()},    {"pack", s_.pack_b > 0},
        {"combine", !s_.combine.empty()}, {"unroll within", s_.unroll_within}, {"finish", s_.finish_late}};
    for (const auto& [line, is_there] : others)
      if (is_there) return fmt::format("'{}' is for the operands of an anchor, and there is none", line);
    return "";
  }

  std::string names() {
    std::set<std::string> used;
    if (!s_.vector.empty()) used.insert(s_.vector);
    if (!s_.panel_maxima.empty()) used.insert(s_.panel_maxima);
    for (const Extent& extent : s_.unroll) {
      if (extent.dims.size() > 1) return fmt::format("{} is no axis", fmt::join(extent.dims, "*"));
      if (!used.insert(extent.dims[0]).second && extent.dims[0] != s_.vector && extent.dims[0] != s_.panel_maxima)
        return fmt::format("{} is unrolled twice", extent.dims[0]);
    }
    used.insert(s_.flush.dims.begin(), s_.flush.dims.end());
    used.insert(s_.fetch.dims.begin(), s_.fetch.dims.end());
    for (const auto* list : {&s_.tasks, &s_.outer, &s_.inner})
      for (const ScheduledLoop& loop : *list) used.insert(loop.dims.begin(), loop.dims.end());
    for (const std::string& name : used)
      if (d_.find(name) < 0) return fmt::format("there is no axis '{}' in {}", name, str(d_));
    return "";
  }

  std::string vector() {
    if (d_.axes.empty()) return s_.vector.empty() ? "" : "one element has no lanes";
    if (s_.vector != last())
      return fmt::format("lanes run along {}, whose elements lie side by side, not along '{}'", last(), s_.vector);
    if (s_.lanes < 2 || (s_.lanes & (s_.lanes - 1)) != 0)
      return fmt::format("a vector of {} lanes: only powers of two from 2 to 64", s_.lanes);
    if (const std::int64_t most = std::max<std::int64_t>(1, whole_vectors()); s_.vectors > most)
      return fmt::format("{} vectors of {} lanes, but {} has {} elements", s_.vectors, s_.lanes, last(),
                         axis(last()).extent);
    return "";
  }

  std::string unrolled() {
    std::int64_t copies = s_.vectors;
    for (const Extent& extent : s_.unroll) {
      const std::string& name = extent.dims[0];
      if (!axis(name).reduced) return fmt::format("{} is a parallel axis: it can be a vector's, not unrolled", name);
      if (lanes_reduced() && name != last())
        return fmt::format("lanes run along {}, which is summed up: nothing else is unrolled", last());
      const std::int64_t all = name == last() ? whole_vectors() / s_.vectors : axis(name).extent;
      if (extent.count > std::max<std::int64_t>(1, all) || (name != last() && axis(name).extent % extent.count != 0))
        return fmt::format("{} of {} without a loop do not fill {}", extent.count, name, axis(name).extent);
      if ((copies *= extent.count) > kMostUnrolled) break;
    }
    if (copies > kMostUnrolled) return fmt::format("more than {} copies without a loop", kMostUnrolled);
    return "";
  }

  std::string loops() {
    for (const auto* list : {&s_.tasks, &s_.outer, &s_.inner}) {
      std::set<std::string> seen;
      for (const ScheduledLoop& loop : *list) {
        if (loop.bound != ir::Binding::none || loop.stride > 0)
          return fmt::format("there is no grid on a processor for the loop {}", str(loop));
        if (loop.dims.size() > 1) return fmt::format("the loop {} goes over several axes", str(loop));
        if (!seen.insert(loop.dims[0]).second) return fmt::format("{} is looped over twice", loop.dims[0]);
        if (loop.step > 0 && list != &s_.tasks)
          return fmt::format("tasks cut an axis into blocks, and not the loop {}", str(loop));
      }
    }
    if (s_.tasks.size() > kMostTaskLoops)
      return fmt::format("{} task loops; at most {}", s_.tasks.size(), kMostTaskLoops);
    return "";
  }

  // Every element of every axis has its turn once; sums stand inside of what they are for.
  std::string cover() {
    for (const DomainAxis& one : d_.axes) {
      const ScheduledLoop* const task = find(s_.tasks, one.name);
      const bool left = task == nullptr || task->step > 0;
      const auto* const in = sums_ && !one.reduced ? &s_.outer : &s_.inner;
      const auto* const out = in == &s_.outer ? &s_.inner : &s_.outer;
      if (has(*out, one.name))
        return fmt::format("{} is {}, so its loop is an {} one", one.name,
                           one.reduced ? "summed up"
                           : sums_     ? "what sums are for"
                                       : "not what sums are for",
                           in == &s_.outer ? "outer" : "inner");
      if (left != has(*in, one.name))
        return left ? fmt::format("no loop goes over the {} elements of {}", one.extent, one.name)
                    : fmt::format("nothing of {} is left for the loop {}", one.name, one.name);
    }
    return "";
  }

  std::string tasks() {
    const ScheduledLoop* cut = nullptr;
    for (const ScheduledLoop& loop : s_.tasks) {
      const std::string& name = loop.dims[0];
      const bool lanes = name == last(), sum = axis(name).reduced;
      const std::int64_t step = loop.step > 0 ? loop.step : unit(name);
      if (step % unit(name) != 0)
        return fmt::format("steps of {} are no multiple of the {} of {} in registers", step, unit(name), name);
      const std::int64_t whole = axis(name).extent / unit(name) * unit(name);
      if (step >= whole) return fmt::format("the loop {} is one task: {} has {} elements", str(loop), name, whole);
      if (sum && cut != nullptr) return fmt::format("the loops {} and {} both cut a sum", str(*cut), str(loop));
      if (sum) cut = &loop;
      if (!lanes) continue;
      if (sum && (s_.vectors > 1 || !s_.unroll.empty()))
        return fmt::format("tasks share {}, so that each adds up one vector after the other", name);
      if (sum && std::count_if(d_.axes.begin(), d_.axes.end(), [](const DomainAxis& a) { return a.reduced; }) > 1)
        return fmt::format("tasks share {}, along which lanes run, where nothing else is summed up", name);
      if (sum && loop.step == 0) return fmt::format("a task of {} has several vectors", name);
      if (sums_ && !sum && loop.step > 0)
        return fmt::format("a task has one block of {}, not {} elements", name, loop.step);
      // What is left after the blocks is a phase of its own.
      if (sums_ && !sum && &loop != &s_.tasks.front() && axis(name).extent % unit(name) != 0)
        return fmt::format("blocks of {} do not fill {} {}, so the loop {} is the outermost", unit(name),
                           axis(name).extent, name, str(loop));
    }
    return "";
  }

  // Lanes are innermost, of what sums are for or of what is summed up. Without sums loops may stand inside of them, but
  // for those of overlapping windows.
  std::string order() {
    if (d_.axes.empty()) return "";
    if (!sums_ && s_.panel_maxima.empty()) return "";
    const auto& in = sums_ && !lanes_reduced() ? s_.outer : s_.inner;
    if (has(in, last()) && in.back().dims[0] != last())
      return fmt::format("the loop {} stands inside of that along lanes, {}", str(in.back()), last());
    return "";
  }

  // Of a first largest element: elements pass one after the other.
  std::string positions() {
    if (std::none_of(d_.sums.begin(), d_.sums.end(), [](const Domain::Sum& sum) { return sum.is_position(); }))
      return "";
    int before = -1;
    for (const ScheduledLoop& loop : s_.inner) {
      if (d_.find(loop.dims[0]) < before)
        return fmt::format("first places are looked for in the order of memory, and the loop {} is not there",
                           str(loop));
      before = d_.find(loop.dims[0]);
    }
    const auto first = std::find_if(d_.axes.begin(), d_.axes.end(), [](const DomainAxis& a) { return a.reduced; });
    for (const ScheduledLoop& loop : s_.tasks)
      if (axis(loop.dims[0]).reduced && loop.dims[0] != first->name)
        return fmt::format("first places are looked for in the order of memory, so tasks cut {}, not {}", first->name,
                           loop.dims[0]);
    for (const Extent& extent : s_.unroll)
      if (extent.dims[0] != last() && extent.count > 1)
        return fmt::format("first places are looked for in the order of memory, so {} is not unrolled", extent.dims[0]);
    if (lanes_reduced() && s_.vectors > 1) return "first places are looked for in one vector after the other";
    return "";
  }

  // Rows pass one after the other, with all their columns.
  std::string maxima() {
    if (s_.panel_maxima.empty()) return "";
    if (s_.panel_maxima != d_.maxima_rows)
      return d_.maxima_rows.empty()
                 ? "there are no overlapping windows whose maxima could be kept"
                 : fmt::format("maxima are kept while rows pass, {}, not {}", d_.maxima_rows, s_.panel_maxima);
    if (!s_.unroll.empty())
      return fmt::format("{} passes element by element where maxima are kept", s_.unroll[0].dims[0]);
    if (has(s_.tasks, d_.maxima_columns))
      return fmt::format("a task that keeps maxima has whole rows, all of {}", d_.maxima_columns);
    if (!sums_ && has(s_.tasks, last())) return fmt::format("a task that keeps maxima has all of {}", last());
    std::vector<std::string> wanted{d_.maxima_columns};
    if (has(s_.inner, d_.maxima_rows)) wanted.insert(wanted.begin(), d_.maxima_rows);
    if (!sums_) wanted.push_back(last());
    const std::size_t before = s_.inner.size() - std::min(s_.inner.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (before + i >= s_.inner.size() || s_.inner[before + i].dims[0] != wanted[i])
        return fmt::format("maxima are kept where the innermost loops are {}", fmt::join(wanted, ", "));
    return "";
  }

  // Terms of a lane that are added up in f32.
  std::string flush() {
    if (s_.flush.dims.empty()) return "";
    if (s_.flush.dims != std::vector{s_.vector} || !lanes_reduced() ||
        std::none_of(d_.sums.begin(), d_.sums.end(), [](const Domain::Sum& sum) { return sum.may_be_long(); }))
      return "sums go to f64 where lanes run along what is summed up, in f32";
    const std::int64_t trip = s_.block() * unrolled_vectors();
    if (s_.flush.count % trip != 0)
      return fmt::format("{} terms are no multiple of the {} without a loop", s_.flush.count, trip);
    const ScheduledLoop* const cut = find(s_.tasks, s_.vector);
    if (cut != nullptr && cut->step % s_.flush.count != 0)
      return fmt::format("the loop {} cuts the {} terms that go to f64 together", str(*cut), s_.flush.count);
    return "";
  }
  std::int64_t unrolled_vectors() const { return s_.unroll.empty() ? 1 : s_.unroll[0].count; }

  std::string fetch() {
    if (s_.fetch.dims.empty()) return "";
    if (s_.fetch_packed || s_.fetch_b) return "a group without an anchor has no second operand to fetch";
    const std::string& along = s_.fetch.dims[0];
    const std::string& rows = rows_of_windows(d_, s_);
    if (s_.fetch.dims.size() > 1 || (!rows.empty() && along != rows))
      return fmt::format("rows of windows are fetched ahead, along {}", rows);
    if (!rows.empty()) {
      const bool innermost = !has(s_.inner, last()) || s_.inner.back().dims[0] == last();
      return sums_ || innermost ? "" : fmt::format("rows of windows are fetched ahead where {} is innermost", last());
    }
    if (!sums_ || !axis(along).reduced) return "what is summed up is fetched ahead, along it";
    if (lanes_reduced() && (along != last() || s_.vectors * unrolled_vectors() == 1))
      return fmt::format("it is fetched ahead along {} for several vectors at once", last());
    return "";
  }

  const Domain& d_;
  const Schedule& s_;
  const bool sums_;
};

}  // namespace

std::string check(const Domain& domain, const Schedule& schedule, const Target& target) {
  return DomainCheck(domain, schedule).run(target);
}

}  // namespace fusejit::scheduler
