// WinogradLoops: what both forms of Winograd share. A patch is 4 x 4 results, 4 x 1 where one axis has no taps; a task
// has those of some images and rows, and what lies in a patch of an operand is taken to the points, in lanes along
// another dim.
#pragma once

#include "scheduler/lower/nest/build.h"
#include "scheduler/lower/winograd/transform.h"
#include "scheduler/schedule/winograd.h"

namespace fusejit::scheduler {

class WinogradLoops : public ContractionLoops {
 protected:
  // What is at hand of a dim that loops share out.
  struct Share {
    ir::Index base = 0;
    std::int64_t size = 1;
    bool ends_early = false;  // in the last one
  };
  // An operand whose patches are taken to the points.
  struct Source {
    const ir::ContractionOperand* of;
    int value;
    std::size_t rows, columns;  // logical dims of it
    bool of_results;            // as many elements of a patch as results, not what windows read for those
    int lanes;                  // dim
    ir::Index first;            // of it, and how many
    std::int64_t count;
  };

  WinogradLoops(GroupKernel& kernel, Accumulators& accumulators, const ScheduledContraction& scheduled);

  ir::Index at(int d) const override { return d == vector_ ? vector_at_ : at_[static_cast<std::size_t>(d)]; }
  void with_element(int d, const ir::Index& element, const std::function<void()>& body) override;
  void set(int d, const ir::Index& to);
  std::int64_t extent(int d) const { return d < 0 ? 1 : contraction_dim(d).extent; }
  Share& share(int d) { return shares_[static_cast<std::size_t>(d)]; }
  const Share& share(int d) const { return shares_[static_cast<std::size_t>(d)]; }
  // Of one turn of a loop; a task's loops, then those inside of it, leave the least.
  std::int64_t step_of(const ScheduledLoop& loop) const;
  void over_shares(const std::vector<ScheduledLoop>& loops, bool tasks, const std::function<void()>& body);
  // How many parts the loops of tasks make of what is summed up over patches.
  std::int64_t parts_of_tasks() const;
  // Images and rows: of results they are what an epilogue sums up, of weights what all is summed up over.
  bool cuts_sums(int d) const { return d != dims_.k && d != dims_.c; }

  std::int64_t images() const { return dims_.n < 0 ? 1 : share(dims_.n).size; }
  std::int64_t patch_rows() const;
  std::int64_t patch_columns() const;
  std::int64_t patches() const { return images() * patch_rows() * patch_columns(); }
  // Neighbouring points along each axis that meet one point of the weights.
  struct PointsOfWeights {
    ir::Index i, j;
    std::int64_t rows = 1, columns = 1;
  };
  void over_weights(const std::function<void(const ir::Index& weights, const PointsOfWeights& of)>& body);
  void over_points(const PointsOfWeights& of, const std::function<void(const ir::Index& point)>& body);
  // In ascending order of images, rows and columns; n, p and q are at the patch's first element.
  void over_patches(const std::function<void(const ir::Index& patch)>& body);
  // What keeps the image at hand, the row and the column within those that there are.
  std::vector<ir::Compare> is_image() const;
  std::vector<ir::Compare> is_result() const;

  // `count` blocks of outputs from this one on, counted from it; the last ones of all may be fewer.
  void over_blocks(const ir::Index& first, std::int64_t count, const std::function<void(const ir::Index& block)>& body);

  static constexpr std::int64_t kLine = 16;  // elements
  // Scratch with rows of so many elements for each point. Points are a line more than their rows apart: those of one
  // element are written and read together, and would share a few sets of a cache where rows are a power of two.
  struct Points {
    ir::MemId memory = -1;
    std::int64_t width = 0;
    std::vector<ir::Index> at(const ir::Index& point, const ir::Index& row, const ir::Index& column) const {
      return {point, row * width + column};
    }
  };
  Points declare_points(std::int64_t points, std::int64_t rows, std::int64_t width, bool zero = false);

  // A row a patch.
  void to_points(const Points& to, const Source& source);
  // So many rows and columns of `from(i, j)` by `along` the one axis, then the other; rows of what that gives by `to`.
  using Transform = std::function<std::vector<ir::Arg>(const WinogradAxis& axis, const std::vector<ir::Arg>&)>;
  void both_axes(std::int64_t rows, std::int64_t columns, const Transform& along,
                 const std::function<ir::Arg(const ir::Index& i, const ir::Index& j)>& from,
                 const std::function<void(const ir::Index& i, const std::vector<ir::Arg>& row)>& to);
  void declare_half();

  const WinogradDims dims_;
  const WinogradTransform transform_;
  ir::Index lane_ = 0, part_ = 0;

 private:
  std::vector<ir::Compare> inside(const Source& source, std::size_t axis, const ir::Index& first,
                                  const ir::Index& last) const;
  // The first elements of the patch at hand; there may be no dim of images.
  void set_patch(const ir::Index& image, const ir::Index& row, const ir::Index& column);
  void move(const Source& source, const ir::Index& i, const ir::Index& j);
  ir::Arg element(const Source& source, bool is_inside);
  void fetch_ahead(const Source& source, const ir::Index& patch, const ir::Index& in_source, const ir::Index& i,
                   const ir::Index& j);

  std::vector<Share> shares_;       // by dim
  std::vector<ir::Index> at_;       // by dim
  ir::Index row_ = 0, column_ = 0;  // of the patch at hand
  ir::MemId half_ = -1;             // a patch that is transformed along one axis, in lanes
};

}  // namespace fusejit::scheduler
