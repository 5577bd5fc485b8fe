// Groups without an anchor on processors. Memory is what they wait for: enough tasks, whole vectors in the order of
// memory, a few cache lines on their way at once.
#include <algorithm>

#include "ir/ops/geometry/window.h"
#include "scheduler/choose/roles.h"
#include "scheduler/choose/tuning.h"
#include "scheduler/lower/long_sum.h"
#include "scheduler/lower/split.h"

namespace fusejit::scheduler {
namespace {

class X86DomainChooser {
 public:
  X86DomainChooser(const Domain& domain, const Target& target, const DomainElements& elements)
      : d_(domain),
        target_(target),
        elements_(elements),
        tasks_(domain.elements() < tuning::kSerialElements ? 1 : target.tasks) {}

  Schedule run() {
    if (d_.axes.empty()) return s_;
    s_.vector = last().name, s_.lanes = elements_.lanes;
    s_.stream = exceeds_caches(target_, elements_.stored_bytes);
    if (!d_.sums.empty()) {
      sums();
    } else if (!d_.maxima_rows.empty()) {
      blocks_of_rows();
    } else if (!elements_.after || !like(*elements_.after)) {
      elements();
    }
    return s_;
  }

 private:
  const DomainAxis& last() const { return d_.axes.back(); }
  std::int64_t whole_vectors() const { return last().extent / s_.lanes; }
  bool lanes_kept() const { return !last().reduced; }
  static void add(std::vector<ScheduledLoop>& loops, const DomainAxis& axis, std::int64_t step = 0) {
    loops.push_back({{axis.name}, step});
  }
  // Tasks of `chunks` blocks of `unit` elements; what they leave.
  void share(const DomainAxis& axis, const Split& chunks, std::vector<ScheduledLoop>& left, std::int64_t unit = 1) {
    if (chunks.chunks > 1) add(s_.tasks, axis, chunks.chunk == 1 && unit == 1 ? 0 : chunks.chunk * unit);
    if (chunks.chunks == 1 || chunks.chunk * unit > 1) add(left, axis);
  }
  // The next row of windows, of images that come from memory: those are no smaller than what is stored.
  void fetch_windows(const std::string& rows) {
    if (!rows.empty() && elements_.stored_bytes >= target_.l2_bytes / tuning::kFetchedWindowsOfL2)
      s_.fetch = {{rows}, 1};
  }
  void copy_few_vectors() {
    const std::int64_t whole = whole_vectors();
    if (whole > 0 && whole <= tuning::kMostVectorsWithoutLoop) s_.vectors = static_cast<int>(whole);
  }

  // Tasks are chunks of the outermost axes, or of whole vectors where there is only one.
  void elements() {
    if (d_.axes.size() == 1) {
      const std::int64_t whole = whole_vectors(), tasks = std::min(tasks_, whole / tuning::kLeastVectorsOfTask);
      if (tasks <= 1) copy_few_vectors();
      return share(last(), tasks <= 1 ? Split{} : split(whole, tasks), s_.inner, s_.lanes);
    }
    copy_few_vectors();
    fetch_windows(d_.pooled_rows);
    std::int64_t tasks = tasks_;
    for (std::size_t a = 0; a + 1 < d_.axes.size(); ++a) {
      const DomainAxis& axis = d_.axes[a];
      const Split chunks = tasks > 1 && a < kMostTaskLoops ? split(axis.extent, tasks) : Split{};
      share(axis, chunks, s_.inner);
      tasks = chunks.chunks > 1 && chunks.chunk == 1 ? ir::ceil_divide(tasks, axis.extent) : 1;
    }
    add(s_.inner, last());
  }

  // Rounds over what is kept, as the sums before have them, and in each what was summed up, while that is on chip.
  bool like(const Schedule& before) {
    if (before.vector != s_.vector || before.lanes != s_.lanes) return false;
    Schedule like = s_;
    like.tasks = before.tasks, like.inner = before.outer;
    const auto stands_in = [](const std::vector<ScheduledLoop>& loops, const ScheduledLoop& one) {
      return std::any_of(loops.begin(), loops.end(), [&](const ScheduledLoop& loop) { return loop.dims == one.dims; });
    };
    const bool lanes_kept = !stands_in(before.inner, {{s_.vector}});
    std::int64_t rounds = 1;
    for (const auto* list : {&before.tasks, &before.outer}) {
      for (const ScheduledLoop& loop : *list) {
        if (stands_in(before.inner, loop) || d_.find(loop.dims[0]) < 0) return false;  // tasks cut a sum
        if (list == &before.outer && stands_in(before.tasks, loop)) continue;
        rounds *= d_.axis(loop.dims[0]).extent;
      }
    }
    if (lanes_kept && last().extent % before.block() != 0) return false;
    if (lanes_kept) like.vectors = before.vectors, rounds /= before.block();
    for (const ScheduledLoop& loop : before.inner) like.inner.push_back({loop.dims});
    if (elements_.stored_bytes * tuning::kValuesOfRound > rounds * (target_.l2_bytes / tuning::kRoundOfL2))
      return false;
    if (!check(d_, like, target_).empty()) return false;
    s_ = std::move(like);
    if (!lanes_kept) copy_few_vectors();
    return true;
  }

  // Images and blocks of rows.
  void blocks_of_rows() {
    copy_few_vectors();
    s_.panel_maxima = d_.maxima_rows;
    fetch_windows(d_.maxima_rows);
    for (const DomainAxis& axis : d_.axes) {
      const std::int64_t images = d_.axes[0].name == d_.maxima_rows ? 1 : d_.axes[0].extent;
      if (axis.name == d_.maxima_rows) {
        const std::int64_t most = std::max<std::int64_t>(1, axis.extent / tuning::kLeastRowsOfTask);
        share(axis, split(axis.extent, std::min(ir::ceil_divide(tasks_, images), most)), s_.inner);
      } else if (tasks_ > 1 && axis.name != d_.maxima_columns && &axis != &d_.axes.back()) {
        add(s_.tasks, axis);
      } else {
        add(s_.inner, axis);
      }
    }
  }

  // A block of columns walks down the reduced axes; if the last is reduced, lanes walk along it and meet in a tree.
  void sums() {
    for (const DomainAxis& axis : d_.axes)
      if (&axis != &d_.axes.back()) (axis.reduced ? reduced_ : kept_).push_back(&axis);
    if (lanes_kept())
      s_.vectors = static_cast<int>(std::clamp<std::int64_t>(whole_vectors(), 1, tuning::kColumnsTogether));
    Split parts = cut();
    if (lanes_kept() && parts.chunks > 1 && last().extent >= 2 * tuning::kColumnsOfParts)
      s_.vectors = static_cast<int>(std::max<std::int64_t>(1, tuning::kColumnsOfParts / s_.lanes));
    const bool in_columns = lanes_kept() && by_kept_ && (kept_.empty() || by_columns_);
    std::int64_t tasks = by_kept_ ? target_.tasks : 1;
    for (const DomainAxis* axis : kept_) {
      const Split chunks = tasks > 1 ? split(axis->extent, tasks) : Split{};
      share(*axis, chunks, s_.outer);
      const bool more = chunks.chunks > 1 && chunks.chunk == 1 && !by_columns_ && s_.tasks.size() < kMostTaskLoops;
      tasks = more ? ir::ceil_divide(tasks, axis->extent) : 1;
    }
    if (lanes_kept()) add(in_columns ? s_.tasks : s_.outer, last());
    if (!lanes_kept()) along_row(parts);
    for (const DomainAxis* axis : reduced_) share(*axis, axis == reduced_.front() ? parts : Split{}, s_.inner);
    if (!lanes_kept()) return share(last(), reduced_.empty() ? parts : Split{}, s_.inner, s_.lanes);
    s_.panel_maxima = d_.maxima_rows;
    const bool windows = std::none_of(d_.windows.begin(), d_.windows.end(), [&](const Extent& window) {
      return parts.chunks > 1 && window.dims[0] == reduced_.front()->name;
    });
    if (windows) s_.unroll = d_.windows;
    fetch_windows(rows_of_windows(d_, s_));
    if (!reduced_.empty() && s_.unroll.empty() && s_.panel_maxima.empty())
      s_.fetch = {{reduced_.back()->name},
                  std::max(tuning::kRowsAhead, tuning::kElementsAhead / std::max<std::int64_t>(1, last().extent))};
  }

  // The first reduced axis, or the vectors of a row, in parts where what is kept gives too few tasks.
  Split cut() {
    std::int64_t kept = 1, in_unit = 1;  // in_unit: of each independent sum
    for (const DomainAxis* axis : kept_) kept *= axis->extent;
    for (std::size_t i = 1; i < reduced_.size(); ++i) in_unit *= reduced_[i]->extent;
    if (lanes_kept() && kept_.empty())
      kept *= std::max<std::int64_t>(1, last().extent / (s_.lanes * tuning::kColumnsTogether));
    by_kept_ = tasks_ > 1 && kept * 2 > tasks_;
    // Blocks of columns of each image, before a sum is cut, whose parts would have to be joined.
    by_columns_ = tasks_ > 1 && !by_kept_ && lanes_kept() && !kept_.empty() && last().extent % s_.block() == 0 &&
                  kept_.front()->extent * (last().extent / s_.block()) * 2 > tasks_;
    by_kept_ = by_kept_ || by_columns_;
    const std::int64_t units = !reduced_.empty() ? reduced_[0]->extent : lanes_kept() ? 1 : whole_vectors();
    // Each part leaves a state of every sum, which is written and read: a part of a column is worth it if it is long.
    const std::int64_t least = lanes_kept() ? tuning::kLeastRowsOfWord * words_of_state() : tuning::kLeastTermsOfTask;
    const std::int64_t parts = by_kept_ ? 1 : std::min({tasks_, units, units * in_unit / least});
    return split(units, std::max<std::int64_t>(1, parts));
  }

  // Several independent accumulators a trip; blocks of long sums.
  void along_row(Split& parts) {
    const bool is_cut = reduced_.empty() && parts.chunks > 1,
               trips = !is_cut && whole_vectors() >= 2 * tuning::kVectorsOfTrip;
    s_.vectors = trips ? accumulators(false) : 1;
    if (whole_vectors() >= tuning::kVectorsOfTrip) {
      std::int64_t terms = is_cut ? parts.chunk : whole_vectors() / s_.vectors;
      for (const DomainAxis* axis : reduced_)
        terms *= axis == reduced_.front() && parts.chunks > 1 ? parts.chunk : axis->extent;
      const bool is_long =
          is_long_sum(terms, DType::f32) &&
          std::any_of(d_.sums.begin(), d_.sums.end(), [](const Domain::Sum& sum) { return sum.may_be_long(); });
      if (is_long && is_cut) parts = in_blocks(parts, kBlockTerms);
      if (is_long && trips) s_.vectors = accumulators(true);
      if (is_long) s_.flush = {{last().name}, kBlockTerms * s_.block()};
    }
    if (!trips) return;
    if (const std::int64_t turns = tuning::kVectorsOfTrip / s_.vectors; turns > 1) s_.unroll = {{{last().name}, turns}};
    s_.fetch = {{last().name}, tuning::kElementsAhead};
  }
  // What one column leaves, in words of 32 bits.
  std::int64_t words_of_state() const {
    std::int64_t words = 0;
    for (const Domain::Sum& sum : d_.sums)
      words += (sum.combiner == ir::Combiner::welford ? 3 : sum.is_position() ? 2 : 1) * bits(sum.type) / 32;
    return std::max<std::int64_t>(1, words);
  }
  // Vectors of half of the registers, lanes of 64 bits in two each.
  int accumulators(bool is_long) const {
    int cost = 0;
    for (const Domain::Sum& sum : d_.sums) {
      if (sum.is_position()) return 1;
      const bool wide = bits(sum.type) == 64 || (is_long && sum.may_be_long());
      cost += sum.combiner == ir::Combiner::welford ? 4 : wide ? 2 : 1;
    }
    int count = tuning::kVectorsOfTrip;
    while (count > 1 && count * cost > target_.vector_registers() / 2) count /= 2;
    return count;
  }

  const Domain& d_;
  const Target& target_;
  const DomainElements& elements_;
  const std::int64_t tasks_;
  std::vector<const DomainAxis*> kept_, reduced_;  // but the last axis
  bool by_kept_ = false;                           // tasks are chunks of what is kept
  bool by_columns_ = false;                        // and of the last axis too
  Schedule s_;
};

}  // namespace

std::vector<Schedule> x86_candidates(const Domain& domain, const Target& target, const DomainElements& elements) {
  return {X86DomainChooser(domain, target, elements).run()};
}

}  // namespace fusejit::scheduler
