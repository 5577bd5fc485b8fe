// Where the boxes of a layered drawing go and the ways of the lines between them. Geometry alone: no text, no colours.
//
// Boxes of one layer stand side by side; every line goes down. Lines that pass a layer have a place in it (a "bend")
// like a box, so that nothing is drawn over anything. Order within layers: barycentre sweeps. Places: each box wants to
// stand under (then above) the mean of its neighbours, and a layer as a whole goes to the least squares of that.
#pragma once

#include <utility>
#include <vector>

namespace fusejit::tools {

using Line = std::pair<int, int>;  // from a box to a later one

// The layer of each of `count` boxes: as early as what it reads allows, or, where that makes no line longer in sum, as
// late as who reads it allows.
std::vector<int> layers_of(int count, const std::vector<Line>& lines);

struct Extent {
  double left = 0, right = 0;  // of the middle of its rims, where lines arrive and leave
  double rim = 0;              // lines meet it this far left and right of the middle
  double height = 0;
};
struct Point {
  double x = 0, y = 0;
};
struct Arrangement {
  std::vector<Point> tops;                 // by box: the middle of its upper rim
  std::vector<std::vector<Point>> routes;  // by line: down its box and row, then pairs of points, in and out of a row
  double width = 0, height = 0;
};

// `layers` ascend along every line.
Arrangement arrange(const std::vector<Extent>& boxes, const std::vector<int>& layers, const std::vector<Line>& lines);

}  // namespace fusejit::tools
