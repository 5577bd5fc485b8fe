// What loops are made with, whatever their schedules, and where a number is from: those of schedules are in
// scheduler/choose/tuning.h, those of CUDA's passes in scheduler/lower/cuda/tuning.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fusejit::scheduler::tuning {

// --- packing

inline constexpr std::int64_t kPackedRows = 16;         // read side by side: what a processor prefetches at once
inline constexpr std::int64_t kMostTapsOfSquares = 9;   // copies of what is turned
inline constexpr std::int64_t kLeastLinesOfTask = 256;  // of a block's, before tasks share it

// --- panels

inline constexpr std::int64_t kFewAccumulators = 16;  // with 28 of 32 registers LLVM 19 kept one on the stack
// More at once are a burst, which waits for the lines: 12 and 18 take 1.06 to 1.15 of the time of one for each step of
// the products, 3 and 5 take 0.96 to 0.98 (gradients of ResNet-50's 1x1 weights, Zen 5).
inline constexpr std::int64_t kMostLinesOfTile = 8;
// Vectors of a row that are computed side by side, and of a row that is cut into runs of those: in longer ones a run is
// a small part of a page. Rows of 4 to 16 vectors take 0.98 of the time of the products and the copy, of 32 1.05 (Zen
// 5).
inline constexpr std::int64_t kMostVectorsOfRun = 4, kMostVectorsInRuns = 16;

// --- sums of parts

inline constexpr std::int64_t kMostResultsOfTask = std::int64_t{4} << 20;  // bytes of a task's 16 MiB of scratch

// --- windows

// Scratch for maxima that several windows ask for, which leaves room in a second-level cache for what passes, and
// columns of pixels that are written as copies.
inline constexpr std::int64_t kMostBytesOfMaxima = 512 << 10, kMostColumnsOfMaxima = 4;
// Lines of the next windows that are fetched as copies, without a loop.
inline constexpr std::int64_t kMostFetchedLines = 8;
// Taps of a pooling that are copies, or terms of an average.
inline constexpr std::int64_t kUnrolledTaps = 4;
inline constexpr std::int64_t kMostEdgeCopies = 16;  // of a loop's body, for pixels at the edges
inline constexpr std::size_t kMostZeros = 3;  // parts of a gradient without products: a copy of the epilogue each

// --- rows

inline constexpr std::int64_t kUnrolledVectors = 4;

}  // namespace fusejit::scheduler::tuning
