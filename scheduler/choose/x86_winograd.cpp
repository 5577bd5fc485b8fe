// Where a convolution of 3 x 3 taps goes through Winograd's F(4x4, 3x3), and with which patches a task.
#include <algorithm>

#include "scheduler/choose/roles.h"
#include "scheduler/choose/tuning.h"
#include "scheduler/schedule/check_winograd.h"
#include "scheduler/schedule/winograd.h"

namespace fusejit::scheduler {
namespace {

class WinogradChooser {
 public:
  WinogradChooser(const ir::Contraction& c, const WinogradDims& dims, const Target& target, const FusedWork& fused)
      : c_(c), dims_(dims), target_(target) {
    const std::int64_t outputs = extent(dims.k);
    s_.winograd = kWinogradResults;
    s_.vector = name(dims.k), s_.lanes = target.lanes32();
    s_.vectors = outputs > s_.lanes ? 2 : 1;
    s_.pack_b = s_.block();
    if (const std::int64_t unrolled = std::min(extent(dims.c), tuning::kUnrolledChannels); unrolled > 1)
      s_.unroll = {{{name(dims.c)}, unrolled}};
    s_.stream = fused.result_bytes >= target.l3_bytes / 2;
    share_out();
    hold();
  }

  const Schedule& schedule() const { return s_; }

  // Estimated cycles of a core, one by the other.
  bool pays() const {
    const auto at = [](std::int64_t n) { return static_cast<double>(n); };
    const double inputs = at(ir::ceil_divide<std::int64_t>(extent(dims_.c), s_.lanes)),
                 results = at(ir::ceil_divide<std::int64_t>(extent(dims_.k), s_.lanes));  // vectors of them
    const double products = at(extent(dims_.c)) * results / target_.fma_per_cycle / tuning::kPartOfPeak;
    const double direct =
        kWinogradTaps * kWinogradTaps * products * at(extent(dims_.n) * extent(dims_.p) * extent(dims_.q));
    const double points = kWinogradPoints * kWinogradPoints;
    const double weights = points * at(extent(dims_.c) * extent(dims_.k) * 4) / at(patches_of_task());
    const double patch = points * products + weights / tuning::kWeightBytesPerCycle +
                         tuning::kWinogradInputCycles * inputs + tuning::kWinogradResultCycles * results;
    return patch * at(extent(dims_.n) * rows() * columns()) < tuning::kWinogradGain * direct;
  }

 private:
  const std::string& name(int d) const { return c_.dims[static_cast<std::size_t>(d)].name; }
  std::int64_t extent(int d) const { return d < 0 ? 1 : c_.dims[static_cast<std::size_t>(d)].extent; }
  std::int64_t rows() const { return ir::ceil_divide(extent(dims_.p), kWinogradResults); }
  std::int64_t columns() const { return ir::ceil_divide(extent(dims_.q), kWinogradResults); }
  std::int64_t patches_of_task() const { return images_ * rows_ * columns(); }

  // Rows of patches or whole images: as many as L2 holds at all points, but enough that the weights, which every task
  // reads, are read for many. Where that leaves few tasks, outputs are shared out too, whose tasks take the same inputs
  // to the points again.
  void share_out() {
    const std::int64_t points = kWinogradPoints * kWinogradPoints;
    const std::int64_t fit = target_.l2_bytes / (points * 4 * (extent(dims_.c) + s_.block())),
                       wanted = std::clamp(fit, tuning::kLeastPatches, tuning::kMostPatches);
    rows_ = std::clamp<std::int64_t>(wanted / columns(), 1, rows());
    rows_ = ir::ceil_divide(rows(), ir::ceil_divide(rows(), rows_));
    if (rows_ == rows()) images_ = std::clamp<std::int64_t>(wanted / (rows() * columns()), 1, extent(dims_.n));
    while (images_ > 1 && extent(dims_.n) % images_ != 0) --images_;
    if (images_ < extent(dims_.n)) s_.tasks.push_back({{name(dims_.n)}, images_ == 1 ? 0 : images_});
    if (rows_ < rows()) s_.tasks.push_back({{name(dims_.p)}, rows_ * kWinogradResults});
    const std::int64_t tasks = ir::ceil_divide(extent(dims_.n), images_) * ir::ceil_divide(rows(), rows_),
                       blocks = ir::ceil_divide(extent(dims_.k), s_.block());
    const std::int64_t shares = std::min(blocks / tuning::kLeastBlocks, ir::ceil_divide(tuning::kWinogradTasks, tasks));
    if (shares > 1) s_.tasks.push_back({{name(dims_.k)}, ir::ceil_divide(blocks, shares) * s_.block()});
  }

  // Patches in registers: of as many tiles as it takes, all of one size if it can be.
  void hold() {
    const std::int64_t registers = target_.vector_registers(),
                       most = std::min<std::int64_t>((registers - 2 - s_.vectors) / s_.vectors, tuning::kMostPixels),
                       patches = patches_of_task(), tiles = ir::ceil_divide(patches, most),
                       held = ir::ceil_divide(patches, tiles);
    Extent tile{{}, held};
    for (const int d : {dims_.n, dims_.p, dims_.q})
      if (d >= 0) tile.dims.push_back(name(d));
    s_.tile = {tile};
  }

  const ir::Contraction& c_;
  const WinogradDims dims_;
  const Target& target_;
  std::int64_t images_ = 1, rows_ = 1;  // of a task
  Schedule s_;
};

}  // namespace

std::optional<Schedule> x86_winograd(const ir::Contraction& c, const Target& target, const FusedWork& fused) {
  if (target.winograd == WinogradMode::off || fused.compute != DType::f32) return std::nullopt;
  const std::optional<WinogradDims> dims = winograd_dims(c);
  if (!dims || c.outputs() == 0 || c.terms() == 0) return std::nullopt;
  const WinogradChooser chooser(c, *dims, target, fused);
  if (!check_winograd(c, chooser.schedule()).empty()) return std::nullopt;
  if (target.winograd == WinogradMode::automatic && !chooser.pays()) return std::nullopt;
  return chooser.schedule();
}

}  // namespace fusejit::scheduler
