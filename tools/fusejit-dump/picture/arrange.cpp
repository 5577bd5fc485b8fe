#include "tools/fusejit-dump/picture/arrange.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "ir/base/at.h"

namespace fusejit::tools {
namespace {

constexpr double kBetweenColumns = 22, kBetweenLines = 10, kBetweenRows = 52, kMargin = 24;
constexpr double kGravity = 0.8;  // towards the middle, or a drawing grows wider with every layer
constexpr int kOrderSweeps = 12, kPlaceSweeps = 12;

// Boxes and bends, alike.
struct Node {
  int layer = 0;
  bool is_bend = false;
  double left = 0, right = 0;
  double x = 0;
  std::vector<int> above = {}, below = {};  // neighbours in the layers next to its own
};

struct Drawing {
  std::vector<Node> nodes;             // boxes first
  std::vector<std::vector<int>> rows;  // by layer, from left to right
  std::vector<std::vector<int>> ways;  // by line: its nodes from the first box to the last
};

Drawing drawing_of(const std::vector<Extent>& boxes, const std::vector<int>& layers, const std::vector<Line>& lines) {
  Drawing d;
  for (std::size_t i = 0; i < boxes.size(); ++i) d.nodes.push_back({layers[i], false, boxes[i].left, boxes[i].right});
  for (const auto& [from, to] : lines) {
    std::vector<int> way = {from};
    for (int layer = layers[at(from)] + 1; layer < layers[at(to)]; ++layer) {
      way.push_back(static_cast<int>(d.nodes.size()));
      d.nodes.push_back({layer, true, kBetweenLines / 2, kBetweenLines / 2});
    }
    way.push_back(to);
    for (std::size_t i = 1; i < way.size(); ++i) {
      d.nodes[at(way[i - 1])].below.push_back(way[i]);
      d.nodes[at(way[i])].above.push_back(way[i - 1]);
    }
    d.ways.push_back(std::move(way));
  }
  int last = -1;
  for (const Node& node : d.nodes) last = std::max(last, node.layer);
  d.rows.resize(at(last + 1));
  for (std::size_t i = 0; i < d.nodes.size(); ++i) d.rows[at(d.nodes[i].layer)].push_back(static_cast<int>(i));
  return d;
}

// Each row in the order of its nodes' neighbours in the row before (down) or behind (up).
void sort_rows(Drawing& d, bool down) {
  std::vector<double> place(d.nodes.size()), wanted(d.nodes.size());
  for (const auto& row : d.rows)
    for (std::size_t i = 0; i < row.size(); ++i) place[at(row[i])] = static_cast<double>(i);
  const auto sort_row = [&](std::vector<int>& row) {
    for (const int n : row) {
      const std::vector<int>& neighbours = down ? d.nodes[at(n)].above : d.nodes[at(n)].below;
      double sum = 0;
      for (const int other : neighbours) sum += place[at(other)];
      wanted[at(n)] = neighbours.empty() ? place[at(n)] : sum / static_cast<double>(neighbours.size());
    }
    std::stable_sort(row.begin(), row.end(), [&](int a, int b) { return wanted[at(a)] < wanted[at(b)]; });
    for (std::size_t i = 0; i < row.size(); ++i) place[at(row[i])] = static_cast<double>(i);
  };
  if (down) std::for_each(d.rows.begin(), d.rows.end(), sort_row);
  if (!down) std::for_each(d.rows.rbegin(), d.rows.rend(), sort_row);
}

double apart(const Node& left, const Node& right) {
  return left.right + right.left + (left.is_bend || right.is_bend ? kBetweenLines : kBetweenColumns);
}

// The x nearest to what each node of a row wants, in sum of squares, in the row's order and far enough apart. With the
// distances taken off this is a monotone regression: neighbours that are out of order become one block at their mean.
void place_row(Drawing& d, const std::vector<int>& row, const std::vector<double>& wanted) {
  struct Block {
    double sum, weight;
    std::size_t count;
    double mean() const { return sum / weight; }
  };
  std::vector<Block> blocks;
  std::vector<double> offsets(row.size());
  for (std::size_t i = 0; i < row.size(); ++i) {
    const Node& node = d.nodes[at(row[i])];
    if (i > 0) offsets[i] = offsets[i - 1] + apart(d.nodes[at(row[i - 1])], node);
    const double weight = node.is_bend ? 4 : 1;  // long lines are to be straight
    blocks.push_back({(wanted[at(row[i])] - offsets[i]) * weight, weight, 1});
    while (blocks.size() > 1 && blocks[blocks.size() - 2].mean() > blocks.back().mean()) {
      const Block last = blocks.back();
      blocks.pop_back();
      Block& before = blocks.back();
      before = {before.sum + last.sum, before.weight + last.weight, before.count + last.count};
    }
  }
  std::size_t i = 0;
  for (const Block& block : blocks)
    for (std::size_t k = 0; k < block.count; ++k, ++i) d.nodes[at(row[i])].x = block.mean() + offsets[i];
}

void place_rows(Drawing& d, bool down) {
  std::vector<double> wanted(d.nodes.size());
  const auto place = [&](const std::vector<int>& row) {
    for (const int n : row) {
      const Node& node = d.nodes[at(n)];
      const std::vector<int>& neighbours = down ? node.above : node.below;
      double sum = 0;
      for (const int other : neighbours) sum += d.nodes[at(other)].x;
      wanted[at(n)] = kGravity * (neighbours.empty() ? node.x : sum / static_cast<double>(neighbours.size()));
    }
    place_row(d, row, wanted);
  };
  if (down) std::for_each(d.rows.begin(), d.rows.end(), place);
  if (!down) std::for_each(d.rows.rbegin(), d.rows.rend(), place);
}

// Lines that meet one rim share it, in the order in which their other ends stand.
void sort_neighbours(Drawing& d) {
  const auto by_place = [&](int a, int b) { return std::pair(d.nodes[at(a)].x, a) < std::pair(d.nodes[at(b)].x, b); };
  for (Node& node : d.nodes) {
    std::sort(node.above.begin(), node.above.end(), by_place);
    std::sort(node.below.begin(), node.below.end(), by_place);
  }
}

double on_rim(const Drawing& d, const std::vector<Extent>& boxes, int box, int neighbour, bool upper) {
  const Node& node = d.nodes[at(box)];
  const std::vector<int>& all = upper ? node.above : node.below;
  const auto place = std::find(all.begin(), all.end(), neighbour) - all.begin();
  const double part = (static_cast<double>(place) + 0.5) / static_cast<double>(all.size());
  return node.x + boxes[at(box)].rim * (2 * part - 1);
}

}  // namespace

std::vector<int> layers_of(int count, const std::vector<Line>& lines) {
  std::vector<std::vector<int>> above(at(count)), below(at(count));
  for (const auto& [from, to] : lines) below[at(from)].push_back(to), above[at(to)].push_back(from);
  std::vector<int> layers(at(count), 0);
  for (int i = 0; i < count; ++i)
    for (const int before : above[at(i)]) layers[at(i)] = std::max(layers[at(i)], layers[at(before)] + 1);
  for (int i = count - 1; i >= 0; --i) {
    if (below[at(i)].empty() || below[at(i)].size() < above[at(i)].size()) continue;
    int next = layers[at(below[at(i)].front())];
    for (const int after : below[at(i)]) next = std::min(next, layers[at(after)]);
    layers[at(i)] = next - 1;
  }
  return layers;
}

Arrangement arrange(const std::vector<Extent>& boxes, const std::vector<int>& layers, const std::vector<Line>& lines) {
  Drawing d = drawing_of(boxes, layers, lines);
  for (int sweep = 0; sweep < kOrderSweeps; ++sweep) sort_rows(d, sweep % 2 == 0);
  for (int sweep = 0; sweep < kPlaceSweeps; ++sweep) place_rows(d, sweep % 2 == 0);

  std::vector<double> heights(d.rows.size()), tops(d.rows.size());
  for (std::size_t i = 0; i < boxes.size(); ++i)
    heights[at(layers[i])] = std::max(heights[at(layers[i])], boxes[i].height);
  double y = kMargin, left = d.nodes.empty() ? 0 : d.nodes[0].x, right = left;
  for (std::size_t row = 0; row < tops.size(); ++row) {
    tops[row] = y;
    y += heights[row] + kBetweenRows;
  }
  for (const Node& node : d.nodes) {
    left = std::min(left, node.x - node.left);
    right = std::max(right, node.x + node.right);
  }
  for (Node& node : d.nodes) node.x += kMargin - left;
  sort_neighbours(d);

  Arrangement result;
  result.width = right - left + 2 * kMargin;
  result.height = tops.empty() ? 2 * kMargin : y - kBetweenRows + kMargin;
  for (std::size_t i = 0; i < boxes.size(); ++i) result.tops.push_back({d.nodes[i].x, tops[at(layers[i])]});
  for (const std::vector<int>& way : d.ways) {
    std::vector<Point> route;
    for (std::size_t i = 0; i < way.size(); ++i) {
      const Node& node = d.nodes[at(way[i])];
      const std::size_t row = at(node.layer);
      if (i == 0) {
        const double x = on_rim(d, boxes, way[0], way[1], false);
        route.push_back({x, tops[row] + boxes[at(way[0])].height});
        route.push_back({x, tops[row] + heights[row]});
      } else if (i + 1 == way.size()) {
        route.push_back({on_rim(d, boxes, way[i], way[i - 1], true), tops[row]});
      } else {
        route.push_back({node.x, tops[row]});
        route.push_back({node.x, tops[row] + heights[row]});
      }
    }
    result.routes.push_back(std::move(route));
  }
  return result;
}

}  // namespace fusejit::tools
