// Contractions whose operands the threads of a block copy to shared memory together
// (scheduler/schedule/shared_panels.h): the prologue runs once an element and tap there, and every thread multiplies
// what it reads from both copies. A thread keeps its tile in registers from one panel to the next (kernel-ir.md §3).
#pragma once

#include "scheduler/lower/nest/build.h"
#include "scheduler/schedule/shared_panels.h"

namespace fusejit::scheduler {

class SharedPanelLoops : public ContractionLoops {
 public:
  SharedPanelLoops(GroupKernel& kernel, Accumulators& accumulators, const ScheduledContraction& scheduled);
  std::int64_t parts() const override;
  void emit(const std::vector<ir::MemId>& work, std::int64_t first_part) override;

 private:
  // The place of a thread in its block.
  struct Thread {
    ir::Index row, output;
  };
  ir::Index at(int d) const override { return d == vector_ ? vector_at_ : at_[static_cast<std::size_t>(d)]; }
  void with_element(int d, const ir::Index& element, const std::function<void()>& body) override;

  void over_tasks(std::size_t task);
  void tile();
  void over_terms(std::size_t around);
  void each_thread(const std::function<void(const Thread& thread)>& body);
  // `body` for each of the cells of a panel that the thread copies.
  void each_cell(const Thread& thread, std::int64_t cells, const std::function<void(const ir::Index& cell)>& body);
  void fill_a(const Thread& thread, const ir::Index& first_term);
  void fill_b(const Thread& thread, const ir::Index& first_term);
  ir::Arg element_of_b(const ir::Index& output);
  void multiply(const Thread& thread);
  void at_row(const Thread& thread, const ir::Index& i, const std::function<void()>& body);
  void finish();
  void finish_with_sums(const ir::Index& j);

  std::int64_t lanes_of_a() const;
  bool copies_b_by_terms() const;
  bool by_rows() const { return terms_are_innermost_; }
  // The combination `number` of these dims from now on, and a lane further along the last.
  void set(const std::vector<int>& dims, const ir::Index& number, const ir::Index& lane = 0);
  std::vector<ir::Compare> is_row(const ir::Index& row, std::int64_t together = 1) const;
  std::vector<ir::Compare> is_term(const ir::Index& term, std::int64_t together = 1) const;
  std::vector<ir::Compare> is_inside() const;
  ir::Compare below(const std::vector<int>& dims, const ir::Index& number, std::int64_t together) const;
  ir::Index row_of(const Thread& thread, const ir::Index& i) const;
  std::vector<ir::Index> place_in_a(const ir::Index& row, const ir::Index& term) const;
  std::vector<ir::Index> accumulator(const Thread& thread, const ir::Index& i, const ir::Index& j,
                                     const ir::Index& lane) const;
  // Of vector j of a thread, in its block.
  ir::Index output_of(const Thread& thread, const ir::Index& j, const ir::Index& lane) const;
  std::int64_t outputs_of_block() const { return form_.output_threads * s_.block(); }

  const SharedPanels form_;
  std::int64_t all_rows_ = 1, all_terms_ = 1;
  std::vector<ir::ContractionDim> padded_;  // with whole blocks of rows, whole panels of terms
  bool terms_are_innermost_ = false;        // in the first operand's memory: its panel has rows of terms
  bool rows_are_innermost_ = false;
  bool terms_are_innermost_in_b_ = false;
  std::vector<ir::Index> at_;  // by dim
  ir::Index first_row_ = 0, first_output_ = 0, part_ = 0;
  ir::MemId panel_a_ = -1, panel_b_ = -1, sums_ = -1;
};

}  // namespace fusejit::scheduler
