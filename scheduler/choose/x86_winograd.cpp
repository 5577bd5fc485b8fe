// How a convolution of up to 3 x 3 taps goes through Winograd's minimal filtering, with which patches a task, and
// whether that pays.
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
    s_.winograd = kWinogradResults;
    s_.vector = name(dims.k), s_.lanes = target.lanes32();
    s_.vectors = extent(dims.k) > s_.lanes ? 2 : 1;
    s_.fetch = {{name(dims.q)}, dims.across.results()};
    dims.of_weights ? weights(fused) : results(fused);
  }

  const Schedule& schedule() const { return s_; }

  // Estimated cycles of a core, one by the other.
  bool pays() const {
    if (dims_.of_weights && sums_bytes(extent(dims_.c) / channel_shares_) > tuning::kSumsOfL2 * target_.l2_bytes)
      return false;
    const double direct = at(dims_.down.taps * dims_.across.taps) * products_of_point() / direct_rate() *
                          at(extent(dims_.n) * extent(dims_.p) * extent(dims_.q));
    const double cycles = cycles_ > 0 ? cycles_ : dims_.of_weights ? cycles_of_weights() : cycles_of_results();
    return cycles < tuning::kWinogradGain * direct;
  }

 private:
  // Products that the direct algorithm has for one of f32: pairs of bf16 in a dot product, rows of them in a matrix
  // unit.
  double direct_rate() const {
    if (c_.a.dtype != DType::bf16 || c_.b.dtype != DType::bf16) return 1;
    return target_.isa == Isa::x86_amx ? tuning::kMatrixProducts : target_.dot2_is_faster ? 2 : 1;
  }

  // All channels with all outputs.
  double products_of_point() const {
    return at(extent(dims_.c)) * vectors(extent(dims_.k)) / target_.fma_per_cycle / tuning::kPartOfPeak;
  }
  double products_of_patch() const { return at(dims_.points()) * products_of_point(); }
  // What a transform takes of so many points, for one of the 6 x 6 of F(4x4, 3x3).
  static double of_all(std::int64_t points) { return at(points) / 36; }
  double patches_of_all() const { return at(extent(dims_.n) * rows() * columns()); }
  // The transformed weights come from memory, and again for the patches that are at hand together: from a cache, if one
  // holds them.
  double cycles_of_results() const {
    const double again = bytes_of_weights() <= target_.l3_bytes ? tuning::kWeightBytesFromCache
                                                                : tuning::kWeightBytesFromMemory,
                 weights = at(bytes_of_weights());
    return patches_of_all() *
               (products_of_patch() +
                of_all(dims_.points()) * (tuning::kWinogradInputCycles * vectors(extent(dims_.c)) * at(shares_) +
                                          tuning::kWinogradResultCycles * vectors(extent(dims_.k)))) +
           weights / tuning::kWeightBytesFromMemory + weights * (patches_of_all() / at(patches_at_once()) - 1) / again;
  }
  // The sums at all points come and go once for the patches that are at hand together; each part's are taken to taps.
  double cycles_of_weights() const {
    const double sums = at(bytes_of_weights()), outputs = vectors(extent(dims_.k)),
                 rate = sums_stay_in_l2() ? tuning::kSumBytesFromL2 : tuning::kSumBytes;
    return patches_of_all() * (products_of_patch() + 2 * sums / at(patches_at_once()) / rate +
                               of_all(dims_.points()) * tuning::kWinogradGradientCycles *
                                   (vectors(extent(dims_.c)) * at(shares_) + outputs * at(channel_shares_))) +
           of_all(dims_.weight_points()) * tuning::kWinogradTapsCycles * at(extent(dims_.c)) * outputs * at(parts_);
  }

  static double at(std::int64_t n) { return static_cast<double>(n); }
  double vectors(std::int64_t n) const { return at(ir::ceil_divide<std::int64_t>(n, s_.lanes)); }
  const std::string& name(int d) const { return c_.dims[static_cast<std::size_t>(d)].name; }
  std::int64_t extent(int d) const { return d < 0 ? 1 : c_.dims[static_cast<std::size_t>(d)].extent; }
  std::int64_t rows() const { return ir::ceil_divide(extent(dims_.p), dims_.down.results()); }
  std::int64_t columns() const { return ir::ceil_divide(extent(dims_.q), dims_.across.results()); }
  std::int64_t blocks() const { return ir::ceil_divide(extent(dims_.k), s_.block()); }
  std::int64_t patches_at_once() const { return images_ * rows_ * columns(); }
  std::int64_t bytes_of_weights() const {
    return dims_.weight_points() * extent(dims_.c) * extent(dims_.k) * bytes(DType::f32);
  }

  // A weight gradient's sums stay in L2, however many weights there are.
  bool weights_come_from_memory() const { return !dims_.of_weights && bytes_of_weights() > target_.l3_bytes; }

  // As many as L2 holds at all points beside each other, but enough that what is as large as the weights, and passes by
  // once for them, is little.
  std::int64_t patches_of_l2(std::int64_t lanes_of_patch) const {
    return std::clamp(target_.l2_bytes / (dims_.points() * 4 * lanes_of_patch), tuning::kManyPatches,
                      tuning::kMostPatches);
  }
  // Rows of so many patches, or whole images of `most`; no fewer than `least`, for which the weights are read once.
  void take_patches(std::int64_t wanted, std::int64_t least, std::int64_t most) {
    rows_ = without_waste(std::clamp<std::int64_t>(wanted / columns(), 1, rows()), least);
    if (rows_ == rows()) images_ = std::clamp<std::int64_t>(wanted / (rows() * columns()), 1, most);
    // Where no cache holds the weights, rather more.
    while (most % images_ != 0) images_ += weights_come_from_memory() ? 1 : -1;
  }
  // So many rows, or fewer whose blocks fill the image better. Where all of those leave much of the last block empty,
  // more: what leaves L2 costs less than products for nothing.
  std::int64_t without_waste(std::int64_t wanted, std::int64_t least) const {
    const auto in_blocks = [&](std::int64_t count) { return ir::ceil_divide(rows(), count) * count; };
    std::int64_t best = wanted;
    while (best < rows() && best * columns() < least) ++best;
    for (std::int64_t fewer = best - 1; fewer * columns() >= least; --fewer)
      if (in_blocks(fewer) < in_blocks(best)) best = fewer;
    for (std::int64_t more = best + 1; more <= rows() && more * columns() <= tuning::kMostPatches; ++more)
      if (at(in_blocks(more)) < tuning::kWasteOfPatches * at(in_blocks(best))) best = more;
    return best;
  }

  void results(const FusedWork& fused) {
    s_.pack_b = s_.block();
    if (const std::int64_t unrolled = std::min(extent(dims_.c), tuning::kUnrolledChannels); unrolled > 1)
      s_.unroll = {{{name(dims_.c)}, unrolled}};
    s_.stream = fused.result_bytes >= target_.l3_bytes / 2;
    waits_for_l2(target_) && 2 * bytes_of_weights() > target_.l2_bytes ? weights_pass() : patches_pass();
    if (images_ < extent(dims_.n)) s_.tasks.push_back({{name(dims_.n)}, images_ == 1 ? 0 : images_});
    if (rows_ < rows()) s_.tasks.push_back({{name(dims_.p)}, rows_ * dims_.down.results()});
    share_out_outputs(ir::ceil_divide(blocks(), shares_));
    Extent tile{{}, held(patches_at_once())};
    for (const int d : {dims_.n, dims_.p, dims_.q})
      if (d >= 0) tile.dims.push_back(name(d));
    s_.tile = {tile};
  }

  // Where the patches are few tasks, outputs are shared out too; their tasks take the same inputs to the points again.
  void patches_pass() {
    const bool leave_l2 = bytes_of_weights() > tuning::kStreamedWeightsOfL2 * target_.l2_bytes;
    if (weights_come_from_memory())
      take_patches(patches_of_l2(extent(dims_.c) + s_.block()), tuning::kManyPatches, extent(dims_.n));
    else
      take_patches(tuning::kMostPixels, leave_l2 ? tuning::kMostPixels : tuning::kLeastPatches, extent(dims_.n));
    const std::int64_t tasks = ir::ceil_divide(extent(dims_.n), images_) * ir::ceil_divide(rows(), rows_);
    shares_ =
        std::clamp<std::int64_t>(blocks() / tuning::kLeastBlocks, 1, ir::ceil_divide(tuning::kWinogradTasks, tasks));
  }

  // What a task has: rows of patches of an image, or several images; a share of the outputs, so many blocks of which
  // meet its patches together.
  struct Blocking {
    std::int64_t rows = 1, images = 1, shares = 1, together = 1;
    double cycles = 0;
  };
  // Weights that L2 does not hold come from an L3 that is far, once for a task's patches, fetched ahead. Many patches,
  // though what they read may leave L2 too.
  void weights_pass() {
    const Blocking best = fewest_cycles();
    rows_ = best.rows, images_ = best.images, shares_ = best.shares, cycles_ = best.cycles;
    if (best.together > 1) s_.outer = {{{name(dims_.k)}, best.together * s_.block()}};
    s_.fetch_packed = weights_leave_l2(best, patches_at_once()) > 0;
  }
  // Of as many tasks as there should be, or of half as many where those take much less. Where a row of patches is too
  // long for one, no schedule is legal.
  Blocking fewest_cycles() const {
    for (std::int64_t tasks = large_tasks(target_); tasks > 0; tasks /= 2) {
      const std::optional<Blocking> enough = fewest_cycles(tasks), fewer = fewest_cycles(tasks / 2);
      if (!enough) continue;
      return fewer && enough->cycles > tuning::kWorthOfWeightTasks * fewer->cycles ? *fewer : *enough;
    }
    return {};
  }
  std::optional<Blocking> fewest_cycles(std::int64_t least_tasks) const {
    std::optional<Blocking> best;
    for (Blocking b{.rows = 1}; b.rows <= rows(); ++b.rows) {
      for (b.images = 1; b.images <= (b.rows == rows() ? extent(dims_.n) : 1); ++b.images) {
        const std::int64_t patches = b.images * b.rows * columns(),
                           tasks = ir::ceil_divide(extent(dims_.n), b.images) * ir::ceil_divide(rows(), b.rows);
        if (patches > std::max(tuning::kMostPatches, columns())) break;
        for (b.shares = 1; b.shares <= blocks(); b.shares *= 2) {
          if (blocks() % b.shares != 0 || tasks * b.shares < least_tasks) continue;
          for (b.together = 1; b.together <= tuning::kWeightBlocksTogether; b.together *= 2) {
            if (blocks() / b.shares % b.together != 0 ||
                inputs_bytes(patches) + sums_of_blocks(b, patches) > kMostWinogradScratch)
              break;
            b.cycles = cycles_of(b, patches, tasks);
            if (!best || b.cycles < best->cycles) best = b;
          }
        }
      }
    }
    return best;
  }
  std::int64_t inputs_bytes(std::int64_t patches) const {
    return dims_.points() * patches * ir::ceil_divide<std::int64_t>(extent(dims_.c), s_.lanes) * s_.lanes *
           bytes(DType::f32);
  }
  std::int64_t sums_of_blocks(const Blocking& b, std::int64_t patches) const {
    return dims_.points() * patches * b.together * s_.block() * bytes(DType::f32);
  }
  // Of the weights, as many bytes as L2 has no room for beside a task's patches and their sums.
  double weights_leave_l2(const Blocking& b, std::int64_t patches) const {
    const std::int64_t room =
        std::max<std::int64_t>(target_.l2_bytes - inputs_bytes(patches) - sums_of_blocks(b, patches), 0);
    return std::max(at(bytes_of_weights()) - tuning::kPartOfRoom * at(room), 0.0);
  }
  double cycles_of(const Blocking& b, std::int64_t patches, std::int64_t tasks) const {
    const double all = at(patches * tasks), inputs = at(inputs_bytes(patches));
    // Inputs at all points are written once a share and read once for each blocks that meet them together.
    const double leave = std::clamp(inputs / (tuning::kInputsOfL2 * at(target_.l2_bytes)) - 1, 0.0, 1.0),
                 read = leave * inputs * at(tasks * (b.shares + blocks() / b.together)),
                 fetched = at(bytes_of_weights()) + weights_leave_l2(b, patches) * at(tasks - 1);
    return all * (products_of_patch() +
                  of_all(dims_.points()) * (tuning::kPassInputCycles * vectors(extent(dims_.c)) * at(b.shares) +
                                            tuning::kPassResultCycles * vectors(extent(dims_.k)))) +
           fetched / tuning::kFetchedBytesPerCycle + read / tuning::kReadBytesPerCycle;
  }

  // Tasks have few outputs, so that the sums at all points stay in a cache, and then images.
  void weights(const FusedWork& fused) {
    share_out_outputs(std::min(blocks(), blocks_of_weights()));
    share_out_channels();
    const std::int64_t images = ir::ceil_divide(
        extent(dims_.n), std::min(extent(dims_.n), ir::ceil_divide(large_tasks(target_), shares_ * channel_shares_)));
    parts_ = ir::ceil_divide(extent(dims_.n), images);
    take_patches(patches_of_weights(), tuning::kManyPatches, images);
    if (parts_ > 1) s_.tasks.insert(s_.tasks.begin(), {{name(dims_.n)}, images == 1 ? 0 : images});
    if (images_ < images) s_.outer.push_back({{name(dims_.n)}, images_ == 1 ? 0 : images_});
    if (rows_ < rows()) s_.outer.push_back({{name(dims_.p)}, rows_ * dims_.down.results()});
    const std::int64_t channels = extent(dims_.c) / channel_shares_;
    const bool wide = has_wide_tiles();
    if (wide) s_.vectors = tuning::kWideTile;
    s_.tile = {{{name(dims_.c)}, held(channels, wide ? tuning::kWideTile : tuning::kFewPixels)}};
    s_.combine = {name(extent(dims_.c) < s_.lanes ? dims_.k : dims_.c)};
    if (!fused.lie_together.empty()) {
      s_.combine.clear();
      for (const int d : fused.lie_together) s_.combine.push_back(name(d));
    }
  }

  // Many outputs, for which the inputs are taken to the points once, where there are tasks enough without.
  std::int64_t blocks_of_weights() const {
    const std::int64_t many = tuning::kOutputsOfWeights / s_.block();
    const bool enough = ir::ceil_divide(blocks(), many) * extent(dims_.n) >= large_tasks(target_);
    return waits_for_l2(target_) || !enough ? tuning::kBlocksOfWeights : many;
  }
  // Where L1 waits for L2, as many as that keeps with the sums.
  std::int64_t patches_of_weights() const {
    const std::int64_t channels = extent(dims_.c) / channel_shares_, outputs = extent(dims_.k) / shares_;
    if (!waits_for_l2(target_)) return patches_of_l2(channels + outputs);
    const auto room = static_cast<std::int64_t>(tuning::kPatchesOfL2 * at(target_.l2_bytes)) - sums_bytes(channels);
    return std::clamp<std::int64_t>(room / (dims_.points() * 4 * (channels + outputs)), 1, tuning::kMostPatches);
  }

  // A tile as high as it is wide loads eight registers for sixteen products in place of ten, but goes over the sums by
  // longer pieces: better where they stay in L2 with the patches.
  bool has_wide_tiles() const {
    const std::int64_t outputs = extent(dims_.k) / shares_;
    return target_.vector_registers() >= 32 && outputs % (tuning::kWideTile * s_.lanes) == 0 && sums_stay_in_l2();
  }
  bool sums_stay_in_l2() const {
    const std::int64_t channels = extent(dims_.c) / channel_shares_, outputs = extent(dims_.k) / shares_,
                       together = sums_bytes(channels) + dims_.points() * patches_at_once() * (channels + outputs) * 4;
    return at(together) <= tuning::kSumsAndPatchesOfL2 * at(target_.l2_bytes);
  }
  // Of so many channels and a task's outputs.
  std::int64_t sums_bytes(std::int64_t channels) const {
    return dims_.weight_points() * channels * ir::ceil_divide(extent(dims_.k), shares_) * bytes(DType::f32);
  }
  // Channels by halves, until their sums stay in L2; each half takes the gradients of its outputs to the points again.
  void share_out_channels() {
    std::int64_t channels = extent(dims_.c);
    const double most = waits_for_l2(target_)                    ? tuning::kSumsInLargeL2
                        : dims_.points() > dims_.weight_points() ? tuning::kSumsOfSeveralPoints
                                                                 : tuning::kSumsInL2;
    while (at(sums_bytes(channels)) > most * at(target_.l2_bytes) && channels % (2 * s_.lanes) == 0) channels /= 2;
    channel_shares_ = extent(dims_.c) / channels;
    if (channel_shares_ > 1) s_.tasks.push_back({{name(dims_.c)}, channels});
  }

  // So many blocks of outputs a task.
  void share_out_outputs(std::int64_t of_task) {
    shares_ = ir::ceil_divide(blocks(), of_task);
    if (shares_ > 1) s_.tasks.push_back({{name(dims_.k)}, of_task * s_.block()});
  }

  // As many tiles as it takes, all of one size if it can be. One element less for taps along one axis, of which LLVM
  // otherwise spills a sum.
  std::int64_t held(std::int64_t count, std::int64_t wanted = tuning::kMostPixels) const {
    const std::int64_t one_axis = dims_.down.taps == 1 || dims_.across.taps == 1 ? 1 : 0;
    const std::int64_t most =
        std::min<std::int64_t>((target_.vector_registers() - 2 - s_.vectors) / s_.vectors - one_axis, wanted);
    return ir::ceil_divide(count, ir::ceil_divide(count, most));
  }

  const ir::Contraction& c_;
  const WinogradDims dims_;
  const Target& target_;
  std::int64_t images_ = 1, rows_ = 1;                        // of patches at once
  std::int64_t shares_ = 1, channel_shares_ = 1, parts_ = 1;  // of outputs, channels, images: tasks
  double cycles_ = 0;                                         // where weights pass
  Schedule s_;
};

}  // namespace

std::optional<WinogradCandidate> x86_winograd(const ir::Contraction& c, const Target& target, const FusedWork& fused) {
  if (target.winograd == WinogradMode::off || fused.compute != DType::f32) return std::nullopt;
  const std::optional<WinogradDims> dims = winograd_dims(c);
  if (!dims || c.outputs() == 0 || c.terms() == 0) return std::nullopt;
  const WinogradChooser chooser(c, *dims, target, fused);
  if (!check_winograd(c, chooser.schedule()).empty()) return std::nullopt;
  return WinogradCandidate{chooser.schedule(), target.winograd != WinogradMode::automatic || chooser.pays()};
}

}  // namespace fusejit::scheduler
