#include "scheduler/lower/winograd/winograd.h"

#include <algorithm>

#include "ir/ops/geometry/window.h"
#include "scheduler/lower/split.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Binding;
using ir::CompareKind;
using ir::Index;
using ir::KernelBuilder;
using ir::MemKind;

namespace {

constexpr std::int64_t kPoints = kWinogradPoints * kWinogradPoints;

Index point_of(const Index& row, std::int64_t column) { return row * kWinogradPoints + Index(column); }

}  // namespace

Winograd::Winograd(GroupKernel& kernel, Accumulators& accumulators, const ScheduledContraction& scheduled)
    : ContractionLoops(kernel, accumulators, scheduled),
      dims_(*winograd_dims(c_)),
      transform_(builder_, kernel.context().target.has_fma(), compute_),
      at_(c_.dims.size(), Index(0)) {
  for (const ir::ContractionDim& dim : c_.dims) shares_.push_back({0, dim.extent});
  for (const ScheduledLoop& task : s_.tasks) {
    const int d = c_.find(task.dims[0]);
    const std::int64_t least = d == dims_.p ? kWinogradResults : d == dims_.k ? s_.block() : 1;
    share(d).size = std::min(task.step > 0 ? task.step : least, extent(d));
  }
}

Index Winograd::at(int d) const { return d == vector_ ? vector_at_ : at_[static_cast<std::size_t>(d)]; }

void Winograd::set(int d, Index to) {
  if (d >= 0) at_[static_cast<std::size_t>(d)] = std::move(to);
}

std::int64_t Winograd::patch_rows() const {
  return ir::ceil_divide(shares_[static_cast<std::size_t>(dims_.p)].size, kWinogradResults);
}
std::int64_t Winograd::patch_columns() const { return ir::ceil_divide(extent(dims_.q), kWinogradResults); }

std::int64_t Winograd::parts() const {
  std::int64_t parts = 1;
  for (const int d : {dims_.n, dims_.p})
    if (d >= 0 && sums_over(d)) parts *= ir::ceil_divide(extent(d), shares_[static_cast<std::size_t>(d)].size);
  return parts;
}

void Winograd::emit(const std::vector<ir::MemId>& work, std::int64_t first_part) {
  work_ = work, first_part_ = first_part;
  over_tasks(0);
}

void Winograd::over_tasks(std::size_t n) {
  if (n == s_.tasks.size()) return task();
  const int d = c_.find(s_.tasks[n].dims[0]);
  const std::int64_t tasks = ir::ceil_divide(extent(d), share(d).size);
  parallel(builder_, tasks, [&](Index i) {
    share(d).base = i * share(d).size;
    if (d != dims_.k) part_ = part_ * tasks + i;
    over_tasks(n + 1);
  });
}

void Winograd::task() {
  const std::int64_t lanes = s_.lanes, channels = ir::ceil_divide(extent(dims_.c), lanes) * lanes;
  v_ = builder_.local(MemKind::scratch_local, compute_, {kPoints, patches(), channels});
  m_ = builder_.local(MemKind::scratch_local, compute_, {kPoints, patches(), s_.block()});
  half_ = builder_.local(MemKind::scratch_local, compute_, {kWinogradPoints, kWinogradPoints, lanes});
  transform_inputs();
  const std::int64_t blocks = ir::ceil_divide(extent(dims_.k), s_.block()),
                     of_task = ir::ceil_divide(share(dims_.k).size, s_.block());
  loop_chunk(builder_, {blocks, of_task, ir::ceil_divide(blocks, of_task)}, share(dims_.k).base / share(dims_.k).size,
             [&](Index block) {
               block_ = block * s_.block();
               multiply();
               finish_patches();
             });
}

// In ascending order of images, rows and columns; each dim at the patch's first element.
void Winograd::over_patches(const Patch& body) {
  serial(builder_, images(), [&](Index image) {
    serial(builder_, patch_rows(), [&](Index row) {
      serial(builder_, patch_columns(), [&](Index column) {
        if (dims_.n >= 0) set(dims_.n, share(dims_.n).base + image);
        set(dims_.p, share(dims_.p).base + row * kWinogradResults);
        set(dims_.q, column * kWinogradResults);
        body((image * patch_rows() + row) * patch_columns() + column);
      });
    });
  });
}

void Winograd::transform_inputs() {
  over_patches([&](const Index& patch) {
    std::vector<ir::Compare> all;
    for (const auto& [axis, tap] : {std::pair{dims_.rows, dims_.r}, std::pair{dims_.columns, dims_.s}}) {
      set(tap, 0);
      const Index first = evaluate(c_.a.index[axis]);
      for (const ir::Compare& c : inside(axis, first, first + Index(kWinogradPoints - 1))) all.push_back(c);
    }
    if (dims_.n >= 0 && extent(dims_.n) % images() != 0)
      all.push_back(compare(at(dims_.n), CompareKind::lt, extent(dims_.n)));
    const auto vectors = [&](bool is_inside) {
      serial(builder_, ir::ceil_divide<std::int64_t>(extent(dims_.c), s_.lanes), [&](Index vector) {
        builder_.loop(Index(0), Index(s_.lanes), Binding::vector, [&](Index lane) {
          lane_ = lane;
          set(dims_.c, vector * s_.lanes + lane);
          transform_input(patch, is_inside);
        });
      });
    };
    all.empty() ? vectors(true)
                : builder_.when(
                      all, [&] { vectors(true); }, [&] { vectors(false); });
  });
}

// What keeps the elements from `first` to `last` of an axis inside of the first operand, as far as patches reach.
std::vector<ir::Compare> Winograd::inside(std::size_t axis, const Index& first, const Index& last) const {
  const bool rows = axis == dims_.rows;
  const std::int64_t in = c_.a.extents[axis], before = c_.a.index[axis].constant,
                     size = rows ? shares_[static_cast<std::size_t>(dims_.p)].size : extent(dims_.q),
                     blocks = ir::ceil_divide(extent(rows ? dims_.p : dims_.q), size),
                     results = blocks * ir::ceil_divide(size, kWinogradResults) * kWinogradResults;
  std::vector<ir::Compare> conditions;
  if (before < 0) conditions.push_back(compare(first, CompareKind::ge, 0));
  if (before + results + kWinogradTaps - 2 >= in) conditions.push_back(compare(last, CompareKind::lt, in));
  return conditions;
}

// Columns first, then rows of what they give.
void Winograd::transform_input(const Index& patch, bool inside) {
  builder_.loop(Index(0), Index(kWinogradPoints), Binding::none, [&](Index j) {
    std::vector<Arg> column;
    for (std::int64_t i = 0; i < kWinogradPoints; ++i) column.push_back(input_element(Index(i), j, inside));
    const std::vector<Arg> points = transform_.input(column);
    for (std::size_t i = 0; i < points.size(); ++i)
      builder_.store(half_, {Index(static_cast<std::int64_t>(i)), j, lane_}, points[i]);
  });
  builder_.loop(Index(0), Index(kWinogradPoints), Binding::none, [&](Index i) {
    std::vector<Arg> row;
    for (std::int64_t j = 0; j < kWinogradPoints; ++j) row.push_back(builder_.load(half_, {i, Index(j), lane_}));
    const std::vector<Arg> points = transform_.input(row);
    for (std::size_t j = 0; j < points.size(); ++j)
      builder_.store(v_, {point_of(i, static_cast<std::int64_t>(j)), patch, at(dims_.c)}, points[j]);
  });
}

// Padding is zero, and so is what lies behind the last image, or the last channel.
Arg Winograd::input_element(const Index& i, const Index& j, bool is_inside) {
  set(dims_.r, i), set(dims_.s, j);
  const LogicalIndex index = evaluate(c_.a.index);
  const auto value = [&] {
    return kernel_.expression().nested([&] { return kernel_.expression().value(value_a_, index); });
  };
  std::vector<ir::Compare> there;
  if (!is_inside) {
    for (const std::size_t axis : {dims_.rows, dims_.columns})
      for (const ir::Compare& c : inside(axis, index[axis], index[axis])) there.push_back(c);
    if (dims_.n >= 0 && extent(dims_.n) % images() != 0)
      there.push_back(compare(at(dims_.n), CompareKind::lt, extent(dims_.n)));
  }
  if (extent(dims_.c) % s_.lanes != 0) there.push_back(compare(at(dims_.c), CompareKind::lt, extent(dims_.c)));
  if (there.empty()) return value();
  return builder_.choose(
      there, {compute_}, [&] { return std::vector<Arg>{value()}; },
      [&] { return std::vector<Arg>{KernelBuilder::literal(0, compute_)}; })[0];
}

// The sums over channels of a block of outputs, point by point.
void Winograd::multiply() {
  const std::int64_t held = std::min(s_.accumulators() / s_.vectors, patches()), whole = patches() / held;
  builder_.loop(Index(0), Index(kPoints), Binding::none, [&](Index point) {
    serial(builder_, whole, [&](Index tile) { multiply(point, tile * held, held); });
    if (patches() % held != 0) multiply(point, Index(whole * held), patches() % held);
  });
}

void Winograd::multiply(const Index& point, const Index& first, std::int64_t patches) {
  builder_.loop(Index(0), Index(s_.lanes), Binding::vector, [&](Index lane) {
    lane_ = lane;
    const ir::MemId sums = builder_.local(MemKind::register_local, compute_, {patches, s_.vectors}, 0);
    add_terms(sums, point, first, patches);
    unrolled(builder_, patches, [&](Index i) {
      unrolled(builder_, s_.vectors, [&](Index j) {
        builder_.store(m_, {point, first + i, j * s_.lanes + lane}, builder_.load(sums, {i, j}));
      });
    });
  });
}

void Winograd::add_terms(ir::MemId sums, const Index& point, const Index& first, std::int64_t patches) {
  const std::int64_t channels = extent(dims_.c), at_once = s_.held(contraction_dim(dims_.c).name);
  const auto terms = [&](const Index& begin, std::int64_t count) {
    unrolled(builder_, count, [&](Index o) {
      const Index c = begin + o;
      const ir::MemId weights = builder_.local(MemKind::register_local, compute_, {s_.vectors});
      unrolled(builder_, s_.vectors, [&](Index j) {
        builder_.store(weights, {j}, builder_.load(packed_, {block_ / s_.block(), point, c, j * s_.lanes + lane_}));
      });
      unrolled(builder_, patches, [&](Index i) {
        const Arg x = builder_.load(v_, {point, first + i, c});
        unrolled(builder_, s_.vectors, [&](Index j) {
          builder_.store(sums, {i, j},
                         kernel_.multiply_add(x, builder_.load(weights, {j}), builder_.load(sums, {i, j}), compute_));
        });
      });
    });
  };
  serial(builder_, channels / at_once, [&](Index c) { terms(c * at_once, at_once); });
  if (channels % at_once != 0) terms(Index(channels / at_once * at_once), channels % at_once);
}

// The results of a block of outputs, in lanes along them.
void Winograd::finish_patches() {
  builder_.loop(Index(0), Index(s_.lanes), Binding::vector, [&](Index lane) {
    lane_ = lane;
    const auto over_vectors = [&](const std::function<void(const Index& j)>& body) {
      unrolled(builder_, s_.vectors, [&](Index j) {
        vector_at_ = block_ + j * s_.lanes + lane;
        body(j);
      });
    };
    if (!work_.empty()) state_ = accumulators_.open(s_.vectors);
    over_patches([&](const Index& patch) { over_vectors([&](const Index& j) { finish_patch(patch, j); }); });
    if (work_.empty()) return;
    std::vector<Block> blocks{{share(dims_.p).base, share(dims_.p).size, extent(dims_.p)},
                              {0, extent(dims_.q), extent(dims_.q)}};
    if (dims_.n >= 0) blocks.push_back({share(dims_.n).base, images(), extent(dims_.n)});
    const Arg count = elements_in(blocks);
    over_vectors(
        [&](const Index& j) { valid_lanes([&] { leave_sums(part_, accumulators_.partial(state_, j, count)); }); });
  });
}

void Winograd::finish_patch(const Index& patch, const Index& j) {
  const Index p = at(dims_.p), q = at(dims_.q);
  builder_.loop(Index(0), Index(kWinogradPoints), Binding::none, [&](Index column) {
    std::vector<Arg> sums;
    for (std::int64_t i = 0; i < kWinogradPoints; ++i)
      sums.push_back(builder_.load(m_, {Index(i * kWinogradPoints) + column, patch, j * s_.lanes + lane_}));
    const std::vector<Arg> rows = transform_.results(sums);
    for (std::size_t i = 0; i < rows.size(); ++i)
      builder_.store(half_, {Index(static_cast<std::int64_t>(i)), column, lane_}, rows[i]);
  });
  builder_.loop(Index(0), Index(kWinogradResults), Binding::none, [&](Index i) {
    std::vector<Arg> points;
    for (std::int64_t c = 0; c < kWinogradPoints; ++c) points.push_back(builder_.load(half_, {i, Index(c), lane_}));
    const std::vector<Arg> results = transform_.results(points);
    for (std::size_t c = 0; c < results.size(); ++c) {
      const Index column(static_cast<std::int64_t>(c));
      set(dims_.p, p + i), set(dims_.q, q + column);
      const auto value = [&] { return results[c]; };
      std::vector<ir::Compare> there;  // patches may reach beyond the last row, column and image
      if (extent(dims_.p) % kWinogradResults != 0 || extent(dims_.p) % share(dims_.p).size != 0)
        there.push_back(compare(at(dims_.p), CompareKind::lt, extent(dims_.p)));
      if (extent(dims_.q) % kWinogradResults != 0)
        there.push_back(compare(at(dims_.q), CompareKind::lt, extent(dims_.q)));
      if (dims_.n >= 0 && extent(dims_.n) % images() != 0)
        there.push_back(compare(at(dims_.n), CompareKind::lt, extent(dims_.n)));
      const auto finish = [&] {
        if (!work_.empty() && c == 0) {  // shifts are those of a part's first result
          std::vector<ir::Compare> is_first{compare(patch, CompareKind::eq, 0), compare(i, CompareKind::eq, 0)};
          builder_.when(is_first, [&] { at_result(value, [&] { accumulators_.set_shifts(state_, j); }); });
        }
        finish_result(value, j);
      };
      there.empty() ? finish() : builder_.when(there, finish);
    }
  });
}

}  // namespace fusejit::scheduler
