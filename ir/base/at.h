// Nodes, groups and values have numbers that are ints, where -1 is none; at(i) is such a number as an index of a
// vector.
#pragma once

#include <cstddef>

namespace fusejit {

constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace fusejit
