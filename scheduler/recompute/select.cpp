#include "scheduler/recompute/select.h"

#include <algorithm>
#include <queue>
#include <utility>

namespace fusejit::scheduler {
namespace {

// Segments that are tried are each so much smaller than the one before.
constexpr double kNextSegment = 0.8;

std::int64_t above(const std::vector<std::int64_t>& alive, std::int64_t limit) {
  std::int64_t sum = 0;
  for (const std::int64_t bytes : alive) sum += std::max<std::int64_t>(0, bytes - limit);
  return sum;
}

// Gains shrink as more is dropped, as a rule: one that is looked at anew and still leads is taken.
void drop_greedily(const Activations& activations, std::int64_t limit, std::vector<bool>& dropped) {
  const auto& list = activations.list();
  std::int64_t now = above(activations.alive(dropped), limit);
  const auto gain_of = [&](std::size_t i) {
    dropped[i] = true;
    const auto gain = static_cast<double>(now - above(activations.alive(dropped), limit));
    dropped[i] = false;
    return gain / list[i].cost;
  };
  std::vector<std::size_t> useless;  // until others are dropped
  std::priority_queue<std::pair<double, std::size_t>> queue;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i].can_be_dropped && !dropped[i]) queue.emplace(gain_of(i), i);
  while (now > 0 && !queue.empty()) {
    const std::size_t i = queue.top().second;
    queue.pop();
    const double gain = gain_of(i);
    if (gain <= 0) {
      useless.push_back(i);
      continue;
    }
    if (!queue.empty() && gain < queue.top().first) {
      queue.emplace(gain, i);
      continue;
    }
    dropped[i] = true;
    now = above(activations.alive(dropped), limit);
    std::erase_if(useless, [&](std::size_t other) {
      const double again = gain_of(other);
      if (again > 0) queue.emplace(again, other);
      return again > 0;
    });
  }
}

// Keeps of what is dropped all that fits, what takes most time for its bytes first.
void keep_greedily(const Activations& activations, std::int64_t limit, std::vector<bool>& dropped) {
  const auto& list = activations.list();
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (dropped[i]) order.push_back(i);
  const auto worth = [&](std::size_t i) {
    return list[i].cost / static_cast<double>(std::max<std::int64_t>(1, list[i].bytes));
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return worth(a) > worth(b); });
  for (const std::size_t i : order) {
    dropped[i] = false;
    if (activations.peak(dropped) > limit) dropped[i] = true;
  }
}

// Cuts the forward pass into segments of about so many bytes, where few values cross from one into the next: those are
// kept, all others dropped. The backward pass of a segment computes it once more (T. Chen et al., Training Deep Nets
// with Sublinear Memory Cost, 2016).
std::vector<bool> drop_segments(const Activations& activations, std::int64_t segment) {
  const auto& list = activations.list();
  int end = 0;
  for (const Activation& one : list) end = std::max(end, std::max(one.made, one.last_early) + 1);
  std::vector<std::int64_t> made(static_cast<std::size_t>(end)), crossing(made.size() + 1);
  for (const Activation& one : list) {
    made[static_cast<std::size_t>(one.made)] += one.bytes;
    crossing[static_cast<std::size_t>(one.made)] += one.bytes,
        crossing[static_cast<std::size_t>(one.last_early)] -= one.bytes;
  }
  for (std::size_t g = 1; g < crossing.size(); ++g) crossing[g] += crossing[g - 1];
  std::vector<int> cuts;  // behind these groups
  std::int64_t sum = 0;
  for (int g = 0, begin = 0; g < end; ++g) {
    sum += made[static_cast<std::size_t>(g)];
    if (sum <= segment) continue;
    int cut = g;
    for (int earlier = g; earlier >= begin; --earlier)
      if (crossing[static_cast<std::size_t>(earlier)] < crossing[static_cast<std::size_t>(cut)]) cut = earlier;
    cuts.push_back(cut);
    begin = cut + 1, sum = 0;
    for (int later = begin; later <= g; ++later) sum += made[static_cast<std::size_t>(later)];
  }
  std::vector<bool> dropped(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto cut = std::lower_bound(cuts.begin(), cuts.end(), list[i].made);
    const bool crosses = cut != cuts.end() && *cut < list[i].last_early;
    dropped[i] = list[i].can_be_dropped && !crosses;
  }
  return dropped;
}

}  // namespace

std::optional<std::vector<bool>> drop_for_limit(const Activations& activations, std::int64_t limit) {
  const auto& list = activations.list();
  std::optional<std::vector<bool>> best;
  const auto consider = [&](std::vector<bool> dropped) {
    if (activations.peak(dropped) > limit) return;
    keep_greedily(activations, limit, dropped);
    if (!best || activations.extra_time(dropped) < activations.extra_time(*best)) best = std::move(dropped);
  };
  std::vector<bool> dropped(list.size());
  drop_greedily(activations, limit, dropped);
  consider(dropped);
  std::int64_t all = 0, largest = 1;
  for (const Activation& one : list) all += one.bytes, largest = std::max(largest, one.bytes);
  for (auto segment = static_cast<double>(all); segment > static_cast<double>(largest); segment *= kNextSegment)
    consider(drop_segments(activations, static_cast<std::int64_t>(segment)));
  return best;
}

std::vector<bool> drop_for_least(const Activations& activations) {
  std::vector<bool> best(activations.list().size());
  std::int64_t fits = activations.peak(best), fails = 0;
  while (fits - fails > std::max<std::int64_t>(1, fits / 100)) {
    const std::int64_t limit = fails + (fits - fails) / 2;
    if (auto dropped = drop_for_limit(activations, limit)) {
      best = *std::move(dropped), fits = limit;
    } else {
      fails = limit;
    }
  }
  return best;
}

}  // namespace fusejit::scheduler
