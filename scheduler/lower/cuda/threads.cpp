#include "scheduler/lower/cuda/threads.h"

#include <algorithm>

#include "scheduler/lower/expression/expression.h"
#include "scheduler/lower/long_sum.h"

namespace fusejit::scheduler::cuda {

using ir::Binding;
using ir::Index;
using ir::KernelBuilder;

void each_thread(KernelBuilder& builder, std::int64_t items, const std::function<void(Index)>& body) {
  each_thread(builder, items, std::clamp<std::int64_t>(items, 1, kBlock), body);
}

void each_thread(KernelBuilder& builder, std::int64_t items, std::int64_t threads,
                 const std::function<void(Index)>& body) {
  const std::int64_t blocks = (items + threads - 1) / threads;
  builder.loop(Index(0), Index(blocks), Binding::grid_x, [&](Index block) {
    builder.loop(Index(0), Index(threads), Binding::block_x, [&](Index thread) {
      const Index item = block * threads + thread;
      if (items % threads == 0) return body(item);
      builder.when({compare(item, ir::CompareKind::lt, items)}, [&] { body(item); });
    });
  });
}

std::vector<Index> decode(const Index& item, const std::vector<std::int64_t>& extents) {
  std::vector<Index> index(extents.size(), Index(0));
  std::size_t first = 0;  // has nothing to its left, so it needs no remainder
  while (first < extents.size() && extents[first] == 1) ++first;
  std::int64_t inner = 1;
  for (std::size_t i = extents.size(); i-- > first;) {
    const Index quotient = item / inner;
    index[i] = i == first ? quotient : quotient % extents[i];
    inner *= extents[i];
  }
  return index;
}

std::int64_t floor_power_of_two(std::int64_t n) {
  std::int64_t power = 1;
  while (power * 2 <= n) power *= 2;
  return power;
}

void each_lane(KernelBuilder& builder, std::int64_t lanes, const std::function<void(Index)>& body) {
  if (lanes == 1) return body(Index(0));
  builder.loop(Index(0), Index(lanes), Binding::vector, body);
}

void along(KernelBuilder& builder, std::int64_t extent, Binding binding, const std::function<void(Index)>& body) {
  if (extent == 1) return body(Index(0));
  builder.loop(Index(0), Index(extent), binding, body);
}

Partition partition(std::int64_t items, std::int64_t threads, std::int64_t parts) {
  if (items % threads == 0) {  // equal parts need no test in the loop, which would hold loads back
    const std::int64_t even = divisor_up_to(items / threads, parts);
    if (even * 4 >= parts * 3) parts = even;
  }
  return uneven_partition(items, threads, parts);
}

Partition uneven_partition(std::int64_t items, std::int64_t threads, std::int64_t parts) {
  Partition spread{items, threads, 1, 1};
  spread.chunk = ((items + parts - 1) / parts + threads - 1) / threads * threads;
  spread.parts = (items + spread.chunk - 1) / spread.chunk;
  return spread;
}

Partition partition_for_device(std::int64_t items, std::int64_t threads, std::int64_t blocks, std::int64_t steps,
                               std::int64_t most) {
  const std::int64_t parts = std::max<std::int64_t>(1, items / (threads * steps));
  return partition(items, threads, std::clamp<std::int64_t>(most / std::max<std::int64_t>(1, blocks), 1, parts));
}

namespace {

// The rounds of a thread over its part. Where the last part is shorter it is written apart: a test in every round keeps
// loads apart (statistics took twice as long), and the last part needs one in its last round alone.
void each_round(KernelBuilder& builder, const Partition& spread, const Index& part, const Index& thread,
                const std::function<void(Index)>& body,
                const std::function<void(std::int64_t count, const std::function<void(Index)>& round)>& rounds,
                const std::function<void()>& after_tail) {
  const auto item = [&](const Index& q) { return part * spread.chunk + q * spread.threads + thread; };
  const auto whole = [&](std::int64_t count) {
    if (count > 0) rounds(count, [&](const Index& q) { body(item(q)); });
  };
  if (spread.even()) return whole(spread.chunk / spread.threads);
  if (!spread.last_apart) {
    return rounds(spread.chunk / spread.threads, [&](const Index& q) {
      builder.when({compare(item(q), ir::CompareKind::lt, spread.items)}, [&] { body(item(q)); });
    });
  }
  const auto last = [&] {
    const std::int64_t left = spread.items - spread.chunk * (spread.parts - 1), count = left / spread.threads;
    whole(count);
    if (left % spread.threads == 0) return;
    const Index rest = item(Index(count));
    builder.when({compare(rest, ir::CompareKind::lt, spread.items)}, [&] { body(rest); });
    after_tail();
  };
  if (spread.parts == 1) return last();
  builder.when({compare(part, ir::CompareKind::lt, spread.parts - 1)}, [&] { whole(spread.chunk / spread.threads); });
  builder.when({compare(part, ir::CompareKind::eq, spread.parts - 1)}, last);  // `==` proves that one block stores
}

}  // namespace

void each_item(KernelBuilder& builder, const Partition& spread, const Index& part, const Index& thread,
               const std::function<void(Index)>& body) {
  each_round(
      builder, spread, part, thread, body,
      [&](std::int64_t count, const std::function<void(Index)>& round) {
        if (count == 1) return round(Index(0));
        builder.loop(Index(0), Index(count), Binding::none, round);
      },
      [] {});
}

void each_item_in_blocks(KernelBuilder& builder, const Partition& spread, const Index& part, const Index& thread,
                         std::int64_t block, const std::function<void(Index)>& body,
                         const std::function<void()>& after) {
  each_round(
      builder, spread, part, thread, body,
      [&](std::int64_t count, const std::function<void(Index)>& round) {
        loop_in_blocks(builder, count, block, round, after);
      },
      after);
}

ir::Arg item_count(KernelBuilder& builder, const Partition& spread, const Index& part, const Index& thread,
                   std::int64_t weight) {
  const auto literal = [&](std::int64_t n) {
    return KernelBuilder::literal(static_cast<double>(n * weight), DType::f64);
  };
  const ir::Arg full = literal(spread.chunk / spread.threads);
  if (spread.even()) return full;
  const std::int64_t rest = spread.items - spread.chunk * (spread.parts - 1);
  const auto last = [&]() -> ir::Arg {
    const Index visits = (Index(rest + spread.threads - 1) - thread) / spread.threads;
    if (visits.is_constant()) return literal(visits.constant());
    return builder.def(ir::Op::cast, {ir::Arg(builder.index(visits * weight, DType::i64))}, DType::f64);
  };
  if (spread.parts == 1) return last();
  return builder.choose(
      {compare(part, ir::CompareKind::lt, spread.parts - 1)}, {DType::f64}, [&] { return std::vector<ir::Arg>{full}; },
      [&] { return std::vector<ir::Arg>{last()}; })[0];
}

}  // namespace fusejit::scheduler::cuda
