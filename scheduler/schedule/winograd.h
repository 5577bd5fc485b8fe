// Winograd's minimal filtering F(4x4, 3x3): 4 x 4 neighbouring results of a window of 3 x 3 taps from 36 products for
// each channel instead of 144. What is read for them, 6 x 6 elements, and the taps are taken to 36 points, multiplied
// there and summed over channels, and the sums taken back (Lavin and Gray, "Fast Algorithms for Convolutional Neural
// Networks", arXiv:1509.09308; the points are 0, 1, -1, 2, -2 and infinity). With the gradients of 4 x 4 results in the
// place of taps it is F(3x3, 4x4) on the same points, whose sums over patches are the gradients of the taps.
#pragma once

#include <optional>

#include "ir/contraction.h"

namespace fusejit::scheduler {

inline constexpr std::int64_t kWinogradResults = 4;  // along each axis
inline constexpr std::int64_t kWinogradTaps = 3;
inline constexpr std::int64_t kWinogradPoints = kWinogradResults + kWinogradTaps - 1;

// Dims of a contraction by their part in the convolution that it is, or whose weights it is the gradient of.
struct WinogradDims {
  int n = -1;                         // images; -1: there is one
  int p = -1, q = -1;                 // results along rows, along columns
  int k = -1;                         // outputs
  int r = -1, s = -1;                 // taps
  int c = -1;                         // channels
  std::size_t rows = 0, columns = 0;  // logical dims of the first operand
  bool of_weights = false;            // the results are the taps, and images, rows and columns are summed up
};
// Nothing where there is no window of 3 x 3 taps, all side by side, over a plane of results of which the next reads the
// next elements.
std::optional<WinogradDims> winograd_dims(const ir::Contraction& contraction);

}  // namespace fusejit::scheduler
