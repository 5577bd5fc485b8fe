#include "scheduler/lower/cuda/shared_panels.h"

#include <algorithm>
#include <utility>

#include "ir/ops/geometry/window.h"
#include "scheduler/fuse/analysis.h"
#include "scheduler/lower/cuda/threads.h"
#include "scheduler/lower/cuda/tuning.h"
#include "scheduler/lower/nest/pack.h"
#include "scheduler/lower/nest/restore.h"
#include "scheduler/schedule/dims.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Binding;
using ir::CompareKind;
using ir::Index;
using ir::KernelBuilder;
using ir::MemKind;

SharedPanelLoops::SharedPanelLoops(GroupKernel& kernel, Accumulators& accumulators,
                                   const ScheduledContraction& scheduled)
    : ContractionLoops(kernel, accumulators, scheduled),
      form_(shared_panels(c_, s_)),
      all_rows_(combinations_of(c_, form_.rows)),
      all_terms_(combinations_of(c_, form_.terms)),
      padded_(c_.dims),
      at_(c_.dims.size(), Index(0)) {
  const auto pad = [this](const std::vector<int>& dims, std::int64_t all, std::int64_t block) {
    ir::ContractionDim& outermost = padded_[static_cast<std::size_t>(dims[0])];
    outermost.extent = ir::ceil_divide(ir::ceil_divide(all, block) * block, all / outermost.extent);
  };
  pad(form_.rows, all_rows_, form_.rows_of_block()), pad(form_.terms, all_terms_, form_.terms_at_once);
  // Elements of this dim lie side by side in the operand's memory.
  const auto is_innermost = [&](int value, const ir::ContractionOperand& operand, int dim) {
    const int logical = innermost_dim(kernel.graph().value(value).type());
    return logical >= 0 && is_dim(operand.index[static_cast<std::size_t>(logical)], dim);
  };
  terms_are_innermost_ = is_innermost(value_a_, c_.a, form_.terms.back());
  rows_are_innermost_ = is_innermost(value_a_, c_.a, form_.rows.back());
  terms_are_innermost_in_b_ = packed_ < 0 && is_innermost(value_b_, c_.b, form_.terms.back());
}

std::int64_t SharedPanelLoops::parts() const {
  if (!s_.combine.empty()) return ir::ceil_divide(all_terms_, form_.terms_of_part);
  return kernel_.group().reductions.empty() ? 1 : ir::ceil_divide(all_rows_, form_.rows_of_block());
}

void SharedPanelLoops::with_element(int d, const Index& element, const std::function<void()>& body) {
  if (d == vector_) {
    const Restore restore(vector_at_);
    vector_at_ = element;
    return body();
  }
  const Restore restore(at_[static_cast<std::size_t>(d)]);
  at_[static_cast<std::size_t>(d)] = element;
  body();
}

void SharedPanelLoops::emit(const std::vector<ir::MemId>& work, std::int64_t first_part) {
  work_ = work, first_part_ = first_part;
  if (!s_.combine.empty()) declare_partial_results();
  over_tasks(0);
  std::fill(at_.begin(), at_.end(), Index(0));
  if (!s_.combine.empty()) combine_by_threads();
}

// The loops of the grid; those of the block come with what its threads do.
void SharedPanelLoops::over_tasks(std::size_t task) {
  if (task == s_.tasks.size() || ir::is_block_axis(s_.tasks[task].bound)) return tile();
  const ScheduledLoop& loop = s_.tasks[task];
  const auto grid = [&](std::int64_t extent, const std::function<void(const Index& i)>& body) {
    const auto one = [&](const Index& i) {
      body(i);
      over_tasks(task + 1);
    };
    if (extent == 1 && loop.bound != Binding::grid_x) return one(0);
    builder_.loop(Index(0), Index(extent), loop.bound, [&](Index i) { one(extent == 1 ? Index(0) : i); });
  };
  if (loop.bound == Binding::grid_x) {
    const std::int64_t rows = form_.rows_of_block();
    return grid(ir::ceil_divide(all_rows_, rows), [&](const Index& i) {
      first_row_ = i * rows;
      if (s_.combine.empty()) part_ = i;
    });
  }
  if (loop.bound == Binding::grid_y)
    return grid(ir::ceil_divide(contraction_dim(vector_).extent, loop.step),
                [&](const Index& i) { first_output_ = i * loop.step; });
  if (form_.terms_of_part > 0)
    return grid(ir::ceil_divide(all_terms_, form_.terms_of_part), [&](const Index& i) { part_ = i; });
  grid(combinations_of(c_, form_.groups), [&](const Index& i) { set(form_.groups, i); });
}

void SharedPanelLoops::tile() {
  std::vector<std::int64_t> dims;
  if (form_.row_threads > 1) dims.push_back(form_.row_threads);
  if (form_.output_threads > 1) dims.push_back(form_.output_threads);
  dims.push_back(form_.held);
  if (s_.vectors > 1) dims.push_back(s_.vectors);
  if (s_.lanes > 1) dims.push_back(s_.lanes);
  sums_ = builder_.local(MemKind::register_local, compute_, dims, 0);
  const std::int64_t rows = form_.rows_of_block(), terms = form_.terms_at_once;
  panel_a_ =
      builder_.local(MemKind::scratch_local, compute_,
                     by_rows() ? std::vector{rows, pitch_of_panel(terms, bytes(compute_))} : std::vector{terms, rows});
  // Where terms are stored to it, threads side by side store to other banks.
  const std::int64_t pitch =
      copies_b_by_terms() ? pitch_of_panel(outputs_of_block(), bytes(compute_)) : outputs_of_block();
  panel_b_ = builder_.local(MemKind::scratch_local, compute_, {terms, pitch});
  over_terms(0);
  if (work_.empty()) return finish();
  for (std::int64_t j = 0; j < s_.vectors; ++j) finish_with_sums(Index(j));
}

void SharedPanelLoops::over_terms(std::size_t around) {
  if (around < form_.around.size()) {
    const int d = form_.around[around];
    return serial(builder_, contraction_dim(d).extent,
                  [&](const Index& i) { with_element(d, i, [&] { over_terms(around + 1); }); });
  }
  const std::int64_t at_once = form_.terms_at_once;
  const auto panels = [&](const Index& first_term) {
    each_thread([&](const Thread& thread) {
      fill_a(thread, first_term);
      fill_b(thread, first_term);
    });
    each_thread([&](const Thread& thread) { multiply(thread); });
  };
  const std::int64_t all = ir::ceil_divide(all_terms_, at_once);
  if (form_.terms_of_part == 0) return serial(builder_, all, [&](const Index& i) { panels(i * at_once); });
  const std::int64_t of_part = form_.terms_of_part / at_once;
  std::vector<Index> high{Index(of_part)};
  if (all % of_part != 0) high.push_back(Index(all) - part_ * of_part);
  builder_.loop({Index(0)}, high, Binding::none, [&](Index i) { panels(part_ * form_.terms_of_part + i * at_once); });
}

void SharedPanelLoops::each_thread(const std::function<void(const Thread& thread)>& body) {
  cuda::along(builder_, form_.row_threads, Binding::block_y, [&](Index row) {
    cuda::along(builder_, form_.output_threads, Binding::block_x, [&](Index output) { body({row, output}); });
  });
}

// Neighbouring threads have neighbouring cells, which lie side by side in memory.
void SharedPanelLoops::each_cell(const Thread& thread, std::int64_t cells,
                                 const std::function<void(const Index& cell)>& body) {
  const std::int64_t threads = form_.row_threads * form_.output_threads, turns = ir::ceil_divide(cells, threads);
  const auto one = [&](const Index& turn) {
    const Index cell = turn * threads + thread.row * form_.output_threads + thread.output;
    if (cells % threads == 0) return body(cell);
    builder_.when({compare(cell, CompareKind::lt, cells)}, [&] { body(cell); });
  };
  turns <= cuda::kMostCopiedCells ? unrolled(builder_, turns, one) : serial(builder_, turns, one);
}

void SharedPanelLoops::set(const std::vector<int>& dims, const Index& number, const Index& lane) {
  std::vector<std::int64_t> extents;
  for (const int d : dims) extents.push_back(contraction_dim(d).extent);
  const std::vector<Index> values = cuda::decode(number, extents);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const bool innermost = i + 1 == dims.size();
    at_[static_cast<std::size_t>(dims[i])] = innermost ? values[i] + lane : values[i];
  }
}

// The outermost of the dims is below its extent: what is inside of it are remainders. `together`: so many combinations
// from this one on are there or are not.
ir::Compare SharedPanelLoops::below(const std::vector<int>& dims, const Index& number, std::int64_t together) const {
  std::int64_t inner = dims.size() == 1 ? together : 1;
  for (std::size_t i = 1; i < dims.size(); ++i) inner *= contraction_dim(dims[i]).extent;
  return compare(number / inner, CompareKind::lt, contraction_dim(dims[0]).extent / (dims.size() == 1 ? together : 1));
}

std::vector<ir::Compare> SharedPanelLoops::is_row(const Index& row, std::int64_t together) const {
  if (all_rows_ % form_.rows_of_block() == 0) return {};
  return {below(form_.rows, first_row_ + row, together)};
}

std::vector<ir::Compare> SharedPanelLoops::is_term(const Index& term, std::int64_t together) const {
  if (all_terms_ % form_.terms_at_once == 0) return {};
  return {below(form_.terms, term, together)};
}

// The first operand's index at hand. Of one that has a dim of rows and one of terms, each bounded by a condition of its
// own, nothing would be proven of both.
std::vector<ir::Compare> SharedPanelLoops::is_inside() const {
  std::vector<ir::Compare> inside;
  for (std::size_t i = 0; i < c_.a.index.size(); ++i) {
    const ir::DimSum& sum = c_.a.index[i];
    const bool both = sum.coefficient_of(form_.rows[0]) != 0 && sum.coefficient_of(form_.terms[0]) != 0;
    if (!c_.a.may_leave(static_cast<int>(i), both ? padded_ : c_.dims)) continue;
    for (const ir::Compare& c : within(evaluate(c_.a.index[i]), c_.a.extents[i])) inside.push_back(c);
  }
  return inside;
}

// Elements of the first operand that a thread copies at once.
std::int64_t SharedPanelLoops::lanes_of_a() const {
  if (!terms_are_innermost_ && !rows_are_innermost_) return 1;
  const int d = terms_are_innermost_ ? form_.terms.back() : form_.rows.back();
  const std::int64_t together = terms_are_innermost_ ? form_.terms_at_once : form_.rows_of_block();
  return contraction_dim(d).extent % s_.lanes == 0 && together % s_.lanes == 0 ? s_.lanes : 1;
}

std::vector<Index> SharedPanelLoops::place_in_a(const Index& row, const Index& term) const {
  return by_rows() ? std::vector{row, term} : std::vector{term, row};
}

void SharedPanelLoops::fill_a(const Thread& thread, const Index& first_term) {
  const std::int64_t rows = form_.rows_of_block(), terms = form_.terms_at_once, lanes = lanes_of_a();
  const std::int64_t fast = (by_rows() ? terms : rows) / lanes;  // cells that lie side by side
  each_cell(thread, rows * terms / lanes, [&](const Index& cell) {
    const Index first = cell % fast * lanes, other = cell / fast;
    const Index row = by_rows() ? other : first, term = by_rows() ? first : other;
    cuda::each_lane(builder_, lanes, [&](Index lane) {
      const Index along_rows = by_rows() ? Index(0) : lane, along_terms = by_rows() ? lane : Index(0);
      set(form_.rows, first_row_ + row, along_rows);
      set(form_.terms, first_term + term, along_terms);
      std::vector<ir::Compare> there = is_row(row, by_rows() ? 1 : lanes);
      for (const ir::Compare& c : is_term(first_term + term, by_rows() ? lanes : 1)) there.push_back(c);
      for (const ir::Compare& c : is_inside()) there.push_back(c);
      const auto value = [&] {
        Expression& expression = kernel_.expression();
        return expression.nested([&] { return expression.value(value_a_, evaluate(c_.a.index)); });
      };
      builder_.store(panel_a_, place_in_a(row + along_rows, term + along_terms),
                     value_or_zero(builder_, there, compute_, value));
    });
  });
}

// Where terms lie side by side, whole accesses are along them.
bool SharedPanelLoops::copies_b_by_terms() const {
  return terms_are_innermost_in_b_ && contraction_dim(form_.terms.back()).extent % s_.lanes == 0 &&
         form_.terms_at_once % s_.lanes == 0;
}

// At the terms at hand and this output of the block.
Arg SharedPanelLoops::element_of_b(const Index& output) {
  if (packed_ < 0) {
    const Restore restore(vector_at_);
    vector_at_ = first_output_ + output;
    Expression& expression = kernel_.expression();
    return expression.nested([&] { return expression.value(value_b_, evaluate(c_.b.index)); });
  }
  std::vector<Index> place;
  for (const int d : packed_apart(c_, s_)) place.push_back(at(d));
  place.push_back(first_output_ / s_.pack_b);
  for (std::size_t d = 0; d < c_.dims.size(); ++d)
    if (c_.dims[d].reduced) place.push_back(at_[d]);
  place.push_back(first_output_ % s_.pack_b + output);
  return builder_.load(packed_, place);
}

void SharedPanelLoops::fill_b(const Thread& thread, const Index& first_term) {
  const bool by_terms = copies_b_by_terms();
  const std::int64_t terms = form_.terms_at_once, all = contraction_dim(vector_).extent;
  const std::int64_t fast = (by_terms ? terms : outputs_of_block()) / s_.lanes;  // cells that lie side by side
  each_cell(thread, terms * outputs_of_block() / s_.lanes, [&](const Index& cell) {
    const Index first = cell % fast * s_.lanes, other = cell / fast;
    const Index output = by_terms ? other : first, term = by_terms ? first : other;
    cuda::each_lane(builder_, s_.lanes, [&](Index lane) {
      const Index along_terms = by_terms ? lane : Index(0), along_outputs = by_terms ? Index(0) : lane;
      set(form_.terms, first_term + term, along_terms);
      std::vector<ir::Compare> there = is_term(first_term + term, by_terms ? s_.lanes : 1);
      if (packed_ < 0 && has_idle_lanes()) {  // a vector is there or is not, where none is cut
        const bool whole = !by_terms && all % s_.lanes == 0;
        there.push_back(
            below({vector_}, first_output_ + output + (whole ? Index(0) : along_outputs), whole ? s_.lanes : 1));
      }
      builder_.store(panel_b_, {term + along_terms, output + along_outputs},
                     value_or_zero(builder_, there, compute_, [&] { return element_of_b(output + along_outputs); }));
    });
  });
}

Index SharedPanelLoops::row_of(const Thread& thread, const Index& i) const {
  return form_.strided ? i * form_.row_threads + thread.row : thread.row * form_.held + i;
}

std::vector<Index> SharedPanelLoops::accumulator(const Thread& thread, const Index& i, const Index& j,
                                                 const Index& lane) const {
  std::vector<Index> place;
  if (form_.row_threads > 1) place.push_back(thread.row);
  if (form_.output_threads > 1) place.push_back(thread.output);
  place.push_back(i);
  if (s_.vectors > 1) place.push_back(j);
  if (s_.lanes > 1) place.push_back(lane);
  return place;
}

// So many terms of the second operand at hand, then row by row: what a row has of them lies side by side.
void SharedPanelLoops::multiply(const Thread& thread) {
  const std::int64_t terms = form_.terms_at_once, at_once = divisor_up_to(terms, cuda::kVectorsAtHand / s_.vectors);
  cuda::each_lane(builder_, s_.lanes, [&](Index lane) {
    serial(builder_, terms / at_once, [&](const Index& turn) {
      const ir::MemId b = builder_.local(MemKind::register_local, compute_, {at_once, s_.vectors});
      unrolled(builder_, at_once, [&](const Index& t) {
        unrolled(builder_, s_.vectors, [&](const Index& j) {
          builder_.store(b, {t, j}, builder_.load(panel_b_, {turn * at_once + t, output_of(thread, j, lane)}));
        });
      });
      unrolled(builder_, form_.held, [&](const Index& i) {
        unrolled(builder_, at_once, [&](const Index& t) {
          const Arg x = builder_.load(panel_a_, place_in_a(row_of(thread, i), turn * at_once + t));
          unrolled(builder_, s_.vectors, [&](const Index& j) {
            const std::vector<Index> place = accumulator(thread, i, j, lane);
            const Arg y = builder_.load(b, {t, j}), sum = builder_.load(sums_, place);
            builder_.store(sums_, place, kernel_.multiply_add(x, y, sum, compute_));
          });
        });
      });
    });
  });
}

// Row i of the thread, where there is one.
void SharedPanelLoops::at_row(const Thread& thread, const Index& i, const std::function<void()>& body) {
  const Index row = row_of(thread, i);
  set(form_.rows, first_row_ + row);
  const std::vector<ir::Compare> there = is_row(row);
  there.empty() ? body() : builder_.when(there, body);
}

// Threads side by side have vectors side by side.
Index SharedPanelLoops::output_of(const Thread& thread, const Index& j, const Index& lane) const {
  return (j * form_.output_threads + thread.output) * s_.lanes + lane;
}

void SharedPanelLoops::finish() {
  each_thread([&](const Thread& thread) {
    cuda::each_lane(builder_, s_.lanes, [&](Index lane) {
      unrolled(builder_, form_.held, [&](const Index& i) {
        unrolled(builder_, s_.vectors, [&](const Index& j) {
          vector_at_ = first_output_ + output_of(thread, j, lane);
          at_row(thread, i, [&] {
            const auto sum = [&] { return Arg(builder_.load(sums_, accumulator(thread, i, j, lane))); };
            if (s_.combine.empty()) return finish_result(sum, 0);
            builder_.store(partials_, partial_place(part_, 0, vector_at_), sum());
          });
        });
      });
    });
  });
}

// Threads of one vector of outputs meet in a tree.
void SharedPanelLoops::finish_with_sums(const Index& j) {
  cuda::along(builder_, form_.output_threads, Binding::block_x, [&](Index output) {
    cuda::each_lane(builder_, s_.lanes, [&](Index lane) {
      vector_at_ = first_output_ + output_of({0, output}, j, lane);
      const auto state = [&](const Index& row_thread) {
        const Thread thread{row_thread, output};
        const auto sum = [&](const Index& i) {
          return [this, thread, i, j, lane] { return Arg(builder_.load(sums_, accumulator(thread, i, j, lane))); };
        };
        state_ = accumulators_.open(1);
        at_row(thread, 0, [&] { at_result(sum(0), [&] { accumulators_.set_shifts(state_, 0); }); });
        const bool whole = all_rows_ % form_.rows_of_block() == 0;
        const ir::MemId count = whole ? -1 : builder_.local(MemKind::register_local, DType::f64, {1}, 0);
        unrolled(builder_, form_.held, [&](const Index& i) {
          at_row(thread, i, [&] {
            finish_result(sum(i), 0);
            if (whole) return;
            const Arg more = builder_.def(
                ir::Op::add, {builder_.load(count, {Index(0)}), KernelBuilder::literal(1, DType::f64)}, DType::f64);
            builder_.store(count, {Index(0)}, more);
          });
        });
        const Arg counted = whole ? KernelBuilder::literal(static_cast<double>(form_.held), DType::f64)
                                  : Arg(builder_.load(count, {Index(0)}));
        return accumulators_.partial(state_, Index(0), counted);
      };
      std::vector<Arg> joined;
      if (form_.row_threads == 1) {
        joined = state(0);
      } else {
        const std::vector<ir::ValueId> ids =
            builder_.reduce({Index(0)}, {Index(form_.row_threads)}, Binding::block_y, accumulators_.combiners(),
                            accumulators_.types(), [&](Index row) { return state(row); });
        joined = {ids.begin(), ids.end()};
      }
      set(form_.rows, 0);
      valid_lanes([&] { leave_sums(part_, joined); });
    });
  });
}

}  // namespace fusejit::scheduler
