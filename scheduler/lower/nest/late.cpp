// Tiles that are finished late: the products of a tile are independent of each other and fill the units that multiply,
// what follows them does not, and a processor that sees a few hundred instructions ahead begins the next products only
// when most of it is done. So a tile's sums wait in scratch, and each turn of the next tile's loop over terms finishes
// a few elements of them.
#include <algorithm>

#include "ir/base/check.h"
#include "ir/ops/geometry/window.h"
#include "scheduler/lower/nest/nest.h"
#include "scheduler/lower/nest/restore.h"
#include "scheduler/lower/split.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::CompareKind;
using ir::Index;

// A loop of whole tiles.
bool Nest::finishes_late(const Loop& loop, std::size_t next) const {
  return s_.finish_late && stages_[next].kind == Kind::tile && !loop.task && !dim(loop.dim).reduced &&
         held(loop.dim) > 1 && !range(loop.dim).limited;
}

void Nest::over_late_tiles(const Loop& loop, std::size_t next, std::int64_t whole) {
  const Range of_dim = range(loop.dim);
  const auto tile = [&](const Index& i) { return Range{of_dim.base + i * loop.step, loop.step, false, 1}; };
  const auto at = [&](const Index& i, const std::function<void()>& body) {
    with(loop.dim, tile(i), [&] { in_part(loop, i, [&] { at_position(loop, i, body); }); });
  };
  late_.dim = loop.dim;
  // The first loop over terms.
  const auto over_terms = std::find_if(stages_.begin(), stages_.end(), [&](const Stage& stage) {
    const Loop& of = stage.loop;
    return stage.kind == Kind::loop && dim(of.dim).reduced && dim(of.dim).extent > held(of.dim);
  });
  FJ_ASSERT(over_terms != stages_.end(), "no loop over terms in {}", print(s_));
  late_.stage = static_cast<std::size_t>(over_terms - stages_.begin()) + 1;
  builder_.loop(Index(0), Index(whole), ir::Binding::none, [&](Index i) {
    late_.is_before = true;
    late_.tile = tile(i - 1), late_.position = i - 1;
    at(i, [&] { walk(next); });
    late_.is_before = false;
  });
  at(Index(whole - 1), [&] { finish_elements(0, loop.step); });
}

// [element, vector and lane]
void Nest::keep_tile() {
  each_accumulator([&](const std::vector<Index>& element, const Index& j) {
    builder_.store(late_.kept, {element[0], j * s_.lanes + lane_}, builder_.load(acc_, element));
  });
}

// So many elements of the tile at hand, which is a kept one.
void Nest::finish_elements(const Index& first, std::int64_t count) {
  const Range tile = range(late_.dim);
  unrolled(builder_, count, [&](Index n) {
    with(late_.dim, {tile.base + first + n, 1, false, 1}, [&] {
      const auto each = [&](const std::function<void(const std::function<Arg()>& value, const Index& j)>& body) {
        over_vectors([&](Index j) {
          body([&] { return Arg(builder_.load(late_.kept, {first + n, j * s_.lanes + lane_})); }, j);
        });
      };
      const Index element = first + n;
      if (!work_.empty() && may_be_first() && (!element.is_constant() || element.constant() == 0)) {
        std::vector<ir::Compare> is = is_first();
        if (!element.is_constant()) is.push_back(compare(element, CompareKind::eq, 0));
        const auto shifts = [&] {
          each([&](const auto& value, const Index& j) {
            at_result(value, [&] { accumulators_.set_shifts(state_, j); });
          });
        };
        is.empty() ? shifts() : builder_.when(is, shifts);
      }
      over_results([&](bool has_terms) {
        const auto zero = [&] { return ir::KernelBuilder::literal(0, compute_); };
        each([&](const auto& value, const Index& j) { has_terms ? finish_result(value, j) : finish_result(zero, j); });
      });
    });
  });
}

// This turn's share of the tile before.
void Nest::finish_part_of_tile() {
  const Loop& turns_of = stages_[late_.stage - 1].loop;
  const int terms = turns_of.dim;
  const std::int64_t elements = late_.tile.size, turns = ir::ceil_divide(dim(terms).extent, turns_of.step);
  std::int64_t of_turn = ir::ceil_divide(elements, turns);
  while (elements % of_turn != 0) ++of_turn;
  const Index turn = range(terms).base / turns_of.step;
  std::vector<ir::Compare> is{compare(late_.position, CompareKind::ge, 0)};
  if (of_turn * turns > elements) is.push_back(compare(turn, CompareKind::lt, elements / of_turn));
  builder_.when(is, [&] {
    with(late_.dim, late_.tile, [&] {
      const Restore positions(positions_);
      if (state_open_) positions_.back() = late_.position;
      finish_elements(turn * of_turn, of_turn);
    });
  });
}

}  // namespace fusejit::scheduler
