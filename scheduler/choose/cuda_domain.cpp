// Groups without an anchor on devices: neighbouring threads take neighbouring vectors. Reductions by where the last
// axis goes:
//   kept      neighbouring threads own neighbouring columns; rows of threads (block.y) share what is summed up
//   reduced   a block of threads owns a kept element and strides along its elements
//   few       a thread owns a kept element and walks its few elements
#include <algorithm>

#include "scheduler/choose/roles.h"
#include "scheduler/choose/tuning.h"
#include "scheduler/lower/cuda/threads.h"

namespace fusejit::scheduler {
namespace {

using cuda::floor_power_of_two;
using cuda::kBlock;
using cuda::kWarp;
using ir::Binding;

class CudaDomainChooser {
 public:
  CudaDomainChooser(const Domain& domain, const Target& target, const DomainElements& elements)
      : d_(domain), target_(target), elements_(elements) {
    if (d_.axes.empty()) return;
    s_.vector = d_.axes.back().name, s_.lanes = elements.lanes;
    for (const DomainAxis& axis : d_.axes) {
      (axis.reduced ? reduced_ : kept_).push_back(axis.name);
      (axis.reduced ? terms_ : outputs_) *= axis.extent;
    }
  }

  Schedule run() {
    if (d_.axes.empty()) return s_;
    if (d_.sums.empty() && elements_.after && like(*elements_.after)) return s_;
    if (d_.sums.empty()) {
      share(std::min(kBlock, outputs_ / s_.lanes + (outputs_ % s_.lanes != 0 ? 1 : 0)));
    } else if (!d_.axes.back().reduced) {
      columns();
    } else if (terms_ < tuning::kFewTerms) {
      s_.lanes = elements_.stores_bits ? s_.lanes : 1;
      if (!kept_.empty()) share(std::min(outputs_, kBlock));
      s_.inner = {{reduced_}};
    } else {
      row();
    }
    return s_;
  }

 private:
  // A block for each row, as the sums before have them: its threads take the row's vectors in turn.
  bool like(const Schedule& before) {
    const bool rows = before.tasks.size() == 1 && before.tasks[0].bound == Binding::grid_x && !before.inner.empty() &&
                      before.inner[0].bound == Binding::block_x;
    if (!rows || before.vector != s_.vector || d_.axis(s_.vector).extent % s_.lanes != 0) return false;
    Schedule like = s_;
    like.tasks = before.tasks, like.inner = before.inner;
    std::int64_t rounds = 1;
    for (const std::string& name : before.tasks[0].dims) {
      if (d_.find(name) < 0) return false;
      rounds *= d_.axis(name).extent;
    }
    if (elements_.stored_bytes * tuning::kValuesOfRound > rounds * tuning::kRoundOfBlock) return false;
    if (!check(d_, like, target_).empty()) return false;
    s_ = std::move(like);
    return true;
  }

  // A step over these axes counts elements of one alone, else combinations.
  std::int64_t unit(const std::vector<std::string>& axes) const {
    return axes == std::vector{s_.vector} ? s_.lanes : 1;
  }
  void share(std::int64_t threads) {
    s_.tasks.push_back({kept_, threads * unit(kept_), 0, Binding::grid_x});
    s_.tasks.push_back({kept_, 0, 0, Binding::block_x});
  }
  cuda::Partition parts_of_rows(std::int64_t items, std::int64_t threads, std::int64_t blocks) const {
    const std::int64_t most =
        std::clamp(blocks * items / (threads * tuning::kStepsOfRows), tuning::kBlocksOfSums, tuning::kBlocksOfRows);
    return cuda::partition_for_device(items, threads, blocks, tuning::kLeastStepsOfThread, most);
  }
  // As many blocks as run at once, and hardly fewer: with three sums of a gradient, 512 columns, 512 blocks took 113
  // us, 120 of them after all others, and 392 took 90; 528 in place of 448 equal ones 48.5 in place of 50.6 (H200).
  cuda::Partition parts_of_columns(std::int64_t items, std::int64_t threads, std::int64_t blocks) const {
    const std::int64_t most = tuning::kBlocksOfSums * blocks_together() / tuning::kBlocksTogether,
                       by_steps = std::max<std::int64_t>(1, items / (threads * tuning::kLeastStepsOfThread)),
                       parts = std::clamp<std::int64_t>(most / std::max<std::int64_t>(1, blocks), 1, by_steps);
    const cuda::Partition even = cuda::partition(items, threads, parts);
    return even.parts * 16 >= parts * 15 ? even : cuda::uneven_partition(items, threads, parts);
  }
  // Of 256 threads on a multiprocessor: what a thread keeps of moments, or of three sums, leaves room for fewer.
  std::int64_t blocks_together() const {
    return has_moments() || d_.sums.size() > 2 ? tuning::kBlocksTogether - 1 : tuning::kBlocksTogether;
  }
  bool has_moments() const {
    return std::any_of(d_.sums.begin(), d_.sums.end(),
                       [](const Domain::Sum& sum) { return sum.combiner == ir::Combiner::welford; });
  }

  // Parts of `items`, each of which so many threads take in turn.
  void sum(std::int64_t items, std::int64_t threads, std::int64_t blocks, Binding bound) {
    const cuda::Partition spread =
        bound == Binding::block_y ? parts_of_columns(items, threads, blocks) : parts_of_rows(items, threads, blocks);
    if (spread.parts > 1)
      s_.tasks.insert(s_.tasks.begin(), {reduced_, spread.chunk * unit(reduced_), 0, Binding::grid_y});
    if (threads > 1) s_.inner.push_back({reduced_, 0, threads, bound});
    if (!reduced_.empty()) s_.inner.push_back({reduced_});
  }

  void columns() {
    if (has_moments() && !elements_.stores_bits) s_.lanes = std::min(s_.lanes, tuning::kLanesOfMoments);
    const std::int64_t width = divisor_up_to(d_.axes.back().extent / s_.lanes, kWarp),
                       rows = std::min(floor_power_of_two(kBlock / width), floor_power_of_two(2 * terms_ - 1));
    if (width > 1) {
      share(width);
    } else {
      s_.tasks.push_back({kept_, 0, 0, Binding::grid_x});
    }
    sum(terms_, rows, outputs_ / s_.lanes / width, Binding::block_y);
  }

  void row() {
    const std::int64_t items = terms_ / s_.lanes,
                       steps = s_.lanes == 1 && outputs_ >= tuning::kBlocksOfRows ? tuning::kStepsWithoutVectors : 2,
                       threads = std::clamp<std::int64_t>(floor_power_of_two(std::max<std::int64_t>(1, items / steps)),
                                                          kWarp, kBlock);
    if (!kept_.empty()) s_.tasks.push_back({kept_, 0, 0, Binding::grid_x});
    sum(items, threads, outputs_, Binding::block_x);
  }

  const Domain& d_;
  const Target& target_;
  const DomainElements& elements_;
  std::vector<std::string> kept_, reduced_;
  std::int64_t terms_ = 1, outputs_ = 1;
  Schedule s_;
};

}  // namespace

std::vector<Schedule> cuda_candidates(const Domain& domain, const Target& target, const DomainElements& elements) {
  return {CudaDomainChooser(domain, target, elements).run()};
}

}  // namespace fusejit::scheduler
