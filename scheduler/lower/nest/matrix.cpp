// A nest whose products are those of a matrix unit. There a tile of sums is no vector of registers, so what else is one
// pass is two: all tiles of a task's block of outputs go to scratch, then the epilogue takes them from there, in lanes
// along the outputs.
#include "ir/kernel/tile_nest.h"
#include "scheduler/lower/nest/factor.h"
#include "scheduler/lower/nest/nest.h"
#include "scheduler/lower/nest/restore.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Binding;
using ir::CompareKind;
using ir::Index;
using ir::KernelBuilder;

void Nest::multiply_in_matrix_unit(std::size_t next) {
  std::vector<std::int64_t> dims;
  first_of_sums_.clear(), sum_dims_.clear();
  for (std::size_t i = 0; i < c_.dims.size(); ++i) {
    const int d = static_cast<int>(i);
    if (dim(d).reduced || d == vector_ || range(d).size == 1) continue;
    sum_dims_.push_back(d), first_of_sums_.push_back(range(d).base), dims.push_back(range(d).size);
  }
  dims.push_back(s_.block());
  acc_ = builder_.local(ir::MemKind::scratch_local, compute_, dims);
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

// The loops that are left are those over terms.
void Nest::multiply_tile(std::size_t next) {
  const int rows = tile_dims_[0];
  const Range tile = range(rows);
  std::vector<const Loop*> loops;
  ir::TileProduct product{tile.size, s_.block(), s_.matrix / 2, {}, panel_a_.memory, packed_, acc_, {}, {}, {}};
  for (std::size_t i = next; i < stages_.size(); ++i) {
    loops.push_back(&stages_[i].loop);
    product.terms.push_back(dim(loops.back()->dim).extent / held(loops.back()->dim));
  }
  const auto in_terms = [&](const std::vector<Index>& at, const Index& pair, const auto& place) {
    std::vector<Index> found;
    const std::function<void(std::size_t)> set = [&](std::size_t n) {
      if (n == loops.size()) {
        const Range& run = range(dot_);
        return with(dot_, {run.base + pair * 2, 2, false, 1}, [&] { found = place(); });
      }
      const int d = loops[n]->dim;
      with(d, {at[n] * held(d), held(d), false, 1}, [&] { set(n + 1); });
    };
    set(0);
    return found;
  };
  product.place_of_a = [&](const Index& row, const std::vector<Index>& at, const Index& pair) {
    return in_terms(at, pair, [&] {
      std::vector<Index> place;
      with(rows, {tile.base + row, 1, false, 1}, [&] { place = place_in_panel(panel_a_); });
      return place;
    });
  };
  product.place_of_b = [&](const std::vector<Index>& at, const Index& pair, const Index& column) {
    return in_terms(at, pair, [&] {
      const Restore lane(lane_);
      lane_ = column;
      return packed_place(0);
    });
  };
  product.place_of_sum = [&](const Index& row, const Index& column) {
    std::vector<Index> place;
    with(rows, {tile.base + row, 1, false, 1}, [&] { place = place_of_sum(column); });
    return place;
  };
  ir::write_tile_nest(builder_, product);
}

// In lanes: everything that the group stores or sums of a tile whose sums are in scratch, row by row.
void Nest::finish_tile() {
  const int rows = tile_dims_[0];
  const Range tile = range(rows);
  builder_.loop(Index(0), Index(tile.size), Binding::none, [&](Index row) {
    with(rows, {tile.base + row, 1, false, 1}, [&] {
      over_vectors([&](const Index& j) {
        const auto value = [&] { return Arg(builder_.load(acc_, place_of_sum(j * s_.lanes + lane_))); };
        if (!work_.empty()) {
          std::vector<ir::Compare> is_first{compare(row, CompareKind::eq, 0)};
          bool may_be_first = true;
          for (const Index& position : positions_) {
            if (position.is_constant())
              may_be_first = may_be_first && position.constant() == 0;
            else
              is_first.push_back(compare(position, CompareKind::eq, 0));
          }
          if (may_be_first)
            builder_.when(is_first, [&] { at_result(value, [&] { accumulators_.set_shifts(state_, j); }); });
        }
        over_results([&](bool has_terms) {
          const auto zero = [&] { return KernelBuilder::literal(0, compute_); };
          has_terms ? finish_result(value, j) : finish_result(zero, j);
        });
      });
    });
  });
}

}  // namespace fusejit::scheduler
