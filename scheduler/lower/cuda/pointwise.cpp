// Groups without reductions: one vector of the last axis a thread.
#include "scheduler/lower/cuda/lower.h"
#include "scheduler/lower/cuda/threads.h"

namespace fusejit::scheduler::cuda {

using ir::Index;
using ir::KernelBuilder;

namespace {

void store_here(GroupKernel& kernel, std::vector<Index> point) {
  kernel.move_to(std::move(point));
  kernel.expression().nested([&] { kernel.store_all(); });
}

// The one axis is no whole number of vectors: the thread after the last whole one takes the tail, element by element.
void with_tail(GroupKernel& kernel, std::int64_t extent, std::int64_t lanes) {
  KernelBuilder& builder = kernel.builder();
  const std::int64_t whole = extent / lanes;
  each_thread(builder, whole + 1, [&](Index item) {
    const auto vector = [&] {
      each_lane(builder, lanes, [&](Index lane) { store_here(kernel, {item * lanes + lane}); });
    };
    builder.when({compare(item, ir::CompareKind::lt, whole)}, vector, [&] {
      each_lane(builder, lanes, [&](Index lane) {
        const Index element = item * lanes + lane;
        builder.when({compare(element, ir::CompareKind::lt, extent)}, [&] { store_here(kernel, {element}); });
      });
    });
  });
}

}  // namespace

void emit_pointwise(GroupKernel& kernel, std::int64_t lanes) {
  const auto& axes = kernel.space().axes;
  if (axes.empty()) return each_thread(kernel.builder(), 1, [&](Index) { store_here(kernel, {}); });
  const std::int64_t last = axes.back().extent;
  if (axes.size() == 1 && last % lanes != 0) return with_tail(kernel, last, lanes);
  std::vector<std::int64_t> extents;
  std::int64_t items = 1;
  for (const Axis& axis : axes) extents.push_back(axis.extent);
  extents.back() /= lanes;
  for (const std::int64_t extent : extents) items *= extent;
  each_thread(kernel.builder(), items, [&](Index item) {
    const std::vector<Index> at = decode(item, extents);
    each_lane(kernel.builder(), lanes, [&](Index lane) {
      std::vector<Index> point = at;
      point.back() = at.back() * lanes + lane;
      store_here(kernel, std::move(point));
    });
  });
}

}  // namespace fusejit::scheduler::cuda
