// Random chains of views, and their gradients: what planning has to take whatever is stacked on what.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace fusejit::testing {

struct ViewOptions {
  int views = 12;
  std::int64_t most_elements = 600;  // of any value
  bool gradient = false;             // of the chain, with respect to its parameters
};

// The same seed and options give the same graph everywhere. Views of views, now and then an element-wise op, a
// reduction or an up-sampling between them.
ir::Graph random_views(std::uint64_t seed, const ViewOptions& options);

// `views` of one kind after the other, of which no two cancel or merge.
ir::Graph alternating_views(int views);

}  // namespace fusejit::testing
