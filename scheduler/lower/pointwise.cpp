// Groups without reductions: every value of the domain is computed and stored once, in physical order.
//
// The last axis runs in lanes. Tasks are chunks of the outermost axes, or of whole vectors where there is only one
// axis.
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

}  // namespace

void emit_pointwise(GroupKernel& kernel) {
  const auto& axes = kernel.space().axes;
  if (kernel.group().domain.elements() == 0) return;
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
