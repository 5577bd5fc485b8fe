// What decides which values are stored, beside the bytes that it saves.
#pragma once

#include <cstddef>

namespace fusejit::scheduler::tuning {

// R10: an expression longer than this is cut, so that kernels stay readable and compile quickly.
inline constexpr int kMostOps = 96;
// An expression this long is not written into several kernels.
inline constexpr int kMostRepeatedOps = 24;
// Of vectors and numbers, such as a conversion: hidden behind what is read from memory. On CUDA so is a division or a
// root, and the compiler takes it out of a thread's loops.
inline constexpr int kMostOpsPerElement = 2;
// A view is stored where views of it would go on for longer, or would name its elements by a longer index than this:
// whatever is stacked on what, a kernel takes bounded work to make, and its bounds can be proven. A tile computes
// the index itself.
inline constexpr int kMostViews = 8;
inline constexpr int kMostAtoms = 16;
inline constexpr int kMostAtomsInTile = 8;

// An expression longer than this is not computed again for each panel of an anchor.
inline constexpr int kMostPrologueOps = 16;
// So far back it is looked whether a statistic comes from the values that it normalises.
inline constexpr std::size_t kMostLookedAt = 64;

}  // namespace fusejit::scheduler::tuning
