// WinogradWeights: the weight gradient of a convolution by minimal filtering, on the points of the convolution's.
//
// A task has images and outputs. It takes blocks of patches of both operands to the points, all channels (%v) and
// its outputs (%g), adds up the products over patches, point by point, channels and outputs in the registers' tile
// (%m), and takes the sums back to taps in the end: partial results, which are combined as Nest's are.
#pragma once

#include "scheduler/lower/winograd/patches.h"

namespace fusejit::scheduler {

class WinogradWeights : public WinogradLoops {
 public:
  WinogradWeights(GroupKernel& kernel, Accumulators& accumulators, const ScheduledContraction& scheduled)
      : WinogradLoops(kernel, accumulators, scheduled) {}
  std::int64_t parts() const override { return parts_of_tasks(); }
  void emit(const std::vector<ir::MemId>& work, std::int64_t first_part) override;

 private:
  void task();
  void over_blocks_of_task(const std::function<void(const ir::Index& block)>& body);
  void multiply();
  void multiply(const ir::Index& weights, const PointsOfWeights& of, const ir::Index& block, const ir::Index& first,
                std::int64_t channels);
  void finish_taps();

  Points v_, g_, m_;  // [point, patch, channel], [point, patch, output], [point, channel, output]
};

}  // namespace fusejit::scheduler
