// Winograd: a convolution of 3 x 3 taps by F(4x4, 3x3) (scheduler/schedule/winograd.h), beside Nest the second way to
// write a contraction's loops.
//
// A task has patches: 4 x 4 results each, of a few rows of patches or of a few images. It takes what they read to the
// 36 points, all channels, through the prologue and with zeros for padding (%v); then, block of outputs by block, it
// sums up the products over channels, point by point, patches and outputs in the registers' tile (%m), and takes the
// sums of each patch back to results, which meet the epilogue in registers.
#pragma once

#include "scheduler/lower/nest/build.h"
#include "scheduler/lower/winograd/transform.h"
#include "scheduler/schedule/winograd.h"

namespace fusejit::scheduler {

class Winograd : public ContractionLoops {
 public:
  Winograd(GroupKernel& kernel, Accumulators& accumulators, const ScheduledContraction& scheduled);
  std::int64_t parts() const override;
  void emit(const std::vector<ir::MemId>& work, std::int64_t first_part) override;

 private:
  // What a task has of a dim that tasks share out.
  struct Share {
    ir::Index base = 0;
    std::int64_t size = 1;
  };
  using Patch = std::function<void(const ir::Index& patch)>;

  ir::Index at(int d) const override;
  std::int64_t extent(int d) const { return d < 0 ? 1 : contraction_dim(d).extent; }
  Share& share(int d) { return shares_[static_cast<std::size_t>(d)]; }
  std::int64_t images() const { return dims_.n < 0 ? 1 : shares_[static_cast<std::size_t>(dims_.n)].size; }
  std::int64_t patch_rows() const;
  std::int64_t patch_columns() const;
  std::int64_t patches() const { return images() * patch_rows() * patch_columns(); }
  void set(int d, ir::Index to);
  void over_tasks(std::size_t n);
  void task();
  void over_patches(const Patch& body);

  void transform_inputs();
  void transform_input(const ir::Index& patch, bool inside);
  std::vector<ir::Compare> inside(std::size_t axis, const ir::Index& first, const ir::Index& last) const;
  ir::Arg input_element(const ir::Index& i, const ir::Index& j, bool inside);
  void multiply();
  void multiply(const ir::Index& point, const ir::Index& first, std::int64_t patches);
  void add_terms(ir::MemId sums, const ir::Index& point, const ir::Index& first, std::int64_t patches);
  void finish_patches();
  void finish_patch(const ir::Index& patch, const ir::Index& j);

  const WinogradDims dims_;
  const WinogradTransform transform_;
  std::vector<Share> shares_;  // by dim
  std::vector<ir::Index> at_;  // by dim
  ir::Index lane_ = 0, part_ = 0;
  ir::Index block_ = 0;        // first output of the block at hand
  ir::MemId v_ = -1, m_ = -1;  // inputs, sums: [point, patch, channel or output of a block]
  ir::MemId half_ = -1;        // a patch that is transformed along one axis, in lanes
};

}  // namespace fusejit::scheduler
