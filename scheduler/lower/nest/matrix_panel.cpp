// Panels of a matrix unit: pairs, of which a row of the unit reads a run. They are those of neighbouring pixels, where
// rows merge taps (Schedule::merges_taps), or else of one pixel.
//
// Of a weight gradient the terms are pixels. Two images are a word, so that a window moves by whole words whatever its
// stride is, and the words of neighbouring pixels are one run. Panels have them as rows of channels, which is how they
// lie in memory; the first is turned, for there the pairs of a channel lie side by side.
#include <algorithm>

#include "scheduler/lower/nest/factor.h"
#include "scheduler/lower/nest/nest.h"
#include "scheduler/lower/nest/pack.h"
#include "scheduler/lower/split.h"
#include "scheduler/schedule/check_panels.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Binding;
using ir::CompareKind;
using ir::Index;
using ir::KernelBuilder;
using ir::MemKind;
using ir::Op;

namespace {

std::int64_t whole_lines(std::int64_t words) { return ir::ceil_divide(words, kWordsOfLine) * kWordsOfLine; }
// Rows that begin in different sets of a cache.
std::int64_t odd_lines(std::int64_t words) {
  const std::int64_t whole = whole_lines(words);
  return whole / kWordsOfLine % 2 == 0 ? whole + kWordsOfLine : whole;
}

}  // namespace

// What the schedule has no panel for is read where it is, if pairs lie side by side there.
bool Nest::copies_words() const {
  if (s_.matrix == 0 || !s_.panel_a.empty()) return false;
  const int last = innermost_dim(kernel_.graph().value(value_a_).type());
  return kernel_.words_of(value_a_) < 0 || c_.a.index[static_cast<std::size_t>(last)].coefficient_of(dot_) != 1;
}

// Pairs innermost, those of neighbouring pixels side by side where taps are merged; or pixels of a row, pairs,
// channels.
void Nest::order_for_matrix_unit(Panel& panel) const {
  const auto last = [&](int d) {
    std::stable_partition(panel.order.begin(), panel.order.end(), [&](int axis) {
      return panel.of->index[static_cast<std::size_t>(axis)].coefficient_of(d) == 0;
    });
  };
  if (s_.merges_taps()) last(c_.find(s_.unroll[0].dims[0]));
  if (!merges_pairs()) return last(dot_);
  int pixel = -1;
  for (std::size_t i = 0; i < c_.dims.size(); ++i)
    if (c_.dims[i].reduced && static_cast<int>(i) != dot_) pixel = static_cast<int>(i);
  last(pixel), last(dot_), last(&panel == &panel_a_ ? tile_dims_[0] : vector_);
}

// [planes .., pixel of a row * pairs + pair], or with channels innermost.
std::vector<std::int64_t> Nest::merged_dims(const Panel& panel) const {
  std::vector<std::int64_t> dims;
  for (const int d : panel.order) dims.push_back(panel.axes[static_cast<std::size_t>(d)].extent);
  if (s_.merges_taps()) {
    const std::int64_t pairs = dims.back();
    dims.pop_back();
    dims.back() = whole_lines(dims.back() * pairs);
    return dims;
  }
  const std::int64_t channels = dims.back(), pairs = dims[dims.size() - 2], pixels = dims[dims.size() - 3];
  dims.resize(dims.size() - 3);
  dims.push_back(whole_lines(pixels * pairs));
  dims.push_back(odd_lines(channels));
  return dims;
}

std::vector<Index> Nest::merged_place(const Panel& panel, const std::vector<Index>& at) const {
  std::vector<Index> place;
  for (const int d : panel.order) place.push_back(at[static_cast<std::size_t>(d)]);
  if (s_.merges_taps()) {
    merge_taps(place, panel.axes[static_cast<std::size_t>(panel.order.back())].extent);
    return place;
  }
  const Index channel = place.back(), pair = place[place.size() - 2], pixel = place[place.size() - 3];
  place.resize(place.size() - 3);
  place.push_back(pixel * panel.axes[static_cast<std::size_t>(panel.order[panel.order.size() - 2])].extent + pair);
  place.push_back(channel);
  return place;
}

// Pixels of a row whose channels are pairs side by side, in whole vectors of words. Of an operand that has as many
// channels in memory those are one load, and a shuffle (codegen/x86/emit/turn.cpp).
void Nest::fill_merged_row(const Panel& panel, std::vector<Index>& at, bool zero) {
  const auto pixel = static_cast<std::size_t>(panel.order[panel.order.size() - 2]),
             channel = static_cast<std::size_t>(panel.order.back());
  const Panel::Axis& row = panel.axes[pixel];
  const std::int64_t lanes = s_.lanes, pairs = panel.axes[channel].extent,
                     words = builder_.memory(panel.memory).dims.back(), low = row.low.constant(),
                     first = zero ? row.extent : std::clamp<std::int64_t>(-low, 0, row.extent),
                     end = zero ? row.extent : std::clamp(panel.of->extents[pixel] - low, first, row.extent);
  std::vector<Index> place;
  for (std::size_t i = 0; i + 2 < panel.order.size(); ++i)
    place.push_back(at[static_cast<std::size_t>(panel.order[i])]);
  place.emplace_back(0);
  const auto in_vector = [&](const Index& word, const auto& value) {
    builder_.loop(Index(0), Index(lanes), Binding::vector, [&](const Index& lane) {
      place.back() = word + lane;
      value(lane);
    });
  };
  const auto clear = [&](std::int64_t from, std::int64_t to) {  // vectors
    emit_loop({Index(0)}, {Index(to - from)}, Binding::none, [&](const Index& i) {
      in_vector((i + Index(from)) * lanes, [&](const Index&) { builder_.store(panel.memory, place, zero_factor()); });
    });
  };
  if (first == end) return clear(0, words / lanes);
  clear(0, ir::ceil_divide(first * pairs, lanes));
  if (end * pairs < words) clear(end * pairs / lanes, words / lanes);
  const std::int64_t copied = (end - first) * pairs;
  const auto copy = [&](const Index& pixels) {
    in_vector(pixels * pairs, [&](const Index& lane) {
      at[pixel] = pixels + lane / pairs;
      const auto store = [&] { builder_.store(panel.memory, place, merged_pair(panel, at, lane % pairs)); };
      copied < lanes ? builder_.when({compare(lane, CompareKind::lt, copied)}, store) : store();
    });
  };
  emit_loop({Index(0)}, {Index(std::max<std::int64_t>(1, copied / lanes))}, Binding::none,
            [&](const Index& i) { copy(Index(first) + i * (lanes / pairs)); });
  if (copied > lanes && copied % lanes > 0) copy(Index(end - lanes / pairs));  // some of them once more
}

// Of the pixel at hand; the last of an odd number of channels stands beside a zero, in place of which it is read again.
Arg Nest::merged_pair(const Panel& panel, const std::vector<Index>& at, const Index& pair) {
  const auto channel = static_cast<std::size_t>(panel.order.back());
  const std::int64_t channels = panel.of->extents[channel], pairs = panel.axes[channel].extent;
  LogicalIndex index = index_at(panel, at);
  Expression& expression = kernel_.expression();
  return expression.nested([&]() -> Arg {
    index[channel] = pair * 2;
    if (channels % 2 == 0) return bf16_pair(expression, panel.value, *panel.of, index, dot_);
    const auto bits = [&] {
      return Arg(builder_.def(Op::bits, {expression.stored_value(panel.value, index)}, DType::u32));
    };
    const Arg low = bits();
    if (channels == 1) return low;
    index[channel] = index[channel] + Index(1) - (pair + Index(1)) / pairs;
    const Arg high = builder_.def(Op::shl, {bits(), KernelBuilder::literal(16, DType::u32)}, DType::u32);
    return builder_.def(
        Op::bitwise_or,
        {low, builder_.choose(
                  {compare(pair, CompareKind::lt, pairs - 1)}, {DType::u32}, [&] { return std::vector{high}; },
                  [&] { return std::vector<Arg>{zero_factor()}; })[0]},
        DType::u32);
  });
}

void Nest::over_planes(const Panel& panel, const std::function<void(const std::vector<Index>& at)>& body) {
  const std::function<void(std::vector<Index>)> over = [&](const std::vector<Index>& at) {
    if (at.size() + 3 == panel.order.size()) return body(at);
    const std::int64_t extent = panel.axes[static_cast<std::size_t>(panel.order[at.size()])].extent;
    emit_loop({Index(0)}, {Index(extent)}, Binding::none, [&](const Index& i) {
      std::vector<Index> deeper = at;
      deeper.push_back(i);
      over(deeper);
    });
  };
  over({});
}

// Words behind the last, which are turned with it and which nothing reads.
void Nest::clear_rest(const Panel& panel) {
  const std::vector<std::int64_t>& dims = builder_.memory(panel.memory).dims;
  const auto extent = [&](std::size_t from_last) {
    return panel.axes[static_cast<std::size_t>(panel.order[panel.order.size() - from_last])].extent;
  };
  const std::int64_t words = extent(3) * extent(2), rest = dims[dims.size() - 2] - words;
  if (rest == 0) return;
  over_planes(panel, [&](const std::vector<Index>& at) {
    serial(builder_, rest, [&](Index i) {
      serial(builder_, extent(1) / s_.lanes, [&](Index vector) {
        builder_.loop(Index(0), Index(s_.lanes), Binding::vector, [&](Index lane) {
          std::vector<Index> place = at;
          place.push_back(i + Index(words)), place.push_back(vector * s_.lanes + lane);
          builder_.store(panel.memory, place, zero_factor());
        });
      });
    });
  });
}

// [planes .., channel, pixel * pairs + pair], in squares that a processor turns in registers.
void Nest::turn(Panel& panel) {
  clear_rest(panel);
  std::vector<std::int64_t> dims = builder_.memory(panel.memory).dims;
  const std::int64_t words = dims[dims.size() - 2],
                     channels = panel.axes[static_cast<std::size_t>(panel.order.back())].extent;
  dims[dims.size() - 2] = channels, dims.back() = odd_lines(words);
  panel.turned = builder_.local(MemKind::scratch_local, factor_, dims);
  over_planes(panel, [&](const std::vector<Index>& at) {
    serial(builder_, channels / s_.lanes, [&](Index block) {
      serial(builder_, words / s_.lanes, [&](Index run) {
        unrolled(builder_, s_.lanes, [&](Index i) {
          builder_.loop(Index(0), Index(s_.lanes), Binding::vector, [&](Index lane) {
            std::vector<Index> from = at, to = at;
            from.push_back(run * s_.lanes + lane), from.push_back(block * s_.lanes + i);
            to.push_back(from.back()), to.push_back(run * s_.lanes + lane);
            builder_.store(panel.turned, to, builder_.load(panel.memory, from));
          });
        });
      });
    });
  });
}

}  // namespace fusejit::scheduler
