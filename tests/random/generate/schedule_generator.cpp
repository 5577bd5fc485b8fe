#include "tests/random/generate/schedule_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "scheduler/schedule/winograd.h"

namespace fusejit::testing {

using ir::Contraction;
using scheduler::Schedule;
using scheduler::ScheduledLoop;

Schedule random_winograd(Random& random, const Contraction& c, const Schedule& chosen) {
  const std::optional<scheduler::WinogradDims> dims_of = scheduler::winograd_dims(c);
  if (!dims_of) return chosen;
  const std::int64_t down = dims_of->down.results(), across = dims_of->across.results();
  Schedule s;
  s.winograd = 4;
  s.vector = chosen.vector, s.lanes = random.chance(80) ? chosen.lanes : 4;
  s.vectors = static_cast<int>(random.from(1, 2));
  const bool of_weights = c.dim("n").reduced;
  if (of_weights) {
    s.tile = {{{"c"}, random.from(1, 14)}};
    s.combine = {random.of<std::string>({"c", "k"})};
    if (random.chance(50)) s.outer.push_back({{"n"}, random.from(0, 2)});
    if (random.chance(50)) s.outer.push_back({{"p"}, random.from(0, 2) * down});
    random.shuffle(s.outer);
  } else {
    s.pack_b = s.block();
    s.tile = {{{"n", "p", "q"}, random.from(1, 14)}};
    if (random.chance(80)) s.unroll = {{{"c"}, random.from(2, 5)}};
    s.stream = random.chance(20);
    if (random.chance(50)) s.outer = {{{"k"}, random.from(0, 3) * s.block()}};
  }
  if (random.chance(60))
    s.fetch_packed = !of_weights && random.chance(50), s.fetch = {{"q"}, random.from(1, 3) * across};
  std::vector<std::string> dims{"n", "p", "k"};
  random.shuffle(dims);
  for (const std::string& dim : dims) {
    if (!random.chance(60) || (of_weights && dim == "p")) continue;
    const std::int64_t of_patches = dim == "p" ? down : dim == "k" ? s.block() : 1;
    s.tasks.push_back({{dim}, random.from(0, 3) * of_patches});
  }
  return s;
}

Schedule random_schedule(Random& random, const Contraction& c, const Schedule& chosen) {
  Schedule s;
  s.vector = chosen.vector, s.lanes = chosen.lanes;
  std::vector<std::string> parallel, reduced;
  for (const ir::ContractionDim& dim : c.dims)
    if (dim.name != s.vector) (dim.reduced ? reduced : parallel).push_back(dim.name);
  const auto extent = [&](const std::string& name) { return c.dim(name).extent; };
  s.vectors = static_cast<int>(random.from(1, std::min<std::int64_t>(3, (extent(s.vector) + s.lanes - 1) / s.lanes)));
  std::int64_t room = 12 / s.vectors;
  std::vector<std::string> held;
  for (const std::string& name : parallel) {
    const std::int64_t count = random.from(2, 6);
    if (!random.chance(40) || count > room || c.b.mentions(c.find(name))) continue;
    s.tile.push_back({{name}, count}), room /= count;
  }
  for (const std::string& name : reduced)
    if (random.chance(30)) s.unroll.push_back({{name}, random.from(2, 3)});
  s.finish_late = s.tile.size() == 1 && random.chance(15);
  const auto sum = [&](const std::string& name) { return c.dim(name).reduced; };
  // Where the last loop of each dim stands, and maybe a loop of blocks outside of it.
  std::vector<ScheduledLoop> sums;
  std::vector<std::string> all = parallel;
  all.push_back(s.vector);
  random.shuffle(all);
  bool cut = false;
  const auto blocks = [&](const std::string& name) {
    if (!random.chance(30) || extent(name) < 2) return;
    const std::int64_t step = s.held(name) * random.from(1, 3);
    if (s.tasks.size() < 2 && random.chance(50)) {
      s.tasks.push_back({{name}, step});
    } else {
      s.outer.push_back({{name}, step});
    }
    cut |= sum(name);
  };
  for (const std::string& name : all) {
    blocks(name);
    const bool vector = name == s.vector;
    const int where = static_cast<int>(random.from(0, 2));
    if (where == 0 && s.tasks.size() < 3 && s.held(name) == 1) {
      s.tasks.push_back({{name}, 0});
    } else if (where == 1 || vector) {
      s.outer.push_back({{name}, 0});
    } else {
      s.inner.push_back({{name}, 0});
    }
  }
  random.shuffle(reduced);
  for (const std::string& name : reduced) {
    blocks(name);
    if (random.chance(15) && s.held(name) == 1) {
      s.outer.push_back({{name}, 0}), cut = true;
    } else {
      s.inner.push_back({{name}, 0});
    }
  }
  if (random.chance(30))  // blocks of a sum around all others
    std::stable_partition(s.outer.begin(), s.outer.end(), [&](const ScheduledLoop& loop) { return sum(loop.dims[0]); });
  s.unroll_within = !s.unroll.empty() && random.chance(30);
  for (auto* list : {&s.tasks, &s.outer, &s.inner}) {  // neighbours as one loop
    for (std::size_t i = 0; random.chance(20) && i + 1 < list->size(); ++i) {
      ScheduledLoop &loop = (*list)[i], &next = (*list)[i + 1];
      if (loop.step + next.step > 0 || sum(loop.dims[0]) != sum(next.dims[0])) continue;
      loop.dims.insert(loop.dims.end(), next.dims.begin(), next.dims.end());
      list->erase(list->begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
  }
  if (cut || random.chance(15)) {
    std::vector<std::string> lanes{s.vector};
    for (const std::string& name : parallel)
      if (extent(name) > 1) lanes.push_back(name);
    s.combine = {random.of(lanes)};
  }
  if (chosen.pack_b > 0 && random.chance(70)) s.pack_b = s.block();
  if (random.chance(20)) s.fetch = {{random.of(all)}, 1}, s.fetch_b = !s.panel_b.empty() && random.chance(30);
  const auto panel = [&] {
    const std::size_t i = static_cast<std::size_t>(random.from(0, static_cast<std::int64_t>(s.outer.size())));
    return i == s.outer.size() ? std::string(Schedule::kTask) : s.outer[i].dims[0];
  };
  s.stream = random.chance(30);
  if (random.chance(30)) s.panel_a = panel();
  if (random.chance(30) && s.pack_b == 0) s.panel_b = panel();
  if (c.a.dtype == DType::bf16 && random.chance(70)) {
    std::vector<std::string> even;
    for (const std::string& name : reduced)
      if (extent(name) % 2 == 0 && (s.pack_b == 0 || name == c.dims.back().name)) even.push_back(name);
    if (!even.empty()) {
      s.dot = random.of(even);
      std::erase_if(s.unroll, [&](const scheduler::Extent& held_extent) { return held_extent.dims[0] == s.dot; });
      s.unroll.push_back({{s.dot}, 2 * random.from(1, 2)});
      if (s.pack_b == 0 && s.panel_a.empty()) s.panel_a = panel();
      if (s.pack_b == 0 && s.panel_b.empty()) s.panel_b = panel();
    }
  }
  s.tiles_a = !s.panel_a.empty() && s.dot.empty() && random.chance(40);
  if (random.chance(25) && !s.inner.empty() && s.held(s.inner.back().dims[0]) > 1)
    s.flush = {s.inner.back().dims, s.held(s.inner.back().dims[0]) * random.from(1, 4)};
  return s;
}

Schedule with_pairs_of_taps(Random& random, const Contraction& c, const Schedule& of) {
  std::vector<std::string> taps;
  const auto dim = [&](const ir::DimSum::Term& term) { return c.dims[static_cast<std::size_t>(term.dim)]; };
  for (const ir::DimSum& sum : c.a.index) {
    for (const bool first : {false, true}) {
      if (sum.terms.size() != 2) continue;
      const ir::DimSum::Term &tap = sum.terms[first], &pixel = sum.terms[!first];
      if (dim(tap).reduced && tap.coefficient == 1 && !dim(pixel).reduced && pixel.coefficient % 2 == 0)
        taps.push_back(dim(tap).name);
    }
  }
  Schedule s = of;
  if (taps.empty()) return s;
  s.dot = random.of(taps);
  std::erase_if(s.unroll, [&](const scheduler::Extent& held) { return held.dims[0] == s.dot; });
  s.unroll.push_back({{s.dot}, 2 * random.from(1, 2)});
  s.panel_a = s.outer.empty() || random.chance(50) ? std::string(Schedule::kTask) : random.of(s.outer).dims[0];
  s.panel_b.clear(), s.combine.clear();
  s.pack_b = s.block();
  return s;
}

Schedule in_matrix_unit(Random& random, const Contraction& c, const Schedule& of) {
  Schedule s = of;
  const ir::ContractionDim& last = c.dims.back();
  const std::int64_t terms_of_last = last.extent + last.extent % 2;
  std::vector<std::int64_t> runs, taps;
  for (std::int64_t run = 4; run <= 32; run += 2)
    if (terms_of_last % run == 0) runs.push_back(run);
  const ir::ContractionDim& before = c.dims[c.dims.size() - 2];
  for (std::int64_t count = 2; before.reduced && c.terms() > 0 && count * terms_of_last <= 32; ++count)
    if (before.extent % count == 0) taps.push_back(count);
  std::vector<std::string> rows;
  for (const ir::ContractionDim& dim : c.dims)
    if (!dim.reduced && !c.b.mentions(c.find(dim.name)) && dim.extent > 1) rows.push_back(dim.name);
  const bool merges_taps = !taps.empty() && (runs.empty() || random.chance(50));
  if (!last.reduced || (runs.empty() && !merges_taps) || rows.empty()) return s;
  s.lanes = 16, s.vectors = static_cast<int>(random.from(1, 3));
  s.dot = last.name, s.tile = {{{random.of(rows)}, random.from(2, 20)}};
  if (merges_taps) {
    const std::int64_t count = random.of(taps);
    s.matrix = count * terms_of_last, s.unroll = {{{before.name}, count}, {{s.dot}, terms_of_last}};
  } else {
    s.matrix = random.of(runs), s.unroll = {{{s.dot}, s.matrix}};
  }
  s.unroll_within = s.tiles_a = false;
  s.panel_a = s.outer.empty() || random.chance(70) ? std::string(Schedule::kTask) : random.of(s.outer).dims[0];
  s.panel_b.clear(), s.combine.clear(), s.flush = {}, s.fetch = {};
  s.pack_b = s.block();
  if (random.chance(50)) s.panel_a.clear();
  const std::size_t row = static_cast<std::size_t>(c.find(s.tile[0].dims[0]));
  if (random.chance(50) && row > 0 && !c.dims[row - 1].reduced) {  // several rows of pixels
    s.tile = {{{c.dims[row - 1].name}, random.from(2, 4)}, {{c.dims[row].name}, c.dims[row].extent}};
    std::erase_if(s.inner, [&](const auto& loop) { return loop.dims == s.tile[1].dims; });
  }
  std::erase_if(s.inner, [&](const scheduler::ScheduledLoop& loop) { return c.dim(loop.dims[0]).reduced; });
  std::vector<scheduler::ScheduledLoop> terms;
  for (const ir::ContractionDim& dim : c.dims)
    if (dim.reduced && dim.extent > s.held(dim.name)) terms.push_back({{dim.name}});
  random.shuffle(terms);
  s.inner.insert(s.inner.end(), terms.begin(), terms.end());
  return s;
}

Schedule shared_out_otherwise(Random& random, const Contraction& c, const Schedule& of) {
  Schedule s = of;
  if (s.matrix == 0 || s.combine.empty()) return s;
  s.vectors = static_cast<int>(random.from(1, 3));
  s.tile[0].count = 16 * random.from(1, 2);
  const auto without = [](std::vector<scheduler::ScheduledLoop>& loops, const std::string& dim) {
    std::erase_if(loops, [&](const auto& loop) { return loop.dims == std::vector{dim}; });
  };
  const auto extent = [&](const std::string& name) { return c.dim(name).extent; };
  for (const std::string& dim : {s.vector, s.tile[0].dims[0]}) {
    without(s.tasks, dim), without(s.outer, dim);
    const std::int64_t unit = s.held(dim), share = unit * random.from(1, 3);
    if (share < extent(dim) && random.chance(60)) s.tasks.push_back({{dim}, share});
    if (extent(dim) > unit) s.outer.push_back({{dim}});
  }
  const std::string rows = "p";
  without(s.outer, rows), without(s.inner, rows);
  if (random.chance(50) && extent(rows) > 1) {
    const std::int64_t step = random.from(1, extent(rows));
    s.outer.insert(s.outer.begin(), {{rows}, step == 1 ? 0 : step});
    if (step > 1) s.inner.insert(s.inner.begin(), {{rows}});
    s.panel_a = s.panel_b = rows;
  } else {
    if (extent(rows) > 1) s.inner.insert(s.inner.begin(), {{rows}});
    s.panel_a = s.panel_b = Schedule::kTask;
  }
  random.shuffle(s.inner);
  return s;
}

namespace {

// Dims in any order, now and then some of them as one loop.
std::vector<std::vector<std::string>> in_loops(Random& random, std::vector<std::string> dims) {
  if (random.chance(50)) random.shuffle(dims);
  std::vector<std::vector<std::string>> loops;
  for (const std::string& name : dims) {
    if (!loops.empty() && random.chance(50)) {
      loops.back().push_back(name);
    } else {
      loops.push_back({name});
    }
  }
  return loops;
}

}  // namespace

Schedule random_cuda_schedule(Random& random, const Contraction& c, const Schedule& chosen) {
  using ir::Binding;
  Schedule s;
  s.vector = chosen.vector, s.lanes = chosen.lanes;
  const auto extent = [&](const std::string& name) { return c.dim(name).extent; };
  std::vector<std::string> parallel, reduced;
  for (const ir::ContractionDim& dim : c.dims)
    if (dim.name != s.vector) (dim.reduced ? reduced : parallel).push_back(dim.name);
  std::int64_t room = 16 / s.lanes;
  if (random.chance(15) && parallel.size() > 1) {
    const std::size_t first = static_cast<std::size_t>(random.from(0, static_cast<std::int64_t>(parallel.size()) - 2));
    if (!c.b.mentions(c.find(parallel[first])) && !c.b.mentions(c.find(parallel[first + 1])))
      s.tile = {{{parallel[first], parallel[first + 1]}, random.from(2, std::max<std::int64_t>(2, room))}};
  }
  for (const std::string& name : parallel) {
    const std::int64_t count = random.from(2, 5);
    if (!s.tile.empty() && s.combinations(name) != nullptr) continue;
    if (!random.chance(30) || count > room || c.b.mentions(c.find(name))) continue;
    s.tile.push_back({{name}, count}), room /= count;
  }
  for (const std::string& name : reduced)
    if (random.chance(30)) s.unroll.push_back({{name}, random.from(2, 3)});
  s.unroll_within = !s.unroll.empty() && random.chance(50);

  std::vector<Binding> grid{Binding::grid_x, Binding::grid_y, Binding::grid_z},
      block{Binding::block_x, Binding::block_y};
  random.shuffle(grid), random.shuffle(block);
  std::vector<ScheduledLoop> blocks;
  const auto take = [&](std::vector<Binding>& axes) {
    const Binding axis = axes.back();
    axes.pop_back();
    return axis;
  };
  std::vector<std::vector<std::string>> loops;
  std::vector<std::string> single;
  for (const std::string& name : parallel)
    if (s.combinations(name) == nullptr) single.push_back(name);
  loops = in_loops(random, single);
  loops.push_back({s.vector});
  random.shuffle(loops);
  for (const std::vector<std::string>& dims : loops) {
    std::int64_t count = 1;
    for (const std::string& name : dims) count *= (extent(name) + s.held(name) - 1) / s.held(name);
    const std::int64_t unit = dims.size() == 1 ? s.held(dims[0]) : 1;
    if (count > 1 && !grid.empty() && random.chance(60)) {
      const bool whole = random.chance(30);
      s.tasks.push_back({dims, whole ? 0 : unit * random.from(1, count), 0, take(grid)});
      if (whole) continue;
    }
    if (!block.empty() && random.chance(50)) {
      blocks.push_back({dims, 0, 0, take(block)});
    } else if (dims[0] == s.vector || random.chance(30)) {
      s.outer.push_back({dims});
    } else {
      if (!block.empty() && random.chance(30)) s.inner.push_back({dims, 0, random.from(2, 4), take(block)});
      s.inner.push_back({dims});
    }
  }
  if (!s.tile.empty() && s.tile[0].dims.size() > 1) (random.chance(50) ? s.outer : s.inner).push_back({s.tile[0].dims});

  bool cut = false;
  const std::size_t parallel_loops = s.inner.size();
  for (const std::vector<std::string>& dims : in_loops(random, reduced)) {
    std::int64_t count = 1;
    for (const std::string& name : dims) count *= (extent(name) + s.held(name) - 1) / s.held(name);
    const std::int64_t unit = dims.size() == 1 ? s.held(dims[0]) : 1;
    if (count > 1 && !grid.empty() && random.chance(25))
      s.tasks.push_back({dims, unit * random.from(1, count), 0, take(grid)}), cut = true;
    if (count > 1 && !block.empty() && s.inner.size() == parallel_loops && random.chance(30))
      s.inner.push_back({dims, 0, std::int64_t{1} << random.from(1, 3), take(block)});
    if (count > 1 || random.chance(30)) s.inner.push_back({dims});
  }
  if (s.tasks.empty()) s.tasks.push_back({{s.vector}, s.held(s.vector) * random.from(1, 4)});
  constexpr Binding kGrid[] = {Binding::grid_x, Binding::grid_y, Binding::grid_z};
  for (std::size_t i = 0; i < s.tasks.size(); ++i) s.tasks[i].bound = kGrid[s.tasks.size() - 1 - i];
  s.tasks.insert(s.tasks.end(), blocks.begin(), blocks.end());
  if (cut || random.chance(15)) {
    s.combine = parallel;
    s.combine.push_back(s.vector);
    random.shuffle(s.combine);
  }
  if (chosen.pack_b > 0 && random.chance(70)) s.pack_b = s.lanes * random.from(1, 4);
  if (random.chance(25) && !s.inner.empty() && s.held(s.inner.back().dims[0]) > 1)
    s.flush = {s.inner.back().dims, s.held(s.inner.back().dims[0]) * random.from(1, 4)};
  if (random.chance(50)) s.registers = random.of<std::int64_t>({24, 64, 80, 128, 168, 255});
  return s;
}

Schedule random_shared_panels(Random& random, const Contraction& c, const Schedule& chosen) {
  using ir::Binding;
  Schedule s;
  s.vector = chosen.vector, s.lanes = chosen.lanes, s.vectors = random.chance(30) ? 2 : 1;
  std::vector<std::string> rows, groups, terms, around;
  std::int64_t all_terms = 1;
  for (const ir::ContractionDim& dim : c.dims) {
    if (dim.reduced) {
      (dim.extent > 1 && random.chance(50) ? terms : around).push_back(dim.name);
    } else if (dim.name != s.vector && dim.extent > 1) {
      (c.b.mentions(c.find(dim.name)) ? groups : rows).push_back(dim.name);
    }
  }
  if (terms.empty() && !around.empty()) terms.push_back(around.back()), around.pop_back();
  if (rows.empty() || terms.empty()) return s;
  random.shuffle(around);
  for (const std::string& name : terms) all_terms *= c.dim(name).extent;

  const std::int64_t held = random.from(1, 16 / s.block()), row_threads = std::int64_t{1} << random.from(0, 3),
                     output_threads = random.from(
                         1, std::clamp<std::int64_t>((c.dim(s.vector).extent + s.block() - 1) / s.block(), 1, 8)),
                     at_once = random.from(1, 9);
  s.tile = {{rows, held}};
  s.unroll = {{terms, at_once}};
  s.panel_a = s.panel_b = terms.back();
  if (groups.empty() && random.chance(40)) {
    s.tasks.push_back({terms, at_once * random.from(1, 1 + all_terms / at_once / 2), 0, Binding::grid_z});
    s.combine = rows;
    s.combine.push_back(s.vector);
  } else if (!groups.empty()) {
    s.tasks.push_back({groups, 0, 0, Binding::grid_z});
  }
  s.tasks.push_back({{s.vector}, output_threads * s.block(), 0, Binding::grid_y});
  s.tasks.push_back({rows, held * row_threads, 0, Binding::grid_x});
  const bool strided = random.chance(60);
  if (!strided && row_threads > 1) s.tasks.push_back({rows, held, 0, Binding::block_y});
  s.tasks.push_back({{s.vector}, 0, 0, Binding::block_x});
  if (strided) s.inner = {{rows, 0, row_threads, Binding::block_y}, {rows}};
  for (const std::string& name : around) s.inner.push_back({{name}});
  s.inner.push_back({terms});
  if (c.b.weights && random.chance(60)) s.pack_b = output_threads * s.block() * random.from(1, 2);
  return s;
}

}  // namespace fusejit::testing
