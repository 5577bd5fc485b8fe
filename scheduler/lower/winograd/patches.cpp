#include "scheduler/lower/winograd/patches.h"

#include <algorithm>

#include "ir/ops/geometry/window.h"
#include "scheduler/lower/split.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Binding;
using ir::CompareKind;
using ir::Index;
using ir::KernelBuilder;

WinogradLoops::WinogradLoops(GroupKernel& kernel, Accumulators& accumulators, const ScheduledContraction& scheduled)
    : ContractionLoops(kernel, accumulators, scheduled),
      dims_(*winograd_dims(c_)),
      transform_(builder_, kernel.context().target.has_fma(), compute_),
      at_(c_.dims.size(), Index(0)) {
  for (const ir::ContractionDim& dim : c_.dims) shares_.push_back({0, dim.extent, false});
  for (const auto* loops : {&s_.tasks, &s_.outer}) {
    for (const ScheduledLoop& loop : *loops) {
      const int d = c_.find(loop.dims[0]);
      share(d).size = std::min(step_of(loop), share(d).size);
      share(d).ends_early = share(d).ends_early || extent(d) % share(d).size != 0;
    }
  }
}

std::int64_t WinogradLoops::step_of(const ScheduledLoop& loop) const {
  const int d = c_.find(loop.dims[0]);
  return loop.step > 0 ? loop.step : d == dims_.p ? dims_.down.results() : d == dims_.k ? s_.block() : 1;
}

void WinogradLoops::with_element(int d, const Index& element, const std::function<void()>& body) {
  const Index before = at(d);
  set(d, element);
  body();
  set(d, before);
}

void WinogradLoops::set(int d, const Index& to) {
  if (d >= 0) (d == vector_ ? vector_at_ : at_[static_cast<std::size_t>(d)]) = to;
}

std::int64_t WinogradLoops::parts_of_tasks() const {
  std::int64_t parts = 1;
  for (const ScheduledLoop& loop : s_.tasks)
    if (cuts_sums(c_.find(loop.dims[0])))
      parts *= ir::ceil_divide(c_.dim(loop.dims[0]).extent, std::min(step_of(loop), c_.dim(loop.dims[0]).extent));
  return parts;
}

void WinogradLoops::over_shares(const std::vector<ScheduledLoop>& loops, bool tasks,
                                const std::function<void()>& body) {
  const std::function<void(std::size_t)> over = [&](std::size_t n) {
    if (n == loops.size()) return body();
    const int d = c_.find(loops[n].dims[0]);
    std::int64_t size = extent(d);  // that loops around this one leave
    for (const ScheduledLoop& task : s_.tasks)
      if (!tasks && task.dims == loops[n].dims) size = std::min(step_of(task), size);
    const std::int64_t step = std::min(step_of(loops[n]), size), count = ir::ceil_divide(size, step);
    const Index base = share(d).base;
    (tasks ? parallel : serial)(builder_, count, [&](Index i) {
      share(d).base = base + i * step;
      if (tasks && cuts_sums(d)) part_ = part_ * count + i;
      over(n + 1);
    });
    share(d).base = base;
  };
  over(0);
}

std::int64_t WinogradLoops::patch_rows() const { return ir::ceil_divide(share(dims_.p).size, dims_.down.results()); }
std::int64_t WinogradLoops::patch_columns() const { return ir::ceil_divide(extent(dims_.q), dims_.across.results()); }

void WinogradLoops::over_weights(const std::function<void(const Index& weights, const PointsOfWeights& of)>& body) {
  const std::int64_t columns = dims_.across.weight_points();
  if (dims_.points() == dims_.weight_points()) {
    return builder_.loop(Index(0), Index(dims_.points()), Binding::none,
                         [&](Index point) { body(point, {.i = 0, .j = point}); });
  }
  const auto over_axis = [&](const WinogradAxis& axis,
                             const std::function<void(const Index& first, std::int64_t count)>& at_point) {
    const std::int64_t own = axis.stride == 1 ? axis.points() : WinogradAxis::kEvenPoints;
    builder_.loop(Index(0), Index(own), Binding::none, [&](Index i) { at_point(i, 1); });
    if (own < axis.points()) at_point(Index(own), axis.points() - own);
  };
  over_axis(dims_.down, [&](const Index& i, std::int64_t rows) {
    over_axis(dims_.across, [&](const Index& j, std::int64_t of_row) { body(i * columns + j, {i, j, rows, of_row}); });
  });
}

void WinogradLoops::over_points(const PointsOfWeights& of, const std::function<void(const Index& point)>& body) {
  serial(builder_, of.rows, [&](Index row) {
    serial(builder_, of.columns, [&](Index column) { body((of.i + row) * dims_.across.points() + of.j + column); });
  });
}

void WinogradLoops::set_patch(const Index& image, const Index& row, const Index& column) {
  row_ = row, column_ = column;
  set(dims_.n, image), set(dims_.p, row_), set(dims_.q, column_);
}

void WinogradLoops::over_patches(const std::function<void(const Index& patch)>& body) {
  serial(builder_, images(), [&](Index image) {
    serial(builder_, patch_rows(), [&](Index row) {
      serial(builder_, patch_columns(), [&](Index column) {
        set_patch(dims_.n < 0 ? Index(0) : share(dims_.n).base + image,
                  share(dims_.p).base + row * dims_.down.results(), column * dims_.across.results());
        body((image * patch_rows() + row) * patch_columns() + column);
      });
    });
  });
}

std::vector<ir::Compare> WinogradLoops::is_image() const {
  if (dims_.n < 0 || !share(dims_.n).ends_early) return {};
  return {compare(at(dims_.n), CompareKind::lt, extent(dims_.n))};
}

// Patches may reach beyond the last row and column.
std::vector<ir::Compare> WinogradLoops::is_result() const {
  std::vector<ir::Compare> is = is_image();
  if (extent(dims_.p) % dims_.down.results() != 0 || share(dims_.p).ends_early)
    is.push_back(compare(at(dims_.p), CompareKind::lt, extent(dims_.p)));
  if (extent(dims_.q) % dims_.across.results() != 0)
    is.push_back(compare(at(dims_.q), CompareKind::lt, extent(dims_.q)));
  return is;
}

// What keeps the elements from `first` to `last` of an axis inside of the operand, as far as patches reach.
std::vector<ir::Compare> WinogradLoops::inside(const Source& source, std::size_t axis, const Index& first,
                                               const Index& last) const {
  const bool rows = axis == source.rows;
  const WinogradAxis& of = rows ? dims_.down : dims_.across;
  const std::int64_t stride = source.of_results ? 1 : of.stride;
  const std::int64_t in = source.of->extents[axis], before = source.of->index[axis].constant,
                     size = rows ? share(dims_.p).size : extent(dims_.q),
                     blocks = ir::ceil_divide(extent(rows ? dims_.p : dims_.q), size),
                     last_patch = (blocks * ir::ceil_divide(size, of.results()) - 1) * of.results();
  std::vector<ir::Compare> conditions;
  if (before < 0) conditions.push_back(compare(first, CompareKind::ge, 0));
  if (before + last_patch * stride + (source.of_results ? of.results() : of.points()) > in)
    conditions.push_back(compare(last, CompareKind::lt, in));
  return conditions;
}

// Windows reach over what is read for several results by their taps.
void WinogradLoops::move(const Source& source, const Index& i, const Index& j) {
  if (!source.of_results) return set(dims_.r, i), set(dims_.s, j);
  set(dims_.p, row_ + i), set(dims_.q, column_ + j);
}

// Padding is zero, and so is what lies behind the last image, or the last lane.
Arg WinogradLoops::element(const Source& source, bool is_inside) {
  const LogicalIndex index = evaluate(source.of->index);
  const auto value = [&] {
    return kernel_.expression().nested([&] { return kernel_.expression().value(source.value, index); });
  };
  std::vector<ir::Compare> there;
  if (!is_inside) {
    there = is_image();
    for (const std::size_t axis : {source.rows, source.columns})
      for (const ir::Compare& c : inside(source, axis, index[axis], index[axis])) there.push_back(c);
  }
  const Share& lanes = share(source.lanes);
  if (extent(source.lanes) % s_.lanes != 0 || lanes.ends_early || source.count > lanes.size)
    there.push_back(compare(at(source.lanes), CompareKind::lt, extent(source.lanes)));
  if (there.empty()) return value();
  return builder_.choose(
      there, {compute_}, [&] { return std::vector<Arg>{value()}; },
      [&] { return std::vector<Arg>{KernelBuilder::literal(0, compute_)}; })[0];
}

// The line of an element that a later patch reads, the next ones of the task or behind it.
void WinogradLoops::fetch_ahead(const Source& source, const Index& patch, const Index& in_source, const Index& i,
                                const Index& j) {
  if (s_.fetch.dims.empty()) return;
  const Index image = dims_.n < 0 ? Index(0) : at(dims_.n), row = row_, column = column_;
  const Index further = patch + Index(s_.fetch.count / dims_.across.results()), patch_row = further / patch_columns();
  const bool several = images() > 1;
  set_patch(several ? share(dims_.n).base + patch_row / patch_rows() : image,
            share(dims_.p).base + (several ? patch_row % patch_rows() : patch_row) * dims_.down.results(),
            further % patch_columns() * dims_.across.results());
  set(source.lanes, source.first + in_source);
  move(source, i, j);
  kernel_.prefetch(source.value, evaluate(source.of->index));
  set_patch(image, row, column);
}

void WinogradLoops::over_blocks(const Index& first, std::int64_t count,
                                const std::function<void(const Index& block)>& body) {
  const std::int64_t blocks = ir::ceil_divide(extent(dims_.k), s_.block());
  if (count == 1) return body(Index(0));
  std::vector<Index> high{Index(count)};
  if (blocks % count != 0) high.push_back(Index(blocks) - first);
  builder_.loop({Index(0)}, high, Binding::none, body);
}

WinogradLoops::Points WinogradLoops::declare_points(std::int64_t points, std::int64_t rows, std::int64_t width,
                                                    bool zero) {
  const std::vector<std::int64_t> dims{points, rows * width + kLine};
  const auto kind = ir::MemKind::scratch_local;
  return {zero ? builder_.local(kind, compute_, dims, 0) : builder_.local(kind, compute_, dims), width};
}

void WinogradLoops::to_points(const Points& to, const Source& source) {
  const Transform along = [&](const WinogradAxis& axis, const std::vector<Arg>& elements) {
    return source.of_results ? transform_.gradients(axis, elements) : transform_.input(axis, elements);
  };
  const auto elements = [&](const WinogradAxis& axis) { return source.of_results ? axis.results() : axis.points(); };
  over_patches([&](const Index& patch) {
    std::vector<ir::Compare> all = is_image();
    for (const std::size_t axis : {source.rows, source.columns}) {
      move(source, 0, 0);
      const Index first = evaluate(source.of->index[axis]),
                  last = first + Index(elements(axis == source.rows ? dims_.down : dims_.across) - 1);
      for (const ir::Compare& c : inside(source, axis, first, last)) all.push_back(c);
    }
    const auto vectors = [&](bool is_inside) {
      serial(builder_, ir::ceil_divide<std::int64_t>(source.count, s_.lanes), [&](Index vector) {
        builder_.loop(Index(0), Index(s_.lanes), Binding::vector, [&](Index lane) {
          lane_ = lane;
          const Index in_source = vector * s_.lanes + lane;
          both_axes(
              elements(dims_.down), elements(dims_.across), along,
              [&](const Index& i, const Index& j) {
                fetch_ahead(source, patch, vector * s_.lanes, i, j);
                set(source.lanes, source.first + in_source);
                move(source, i, j);
                return element(source, is_inside);
              },
              [&](const Index& i, const std::vector<Arg>& points) {
                for (std::size_t j = 0; j < points.size(); ++j)
                  builder_.store(
                      to.memory,
                      to.at(i * dims_.across.points() + Index(static_cast<std::int64_t>(j)), patch, in_source),
                      points[j]);
              });
        });
      });
    };
    all.empty() ? vectors(true)
                : builder_.when(
                      all, [&] { vectors(true); }, [&] { vectors(false); });
  });
}

void WinogradLoops::declare_half() {
  half_ = builder_.local(ir::MemKind::scratch_local, compute_,
                         {dims_.down.points(), dims_.across.points(), std::int64_t{s_.lanes}});
}

// Columns first, then rows of what they give.
void WinogradLoops::both_axes(std::int64_t rows, std::int64_t columns, const Transform& along,
                              const std::function<Arg(const Index& i, const Index& j)>& from,
                              const std::function<void(const Index& i, const std::vector<Arg>& row)>& to) {
  std::int64_t made = 0;
  builder_.loop(Index(0), Index(columns), Binding::none, [&](Index j) {
    std::vector<Arg> column;
    for (std::int64_t i = 0; i < rows; ++i) column.push_back(from(Index(i), j));
    const std::vector<Arg> all = along(dims_.down, column);
    made = static_cast<std::int64_t>(all.size());
    for (std::size_t i = 0; i < all.size(); ++i)
      builder_.store(half_, {Index(static_cast<std::int64_t>(i)), j, lane_}, all[i]);
  });
  builder_.loop(Index(0), Index(made), Binding::none, [&](Index i) {
    std::vector<Arg> row;
    for (std::int64_t j = 0; j < columns; ++j) row.push_back(builder_.load(half_, {i, Index(j), lane_}));
    to(i, along(dims_.across, row));
  });
}

}  // namespace fusejit::scheduler
