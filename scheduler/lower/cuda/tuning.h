// What the passes of this folder are tuned with, and where each number is from: GPUs that the kernels ran on, or what
// ptxas said of them. Those of schedules are in scheduler/choose/tuning.h.
#pragma once

#include <cstdint>

namespace fusejit::scheduler::cuda {

// From so many words of 32 bits of locals on a thread holds a tile.
inline constexpr std::int64_t kTileWords = 24;
// Elements that one round loads, from which on it is not left to the compiler.
inline constexpr std::int64_t kLoadedElements = 16;
// Words in flight that are enough where a thread holds little, and copies at most: sums of a gradient that read 8 bytes
// each of three arrays took 200 us in one copy, 175 in two, and no less in four (H200); of two, 37, 32 and 30.
inline constexpr std::int64_t kEnoughWords = 16, kMostCopies = 4;
// Over a tile: words of a round that are enough, and of all copies with the tile. A depthwise convolution's three
// columns of taps, or four pixels of its weight gradient, in 16 bits, are in flight at once, in 122 and 86 registers
// (0.8 of the time); two columns in f32 spilled.
inline constexpr std::int64_t kEnoughOverTile = 24, kWordsOfTile = 120;
// Words in flight at once where the compiler would make one copy a round, and instructions up to which it does: four
// times as many where a copy knows its quotients.
inline constexpr std::int64_t kInFlightWords = 64, kShort = 512, kOfQuotients = 4;
inline constexpr std::int64_t kManyTrips = 1 << 20;

// Vectors of a panel of the second operand that a thread has at hand, one a term: 16 bytes of a row of the first. Of
// two vectors of outputs half as many terms: of four ptxas spilled 16 to 48 bytes (sm_90).
inline constexpr std::int64_t kVectorsAtHand = 4;
// Cells of a panel that a thread copies without a loop, loads of all of them in flight.
inline constexpr std::int64_t kMostCopiedCells = 4;
// Words of all loads and of the addresses of what they read: with more of them ptxas spills to save a few registers.
inline constexpr std::int64_t kManyAtOnce = 72;
// Blocks of fewer threads: a multiprocessor runs out of places for blocks first, registers are saved for nothing.
inline constexpr std::int64_t kSmallBlock = 128;
// Small tiles and trees wait for memory, and more threads hide that.
inline constexpr std::int64_t kFewWords = 32, kTreeWords = 48;
inline constexpr int kMany = 128;              // a tile with its loads in flight
inline constexpr int kFew = 80, kFewOdd = 96;  // of blocks of 256 threads; odd shapes need more, for indices

// Parts of a thread, before more threads share an element's, and rows of them at most.
inline constexpr std::int64_t kLeastParts = 8, kMostRows = 32;

}  // namespace fusejit::scheduler::cuda
