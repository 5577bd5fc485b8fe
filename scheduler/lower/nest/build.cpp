#include "scheduler/lower/nest/build.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "ir/ops/geometry/window.h"
#include "scheduler/lower/cuda/parts.h"
#include "scheduler/lower/cuda/shared_panels.h"
#include "scheduler/lower/cuda/threads.h"
#include "scheduler/lower/nest/factor.h"
#include "scheduler/lower/nest/nest.h"
#include "scheduler/lower/partials.h"
#include "scheduler/lower/winograd/weights.h"
#include "scheduler/lower/winograd/winograd.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::CompareKind;
using ir::Index;
using ir::KernelBuilder;

namespace {

// The graph's value that is this operand of the group's anchor.
int operand_value(const GroupKernel& kernel, const ir::ContractionOperand& operand) {
  const ir::Node& node = *kernel.graph().value(kernel.group().anchor);
  return kernel.graph().index_of(node.operands[static_cast<std::size_t>(operand.operand)].value.get());
}

}  // namespace

ContractionLoops::ContractionLoops(GroupKernel& kernel, Accumulators& accumulators,
                                   const ScheduledContraction& scheduled)
    : kernel_(kernel),
      builder_(kernel.builder()),
      accumulators_(accumulators),
      c_(scheduled.contraction),
      beside_(scheduled.beside),
      result_(&c_.result),
      s_(scheduled.schedule),
      packed_(scheduled.packed),
      compute_(compute_type(kernel.graph().value(kernel.group().anchor).type().dtype)),
      vector_(c_.find(s_.vector)),
      value_a_(operand_value(kernel, c_.a)),
      value_b_(operand_value(kernel, c_.b)) {}

bool ContractionLoops::sums_over(int d) const {
  if (contraction_dim(d).reduced || kernel_.group().reduced.empty()) return false;
  for (std::size_t i = 0; i < c_.result.size(); ++i)
    if (c_.result[i].coefficient_of(d) != 0) return kernel_.group().reduced[i];
  return false;
}

std::int64_t ContractionLoops::summed_elements() const {
  std::int64_t elements = elements_together();
  for (std::size_t d = 0; d < c_.dims.size(); ++d) elements *= sums_over(static_cast<int>(d)) ? c_.dims[d].extent : 1;
  return elements;
}

Index ContractionLoops::evaluate(const ir::DimSum& sum) const {
  Index index = sum.constant;
  for (const ir::DimSum::Term& term : sum.terms) index = index + at(term.dim) * term.coefficient;
  return index;
}

LogicalIndex ContractionLoops::evaluate(const std::vector<ir::DimSum>& index) const {
  LogicalIndex all;
  all.reserve(index.size());
  for (const ir::DimSum& sum : index) all.push_back(evaluate(sum));
  return all;
}

void ContractionLoops::valid_lanes(const std::function<void()>& body) {
  if (!has_idle_lanes()) return body();
  const std::int64_t extent = contraction_dim(vector_).extent;
  const bool single = extent == 1;  // `==` pins the lane, so that one writer is provable
  builder_.when({compare(vector_at_, single ? CompareKind::eq : CompareKind::lt, single ? 0 : extent)}, body);
}

Vectors ContractionLoops::stored_vectors() const {
  const int last = innermost_dim(kernel_.group().domain);
  const bool side_by_side = last >= 0 && c_.result[static_cast<std::size_t>(last)].coefficient_of(vector_) == 1;
  return s_.stream && side_by_side && !has_idle_lanes() ? Vectors::whole : Vectors::some;
}

void ContractionLoops::over_results(const std::function<void(bool has_terms)>& body) {
  body(true);
  for (const ir::Contraction& zero : beside_) {
    result_ = &zero.result;
    body(false);
  }
  result_ = &c_.result;
}

void ContractionLoops::store_results(const Arg& sum) {
  over_results([&](bool has_terms) {
    kernel_.move_to_dims(evaluate(*result_));
    kernel_.store_anchor(has_terms ? sum : KernelBuilder::literal(0, compute_));
  });
}

void ContractionLoops::at_result(const std::function<Arg()>& value, const std::function<void()>& body) {
  valid_lanes([&] {
    kernel_.move_to_dims(evaluate(*result_));
    kernel_.expression().nested([&] {
      kernel_.expression().bind(kernel_.group().anchor, kernel_.here(), value());
      body();
    });
  });
}

void ContractionLoops::finish_result(const std::function<Arg()>& value, const Index& j) {
  at_result(value, [&] {
    kernel_.store_all(accumulators_.expressions(), stored_vectors());
    if (!work_.empty()) accumulators_.add(state_, j, Index(0));
  });
}

Arg ContractionLoops::elements_in(const std::vector<Block>& blocks) {
  const auto literal = [](std::int64_t n) { return KernelBuilder::literal(static_cast<double>(n), DType::f64); };
  std::int64_t whole = 1;
  for (const Block& block : blocks)
    if (block.extent % block.size == 0) whole *= block.size;
  Arg count = literal(whole);
  for (const Block& block : blocks) {
    if (block.extent % block.size == 0) continue;
    const std::int64_t number = ir::ceil_divide(block.extent, block.size),
                       last = block.extent - (number - 1) * block.size, before = std::exchange(whole, 1);
    const Arg size = builder_.choose(
        {compare(block.base / block.size, CompareKind::lt, number - 1)}, {DType::f64},
        [&] { return std::vector<Arg>{literal(before * block.size)}; },
        [&] { return std::vector<Arg>{literal(before * last)}; })[0];
    count = count.is_literal() ? size : Arg(builder_.def(ir::Op::mul, {count, size}, DType::f64));
  }
  return count;
}

void ContractionLoops::leave_sums(const Index& part, const std::vector<Arg>& state) {
  kernel_.move_to_dims(evaluate(c_.result));
  const std::vector<Index> index = partial_index(kernel_, Index(first_part_) + part, kernel_.point());
  for (std::size_t c = 0; c < work_.size(); ++c) builder_.store(work_[c], index, state[c]);
}

namespace {

// The first operand by words, where all contractions take pairs of what lies side by side in it.
void read_pairs(GroupKernel& kernel, const std::vector<ScheduledContraction>& contractions) {
  const int value = operand_value(kernel, contractions.front().contraction.a);
  const int innermost = innermost_dim(kernel.graph().value(value).type());
  const bool words = std::all_of(contractions.begin(), contractions.end(), [&](const ScheduledContraction& one) {
    const int dot = one.schedule.dot.empty() ? -1 : one.contraction.find(one.schedule.dot);
    return dot >= 0 && innermost >= 0 && axis_of_pairs(one.contraction.a, dot) == innermost &&
           operand_value(kernel, one.contraction.a) == value;
  });
  if (words) kernel.read_pairs(value);
}

}  // namespace

void build(GroupKernel& kernel, const std::vector<ScheduledContraction>& contractions) {
  Accumulators accumulators(kernel);
  read_pairs(kernel, contractions);
  std::vector<std::unique_ptr<ContractionLoops>> all;
  std::int64_t elements = 0, parts = 0;  // of one channel, and of its sums, over all contractions
  for (const ScheduledContraction& scheduled : contractions) {
    if (scheduled.schedule.winograd > 0 && winograd_dims(scheduled.contraction)->of_weights) {
      all.push_back(std::make_unique<WinogradWeights>(kernel, accumulators, scheduled));
    } else if (scheduled.schedule.winograd > 0) {
      all.push_back(std::make_unique<Winograd>(kernel, accumulators, scheduled));
    } else if (scheduled.schedule.shares_panels()) {
      all.push_back(std::make_unique<SharedPanelLoops>(kernel, accumulators, scheduled));
    } else {
      all.push_back(std::make_unique<Nest>(kernel, accumulators, scheduled));
    }
    elements += all.back()->summed_elements();
    parts += all.back()->parts();
  }
  std::vector<ir::MemId> work;
  if (!accumulators.list().empty()) work = declare_partials(kernel, accumulators, parts);
  std::int64_t first_part = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {  // a phase each
    if (i > 0) kernel.builder().next_phase();
    const std::size_t phase = i == 0 ? 0 : kernel.builder().written().phases.size() - 1;
    all[i]->emit(work, first_part);
    if (contractions[i].schedule.by_threads()) kernel.bound_registers(phase, contractions[i].schedule.registers);
    first_part += all[i]->parts();
  }
  if (work.empty()) return;
  if (!contractions.front().schedule.by_threads()) return combine_partials(kernel, accumulators, work, parts, elements);
  std::vector<std::int64_t> kept;
  std::int64_t results = 1;
  for (const Axis& axis : kernel.space().axes) {
    kept.push_back(axis.reduced ? 1 : axis.extent);
    results *= kept.back();
  }
  cuda::combine_parts(kernel, accumulators, work, parts, elements, results,
                      [&](const Index& element) { return cuda::decode(element, kept); });
}

}  // namespace fusejit::scheduler
