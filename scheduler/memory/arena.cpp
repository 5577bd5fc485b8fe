// Largest first, lowest free offset: simple, and within a few per cent of the bound on convolutional networks.
#include "scheduler/memory/arena.h"

#include <algorithm>
#include <map>

namespace fusejit::scheduler {
namespace {

constexpr std::int64_t kAlignment = 64;

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Addresses that are taken: disjoint spans, those that touch joined, so that blocks side by side are one.
class Taken {
 public:
  void add(std::int64_t low, std::int64_t high) {
    auto next = spans_.upper_bound(low);
    if (next != spans_.begin() && std::prev(next)->second >= low) --next;
    while (next != spans_.end() && next->first <= high) {
      low = std::min(low, next->first), high = std::max(high, next->second);
      next = spans_.erase(next);
    }
    spans_.emplace_hint(next, low, high);
  }
  // The end of the last span that low..high meets, `low` if it meets none.
  std::int64_t past(std::int64_t low, std::int64_t high) const {
    const auto next = spans_.lower_bound(high);
    return next == spans_.begin() ? low : std::max(low, std::prev(next)->second);
  }

 private:
  std::map<std::int64_t, std::int64_t> spans_;  // end by start
};

// What is taken, by the steps that it is taken in: a segment tree. Of blocks and steps that meet, one of the nodes that
// make up the one lies above or below one of those that make up the other.
class LiveRanges {
 public:
  explicit LiveRanges(int steps) : steps_(steps), nodes_(2 * static_cast<std::size_t>(steps)) {}

  void add(const ArenaBlock& block) {
    const std::int64_t low = *block.offset, high = low + aligned(block.bytes);
    for (const int made_of : cover(block.first_step, block.last_step)) {
      node(made_of).whole.add(low, high);
      for (int above = made_of; above > 0; above /= 2) node(above).inside.add(low, high);
    }
  }
  // The lowest offset that is free in all steps of the block.
  std::int64_t lowest_free(const ArenaBlock& block) {
    std::vector<const Taken*> taken;
    for (const int made_of : cover(block.first_step, block.last_step)) taken.push_back(&node(made_of).inside);
    for (const int end : {block.first_step, block.last_step})
      for (int above = end + steps_; above > 0; above /= 2) taken.push_back(&node(above).whole);
    std::int64_t offset = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (const Taken* t : taken) {
        const std::int64_t next = t->past(offset, offset + aligned(block.bytes));
        moved = moved || next > offset;
        offset = next;
      }
    }
    return offset;
  }

 private:
  struct Node {
    Taken whole;   // in all steps of the node
    Taken inside;  // in some of them, by blocks that this node or nodes below it make up
  };
  Node& node(int at) { return nodes_[static_cast<std::size_t>(at)]; }
  std::vector<int> cover(int first, int last) const {
    std::vector<int> nodes;
    int low = first + steps_, high = last + steps_ + 1;
    for (; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) nodes.push_back(low++);
      if (high % 2 == 1) nodes.push_back(--high);
    }
    return nodes;
  }
  int steps_;
  std::vector<Node> nodes_;
};

}  // namespace

std::int64_t place(std::vector<ArenaBlock> blocks, int steps) {
  std::stable_sort(blocks.begin(), blocks.end(),
                   [](const ArenaBlock& a, const ArenaBlock& b) { return a.bytes > b.bytes; });
  LiveRanges placed(steps);
  std::int64_t total = 0;
  for (const ArenaBlock& block : blocks) {
    *block.offset = placed.lowest_free(block);
    total = std::max(total, *block.offset + aligned(block.bytes));
    placed.add(block);
  }
  return total;
}

}  // namespace fusejit::scheduler
