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

using cuda::divisor_up_to;
using cuda::floor_power_of_two;
using cuda::kBlock;
using cuda::kWarp;
using ir::Binding;

class Chooser {
 public:
  Chooser(const Domain& domain, const DomainElements& elements) : d_(domain) {
    if (d_.axes.empty()) return;
    s_.vector = d_.axes.back().name, s_.lanes = elements.lanes;
    for (const DomainAxis& axis : d_.axes) {
      (axis.reduced ? reduced_ : kept_).push_back(axis.name);
      (axis.reduced ? terms_ : outputs_) *= axis.extent;
    }
  }

  Schedule run() {
    if (d_.axes.empty()) return s_;
    if (d_.sums.empty()) {
      share(std::min(kBlock, outputs_ / s_.lanes + (outputs_ % s_.lanes != 0 ? 1 : 0)));
    } else if (!d_.axes.back().reduced) {
      columns();
    } else if (terms_ < tuning::kFewTerms) {
      s_.lanes = 1;
      if (!kept_.empty()) share(std::min(outputs_, kBlock));
      s_.inner = {{reduced_}};
    } else {
      row();
    }
    return s_;
  }

 private:
  // A step over these axes counts elements of one alone, else combinations.
  std::int64_t unit(const std::vector<std::string>& axes) const {
    return axes == std::vector{s_.vector} ? s_.lanes : 1;
  }
  void share(std::int64_t threads) {
    s_.tasks.push_back({kept_, threads * unit(kept_), 0, Binding::grid_x});
    s_.tasks.push_back({kept_, 0, 0, Binding::block_x});
  }
  // Parts of `items`, each of which so many threads take in turn.
  void sum(std::int64_t items, std::int64_t threads, std::int64_t blocks, Binding bound) {
    const cuda::Partition spread = cuda::partition_for_device(items, threads, blocks, tuning::kLeastStepsOfThread);
    if (spread.parts > 1)
      s_.tasks.insert(s_.tasks.begin(), {reduced_, spread.chunk * unit(reduced_), 0, Binding::grid_y});
    if (threads > 1) s_.inner.push_back({reduced_, 0, threads, bound});
    if (!reduced_.empty()) s_.inner.push_back({reduced_});
  }

  void columns() {
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
                       threads = std::clamp<std::int64_t>(floor_power_of_two(std::max<std::int64_t>(1, items / 2)),
                                                          kWarp, kBlock);
    if (!kept_.empty()) s_.tasks.push_back({kept_, 0, 0, Binding::grid_x});
    sum(items, threads, outputs_, Binding::block_x);
  }

  const Domain& d_;
  std::vector<std::string> kept_, reduced_;
  std::int64_t terms_ = 1, outputs_ = 1;
  Schedule s_;
};

}  // namespace

std::vector<Schedule> cuda_candidates(const Domain& domain, const DomainElements& elements) {
  return {Chooser(domain, elements).run()};
}

}  // namespace fusejit::scheduler
