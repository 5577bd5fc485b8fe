#include "scheduler/lower/partials.h"

#include "scheduler/lower/split.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Index;

std::vector<ir::MemId> declare_partials(GroupKernel& kernel, const Accumulators& accumulators, std::int64_t parts) {
  std::vector<std::int64_t> dims{parts};
  for (const Axis& axis : kernel.space().axes) {
    if (!axis.reduced) dims.push_back(axis.extent);
  }
  std::vector<ir::MemId> work;
  for (const DType type : accumulators.types()) work.push_back(kernel.builder().work(type, dims));
  return work;
}

std::vector<Index> partial_index(const GroupKernel& kernel, const Index& part, const std::vector<Index>& point) {
  std::vector<Index> index{part};
  for (std::size_t a = 0; a < point.size(); ++a) {
    if (!kernel.space().axes[a].reduced) index.push_back(point[a]);
  }
  return index;
}

namespace {

// Parts in ascending order for the one kept element of `point`, then finish().
void combine_at(GroupKernel& kernel, Accumulators& accumulators, const std::vector<ir::MemId>& work, std::int64_t parts,
                std::int64_t total, const std::vector<Index>& point) {
  std::vector<DType> types = accumulators.types();
  for (DType& type : types) type = type == DType::f32 ? DType::f64 : type;
  const std::vector<ir::ValueId> state = kernel.builder().reduce(
      {Index(0)}, {Index(parts)}, ir::Binding::none, accumulators.combiners(), types, [&](Index part) {
        std::vector<Arg> components;
        for (std::size_t c = 0; c < work.size(); ++c) {
          const Arg loaded = kernel.builder().load(work[c], partial_index(kernel, part, point));
          components.push_back(kernel.expression().convert(loaded, types[c]));
        }
        return components;
      });
  kernel.move_to(point);
  kernel.expression().nested([&] { accumulators.finish(std::vector<Arg>(state.begin(), state.end()), total); });
}

}  // namespace

void combine_partials(GroupKernel& kernel, Accumulators& accumulators, const std::vector<ir::MemId>& work,
                      std::int64_t parts, std::int64_t total) {
  ir::KernelBuilder& builder = kernel.builder();
  builder.next_phase();
  const auto& axes = kernel.space().axes;
  std::vector<Index> point(axes.size());
  std::vector<std::size_t> kept;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (!axes[a].reduced) kept.push_back(a);
  }
  const std::function<void(std::size_t)> nest = [&](std::size_t next) {
    if (next == kept.size()) return combine_at(kernel, accumulators, work, parts, total, point);
    const auto step = [&](Index i) {
      point[kept[next]] = i;
      nest(next + 1);
    };
    const std::int64_t extent = axes[kept[next]].extent;
    if (next + 1 == kept.size()) return loop_vectors(builder, extent, kernel.lanes(), step);
    builder.loop(Index(0), Index(extent), ir::Binding::none, step);
  };
  nest(0);
}

}  // namespace fusejit::scheduler
