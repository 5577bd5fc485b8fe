// build: the kernel of a group around contractions. What writes the loops of each is its schedule's algorithm: nest.h,
// winograd.h, or cuda/shared_panels.h.
#pragma once

#include "ir/contraction.h"
#include "scheduler/lower/accumulator.h"
#include "scheduler/lower/group_kernel.h"
#include "scheduler/lower/split.h"
#include "scheduler/schedule/schedule.h"

namespace fusejit::scheduler {

struct ScheduledContraction {
  ir::Contraction contraction;
  Schedule schedule;
  ir::MemId packed = -1;  // the second operand laid out anew; -1: read as it is
  // Without terms; an element of each lies beside each of the contraction's: their results differ in constants.
  std::vector<ir::Contraction> beside = {};
};

// The kernel of a group around these contractions, which write disjoint elements of one result: every tile with the
// group's stores and reductions as its epilogue; their sums are one state, combined in a last phase.
void build(GroupKernel& kernel, const std::vector<ScheduledContraction>& contractions);

// What writes the loops of one: the operands, the element at hand, and what the group does with a result there.
class ContractionLoops {
 public:
  ContractionLoops(GroupKernel& kernel, Accumulators& accumulators, const ScheduledContraction& scheduled);
  ContractionLoops(const ContractionLoops&) = delete;
  ContractionLoops& operator=(const ContractionLoops&) = delete;
  virtual ~ContractionLoops() = default;
  // Tasks that leave a partial state of the epilogue's sums each.
  virtual std::int64_t parts() const = 0;
  // The partial states go to `work`, from `first_part` on.
  virtual void emit(const std::vector<ir::MemId>& work, std::int64_t first_part) = 0;
  // Elements of the result that the epilogue adds up for one that it keeps.
  std::int64_t summed_elements() const;

 protected:
  const ir::ContractionDim& contraction_dim(int d) const { return c_.dims[static_cast<std::size_t>(d)]; }
  // The epilogue sums up the elements of this parallel dim.
  bool sums_over(int d) const;
  // The element of a dim that is at hand; of the vector's it is vector_at_.
  virtual ir::Index at(int d) const = 0;
  virtual void with_element(int d, const ir::Index& element, const std::function<void()>& body) = 0;
  ir::Index evaluate(const ir::DimSum& sum) const;
  LogicalIndex evaluate(const std::vector<ir::DimSum>& index) const;

  bool has_idle_lanes() const { return contraction_dim(vector_).extent % s_.lanes_together() != 0; }
  // Lanes beyond the last output do nothing.
  void valid_lanes(const std::function<void()>& body);
  // Whole vectors side by side in memory, which may go around the caches.
  Vectors stored_vectors() const;
  // The contraction's element and those beside it.
  std::int64_t elements_together() const { return 1 + static_cast<std::int64_t>(beside_.size()); }
  // `body` for the contraction's elements, then for those without terms beside them.
  void over_results(const std::function<void(bool has_terms)>& body);
  // Where the epilogue sums up nothing: the group's stores of the sum, and of the elements beside it.
  void store_results(const ir::Arg& sum);
  // `body` where the anchor's element at hand is `value()`.
  void at_result(const std::function<ir::Arg()>& value, const std::function<void()>& body);
  // The same, where the group stores it and, with vector `j` of the state, sums it up.
  void finish_result(const std::function<ir::Arg()>& value, const ir::Index& j);
  // Elements in the blocks of dims that begin at these places, as f64: the last block of a dim may have fewer.
  struct Block {
    ir::Index base;
    std::int64_t size, extent;
  };
  ir::Arg elements_in(const std::vector<Block>& blocks);
  // Leaves partial states of the epilogue's sums in `work_`: that of this part.
  void leave_sums(const ir::Index& part, const std::vector<ir::Arg>& state);

  // Partial results (partial_results.cpp), where the schedule combines them: in a phase of its own, or, where one task
  // has all parts of what it computes, in that task, while its results are in a cache.
  void declare_partial_results();
  struct OfTask {
    ir::Index base = 0;
    std::int64_t size = 1;
    bool limited = false;  // the last task has fewer
  };
  bool combines_in_tasks() const;
  // The task whose loops are being written has this of each dim: its results are declared, and `body` writes them.
  void in_task(std::vector<OfTask> dims, const std::function<void()>& body);
  std::vector<ir::Index> partial_place(const ir::Index& part, const ir::Index& block, const ir::Index& in_block) const;
  std::vector<int> partial_dims() const;
  void combine();
  void combine_by_threads();

  GroupKernel& kernel_;
  ir::KernelBuilder& builder_;
  Accumulators& accumulators_;
  const ir::Contraction& c_;
  const std::vector<ir::Contraction>& beside_;
  const std::vector<ir::DimSum>* result_;  // where it is at hand: the contraction's, or one of beside_
  const Schedule& s_;
  const ir::MemId packed_;
  const DType compute_;
  const int vector_;
  const int value_a_, value_b_;  // of the graph
  ir::Index vector_at_ = 0;
  ir::MemId partials_ = -1;
  std::vector<OfTask> task_;  // by dim, inside of in_task()
  std::vector<ir::MemId> work_;
  std::int64_t first_part_ = 0;
  Accumulators::State state_;

 private:
  std::int64_t blocks_of_vectors() const;
  OfTask of_task(int d) const {
    return task_.empty() ? OfTask{0, contraction_dim(d).extent, false} : task_[static_cast<std::size_t>(d)];
  }
  std::int64_t left_by_tasks(int d) const;
  std::vector<std::int64_t> partial_extents() const;
  void finish_parts(const ir::Index& block, const ir::Index& in_block);
  void over_dims(const std::vector<int>& dims, std::size_t n, const std::function<void()>& body);
  void over_blocks_of_vectors(
      std::int64_t units,
      const std::function<void(const ir::Index& block, const Split& tasks, const ir::Index& chunk)>& body);
  void combine_by_vector(int shared, const std::vector<int>& inside);
  void combine_across(const std::vector<int>& along, const std::vector<int>& inside);
};

}  // namespace fusejit::scheduler
