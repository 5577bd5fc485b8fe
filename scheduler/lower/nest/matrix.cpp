// A nest whose products are those of a matrix unit. There a tile of sums is no vector of registers, so what else is one
// pass is two: all tiles of a task's block of outputs go to scratch, then the epilogue takes them from there, in lanes
// along the outputs, or adds them to partial results.
#include <utility>

#include "ir/kernel/tile_nest.h"
#include "scheduler/lower/nest/nest.h"
#include "scheduler/lower/nest/restore.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Binding;
using ir::CompareKind;
using ir::Index;
using ir::KernelBuilder;
using ir::MemKind;
using ir::Op;

void Nest::multiply_in_matrix_unit(std::size_t next) {
  std::vector<std::int64_t> dims;
  first_of_sums_.clear(), sum_dims_.clear();
  for (std::size_t i = 0; i < c_.dims.size(); ++i) {
    const int d = static_cast<int>(i);
    if (dim(d).reduced || d == vector_ || range(d).size == 1) continue;
    sum_dims_.push_back(d), first_of_sums_.push_back(range(d).base), dims.push_back(range(d).size);
  }
  dims.push_back(s_.block());
  acc_ = builder_.local(MemKind::scratch_local, compute_, dims);
  multiplies_ = true;
  walk(next);
  multiplies_ = false;
}

std::vector<Index> Nest::place_of_sum(const Index& output) const {
  std::vector<Index> place;
  for (std::size_t i = 0; i < sum_dims_.size(); ++i) place.push_back(at(sum_dims_[i]) - first_of_sums_[i]);
  place.push_back(output);
  return place;
}

// Where the run of pairs at hand begins in the first operand, the row at hand; its next pair is the next element.
std::vector<Index> Nest::row_of_a() const {
  if (!panel_a_.is_open()) {
    std::vector<Index> words;
    const LogicalIndex index = evaluate(c_.a.index);
    for (const int d : physical_order(kernel_.graph().value(value_a_).type()))
      words.push_back(index[static_cast<std::size_t>(d)]);
    words.back() = words.back() / 2;
    return words;
  }
  std::vector<Index> place = place_in_panel(panel_a_);
  if (merges_pairs()) std::swap(place.back(), place[place.size() - 2]);
  return place;
}

// The same in the second, of which the next pair is the next of the last dim but one.
std::vector<Index> Nest::row_of_b(const Index& column) {
  if (!merges_pairs()) {
    const Restore lane(lane_);
    lane_ = column;
    return packed_place(0);
  }
  const Restore vector(vector_at_);
  vector_at_ = range(vector_).base + column;
  return place_in_panel(panel_b_);
}

std::int64_t Nest::rows_of_tile() const {
  std::int64_t rows = 1;
  for (const int d : tile_dims_) rows *= range(d).size;
  return rows;
}

// The loops that are left are those over terms.
void Nest::multiply_tile(std::size_t next) {
  std::vector<int> loops;
  ir::TileProduct product{rows_of_tile(), s_.block(), s_.matrix / 2, {}, panel_a_.memory, packed_, acc_, {}, {}, {}};
  if (!panel_a_.is_open()) product.a = kernel_.words_of(value_a_);
  if (merges_pairs()) product.a = panel_a_.turned, product.b = panel_b_.memory;
  for (std::size_t i = next; i < stages_.size(); ++i) {
    loops.push_back(stages_[i].loop.dim);
    product.terms.push_back(range(loops.back()).size / held(loops.back()));
  }
  const auto in_terms = [&](const std::vector<Index>& at, const auto& place) {
    std::vector<Index> found;
    const std::function<void(std::size_t)> set = [&](std::size_t n) {
      if (n == loops.size()) return static_cast<void>(found = place());
      const int d = loops[n];
      with(d, {range(d).base + at[n] * held(d), held(d), false, 1}, [&] { set(n + 1); });
    };
    set(0);
    return found;
  };
  const auto in_row = [&](const Index& row, const auto& place) {
    std::vector<Index> found;
    const std::function<void(std::size_t, const Index&)> set = [&](std::size_t dims, const Index& number) {
      if (dims == 0) return static_cast<void>(found = place());
      const int d = tile_dims_[dims - 1];
      const std::int64_t size = range(d).size;
      const Index digit = dims == 1 ? number : number % size;
      with(d, {range(d).base + digit, 1, false, 1}, [&] { set(dims - 1, dims == 1 ? number : number / size); });
    };
    set(tile_dims_.size(), row);
    return found;
  };
  product.place_of_a = [&](const Index& row, const std::vector<Index>& at, const Index& pair) {
    std::vector<Index> place = in_terms(at, [&] { return in_row(row, [&] { return row_of_a(); }); });
    place.back() = place.back() + pair;
    return place;
  };
  product.place_of_b = [&](const std::vector<Index>& at, const Index& pair, const Index& column) {
    std::vector<Index> place = in_terms(at, [&] { return row_of_b(column); });
    place[place.size() - 2] = place[place.size() - 2] + pair;
    return place;
  };
  product.place_of_sum = [&](const Index& row, const Index& column) {
    return in_row(row, [&] { return place_of_sum(column); });
  };
  ir::write_tile_nest(builder_, product);
}

// In lanes, row by row of a tile whose sums are in scratch.
void Nest::finish_tile() {
  std::vector<ir::Compare> is_first;
  const std::function<void(std::size_t)> over = [&](std::size_t n) {
    if (n == tile_dims_.size()) return over_vectors([&](const Index& j) { finish_element(is_first, j); });
    const int d = tile_dims_[n];
    const Range tile = range(d);
    builder_.loop(Index(0), Index(tile.size), Binding::none, [&](Index i) {
      is_first.push_back(compare(i, CompareKind::eq, 0));
      with(d, {tile.base + i, 1, false, 1}, [&] { over(n + 1); });
      is_first.pop_back();
    });
  };
  over(0);
}

// Everything that the group stores or sums, or a partial result. `first_of_tile`: the element is.
void Nest::finish_element(const std::vector<ir::Compare>& first_of_tile, const Index& j) {
  const auto value = [&] { return Arg(builder_.load(acc_, place_of_sum(j * s_.lanes + lane_))); };
  if (!s_.combine.empty()) {
    const std::vector<Index> place = own_partial_place(j);
    const Arg sum = value();
    return builder_.store(
        partials_, place,
        carried_ ? Arg(builder_.def(Op::add, {builder_.load(partials_, place), sum}, compute_)) : sum);
  }
  if (!work_.empty() && may_be_first()) {
    std::vector<ir::Compare> first = first_of_tile;
    for (const ir::Compare& one : is_first()) first.push_back(one);
    builder_.when(first, [&] { at_result(value, [&] { accumulators_.set_shifts(state_, j); }); });
  }
  over_results([&](bool has_terms) {
    const auto zero = [&] { return KernelBuilder::literal(0, compute_); };
    has_terms ? finish_result(value, j) : finish_result(zero, j);
  });
}

}  // namespace fusejit::scheduler
