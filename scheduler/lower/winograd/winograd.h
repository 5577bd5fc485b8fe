// Winograd: a convolution by minimal filtering (scheduler/schedule/winograd.h), beside Nest the second way to write a
// contraction's loops.
//
// A task takes what its patches read to the points, all channels, through the prologue and with zeros for padding
// (%v); then, block of outputs by block, or several of them together, it sums up the products over channels, point by
// point, patches and outputs in the registers' tile (%m), and takes the sums of each patch back to results, which meet
// the epilogue in registers.
#pragma once

#include "scheduler/lower/winograd/patches.h"

namespace fusejit::scheduler {

class Winograd : public WinogradLoops {
 public:
  Winograd(GroupKernel& kernel, Accumulators& accumulators, const ScheduledContraction& scheduled)
      : WinogradLoops(kernel, accumulators, scheduled) {}
  std::int64_t parts() const override { return parts_of_tasks(); }
  void emit(const std::vector<ir::MemId>& work, std::int64_t first_part) override;

 private:
  void task();
  std::int64_t blocks_together() const;
  void over_blocks_together(const std::function<void()>& body);
  void multiply();
  void multiply(const ir::Index& point, const ir::Index& weights, const ir::Index& tile, std::int64_t patches);
  void add_terms(ir::MemId sums, const ir::Index& point, const ir::Index& weights_point, const ir::Index& tile,
                 std::int64_t patches);
  void fetch_packed(const ir::Index& weights, const ir::Index& turn, std::int64_t turns);
  void fetch_results(const ir::Index& turn, std::int64_t turns);
  void finish_patches();
  void finish_patch(const ir::Index& patch, const ir::Index& j);

  std::int64_t patches_of_tile() const;
  std::int64_t tiles() const;
  // The sums of vector `j` of the block at hand.
  std::vector<ir::Index> sum_at(const ir::Index& point, const ir::Index& patch, const ir::Index& j) const;

  ir::Index first_block_ = 0, of_together_ = 0;  // of those at hand together; the one at hand, counted from it
  ir::Index block_ = 0;                          // its first output
  Points v_, m_;                                 // inputs, sums: [point, patch, channel or output of those blocks]
};

}  // namespace fusejit::scheduler
