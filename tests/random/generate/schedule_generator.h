// Anchors and schedules made up: convolutions, their gradients and matrix products, small and odd, with what may follow
// them in one kernel, and schedules for them, most of which are legal.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "scheduler/plan.h"
#include "scheduler/schedule/schedule.h"

namespace fusejit::testing {

class Random {
 public:
  explicit Random(std::uint64_t seed) : bits_(seed) {}
  std::int64_t from(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(bits_);
  }
  bool chance(int percent) { return from(1, 100) <= percent; }
  template <class T>
  const T& of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(from(0, static_cast<std::int64_t>(list.size()) - 1))];
  }
  template <class T>
  void shuffle(std::vector<T>& list) {
    for (std::size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[static_cast<std::size_t>(from(0, static_cast<std::int64_t>(i) - 1))]);
  }

 private:
  std::mt19937_64 bits_;
};

// The text of a graph %a, %b, %side, %bias -> anchor and epilogue, in `dtype`; some compute their first operand, weight
// gradients either or both; half of them have casts and views around the anchor.
std::string random_anchor(Random& random, const std::string& dtype = "f32");
// The same: a convolution that minimal filtering computes, or a gradient of it, by itself or with what may follow it.
std::string random_small_window(Random& random, const std::string& dtype = "f32");
// The same: a convolution, a gradient of it or a product with as many channels as networks have, and few pixels.
std::string random_anchor_of_many_channels(Random& random, const std::string& dtype);
// The same: a weight gradient of 1 x 1 taps and stride 1, whose operands may be exchanged.
std::string random_product_of_images(Random& random, const std::string& dtype);
// The same: a weight gradient whose channels and outputs are whole tiles of a matrix unit, of an even number of images.
std::string random_weight_gradient_of_tiles(Random& random);

enum class Around { everything, views_of_results };
// The text of the same graph with casts and views in it: operands are read through a cast or a view of a parameter of
// their name, results become others by up to four steps, some of which are summed. Sums and the bias stay as they are.
std::string with_casts_and_views(Random& random, const std::string& graph, Around what = Around::everything);

// Loops, tiles and vectors drawn without much thought; dim and number of the lanes are those of `chosen`.
scheduler::Schedule random_schedule(Random& random, const ir::Contraction& contraction,
                                    const scheduler::Schedule& chosen);
// This schedule with dot2 over the taps of a window that moves by pairs, if there is one.
scheduler::Schedule with_pairs_of_taps(Random& random, const ir::Contraction& contraction,
                                       const scheduler::Schedule& of);
// This schedule with its products in a matrix unit, if the last dim is one of runs of terms.
scheduler::Schedule in_matrix_unit(Random& random, const ir::Contraction& contraction, const scheduler::Schedule& of);
// A weight gradient's schedule in a matrix unit with other tasks, tiles and panels.
scheduler::Schedule shared_out_otherwise(Random& random, const ir::Contraction& contraction,
                                         const scheduler::Schedule& of);
// The same for Winograd: rows, images and outputs of a task, patches and vectors of a tile.
scheduler::Schedule random_winograd(Random& random, const ir::Contraction& contraction,
                                    const scheduler::Schedule& chosen);
// The same for a device: loops over one dim or several at once, bound to axes of grid and blocks.
scheduler::Schedule random_cuda_schedule(Random& random, const ir::Contraction& contraction,
                                         const scheduler::Schedule& chosen);
// The same with panels that the threads of a block share.
scheduler::Schedule random_shared_panels(Random& random, const ir::Contraction& contraction,
                                         const scheduler::Schedule& chosen);

}  // namespace fusejit::testing
