#include "scheduler/lower/nest/pack.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "scheduler/lower/cuda/threads.h"
#include "scheduler/lower/expression/expression.h"
#include "scheduler/lower/nest/factor.h"
#include "scheduler/lower/split.h"
#include "scheduler/lower/tuning.h"
#include "scheduler/lower/winograd/transform.h"
#include "scheduler/schedule/winograd.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Binding;
using ir::CompareKind;
using ir::Index;
using ir::KernelBuilder;
using ir::MemKind;

std::vector<int> packed_apart(const ir::Contraction& c, const Schedule& s) {
  std::vector<int> dims;
  for (std::size_t i = 0; i < c.dims.size(); ++i) {
    const int d = static_cast<int>(i);
    if (!c.dims[i].reduced && c.dims[i].extent > 1 && d != c.find(s.vector) && c.b.mentions(d)) dims.push_back(d);
  }
  return dims;
}

std::vector<std::int64_t> packed_dims(const ir::Contraction& c, const Schedule& s) {
  std::vector<std::int64_t> dims;
  for (const int d : packed_apart(c, s)) dims.push_back(c.dims[static_cast<std::size_t>(d)].extent);
  dims.push_back(ir::ceil_divide(c.dim(s.vector).extent, s.pack_b));
  if (s.winograd > 0) {
    const WinogradDims of = *winograd_dims(c);
    dims.push_back(of.weight_points());
    dims.push_back(c.dims[static_cast<std::size_t>(of.c)].extent);
  } else {
    for (const ir::ContractionDim& dim : c.dims)
      if (dim.reduced) dims.push_back(ir::ceil_divide<std::int64_t>(dim.extent, dim.name == s.dot ? 2 : 1));
    if (s.merges_taps()) {  // one after the other
      const std::int64_t pairs = dims.back();
      dims.pop_back();
      dims.back() *= pairs;
    }
  }
  dims.push_back(s.pack_b);
  return dims;
}

void merge_taps(std::vector<Index>& place, std::int64_t pairs) {
  const Index pair = place.back();
  place.pop_back();
  place.back() = place.back() * pairs + pair;
}

namespace {

constexpr std::int64_t kWordBytes = 4;  // that are turned

// Which loop is inner follows from how the operand lies: whole lines are read or written, whichever costs less.
class Packing {
 public:
  Packing(const LowerContext& context, const ir::Contraction& contraction, const Schedule& schedule, int value,
          const std::string& name)
      : context_(context),
        c_(contraction),
        s_(schedule),
        builder_(name, context.target.isa),
        vector_(c_.find(s_.vector)),
        value_(value),
        type_(factor_type(s_, compute_type(context.graph.value(value).type().dtype))),
        at_(c_.dims.size(), Index(0)),
        apart_(packed_apart(c_, s_)),
        dims_(packed_dims(c_, s_)) {
    for (std::size_t d = 0; d < c_.dims.size(); ++d) {
      const int i = static_cast<int>(d);
      if (c_.dims[d].reduced) sums_.push_back(i);
    }
    blocks_ = (dim(vector_).extent + s_.pack_b - 1) / s_.pack_b;
    channel_ = s_.winograd > 0 ? winograd_dims(c_)->c : sums_.back();
    paired_ = s_.dot.empty() ? -1 : c_.find(s_.dot);
  }

  LoweredKernel run(int packed) && {
    if (s_.winograd > 0) {
      transformed();
    } else if (context_.target.isa == Isa::cuda) {
      by_threads();
    } else if (!apart_.empty()) {
      over_apart(0, [&] { over_tasks(); });
    } else if (!side_by_side().empty() && channels() % s_.lanes == 0 && dim(vector_).extent % s_.pack_b == 0) {
      over_squares();
    } else if (channels_adjoin() && channels() >= s_.lanes) {
      over_channels();
    } else if (taps() == 1 && blocks_ > 1 && channels() > tuning::kPackedRows) {
      over_rows([&](const Index& block) { vectors(block); });
    } else if (outputs_have_taps() && channels() % tuning::kPackedRows == 0) {
      over_runs();
    } else {
      over_tasks();
    }
    lowered_.values.push_back(packed);
    lowered_.kernel = finish(context_, std::move(builder_));
    return std::move(lowered_);
  }

 private:
  const ir::ContractionDim& dim(int d) const { return c_.dims[static_cast<std::size_t>(d)]; }
  Index& at(int d) { return at_[static_cast<std::size_t>(d)]; }
  // As they are packed: pairs of them, where dot2 multiplies.
  std::int64_t count(int d) const { return ir::ceil_divide<std::int64_t>(dim(d).extent, d == paired_ ? 2 : 1); }
  std::int64_t channels() const { return count(channel_); }
  std::int64_t taps() const { return c_.terms() / dim(channel_).extent; }

  // What is summed up, of what lies side by side in memory for one output, in that order: channels, or the channels
  // and all of their taps, if those are few. Nothing where no such words are in memory.
  std::vector<int> side_by_side() const {
    const Type& type = context_.graph.value(value_).type();
    if (!context_.grouping.stored[static_cast<std::size_t>(value_)] || bytes(type.dtype) != kWordBytes || paired_ >= 0)
      return {};
    std::vector<int> dims;
    std::int64_t elements = 1;
    const std::vector<int> order = physical_order(type);
    for (auto d = order.rbegin(); d != order.rend(); ++d) {
      if (type.shape[*d] == 1) continue;
      const ir::DimSum& sum = c_.b.index[static_cast<std::size_t>(*d)];
      if (sum.terms.size() != 1 || sum.terms[0].coefficient != 1 || sum.constant != 0) return {};
      const int one = sum.terms[0].dim;
      if (!dim(one).reduced || dim(one).extent != type.shape[*d]) return {};
      dims.insert(dims.begin(), one);
      elements *= dim(one).extent;
      if (one == channel_) break;
    }
    if (dims.empty() || dims[0] != channel_) return {};
    const bool has_taps = dims.size() > 1;
    return has_taps && (elements != c_.terms() || taps() > tuning::kMostTapsOfSquares) ? std::vector<int>{} : dims;
  }

  // In memory the elements of one output lie side by side, in the order of the channels.
  bool channels_adjoin() const {
    const int last = innermost_dim(context_.graph.value(value_).type());
    if (last < 0) return false;
    const ir::DimSum& sum = c_.b.index[static_cast<std::size_t>(last)];
    return sum.terms.size() == 1 &&
           sum.coefficient_of(channel_) == 1;  // beside groups two bounds are not proven at once
  }

  Arg element() {
    ExpressionHooks hooks;
    hooks.is_stored = [&](int node) {
      return static_cast<bool>(context_.grouping.stored[static_cast<std::size_t>(node)]);
    };
    hooks.varies_by_lane = [](const Index&) { return false; };
    hooks.resolve = [](const Index& index) { return index; };
    hooks.ranges = [this](const ir::IndexAtom& atom) { return builder_.range(atom); };
    hooks.load = [&](int node, const std::vector<Index>& physical, bool through_views) -> Arg {
      const auto [place, fresh] = buffers_.try_emplace(node, -1);
      if (fresh) {
        const Type& type = context_.graph.value(node).type();
        place->second =
            builder_.buffer(MemKind::read, type.dtype, physical_dims(type), context_.target.isa == Isa::cuda ? 64 : 0);
        lowered_.values.push_back(node);
      }
      return builder_.load(place->second, physical, through_views);
    };
    Expression expression(context_.graph, builder_, hooks);
    LogicalIndex index;
    for (const ir::DimSum& sum : c_.b.index) {
      Index one = sum.constant;
      for (const ir::DimSum::Term& term : sum.terms)
        one = one + at(term.dim) * (term.dim == paired_ ? 2 * term.coefficient : term.coefficient);
      index.push_back(one);
    }
    if (paired_ < 0) return expression.value(value_, index);
    const int half = dim(paired_).extent % 2 == 0 ? -1 : axis_of_pairs(c_.b, paired_);  // of the last pair is outside
    return bf16_pair(expression, value_, c_.b, index, paired_, half);
  }

  Arg element_or_zero() {
    const std::int64_t extent = dim(vector_).extent;
    if (extent % s_.pack_b == 0) return element();
    return value_or_zero(builder_, at(vector_), extent, type_, [&] { return element(); });
  }

  // Buffers are declared by their first use, so the written one comes last.
  void store(const Index& block, const Index& in_block) {
    at(vector_) = block * s_.pack_b + in_block;
    put(block, in_block, element_or_zero());
  }
  void put(const Index& block, const Index& in_block, const Arg& value) {
    if (to_ < 0) to_ = builder_.buffer(MemKind::write, type_, dims_, 64);
    std::vector<Index> place;
    for (const int d : apart_) place.push_back(at(d));
    place.push_back(block);
    for (const int d : sums_) place.push_back(at(d));
    if (s_.merges_taps()) merge_taps(place, channels());
    place.push_back(in_block);
    builder_.store(to_, place, value);
  }

  // The outputs of a block, lanes along them.
  void each_vector(const std::function<void(const Index& in_block)>& body) {
    unrolled(builder_, s_.pack_b / s_.lanes, [&](Index v) {
      builder_.loop(Index(0), Index(s_.lanes), Binding::vector, [&](Index lane) { body(v * s_.lanes + lane); });
    });
  }
  void vectors(const Index& block) {
    each_vector([&](const Index& in_block) { store(block, in_block); });
  }

  void over_apart(std::size_t n, const std::function<void()>& body) {
    if (n == apart_.size()) return body();
    const auto one = [&](const Index& i) { at(apart_[n]) = i, over_apart(n + 1, body); };
    n < 2 ? parallel(builder_, dim(apart_[n]).extent, one) : serial(builder_, dim(apart_[n]).extent, one);
  }
  // The taps, then `channels`.
  void over_taps(std::size_t n, const std::function<void()>& channels) {
    if (n + 1 == sums_.size()) return channels();
    serial(builder_, count(sums_[n]), [&](Index i) { at(sums_[n]) = i, over_taps(n + 1, channels); });
  }

  void over_tasks() {
    const Split tasks = split(channels(), taps() * channels() < tuning::kLeastLinesOfTask || apart_.size() > 1
                                              ? 1
                                              : (context_.target.tasks + blocks_ - 1) / blocks_);
    const auto block_of = [&](const Index& block) {
      parallel(builder_, tasks.chunks, [&](Index part) {
        over_taps(0, [&] { loop_chunk(builder_, tasks, part, [&](Index c) { at(channel_) = c, vectors(block); }); });
      });
    };
    apart_.size() > 2 ? serial(builder_, blocks_, block_of) : parallel(builder_, blocks_, block_of);
  }

  // A few rows of a matrix and one block after the other: as many streams of reads, and whole lines are written.
  void over_rows(const std::function<void(const Index& block)>& vectors_of) {
    const Split rows = split(channels(), (channels() + tuning::kPackedRows - 1) / tuning::kPackedRows),
                blocks = split(blocks_, (context_.target.tasks + rows.chunks - 1) / rows.chunks);
    parallel(builder_, rows.chunks, [&](Index part) {
      parallel(builder_, blocks.chunks, [&](Index share) {
        loop_chunk(builder_, blocks, share, [&](Index block) {
          loop_chunk(builder_, rows, part, [&](Index c) { at(channel_) = c, vectors_of(block); });
        });
      });
    });
  }

  // As many channels as lanes of as many outputs: whole lines are read and written, since a processor turns the square
  // between in registers (codegen/x86/emit/turn.cpp).
  void over_squares() {
    const std::vector<int> adjoin = side_by_side();
    const Split tasks = split(channels() / s_.lanes, (context_.target.tasks + blocks_ - 1) / blocks_);
    const std::function<void(std::size_t, const std::function<void()>&)> inside = [&](std::size_t n, const auto& body) {
      if (n == adjoin.size()) return body();
      unrolled(builder_, dim(adjoin[n]).extent, [&](Index i) { at(adjoin[n]) = i, inside(n + 1, body); });
    };
    const auto squares = [&](const Index& block, const Index& vector, const Index& v) {
      unrolled(builder_, s_.lanes, [&](Index i) {
        at(channel_) = vector * s_.lanes + i;
        inside(1, [&] {
          builder_.loop(Index(0), Index(s_.lanes), Binding::vector,
                        [&](Index lane) { store(block, v * s_.lanes + lane); });
        });
      });
    };
    parallel(builder_, blocks_, [&](Index block) {
      parallel(builder_, tasks.chunks, [&](Index part) {
        const auto vectors_of_channels = [&] {
          loop_chunk(builder_, tasks, part, [&](Index vector) {
            serial(builder_, s_.pack_b / s_.lanes, [&](Index v) { squares(block, vector, v); });
          });
        };
        adjoin.size() > 1 ? vectors_of_channels() : over_taps(0, vectors_of_channels);
      });
    });
  }

  // Lanes along outputs whose taps lie side by side: all taps of them are read at once (turn.cpp), for a few channels,
  // and then written tap by tap: nine lines at a time would be in the same set of a cache.
  void over_runs() {
    const Split tasks =
        split(channels() / tuning::kPackedRows, ir::ceil_divide<std::int64_t>(context_.target.tasks, blocks_));
    parallel(builder_, blocks_, [&](Index block) {
      parallel(builder_, tasks.chunks, [&](Index part) {
        loop_chunk(builder_, tasks, part, [&](Index rows) {
          const ir::MemId staged =
              builder_.local(MemKind::scratch_local, type_, {taps(), tuning::kPackedRows, s_.pack_b});
          serial(builder_, tuning::kPackedRows, [&](Index row) {
            at(channel_) = rows * tuning::kPackedRows + row;
            each_tap([&](std::int64_t tap) {
              each_vector([&](const Index& in_block) {
                at(vector_) = block * s_.pack_b + in_block;
                builder_.store(staged, {Index(tap), row, in_block}, element_or_zero());
              });
            });
          });
          each_tap([&](std::int64_t tap) {
            serial(builder_, tuning::kPackedRows, [&](Index row) {
              at(channel_) = rows * tuning::kPackedRows + row;
              each_vector([&](const Index& in_block) {
                put(block, in_block, builder_.load(staged, {Index(tap), row, in_block}));
              });
            });
          });
        });
      });
    });
  }
  // As copies, in the order of the sums.
  void each_tap(const std::function<void(std::int64_t tap)>& body) {
    std::int64_t tap = 0;
    const std::function<void(std::size_t)> set = [&](std::size_t n) {
      if (n == sums_.size()) return body(tap++);
      if (sums_[n] == channel_) return set(n + 1);
      for (std::int64_t i = 0; i < count(sums_[n]); ++i) at(sums_[n]) = Index(i), set(n + 1);
    };
    set(0);
  }

  // Lanes along channels where those adjoin: whole lines are read, and what is written apart stays within a page.
  void over_channels() {
    const std::int64_t lanes = s_.lanes;
    const Split tasks = split((channels() + lanes - 1) / lanes, (context_.target.tasks + blocks_ - 1) / blocks_);
    const auto column = [&](const Index& block, const Index& vector, const Index& in_block) {
      builder_.loop(Index(0), Index(lanes), Binding::vector, [&](Index lane) {
        at(channel_) = vector * lanes + lane;
        if (channels() % lanes == 0) return store(block, in_block);
        builder_.when({compare(at(channel_), CompareKind::lt, channels())}, [&] { store(block, in_block); });
      });
    };
    parallel(builder_, blocks_, [&](Index block) {
      parallel(builder_, tasks.chunks, [&](Index part) {
        over_taps(0, [&] {
          loop_chunk(builder_, tasks, part, [&](Index vector) {
            serial(builder_, s_.pack_b, [&](Index in_block) { column(block, vector, in_block); });
          });
        });
      });
    });
  }

  // Neighbouring outputs are as far apart in memory as each has taps.
  bool outputs_have_taps() const {
    const Type& type = context_.graph.value(value_).type();
    if (!context_.grouping.stored[static_cast<std::size_t>(value_)] || bytes(type.dtype) != kWordBytes ||
        paired_ >= 0 || taps() == 1 || taps() > tuning::kMostTapsOfSquares)
      return false;
    std::int64_t elements = 1;
    const std::vector<int> order = physical_order(type);
    for (auto d = order.rbegin(); d != order.rend(); ++d) {
      const ir::DimSum& sum = c_.b.index[static_cast<std::size_t>(*d)];
      if (sum.coefficient_of(vector_) != 0) return elements == taps();
      if (sum.coefficient_of(channel_) != 0) return false;
      elements *= type.shape[*d];
    }
    return false;
  }

  // The taps of each channel and output at the points of weights.
  void transformed() {
    const WinogradDims dims = *winograd_dims(c_);
    const WinogradTransform transform(builder_, has_fma(context_.target.isa), type_);
    std::int64_t elements = 1;
    for (const std::int64_t extent : dims_) elements *= extent;
    // Whole lines, of which a cache would read each before it is overwritten: 9 MiB take 0.8 of the time around it.
    const bool stream = elements * bytes(type_) >= context_.target.l3_bytes / 4;
    const auto of_elements = [&](const Index& block, const Index& in_block, const auto& element_at) {
      at(vector_) = block * s_.pack_b + in_block;
      std::vector<std::vector<Arg>> columns;  // by s, then point
      for (std::int64_t s = 0; s < dims.across.taps; ++s) {
        std::vector<Arg> taps;
        for (std::int64_t r = 0; r < dims.down.taps; ++r) taps.push_back(element_at(r, s));
        columns.push_back(transform.weights(dims.down, taps));
      }
      if (to_ < 0) to_ = builder_.buffer(MemKind::write, type_, dims_, 64);
      for (std::size_t i = 0; i < columns[0].size(); ++i) {
        std::vector<Arg> across;
        for (const std::vector<Arg>& column : columns) across.push_back(column[i]);
        const std::vector<Arg> row = transform.weights(dims.across, across);
        for (std::size_t j = 0; j < row.size(); ++j)
          builder_.store(to_, {block, Index(static_cast<std::int64_t>(i * row.size() + j)), at(channel_), in_block},
                         row[j], stream);
      }
    };
    const auto set_tap = [&](std::int64_t r, std::int64_t s) { at(dims.r) = Index(r), at(dims.s) = Index(s); };
    const auto vectors_of = [&](const Index& block) {
      each_vector([&](const Index& in_block) {
        of_elements(block, in_block, [&](std::int64_t r, std::int64_t s) { return set_tap(r, s), element_or_zero(); });
      });
    };
    // Squares are turned into scratch, since the points of one channel need all of its taps.
    const auto square_of = [&](const Index& block, const Index& vector, const Index& v) {
      const ir::MemId turned =
          builder_.local(MemKind::scratch_local, type_, {s_.lanes, dims.down.taps, dims.across.taps, s_.lanes});
      unrolled(builder_, s_.lanes, [&](Index i) {
        at(channel_) = vector * s_.lanes + i;
        unrolled(builder_, dims.down.taps, [&](Index r) {
          unrolled(builder_, dims.across.taps, [&](Index s) {
            at(dims.r) = r, at(dims.s) = s;
            builder_.loop(Index(0), Index(s_.lanes), Binding::vector, [&](Index lane) {
              at(vector_) = block * s_.pack_b + v * s_.lanes + lane;
              builder_.store(turned, {i, r, s, lane}, element());
            });
          });
        });
      });
      serial(builder_, s_.lanes, [&](Index i) {
        at(channel_) = vector * s_.lanes + i;
        builder_.loop(Index(0), Index(s_.lanes), Binding::vector, [&](Index lane) {
          of_elements(block, v * s_.lanes + lane, [&](std::int64_t r, std::int64_t s) {
            return builder_.load(turned, {i, Index(r), Index(s), lane});
          });
        });
      });
    };
    if (side_by_side().size() > 1 && channels() % s_.lanes == 0 && dim(vector_).extent % s_.pack_b == 0) {
      const Split tasks = split(channels() / s_.lanes, ir::ceil_divide<std::int64_t>(context_.target.tasks, blocks_));
      return parallel(builder_, blocks_, [&](Index block) {
        parallel(builder_, tasks.chunks, [&](Index part) {
          loop_chunk(builder_, tasks, part, [&](Index vector) {
            serial(builder_, s_.pack_b / s_.lanes, [&](Index v) { square_of(block, vector, v); });
          });
        });
      });
    }
    if (blocks_ > 1 && channels() > tuning::kPackedRows && outputs_lie_inside()) return over_rows(vectors_of);
    const Split tasks = split(channels(), ir::ceil_divide<std::int64_t>(context_.target.tasks, blocks_));
    parallel(builder_, blocks_, [&](Index block) {
      parallel(builder_, tasks.chunks, [&](Index part) {
        loop_chunk(builder_, tasks, part, [&](Index c) { at(channel_) = c, vectors_of(block); });
      });
    });
  }
  // In memory a channel's outputs lie side by side, with their taps or without.
  bool outputs_lie_inside() const {
    const std::vector<int> order = physical_order(context_.graph.value(value_).type());
    const auto place_of = [&](int d) {
      return std::find_if(order.begin(), order.end(),
                          [&](int axis) { return c_.b.index[static_cast<std::size_t>(axis)].coefficient_of(d) != 0; });
    };
    return place_of(channel_) < place_of(vector_);
  }

  // Channels of groups are a loop: in an index they stand beside the groups, and two bounds are not proven at once.
  void by_threads() {
    std::vector<std::int64_t> apart_extents{1}, extents;
    for (const int d : apart_) apart_extents.push_back(dim(d).extent);
    const bool looped = !apart_.empty();
    std::int64_t items = 1;
    for (const int d : sums_) extents.push_back(looped && d == channel_ ? 1 : dim(d).extent);
    extents.push_back(s_.pack_b);
    for (const std::int64_t extent : extents) items *= extent;
    std::int64_t planes = 1;
    for (const std::int64_t extent : apart_extents) planes *= extent;
    cuda::along(builder_, planes, Binding::grid_z, [&](Index plane) {
      const std::vector<Index> outer = cuda::decode(plane, apart_extents);
      for (std::size_t i = 0; i < apart_.size(); ++i) at(apart_[i]) = outer[i + 1];
      cuda::along(builder_, blocks_, Binding::grid_y, [&](Index block) {
        cuda::each_thread(builder_, items, [&](Index item) {
          const std::vector<Index> place = cuda::decode(item, extents);
          for (std::size_t i = 0; i < sums_.size(); ++i) at(sums_[i]) = place[i];
          serial(builder_, looped ? channels() : 1, [&](Index c) {
            if (looped) at(channel_) = c;
            store(block, place.back());
          });
        });
      });
    });
  }

  const LowerContext& context_;
  const ir::Contraction& c_;
  const Schedule& s_;
  KernelBuilder builder_;
  LoweredKernel lowered_;
  std::map<int, ir::MemId> buffers_;
  const int vector_;
  const int value_;
  const DType type_;  // of what is packed
  int channel_ = -1;
  int paired_ = -1;                // the dim of which a factor has two; -1: none
  std::vector<Index> at_;          // by dim
  std::vector<int> apart_, sums_;  // dims of the operand that are blocks of their own; that are summed up
  std::vector<std::int64_t> dims_;
  std::int64_t blocks_ = 1;
  ir::MemId to_ = -1;
};

}  // namespace

LoweredKernel lower_packing(const LowerContext& context, const ir::Contraction& contraction, const Schedule& schedule,
                            int value, int packed, const std::string& name) {
  return Packing(context, contraction, schedule, value, name).run(packed);
}

}  // namespace fusejit::scheduler
