// A nest's partial results, and what is packed.
#include <algorithm>
#include <utility>

#include "ir/ops/geometry/window.h"
#include "scheduler/lower/nest/nest.h"
#include "scheduler/lower/nest/pack.h"
#include "scheduler/lower/split.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Binding;
using ir::CompareKind;
using ir::Index;
using ir::KernelBuilder;

std::vector<Index> Nest::packed_place(const Index& j) const {
  std::vector<Index> place;
  for (const int d : packed_apart(c_, s_)) place.push_back(at(d));
  const Index& first = range(vector_).base;
  place.push_back(first / s_.pack_b);
  for (std::size_t d = 0; d < c_.dims.size(); ++d)
    if (c_.dims[d].reduced) place.push_back(range(static_cast<int>(d)).base / terms_at_once(static_cast<int>(d)));
  if (s_.merges_taps()) merge_taps(place, dim(dot_).extent / 2);
  place.push_back(first % s_.pack_b + j * s_.lanes + lane_);
  return place;
}

void Nest::results_of_task(std::size_t next) {
  std::vector<OfTask> dims;
  for (std::size_t d = 0; d < c_.dims.size(); ++d) {
    const Range& all = range(static_cast<int>(d));
    dims.push_back({all.base, all.size, all.limited});
  }
  in_task(std::move(dims), [&] { walk(next); });
}

// Where the tile at hand, its vector j, has its partial results.
std::vector<Index> Nest::own_partial_place(const Index& j) const {
  const Index& first = range(vector_).base;
  if (by_threads_) return partial_place(part_, 0, first + j * s_.lanes + lane_);
  return partial_place(part_, first / s_.block(), j * s_.lanes + lane_);
}

// Before the first of several passes that add to them.
void Nest::clear_partial_results() {
  const std::vector<int> dims = partial_dims();
  const std::function<void(std::size_t)> over = [&](std::size_t n) {
    if (n < dims.size()) {
      const int d = dims[n];
      const Range of_dim = range(d);
      std::vector<Index> high{Index(of_dim.size)};
      if (of_dim.limited) high.push_back(Index(dim(d).extent) - of_dim.base);
      return emit_loop({Index(0)}, high, Binding::none, [&](Index i) {
        with(d, {of_dim.base + i, 1, false, 1}, [&] { over(n + 1); });
      });
    }
    unrolled(builder_, s_.vectors, [&](Index j) {
      builder_.loop(Index(0), Index(s_.lanes), Binding::vector, [&](Index lane) {
        lane_ = lane;
        builder_.store(partials_, own_partial_place(j), KernelBuilder::literal(0, compute_));
      });
    });
  };
  const Range lanes = range(vector_);  // all blocks, where their loop stands inside of those passes
  std::vector<Index> blocks{Index(ir::ceil_divide(lanes.size, s_.block()))};
  if (lanes.limited) blocks.push_back((Index(dim(vector_).extent + s_.block() - 1) - lanes.base) / s_.block());
  emit_loop({Index(0)}, blocks, Binding::none, [&](Index block) {
    with(vector_, {lanes.base + block * s_.block(), s_.block(), false, 1}, [&] { over(0); });
  });
}

}  // namespace fusejit::scheduler
