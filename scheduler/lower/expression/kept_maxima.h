// Max pooling backwards where windows overlap: the first maxima of a few rows of windows are kept in scratch, so that
// each window is looked through once and not once for every pixel under it (kernel-ir.md §12 (i)).
#pragma once

#include <cstdint>

#include "scheduler/lower/expression/window.h"
#include "scheduler/lower/group_kernel.h"

namespace fusejit::scheduler {

// A max_pool2d_grad of the group whose windows overlap, where rows, columns and channels can be loops of their own and
// channels are lanes; -1 if there is none. Its kernel merges no axes.
int overlapping_pool_grad(const LowerContext& context, const Group& group);

class KeptMaxima {
 public:
  // `node` as above, or -1: then nothing may be asked but active().
  KeptMaxima(GroupKernel& kernel, int node);
  bool active() const { return node_ >= 0; }
  std::size_t row_axis() const { return row_axis_; }
  std::size_t column_axis() const { return column_axis_; }

  // Declares the scratch, for `channels` of them; outside of the lanes' loop.
  void declare(std::int64_t channels);
  // The rows of windows that begin above pixel row `h` and reach it; then, for each row in turn, those that begin
  // there. `each_vector` points the kernel at every vector of channels (rows and columns do not matter) and calls its
  // argument with the channel's place in scratch.
  using EachVector = std::function<void(const std::function<void(const ir::Index& channel)>&)>;
  void enter(const ir::Index& h, const EachVector& each_vector);
  void begin(const ir::Index& h, const EachVector& each_vector);
  // What else happens while window [p, q] of all these channels is looked through.
  void beside(std::function<void(const ir::Index& p, const ir::Index& q)> window) { beside_ = std::move(window); }
  // So many rows of pixels in turn know which windows cover them, up to the edges.
  std::int64_t copies_of_rows() const;
  // Columns of a row of pixels, ascending; which windows cover one is known up to the edges.
  void columns(const std::function<void(const ir::Index& w)>& body);
  // Gradients at the kernel's point take what is kept for this channel.
  void use(const ir::Index& channel);

 private:
  void find(const ir::Index& low, const ir::Index& high, const EachVector& each_vector);

  GroupKernel& kernel_;
  int node_;
  Window rows_, columns_;
  std::size_t row_axis_ = 0, column_axis_ = 0;
  ir::MemId scratch_ = -1;
  std::function<void(const ir::Index& p, const ir::Index& q)> beside_;
};

}  // namespace fusejit::scheduler
