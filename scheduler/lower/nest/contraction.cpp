#include "scheduler/lower/nest/contraction.h"

#include <algorithm>
#include <functional>

#include "ir/base/check.h"
#include "scheduler/choose/choose.h"
#include "scheduler/fuse/analysis.h"
#include "scheduler/lower/accumulator.h"
#include "scheduler/lower/cuda/threads.h"
#include "scheduler/lower/nest/factor.h"
#include "scheduler/lower/nest/nest.h"
#include "scheduler/lower/nest/pack.h"
#include "scheduler/lower/tuning.h"
#include "scheduler/names/steps.h"

namespace fusejit::scheduler {

namespace {

// Not in memory, nor a view of what is, or copied there by this very group.
bool is_computed(const LowerContext& context, const Group& group, const ir::ContractionOperand& operand) {
  const ir::Node& anchor = *context.graph.value(group.anchor);
  const ir::Value& value = anchor.operands[static_cast<std::size_t>(operand.operand)].value;
  const std::vector<bool>& stored = context.grouping.stored;
  const int under = under_views(context.graph, stored, context.graph.index_of(value.get()));
  return !stored[static_cast<std::size_t>(under)] ||
         std::find(group.copies.begin(), group.copies.end(), under) != group.copies.end();
}

// The second operand's elements for neighbouring outputs are side by side.
bool is_along_outputs(const ir::Contraction& c, const Type& second) {
  const int last = innermost_dim(second);
  if (last < 0) return false;
  const ir::DimSum& sum = c.b.index[static_cast<std::size_t>(last)];
  return std::any_of(sum.terms.begin(), sum.terms.end(), [&](const ir::DimSum::Term& term) {
    return !c.dims[static_cast<std::size_t>(term.dim)].reduced && term.coefficient == 1 && !c.a.mentions(term.dim);
  });
}

bool lies_by_outputs(const LowerContext& context, const ir::Contraction& c, int value) {
  return context.grouping.stored[static_cast<std::size_t>(value)] &&
         is_along_outputs(c, context.graph.value(value).type());
}

// Computed by the step, not given to it, and in memory as rows of outputs; a reshape of rows names the same bytes.
bool is_of_step(const LowerContext& context, const ir::Contraction& c, int value) {
  const ir::Graph& graph = context.graph;
  const auto in_rows = [&](int v) { return graph.value(v).type().layout == Layout::standard; };
  int stored = value;
  while (!context.grouping.stored[static_cast<std::size_t>(stored)]) {
    if (graph.value(stored)->op != ir::Op::reshape || !in_rows(stored)) return false;
    stored = graph.operands(stored)[0];
  }
  return context.grouping.group_of[static_cast<std::size_t>(stored)] >= 0 && in_rows(stored) &&
         is_along_outputs(c, graph.value(value).type());
}

// Dims that make up what lies behind each element of the second operand's dims in a result of this type, side by side.
std::vector<int> lie_together(const ir::Contraction& c, const Type& result) {
  std::vector<int> dims;
  const std::vector<int> order = physical_order(result);
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    const ir::DimSum& sum = c.result[static_cast<std::size_t>(*d)];
    if (result.shape[*d] == 1) continue;
    if (sum.terms.size() != 1 || c.b.mentions(sum.terms[0].dim)) break;
    dims.insert(dims.begin(), sum.terms[0].dim);
  }
  return dims;
}

// Of what the group computes, and of what it computes again because nobody stores it.
bool computes_any(const LowerContext& context, const Group& group, const std::function<bool(ir::Op)>& of) {
  const std::vector<int> nodes = computed_nodes(context.graph, context.grouping.stored, group);
  return std::any_of(nodes.begin(), nodes.end(), [&](int node) { return of(context.graph.value(node)->op); });
}

// Elements that have no terms, each beside one of the other contraction's, and summed up with it where the group sums.
bool lies_beside(const ir::Contraction& zeros, const ir::Contraction& c, const Group& group) {
  if (zeros.terms() > 0 || c.terms() == 0) return false;
  for (std::size_t d = 0; d < c.dims.size(); ++d) {
    const ir::ContractionDim &one = zeros.dims[d], &other = c.dims[d];
    if (one.name != other.name || one.reduced != other.reduced || (!one.reduced && one.extent != other.extent))
      return false;
  }
  for (std::size_t i = 0; i < c.result.size(); ++i) {
    const ir::DimSum &one = zeros.result[i], &other = c.result[i];
    if (one.constant < other.constant) return false;
    if (one.constant != other.constant && !group.reduced.empty() && !group.reduced[i]) return false;
  }
  return true;
}

// On processors the zeros that lie beside one contraction's elements are finished in its epilogue: what they read comes
// while products are added up, and is not read in a pass of its own, which has none.
std::vector<ScheduledContraction> with_zeros(const std::vector<ir::Contraction>& contractions, const Group& group,
                                             bool processor) {
  std::vector<ScheduledContraction> all;
  std::vector<bool> taken(contractions.size());
  for (const ir::Contraction& contraction : contractions) {
    ScheduledContraction& one = all.emplace_back(ScheduledContraction{contraction, {}, -1});
    std::vector<std::size_t> zeros;
    for (std::size_t z = 0; processor && z < contractions.size(); ++z)
      if (!taken[z] && lies_beside(contractions[z], contraction, group)) zeros.push_back(z);
    if (zeros.size() > tuning::kMostZeros) continue;
    for (const std::size_t z : zeros) one.beside.push_back(contractions[z]), taken[z] = true;
  }
  std::vector<ScheduledContraction> left;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!taken[i]) left.push_back(std::move(all[i]));
  return left;
}

}  // namespace

std::optional<LoweredGroup> lower_contractions(const LowerContext& context, const Group& group, int lanes) {
  const ir::Node& node = *context.graph.value(group.anchor);
  const bool cuda = context.target.isa == Isa::cuda;
  FusedWork fused{.compute = compute_type(node.type.dtype),
                  .sums = !group.reductions.empty(),
                  .result_bytes = node.type.bytes(),
                  .stores_a = !group.copies.empty(),
                  .beside_gradient = context.beside_gradient,
                  .lanes = lanes,
                  .library = context.library};
  std::vector<ir::Contraction> contractions = context.contractions(node);
  for (ir::Contraction& one : contractions)
    one = operands_in_order(one, context.target, is_computed(context, group, one.b));
  LoweredGroup lowered;
  if (contractions.empty()) return lowered;
  GroupKernel kernel(context, group, false, lanes);
  fused.elements_read = kernel.elements_read();
  fused.concatenates = computes_any(context, group, [](ir::Op op) { return op == ir::Op::concat; });
  if (cuda) {
    fused.functions = computes_any(context, group, [](ir::Op op) { return ir::op_def(op).ulp > 0; });
    fused.words_of_sums = Accumulators(kernel).words();
  }
  std::vector<ScheduledContraction> scheduled = with_zeros(contractions, group, !cuda);
  for (std::size_t i = 0; i < scheduled.size(); ++i) {
    const ir::Contraction& contraction = scheduled[i].contraction;
    fused.computes_a = is_computed(context, group, contraction.a),
    fused.computes_b = is_computed(context, group, contraction.b);
    const ir::Value& second = node.operands[static_cast<std::size_t>(contraction.b.operand)].value;
    fused.b_lies_by_outputs = lies_by_outputs(context, contraction, context.graph.index_of(second.get()));
    fused.b_of_step = is_of_step(context, contraction, context.graph.index_of(second.get()));
    set_layouts(fused, node, contraction);
    fused.lie_together = lie_together(contraction, node.type);
    const std::vector<Schedule> known = candidates(contraction, context.target, fused);
    Schedule schedule = known.front();
    const auto rule = [&](const Schedule& s) {
      std::string said = check(contraction, s, context.target, fused.sums);
      return said.empty() && fused.stores_a ? check_copy(contraction, s) : said;
    };
    std::string broken = rule(schedule);
    if (cuda && !broken.empty() && lanes > 1) return std::nullopt;  // idle lanes beside groups
    FJ_ASSERT(broken.empty(), "{} for {}: {}", print(schedule), str(contraction), broken);
    if (context.reschedule.anchor) {
      const int chosen_lanes = schedule.lanes;
      schedule = context.reschedule.anchor(label(context.graph, group.anchor), {contraction, known, fused.sums});
      broken = rule(schedule);
      if (broken.empty() && cuda && schedule.lanes != chosen_lanes) {
        if (lanes > 1) return std::nullopt;
        broken = fmt::format("a thread does not access {} elements at once here", schedule.lanes);
      }
      FJ_CHECK(broken.empty(), "{} is no schedule of {}: {}", print(schedule), str(contraction), broken);
    }
    // Winograd's epilogue has the results of a patch, and nothing beside them.
    std::vector<ir::Contraction> alone;
    if (schedule.winograd > 0) alone.swap(scheduled[i].beside);
    scheduled[i].schedule = std::move(schedule);
    for (ir::Contraction& zeros : alone) scheduled.push_back({std::move(zeros), {}, -1});
  }
  for (ScheduledContraction& one : scheduled) {
    if (one.schedule.pack_b == 0) continue;
    if (cuda && lanes * bytes(fused.compute) > cuda::kAccessBytes) return std::nullopt;
    const ir::Value& operand = node.operands[static_cast<std::size_t>(one.contraction.b.operand)].value;
    const int value = context.graph.index_of(operand.get());
    const int packed = context.first_extra + static_cast<int>(lowered.extras.size());
    const std::string name = std::string(kPacking) + std::string(ir::name(node.op));
    const std::vector<std::int64_t> dims = packed_dims(one.contraction, one.schedule);
    lowered.kernels.push_back(lower_packing(context, one.contraction, one.schedule, value, packed, name));
    const DType type = factor_type(one.schedule, fused.compute);
    lowered.extras.push_back({type, dims, label(context.graph, value) + " packed"});
    one.packed = kernel.extra_buffer(ir::MemKind::read, type, dims, packed);
  }
  kernel.set_lanes(scheduled.front().schedule.lanes);
  build(kernel, scheduled);
  if (cuda && !kernel.builder().vectors_aligned()) return std::nullopt;
  for (ScheduledContraction& one : scheduled)
    lowered.schedules.push_back({Work::contraction, str(one.contraction), std::move(one.schedule)});
  lowered.kernels.push_back(std::move(kernel).finish());
  if (context.reschedule) {
    for (const LoweredKernel& one : lowered.kernels) verify(*one.kernel);
  }
  return lowered;
}

}  // namespace fusejit::scheduler
