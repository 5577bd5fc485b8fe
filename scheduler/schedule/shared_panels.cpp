#include "scheduler/schedule/shared_panels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/ops/geometry/window.h"
#include "scheduler/schedule/check_threads.h"
#include "scheduler/schedule/dims.h"

namespace fusejit::scheduler {
namespace {

using ir::Binding;

constexpr std::int64_t kMostBytes = 48 << 10;  // of scratch in a block's kernel text (kernel-ir.md §8, V5)
constexpr std::int64_t kAccess = 16;           // bytes of the widest access

std::vector<int> numbers_of(const ir::Contraction& c, const std::vector<std::string>& names) {
  std::vector<int> dims;
  for (const std::string& name : names) dims.push_back(c.find(name));
  return dims;
}

class SharedCheck {
 public:
  SharedCheck(const ir::Contraction& c, const Schedule& s, bool sums) : c_(c), s_(s), reduces_(sums) {}

  std::string run() {
    for (const auto step :
         {&SharedCheck::lines, &SharedCheck::operands, &SharedCheck::tasks, &SharedCheck::loops, &SharedCheck::combined,
          &SharedCheck::packed, &SharedCheck::idle_lanes, &SharedCheck::threads, &SharedCheck::memory})
      if (std::string broken = (this->*step)(); !broken.empty()) return broken;
    return "";
  }
  const SharedPanels& form() const { return form_; }

 private:
  std::string lines() {
    if (!s_.dot.empty() || s_.matrix > 0) return "threads add up single terms";
    if (!s_.outer.empty()) return "panels that threads share have no outer loops";
    if (!s_.flush.dims.empty() || !s_.fetch.dims.empty() || s_.stream || s_.unroll_within || s_.tiles_a ||
        s_.finish_late)
      return "panels that threads share have neither 'flush', 'fetch', 'store stream', 'within', 'tiles' nor 'finish'";
    if (s_.tile.size() != 1 || s_.unroll.size() != 1)
      return "panels that threads share have one tile of rows, and one run of terms without a loop";
    form_.terms = numbers_of(c_, s_.unroll[0].dims);
    if (above_one(c_, form_.terms) != form_.terms)
      return fmt::format("terms are combinations of dims of several elements, not of {}",
                         fmt::join(s_.unroll[0].dims, "*"));
    if (const std::string& last = s_.unroll[0].dims.back(); s_.panel_a != last || s_.panel_b != last)
      return fmt::format("threads share panels of both operands, inside of the loop over {}", last);
    form_.held = s_.tile[0].count, form_.terms_at_once = s_.unroll[0].count;
    return "";
  }

  std::string operands() {
    const int outputs = c_.find(s_.vector);
    if (c_.terms() == 0 || c_.outputs() == 0) return "there is nothing to copy to panels";
    if (c_.a.mentions(outputs)) return fmt::format("lanes run along {}, which the first operand has too", s_.vector);
    for (int d = 0; d < static_cast<int>(c_.dims.size()); ++d) {
      const bool reduced = dim_of(c_, d).reduced;
      if (reduced || d == outputs) continue;
      (c_.b.mentions(d) ? form_.groups : form_.rows).push_back(d);
    }
    form_.rows = above_one(c_, form_.rows), form_.groups = above_one(c_, form_.groups);
    if (s_.tile[0].dims != names_of(c_, form_.rows))
      return fmt::format("rows are combinations of {}, not of {}", fmt::join(names_of(c_, form_.rows), "*"),
                         fmt::join(s_.tile[0].dims, "*"));
    return "";
  }

  std::string tasks() {
    const std::vector<std::string> rows = names_of(c_, form_.rows), groups = names_of(c_, form_.groups);
    const std::int64_t vectors = ir::ceil_divide<std::int64_t>(c_.dim(s_.vector).extent, s_.block());
    std::int64_t rows_of_block = 0;
    std::vector<Binding> order;
    form_.output_threads = std::max<std::int64_t>(1, vectors);
    for (const ScheduledLoop& task : s_.tasks) {
      order.push_back(task.bound);
      const auto refused = [&] { return fmt::format("there is no place for the loop {} of tasks", str(task)); };
      if (task.stride > 0) return refused();
      if (task.bound == Binding::grid_z && task.dims == s_.unroll[0].dims && task.step > 0) {
        form_.terms_of_part = task.step;
        if (task.step % form_.terms_at_once != 0)
          return fmt::format("parts of {} are no whole panels of {}", task.step, form_.terms_at_once);
        if (!form_.groups.empty()) return "sums of groups are not cut";
      } else if (task.bound == Binding::grid_z && task.dims == groups && task.step == 0) {
        has_groups_ = true;
      } else if (task.bound == Binding::grid_y && task.dims == std::vector{s_.vector} && task.step > 0) {
        if (task.step % s_.block() != 0) return fmt::format("blocks of {} are no whole vectors", str(task));
        form_.output_threads = task.step / s_.block();
        if (form_.output_threads > vectors)
          return fmt::format("{} threads side by side, of which {} would do for {}", form_.output_threads, vectors,
                             s_.vector);
      } else if (task.bound == Binding::grid_x && task.dims == rows && task.step > 0) {
        rows_of_block = task.step;
      } else if (task.bound == Binding::block_y && task.dims == rows && task.step == form_.held) {
        form_.row_threads = ir::ceil_divide(rows_of_block, form_.held);
      } else if (task.bound != Binding::block_x || task.dims != std::vector{s_.vector} || task.step > 0) {
        return refused();
      }
    }
    static constexpr Binding kOrder[] = {Binding::grid_z, Binding::grid_y, Binding::grid_x, Binding::block_y,
                                         Binding::block_x};
    const auto place = [&](Binding b) { return std::find(std::begin(kOrder), std::end(kOrder), b); };
    for (std::size_t i = 1; i < order.size(); ++i)
      if (place(order[i - 1]) >= place(order[i])) return "tasks are bound to z, y, x of the grid, y and x of the block";
    if (rows_of_block == 0 || order.back() != Binding::block_x)
      return "grid.x has the rows and block.x the outputs, where threads share panels";
    if (!form_.groups.empty() && !has_groups_) return fmt::format("grid.z has the {}", fmt::join(groups, "*"));
    rows_of_block_ = rows_of_block;
    return "";
  }

  std::string loops() {
    std::vector<int> left;
    for (const int d : all_reduced())
      if (std::find(form_.terms.begin(), form_.terms.end(), d) == form_.terms.end()) left.push_back(d);
    std::size_t next = 0;
    const auto& inner = s_.inner;
    if (!inner.empty() && inner[0].bound == Binding::block_y && inner[0].dims == s_.tile[0].dims) {
      if (form_.row_threads > 1) return "block.y is bound twice";
      form_.strided = true, form_.row_threads = inner[0].stride, next = 1;
      if (inner[0].step > 0 || next == inner.size() || inner[1] != ScheduledLoop{s_.tile[0].dims})
        return "threads that stride over rows hold what is left of them";
      ++next;
    }
    for (; next < inner.size(); ++next) {
      const ScheduledLoop& loop = inner[next];
      if (loop.bound != Binding::none || loop.step + loop.stride > 0)
        return fmt::format("the loop {} is inside of the panels' rows, and has single steps", str(loop));
      if (loop.dims == s_.unroll[0].dims) break;
      const auto at = std::find(left.begin(), left.end(), loop.dims.size() == 1 ? c_.find(loop.dims[0]) : -1);
      if (at == left.end()) return fmt::format("there is no place for the loop {}", str(loop));
      form_.around.push_back(*at);
      left.erase(at);
    }
    if (next + 1 != inner.size())
      return fmt::format("the innermost loop is that over {}", fmt::join(s_.unroll[0].dims, "*"));
    for (const int d : left)
      if (dim_of(c_, d).extent > 1) return fmt::format("no loop is over {}", dim_of(c_, d).name);
    if (rows_of_block_ != form_.rows_of_block())
      return fmt::format("{} threads of {} rows each are not the {} of a block", form_.row_threads, form_.held,
                         rows_of_block_);
    if (reduces_ && !form_.strided) return "threads that add up results stride over rows";
    if (reduces_ && (form_.row_threads & (form_.row_threads - 1)) != 0)
      return fmt::format("{} threads do not meet in a tree: only a power of two of them do", form_.row_threads);
    return "";
  }

  std::string combined() {
    if (s_.combine.empty() != (form_.terms_of_part == 0))
      return s_.combine.empty() ? "sums that are cut are combined" : "no sum is cut, and none is combined";
    if (s_.combine.empty()) return "";
    if (reduces_) return "an epilogue that sums up results needs whole ones";
    std::vector<std::string> wanted = names_of(c_, form_.rows);
    wanted.push_back(s_.vector);
    std::vector<std::string> said = s_.combine;
    std::sort(wanted.begin(), wanted.end()), std::sort(said.begin(), said.end());
    return wanted == said ? "" : fmt::format("threads combine results of {}", fmt::join(wanted, "*"));
  }

  std::string packed() {
    const std::int64_t outputs = form_.output_threads * s_.block();
    if (s_.pack_b % outputs == 0) return "";
    return fmt::format("blocks of {} packed {} are no whole blocks of {}", s_.pack_b, s_.vector, outputs);
  }

  // Of an output beyond the last it would not be provable that no other group has it.
  std::string idle_lanes() {
    const std::int64_t outputs = form_.output_threads * s_.block();
    if (c_.dim(s_.vector).extent % outputs == 0) return "";
    for (const int g : form_.groups)
      if (c_.lies_behind(g, c_.find(s_.vector)))
        return fmt::format("blocks of {} {} reach beyond the {} of a group", outputs, s_.vector,
                           c_.dim(s_.vector).extent);
    return "";
  }

  std::string threads() { return check_block(form_.row_threads * form_.output_threads, s_.registers); }

  std::string memory() {
    const std::int64_t factor = std::max<std::int64_t>(4, bytes(c_.a.dtype, 1));
    const std::int64_t rows = form_.rows_of_block(), terms = form_.terms_at_once;
    const std::int64_t a = std::max(rows * pitch_of_panel(terms, factor), terms * rows),
                       b = terms * pitch_of_panel(form_.output_threads * s_.block(), factor);
    if ((a + b) * factor <= kMostBytes) return "";
    return fmt::format("panels of {} rows and {} outputs, {} terms each, are more than {} bytes", rows,
                       form_.output_threads * s_.block(), terms, kMostBytes);
  }

  std::vector<int> all_reduced() const {
    std::vector<int> dims;
    for (int d = 0; d < static_cast<int>(c_.dims.size()); ++d)
      if (dim_of(c_, d).reduced) dims.push_back(d);
    return dims;
  }

  const ir::Contraction& c_;
  const Schedule& s_;
  const bool reduces_;
  SharedPanels form_;
  std::int64_t rows_of_block_ = 0;
  bool has_groups_ = false;
};

}  // namespace

std::int64_t pitch_of_panel(std::int64_t elements, std::int64_t bytes_of_element) {
  return elements + kAccess / bytes_of_element;
}

SharedPanels shared_panels(const ir::Contraction& contraction, const Schedule& schedule) {
  SharedCheck check(contraction, schedule, false);
  check.run();
  return check.form();
}

std::string check_shared_panels(const ir::Contraction& contraction, const Schedule& schedule, bool sums) {
  return SharedCheck(contraction, schedule, sums).run();
}

}  // namespace fusejit::scheduler
