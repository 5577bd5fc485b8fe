// Winograd's minimal filtering, of both axes of a window: F(4, 3), F(4, 2), and of every other element F(4, 3) as the
// two of F(4, 2) over even elements and one product for each of the odd ones. With F(4x4, 3x3) 4 x 4 neighbouring
// results take 36 products for each channel instead of 144. What is read for them, 6 x 6 elements, and the taps are
// taken to 36 points, multiplied there and summed over channels, and the sums taken back (Lavin and Gray, "Fast
// Algorithms for Convolutional Neural Networks", arXiv:1509.09308; the points of three taps are 0, 1, -1, 2, -2 and
// infinity, of two 0, 1, -1, 2 and infinity). With the gradients of 4 x 4 results in the place of taps it is
// F(3x3, 4x4) on the same points, whose sums over patches are the gradients of the taps.
#pragma once

#include <optional>

#include "ir/contraction.h"

namespace fusejit::scheduler {

inline constexpr std::int64_t kWinogradResults = 4;  // along each axis with taps

// An axis of a window.
struct WinogradAxis {
  std::int64_t taps = 3, stride = 1;
  // Of a patch: results, and what is read for them, which has as many points.
  std::int64_t results() const { return taps == 1 ? 1 : kWinogradResults; }
  std::int64_t points() const { return (results() - 1) * stride + taps; }
  // With a stride of 2: the five of even elements, before the odd ones, all of which meet the tap between the others.
  static constexpr std::int64_t kEvenPoints = 5;
  std::int64_t weight_points() const { return stride == 1 ? points() : kEvenPoints + 1; }
};

// Dims of a contraction by their part in the convolution that it is, or whose weights it is the gradient of.
struct WinogradDims {
  int n = -1;                         // images; -1: there is one
  int p = -1, q = -1;                 // results along rows, along columns
  int k = -1;                         // outputs
  int r = -1, s = -1;                 // taps
  int c = -1;                         // channels
  std::size_t rows = 0, columns = 0;  // logical dims of the first operand
  bool of_weights = false;            // the results are the taps, and images, rows and columns are summed up
  WinogradAxis down, across;          // rows, columns
  std::int64_t points() const { return down.points() * across.points(); }
  std::int64_t weight_points() const { return down.weight_points() * across.weight_points(); }
};
// Nothing where there is no window of up to 3 x 3 taps, all side by side, over a plane of results of which the next
// reads the next elements, or with three taps the next but one.
std::optional<WinogradDims> winograd_dims(const ir::Contraction& contraction);

}  // namespace fusejit::scheduler
