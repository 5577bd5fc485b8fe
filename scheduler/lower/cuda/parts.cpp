#include "scheduler/lower/cuda/parts.h"

#include <algorithm>

#include "scheduler/lower/cuda/tuning.h"
#include "scheduler/lower/partials.h"

namespace fusejit::scheduler::cuda {

using ir::Arg;
using ir::Binding;
using ir::Index;
using ir::KernelBuilder;

namespace {

std::vector<Arg> args(const std::vector<ir::ValueId>& ids) { return {ids.begin(), ids.end()}; }

// Parts row, row + rows, … of an element.
std::vector<Arg> walk(KernelBuilder& builder, const Joining& joining, std::int64_t rows, const Index& row,
                      const Index& element) {
  const Index steps =
      joining.parts % rows == 0 ? Index(joining.parts / rows) : (Index(joining.parts + rows - 1) - row) / rows;
  return args(builder.reduce({Index(0)}, {steps}, Binding::none, joining.combiners, joining.types,
                             [&](Index step) { return joining.load(step * rows + row, element); }));
}

}  // namespace

void join_parts(KernelBuilder& builder, const Joining& joining) {
  builder.next_phase();
  const std::int64_t rows =
      std::min(kMostRows, floor_power_of_two(std::max<std::int64_t>(1, joining.parts / kLeastParts)));
  if (rows == 1) {
    return each_thread(builder, joining.elements,
                       [&](Index element) { joining.done(element, walk(builder, joining, 1, Index(0), element)); });
  }
  const std::int64_t width = divisor_up_to(joining.elements, kBlock / rows);
  builder.loop(Index(0), Index(joining.elements / width), Binding::grid_x, [&](Index block) {
    along(builder, width, Binding::block_x, [&](Index column) {
      const Index element = block * width + column;
      joining.done(element,
                   args(builder.reduce({Index(0)}, {Index(rows)}, Binding::block_y, joining.combiners, joining.types,
                                       [&](Index row) { return walk(builder, joining, rows, row, element); })));
    });
  });
}

void join_sums(GroupKernel& kernel, const JoiningSums& joining) {
  Expression& expression = kernel.expression();
  join_parts(kernel.builder(), {joining.elements,
                                joining.parts,
                                {ir::Combiner::add},
                                {DType::f64},
                                [&](const Index& part, const Index& element) {
                                  const Arg loaded = joining.load(part, element);
                                  return std::vector<Arg>{expression.convert(loaded, DType::f64)};
                                },
                                [&](const Index& element, const std::vector<Arg>& sum) {
                                  joining.done(element, expression.convert(sum[0], joining.type));
                                }});
}

void combine_parts(GroupKernel& kernel, Accumulators& accumulators, const std::vector<ir::MemId>& work,
                   std::int64_t parts, std::int64_t total, std::int64_t kept,
                   const std::function<std::vector<Index>(const Index& element)>& point) {
  Joining joining{kept, parts, accumulators.combiners(), accumulators.types(), {}, {}};
  for (DType& type : joining.types) type = type == DType::f32 ? DType::f64 : type;
  joining.load = [&](const Index& part, const Index& element) {
    const std::vector<Index> at = partial_index(kernel, part, point(element));
    std::vector<Arg> state;
    for (std::size_t c = 0; c < work.size(); ++c) {
      state.push_back(kernel.expression().convert(kernel.builder().load(work[c], at), joining.types[c]));
    }
    return state;
  };
  joining.done = [&](const Index& element, const std::vector<Arg>& state) {
    kernel.move_to(point(element));
    kernel.expression().nested([&] { accumulators.finish(state, total); });
  };
  join_parts(kernel.builder(), joining);
}

}  // namespace fusejit::scheduler::cuda
