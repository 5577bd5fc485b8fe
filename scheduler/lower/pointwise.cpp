// Groups without reductions: every value of the domain is computed and stored once, in physical order.
//
// The last axis runs in lanes. Tasks are chunks of the outermost axes, or of whole vectors where there is only one
// axis.
#include "scheduler/lower/expression/kept_maxima.h"
#include "scheduler/lower/loops.h"
#include "scheduler/lower/split.h"

namespace fusejit::scheduler {

using ir::Binding;
using ir::Index;

namespace {

// Below this many elements a fork-join costs more than it saves.
constexpr std::int64_t kSerialElements = 8192;
// A task of a one-axis kernel is at least this many vectors.
constexpr std::int64_t kLeastVectors = 32;
// A task of an image with overlapping windows is at least this many rows.
constexpr std::int64_t kLeastRows = 8;

void store_here(GroupKernel& kernel, std::vector<Index> point, Vectors vectors) {
  kernel.move_to(std::move(point));
  kernel.expression().nested([&] { kernel.store_all({}, vectors); });
}

void one_axis(GroupKernel& kernel, std::int64_t extent) {
  ir::KernelBuilder& builder = kernel.builder();
  const int lanes = kernel.lanes();
  const std::int64_t whole = extent / lanes, rest = extent % lanes;
  const std::int64_t tasks =
      extent < kSerialElements ? 1 : std::min<std::int64_t>(kernel.context().target.tasks, whole / kLeastVectors);
  const auto tail = [&] {
    one_vector(builder, lanes, rest,
               [&](Index lane) { store_here(kernel, {lane + Index(whole * lanes)}, Vectors::some); });
  };
  if (tasks <= 1) {
    return loop_vectors(
        builder, extent, lanes, [&](Index i) { store_here(kernel, {i}, Vectors::whole); },
        [&](Index i) { store_here(kernel, {i}, Vectors::some); });
  }
  const Split chunks = split(whole, tasks);
  builder.loop(Index(0), Index(chunks.chunks), Binding::threads, [&](Index task) {
    loop_chunk(builder, chunks, task, [&](Index vector) {
      builder.loop(Index(0), Index(lanes), Binding::vector,
                   [&](Index lane) { store_here(kernel, {vector * lanes + lane}, Vectors::whole); });
    });
    if (rest > 0) builder.when({compare(task, ir::CompareKind::eq, chunks.chunks - 1)}, tail);
  });
}

// Nests loops over axes [axis, last) and calls `body` inside.
void outer_axes(GroupKernel& kernel, std::size_t axis, std::vector<Index>& point, std::int64_t tasks_left,
                const std::function<void()>& body) {
  ir::KernelBuilder& builder = kernel.builder();
  if (axis + 1 >= kernel.space().axes.size()) return body();
  const std::int64_t extent = kernel.space().axes[axis].extent;
  const auto inner = [&](Index i, std::int64_t tasks) {
    point[axis] = i;
    outer_axes(kernel, axis + 1, point, tasks, body);
  };
  if (tasks_left <= 1 || axis >= 3)
    return builder.loop(Index(0), Index(extent), Binding::none, [&](Index i) { inner(i, 1); });
  const Split chunks = split(extent, tasks_left);
  builder.loop(Index(0), Index(chunks.chunks), Binding::threads, [&](Index task) {
    if (chunks.chunk == 1) return inner(task, (tasks_left + extent - 1) / extent);
    loop_chunk(builder, chunks, task, [&](Index i) { inner(i, 1); });
  });
}

// Images and blocks of rows are tasks; a block finds the windows that reach into it from above for itself.
void image_rows(GroupKernel& kernel, int overlapping) {
  ir::KernelBuilder& builder = kernel.builder();
  const auto& axes = kernel.space().axes;
  KeptMaxima maxima(kernel, overlapping);
  std::vector<Index> point(axes.size());
  const bool one_image = maxima.row_axis() == 0;
  const std::int64_t images = one_image ? 1 : axes[0].extent, channels = axes.back().extent;
  const std::int64_t tasks = kernel.group().domain.elements() < kSerialElements ? 1 : kernel.context().target.tasks;
  const std::int64_t height = axes[maxima.row_axis()].extent;
  const Split rows =
      split(height, std::min((tasks + images - 1) / images, std::max<std::int64_t>(1, height / kLeastRows)));

  const auto vectors = [&](const std::function<void(Index, Vectors)>& body) {
    loop_vectors(
        builder, channels, kernel.lanes(), [&](Index c) { body(c, Vectors::whole); },
        [&](Index c) { body(c, Vectors::some); });
  };
  const KeptMaxima::EachVector each_vector = [&](const std::function<void(const Index&)>& body) {
    vectors([&](const Index& c, Vectors) {
      point.back() = c;
      kernel.move_to(point);
      body(c);
    });
  };
  const auto block = [&](const Index& task) {
    maxima.declare(channels);
    maxima.enter(task * rows.chunk, each_vector);
    loop_chunk(builder, rows, task, [&](Index h) {
      maxima.begin(h, each_vector);
      maxima.columns([&](const Index& w) {
        vectors([&](const Index& c, Vectors filled) {
          point[maxima.row_axis()] = h, point[maxima.column_axis()] = w, point.back() = c;
          kernel.move_to(point);
          maxima.use(c);
          store_here(kernel, point, filled);
        });
      });
    });
  };
  const auto image = [&](const Index& n) {
    if (!one_image) point[0] = n;
    parallel(builder, rows.chunks, block);
  };
  tasks > 1 ? parallel(builder, images, image) : serial(builder, images, image);
}

}  // namespace

void emit_pointwise(GroupKernel& kernel, int overlapping) {
  const auto& axes = kernel.space().axes;
  if (kernel.group().domain.elements() == 0) return;
  if (overlapping >= 0) return image_rows(kernel, overlapping);
  if (axes.empty()) return store_here(kernel, {}, Vectors::some);
  if (axes.size() == 1) return one_axis(kernel, axes[0].extent);
  std::vector<Index> point(axes.size());
  const std::int64_t tasks = kernel.group().domain.elements() < kSerialElements ? 1 : kernel.context().target.tasks;
  outer_axes(kernel, 0, point, tasks, [&] {
    const auto store = [&](Vectors vectors) {
      return [&kernel, &point, vectors](Index i) {
        point.back() = i;
        store_here(kernel, point, vectors);
      };
    };
    loop_vectors(kernel.builder(), axes.back().extent, kernel.lanes(), store(Vectors::whole), store(Vectors::some));
  });
}

}  // namespace fusejit::scheduler
